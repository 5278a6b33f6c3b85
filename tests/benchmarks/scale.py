# SPDX-License-Identifier: GPL-3.0-or-later

"""What site.yml costs the controller with many nodes: build/venv/bin/python tests/benchmarks/scale.py [--nodes 100 300]
[--save FOLDER]

The stages validate to platform and the report run as users run them, with one difference: the connection answers each
observer from a file, so ssh and the nodes cost nothing. The floor is Ansible's own, of the same run:
``ansible.builtin.ping`` as often for each node, with the same forks, through the same connection ('bare') and through
the local one, which starts a Python for each ping. Seconds are of processors, user and system, of ansible-playbook and
all its children; memory is in MB of 10^6 bytes. See docs/scale.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import typing

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent / "build/collections"))

import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import PASS
from ansible_collections.linerate.rdma.tests.benchmarks.support.fleet import Fleet
from ansible_collections.linerate.rdma.tests.benchmarks.support.result import Arguments, Result, Results, parser, show

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIZES, SMALLEST = (10, 100, 300), (4,)
STAGES = ("validate", "discover", "fabric", "reachability", "platform")
#: connection of a floor: with more nodes than this it is measured with FEW_PINGS for each node, and scaled to as many
#: as site.yml has tasks
WHOLE_FLOOR = {"replay": 500, "local": 20}
FEW_PINGS = 2
SAMPLE_SECONDS = 1.0
MEGABYTE = 1e6


@dataclasses.dataclass(frozen=True)
class Cost:
    """Of one ansible-playbook with all its children.

    :ivar seconds: of processors, user and system
    :ivar wall: seconds
    :ivar largest: peak memory of the largest process, in MB
    :ivar together: peak memory of all processes together, shared pages counted once, in MB; sampled
    :ivar output: what it printed
    """

    seconds: float
    wall: float
    largest: float
    together: float
    code: int
    output: str


@dataclasses.dataclass(frozen=True)
class Measured:
    """One size.

    :ivar tasks: that a node ran, on average, skipped ones too
    :ivar bare: seconds of as many pings through the connection that answers from files
    :ivar local: the same through the local connection
    :ivar folder: MB on disk of the report's folder
    :ivar judged: seconds of judging the stage discover alone, with its facts
    """

    nodes: int
    site: Cost
    tasks: float
    bare: float
    local: float
    folder: float
    judged: float

    def results(self) -> typing.Iterator[Result]:
        """The figures, each against Ansible's own floor of the same run where there is one."""
        size, site = f"{self.nodes} nodes", self.site

        def result(what: str, value: float, unit: str, base: float, baseline: str, note: str = "") -> Result:
            return Result(what, size, value, unit, value / base, baseline, note)

        yield result(FLOOR, self.bare, "processor s", self.bare, FLOOR)
        yield result(
            "site.yml",
            site.seconds,
            "processor s",
            self.bare,
            FLOOR,
            f"{site.wall:.0f} s by the clock, {self.tasks:.1f} tasks a node",
        )
        if self.local == self.local:
            yield result("as many pings, local connection", self.local, "processor s", self.bare, FLOOR)
        yield result("judging stage discover", self.judged, "processor s", self.bare, FLOOR)
        yield result(LARGEST, site.largest, "MB", site.largest, LARGEST)
        yield result("all processes together", site.together, "MB", site.largest, LARGEST)
        yield result("the report's folder", self.folder, "MB", site.largest, LARGEST, "on disk")


FLOOR, LARGEST = "as many pings that do nothing", "largest process"


def measure(nodes: int, save: typing.Optional[pathlib.Path] = None, local: bool = True) -> Measured:
    """Run all of it in a folder of its own, and make sure that the run found what is wrong and nothing else."""
    with tempfile.TemporaryDirectory(prefix="scale-") as name:
        folder, fleet = pathlib.Path(name), Fleet(nodes)
        fleet.write(folder / "answers")
        _write_inventory(folder, fleet)
        site = play(folder, "linerate.rdma.site", "--tags", ",".join((*STAGES, "report")))
        if save:
            shutil.copytree(folder / "report", save / f"report-{nodes}", dirs_exist_ok=True)
            (save / f"output-{nodes}.txt").write_text(site.output, encoding="utf-8")
        _assert_found(fleet, folder / "report", site)
        size = sum(path.stat().st_blocks * 512 for path in (folder / "report").rglob("*")) / MEGABYTE
        tasks = _tasks(site.output, fleet.names)
        judged = float(
            subprocess.run(
                [sys.executable, __file__, "--judge", folder / "report"], capture_output=True, text=True, check=True
            ).stdout
        )
        floors = [
            _floor(folder, connection, nodes, tasks) for connection in (["replay", "local"] if local else ["replay"])
        ]
        return Measured(nodes, site, tasks, floors[0], floors[-1] if local else float("nan"), size, judged)


