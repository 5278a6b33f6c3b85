# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What it costs to run one command in a pod of each node: build/venv/bin/python tests/benchmarks/pod_exec.py [--nodes 1000] [--hosts 40]

One process with a pool of threads, each node with its stdin, against Ansible itself: ``ansible.builtin.ping`` through the connection linerate.rdma.pod,
whose stdin is smaller, with a process for each host and task. That is measured on some hosts and scaled by their number. Both ask the same server, which is
the code of Kubernetes for exec where it can be built, and otherwise one of the tests. Containers are processes of this machine. A thousand nodes have
processors of their own for them, so that the pool is also measured with containers that have no process. Processor time is that of the client alone.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
import typing

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent / "build/collections"))

from kubernetes.client import ApiClient, Configuration
from kubernetes.dynamic import DynamicClient

from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes import Answer, Container
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.pod_exec import PARALLEL, run_on_many
from ansible_collections.linerate.rdma.tests.benchmarks.support import exec_rig
from ansible_collections.linerate.rdma.tests.benchmarks.support.result import Arguments, Result, Results, parser, show

ROOT = pathlib.Path(__file__).parents[2]
ANSIBLE = pathlib.Path(sys.executable).with_name("ansible")
NODES, HOSTS, FORKS, LATENCY, STDIN = 1000, 40, 20, 0.3, 160_000
SMALLEST = (4, 1, 0.01)
BASELINE = "ansible.builtin.ping by the connection linerate.rdma.pod"


def pool(url: str, nodes: int, container: str = "") -> typing.Tuple[float, float]:
    """Wall seconds and processor seconds of one process for all nodes.

    :param container: its name, by which exec_rig.go tells one that has no process
    """
    # no discovery: the paths are fixed
    cluster = Cluster(DynamicClient(ApiClient(Configuration(host=url)), discoverer=lambda *_arguments: None))
    stdin, wanted = os.urandom(STDIN), [Container("observers", f"node-{number}", container) for number in range(nodes)]
    start, processor = time.monotonic(), time.process_time()
    found = dict(run_on_many(cluster, wanted, ["sh", "-c", "echo $(wc -c)"], stdin))
    spent = time.monotonic() - start, time.process_time() - processor
    wrong = [outcome for outcome in found.values() if outcome != Answer(0, f"{STDIN}\n".encode(), b"")]
    if wrong or len(found) != nodes:
        raise SystemExit(f"{len(wrong)} of {len(found)} answers are wrong: {wrong[:1]}")
    return spent


def ansible(url: str, hosts: int, folder: pathlib.Path) -> typing.Tuple[float, float]:
    """Wall seconds and processor seconds of Ansible and all of its workers."""
    known = {"ansible_connection": "linerate.rdma.pod", "ansible_pipelining": True, "ansible_python_interpreter": sys.executable, "ansible_pod_api": url}
    inventory = folder / "hosts.json"
    inventory.write_text(json.dumps({"all": {"hosts": {f"node-{number}": {} for number in range(hosts)}, "vars": {**known, "ansible_pod_api_key": "token"}}}))
    start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [str(ANSIBLE), "all", "-i", str(inventory), "-f", str(FORKS), "-m", "ansible.builtin.ping"]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "TMPDIR": str(folder)}, capture_output=True, text=True, check=False)
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode or done.stdout.count("pong") != hosts:
        raise SystemExit(f"'ansible' ended with {done.returncode}: {(done.stdout + done.stderr)[-1000:]}")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compare(binary: typing.Optional[pathlib.Path], server: str, nodes: int, hosts: int, latency: float) -> typing.Iterator[Result]:
    with exec_rig.served(latency, binary) as url, tempfile.TemporaryDirectory() as folder:
        ours = {"one process, a pool of threads": pool(url, nodes)}
        if binary:
            ours["the same, containers without a process"] = pool(url, nodes, "played")
        theirs = ansible(url, hosts, pathlib.Path(folder))
    size, scaled = f"{nodes} nodes, {latency:g} s of latency", f"{hosts} hosts with {FORKS} forks, scaled"
    yield Result(BASELINE, size, theirs[0] * nodes / hosts, "s", 1.0, BASELINE, scaled)
    for what, (wall, _processor) in ours.items():
        note = f"served by {server}; {PARALLEL} at once, {STDIN // 1000} kB of stdin each"
        yield Result(what, size, wall, "s", wall / (theirs[0] * nodes / hosts), BASELINE, note)
    yield Result(BASELINE, size, theirs[1] / hosts, "processor s a node", 1.0, BASELINE, scaled)
    for what, (_wall, processor) in ours.items():
        each = processor / nodes
        yield Result(what, size, each, "processor s a node", each / (theirs[1] / hosts), BASELINE, f"{processor:.1f} processor s in all")


def main(arguments: Arguments = None) -> Results:
    made = parser(__doc__)
    made.add_argument("--nodes", type=int, default=NODES)
    made.add_argument("--hosts", type=int, default=HOSTS, help="that Ansible is measured on")
    made.add_argument("--own-server", action="store_true", help="do not build Kubernetes' code")
    options: argparse.Namespace = made.parse_args(arguments)
    nodes, hosts, latency = SMALLEST if options.smallest else (options.nodes, options.hosts, LATENCY)
    binary, server = None, "the server of the tests"
    if not options.smallest and not options.own_server:
        try:
            binary, server = exec_rig.build(), "the code of Kubernetes"
        except exec_rig.NotBuilt as reason:
            server += f" ({reason})"
    return show(compare(binary, server, nodes, hosts, latency), options.json)


if __name__ == "__main__":
    main()
