# SPDX-License-Identifier: GPL-3.0-or-later

"""Speed and memory of reading NCCL's logs: build/venv/bin/python tests/benchmarks/nccl_log.py [--ranks 64 256 1024] [--mib 256]

A job of so many ranks, eight a host, and between its lines as many of a training program as make the size; and a log of channels alone, as alltoall
writes them. Each figure is of a process of its own. The baseline is one regular expression over the same file, line by line: what grep-like scripts do.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time
import typing

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent / "build/collections"))

from ansible_collections.linerate.rdma.plugins.module_utils._check.training.check import Facts, check
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._observe.nccl_log import read_lines
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.nccl_log import parse
from ansible_collections.linerate.rdma.tests.unit.nccl_job import Job

HCAS = tuple(f"mlx5_{number}" for number in range(8))
BASELINE = re.compile(r"NCCL (?:INFO|WARN) .*via (\S+)")
#: of point-to-point connections: channels of each pair
P2P_CHANNELS = 4
ROUNDS = 2


def write(path: pathlib.Path, kind: str, ranks: int, mib: int) -> None:
    """A log of at least so many MiB."""
    job = Job(hosts=ranks // 8, gpus=8, hcas=HCAS, channels=32)
    with path.open("w", encoding="utf-8") as file:
        size, number = 0, 0
        for line in job.lines():
            size += file.write(line)
        while size < mib * 2**20:
            if kind == "alltoall":
                rank, peer = number // ranks % ranks, number % ranks
                head = f"job-worker-{rank // 8}:{100 + rank % 8}:{200 + rank % 8} [{rank % 8}] NCCL INFO"
                for channel in range(P2P_CHANNELS):
                    text = f"Channel {channel:02d}/1 : {rank}[{rank % 8}] -> {peer}[{peer % 8}] [send] via NET/IB/{channel}/GDRDMA/Shared"
                    size += file.write(f"{head} {text}\n")
            else:
                size += file.write(f"[rank{number % ranks}]: step {number} loss 2.{number % 977:03d} lr 3.0e-04 tokens/s 41{number % 997:03d} mem 71.3 GiB\n")
            number += 1


def measure(what: str, path: str) -> None:
    """Print processor seconds of the fastest of some rounds, growth of the peak memory in MiB, and what was found."""

    def work() -> typing.Any:
        if what == "baseline":
            return sum(1 for line in read_lines([path]) if BASELINE.search(line))
        return parse(read_lines([path]))

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    times, found = [], None
    for _round in range(ROUNDS):
        found = None
        start = time.process_time()
        found = work()
        times.append(time.process_time() - start)
    growth = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    note = f"{found} channels" if what == "baseline" else f"{sum(len(item.ranks) for item in found.communicators)} ranks"
    if what == "parse":
        start = time.process_time()
        note += f", {len(check(Intent(()), Facts(found)))} findings in {time.process_time() - start:.2f} s"
    print(json.dumps([min(times), growth, note]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[64, 256, 1024])
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--one", nargs=2, metavar=("WHAT", "LOG"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        measure(*options.one)
        return
    print("log       ranks  MiB   what      seconds  MiB/s  ratio  peak memory MiB")
    for kind in ("training", "alltoall"):
        for ranks in options.ranks:
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder, "log")
                write(path, kind, ranks, options.mib)
                size, baseline = path.stat().st_size / 2**20, 0.0
                for what in ("baseline", "parse"):
                    done = subprocess.run([sys.executable, __file__, "--one", what, str(path)], capture_output=True, text=True, check=True)
                    seconds, memory, note = json.loads(done.stdout)
                    baseline = baseline or seconds
                    print(f"{kind:<9} {ranks:<6} {size:<5.0f} {what:<8} {seconds:8.2f} {size / seconds:6.0f} {seconds / baseline:6.1f}  {memory:15.0f}  {note}")


if __name__ == "__main__":
    main()