def play(folder: pathlib.Path, *arguments: str) -> Cost:
    """Run ansible-playbook in a folder with the collection of this checkout."""
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith(("ANSIBLE_", "K8S_AUTH_"))},
        # no API server is asked, whoever runs this
        "KUBECONFIG": str(folder / "kubeconfig"),
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_PIPELINING": "1",
        "ANSIBLE_CONNECTION_PLUGINS": str(pathlib.Path(__file__).parent / "support" / "connection"),
        "REPLAY_FOLDER": str(folder / "answers"),
    }
    program = pathlib.Path(sys.executable).parent / "ansible-playbook"
    prefix = os.environ.get("SCALE_PROFILE", "").split()
    start = time.monotonic()
    with (folder / "output.txt").open("w+", encoding="utf-8") as output:
        process = subprocess.Popen(
            [*prefix, program, "-i", "hosts.json", *arguments],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        peak = _Peak(process.pid)
        _pid, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        together = peak.end()
        output.seek(0)
        text = output.read()
    return Cost(
        usage.ru_utime + usage.ru_stime,
        time.monotonic() - start,
        usage.ru_maxrss * 1024 / MEGABYTE,
        together,
        process.returncode,
        text,
    )


class _Peak(threading.Thread):
    """Samples the memory of a process and all below it, in MB, each shared page by its share."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid, self._peak, self._ended = pid, 0.0, threading.Event()
        self.start()

    def run(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            self._peak = max(self._peak, sum(map(_proportional, _family(self._pid))))

    def end(self) -> float:
        self._ended.set()
        self.join()
        return self._peak


def _family(pid: int) -> typing.Iterator[int]:
    yield pid
    try:
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    except OSError:
        return
    for child in children.split():
        yield from _family(int(child))


def _proportional(pid: int) -> float:
    try:
        found = re.search(
            r"^Pss:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii"), re.MULTILINE
        )
    except OSError:
        # it has ended
        return 0.0
    return int(found[1]) * 1024 / MEGABYTE if found else 0.0


def _write_inventory(folder: pathlib.Path, fleet: Fleet) -> None:
    """The fleet, and variables as users have them."""
    hosts: dict[str, dict[str, str]] = {name: {} for name in fleet.names}
    variables = {**fleet.variables(), "rdma_report_dir": str(folder / "report")}
    nodes = {"hosts": hosts, "vars": {"ansible_connection": "replay", "ansible_python_interpreter": sys.executable}}
    (folder / "hosts.json").write_text(
        json.dumps({"all": {"children": {"rdma_nodes": nodes}, "vars": variables}}), encoding="utf-8"
    )


def _assert_found(fleet: Fleet, report: pathlib.Path, site: Cost) -> None:
    """All stages ran and are open, what is wrong was found, and nothing else."""
    found, gates = set(), {}
    for path in sorted((report / "stages").glob("*.jsonl")):
        head, *judged = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        gates[head["stage"]] = head["gate"]
        found |= {
            (item["finding"]["check"], item["finding"]["subject"])
            for item in judged
            if item["finding"]["status"] != PASS
        }
    right = gates == dict.fromkeys(STAGES, "open") and found == fleet.findings() and (report / "report.html").exists()
    if not right:
        differing = sorted(found ^ fleet.findings())[:10]
        raise SystemExit(
            f"the run is not what it should be: {gates}, differing findings {differing}\n{site.output[-4000:]}"
        )


def _tasks(output: str, names: typing.Collection[str]) -> float:
    """Tasks that a node ran, on average: what the recap counts as ok and skipped. One that was run once for all counts
    for one node."""
    pattern = re.compile(r"^(\S+)\s+: ok=(\d+).*unreachable=0\s+failed=0\s+skipped=(\d+)", re.MULTILINE)
    counts = [int(ok) + int(skipped) for name, ok, skipped in pattern.findall(output) if name in set(names)]
    if len(counts) != len(names):
        raise SystemExit(f"the recap names {len(counts)} of {len(names)} nodes:\n{output[-4000:]}")
    return sum(counts) / len(counts)


def _floor(folder: pathlib.Path, connection: str, nodes: int, tasks: float) -> float:
    """Seconds of Ansible for so many tasks on each node that do nothing."""
    pings = FEW_PINGS if nodes > WHOLE_FLOOR[connection] else round(tasks)
    tower = [{"hosts": "rdma_nodes", "gather_facts": False, "tasks": [{"ansible.builtin.ping": {}}] * pings}]
    (folder / "floor.yml").write_text(yaml.dump(tower, Dumper=_Plain), encoding="utf-8")
    cost = play(folder, "floor.yml", "-e", f"ansible_connection={connection}")
    if cost.code:
        raise SystemExit(cost.output[-2000:])
    return cost.seconds * tasks / pings


class _Plain(yaml.SafeDumper):
    """YAML without anchors."""

    def ignore_aliases(self, data: typing.Any) -> bool:
        return True


def judge(report: str) -> float:
    """Seconds of judging the stage discover, in this process."""
    from ansible_collections.linerate.rdma.plugins.module_utils._app.frame import judge_facts
    from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
    from ansible_collections.linerate.rdma.plugins.module_utils._store.run_start import read_start

    run = read_start(report)
    assert run is not None
    wishes = {"fabrics": run.fabrics, "waivers": run.waivers, "cluster": run.cluster}
    options = {
        **wishes,
        "stage": "discover",
        "run": run.run,
        "started": run.started,
        "report_dir": report,
        "changes": [],
        "error": None,
    }
    start = time.process_time()
    judged = judge_facts(options, FactFolder(report, run.run), False)
    seconds = time.process_time() - start
    assert judged["gate"] == "open", judged["lines"]
    return seconds


def main(arguments: Arguments = None) -> Results:
    made = parser(__doc__)
    made.add_argument("--nodes", type=int, nargs="+", default=SIZES, help="4 or more each")
    made.add_argument("--save", type=pathlib.Path, help="keep reports and output below this folder")
    made.add_argument("--no-local", action="store_true", help="leave out the floor through the local connection")
    made.add_argument("--judge", metavar="REPORT", help=argparse.SUPPRESS)
    options = made.parse_args(arguments)
    if options.judge:
        print(judge(options.judge))
        return ()
    local = not (options.no_local or options.smallest)
    sizes = SMALLEST if options.smallest else options.nodes
    return show([result for nodes in sizes for result in measure(nodes, options.save, local).results()], options.json)


if __name__ == "__main__":
    main()
