# SPDX-License-Identifier: GPL-3.0-or-later

"""Speed and memory of reading NCCL's logs: build/venv/bin/python tests/benchmarks/nccl_log.py [--ranks 64 256 1024]
[--mib 256]

A job of so many ranks, eight a host, and between its lines as many of a training program as make the size; and a log of
channels alone, as alltoall writes them. Each figure is of a process of its own. The baseline is one regular expression
over the same file, line by line: what grep-like scripts do.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent / "build/collections"))

from ansible_collections.linerate.rdma.plugins.module_utils._check.training.check import Facts, check
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.nccl.log import parse
from ansible_collections.linerate.rdma.plugins.module_utils._store.job_logs import read_lines
from ansible_collections.linerate.rdma.tests.benchmarks.support.memory import peak
from ansible_collections.linerate.rdma.tests.benchmarks.support.result import Arguments, Result, Results, parser, show
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
                    text = (
                        f"Channel {channel:02d}/1 : {rank}[{rank % 8}] -> {peer}[{peer % 8}] [send] via"
                        f" NET/IB/{channel}/GDRDMA/Shared"
                    )
                    size += file.write(f"{head} {text}\n")
            else:
                size += file.write(
                    f"[rank{number % ranks}]: step {number} loss 2.{number % 977:03d} lr 3.0e-04 tokens/s"
                    f" 41{number % 997:03d} mem 71.3 GiB\n"
                )
            number += 1


def measure(what: str, path: str) -> None:
    """Print processor seconds of the fastest of some rounds, growth of the peak memory in MiB, and what was found."""
    before = peak()
    times, note = [], ""
    for _round in range(ROUNDS):
        start = time.process_time()
        if what == "one expression":
            note = f"{sum(bool(BASELINE.search(line)) for line in read_lines([path]))} channels"
            times.append(time.process_time() - start)
        else:
            found = parse(read_lines([path]))
            times.append(time.process_time() - start)
            start = time.process_time()
            findings = check(Intent(()), Facts(found))
            note = (
                f"{sum(len(item.ranks) for item in found.communicators)} ranks, {len(findings)} findings in"
                f" {time.process_time() - start:.2f} s"
            )
            del found, findings
    growth = peak() - before
    print(json.dumps([min(times), growth, note]))


def main(arguments: Arguments = None) -> Results:
    options = _options(arguments)
    if options.one:
        measure(*options.one)
        return ()
    ranks_of_all, mib = ((16,), 1) if options.smallest else (options.ranks, options.mib)
    results: list[Result] = []
    for kind in ("training", "alltoall"):
        for ranks in ranks_of_all:
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder, "log")
                write(path, kind, ranks, mib)
                size, baseline = path.stat().st_size / 2**20, 0.0
                for what in ("one expression", "parse"):
                    done = subprocess.run(
                        [sys.executable, __file__, "--one", what, str(path)],
                        stdout=subprocess.PIPE,
                        text=True,
                        check=True,
                    )
                    seconds, memory, note = json.loads(done.stdout)
                    baseline = baseline or seconds
                    more = f"{size / seconds:.0f} MiB/s, peak memory +{memory:.0f} MiB, {note}"
                    results.append(
                        Result(
                            what,
                            f"{kind}, {ranks} ranks, {size:.0f} MiB",
                            seconds,
                            "processor s",
                            seconds / baseline,
                            "one expression",
                            more,
                        )
                    )
    return show(results, options.json)


def _options(arguments: Arguments) -> argparse.Namespace:
    made = parser(__doc__)
    made.add_argument("--ranks", type=int, nargs="+", default=[64, 256, 1024])
    made.add_argument("--mib", type=int, default=256)
    made.add_argument("--one", nargs=2, metavar=("WHAT", "LOG"), help=argparse.SUPPRESS)
    return made.parse_args(arguments)


if __name__ == "__main__":
    main()
