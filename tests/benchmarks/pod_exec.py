# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What it costs to ask each node once: build/venv/bin/python tests/benchmarks/pod_exec.py [--nodes 1000] [--hosts 40]

Ours is ``linerate.rdma.nodes_info`` as a whole: all facts of all nodes by one process with a pool of threads. Each
container gets the archive of our observers, and prints what a node with 8 HCAs and 64 VFs answers; the facts are
written and compared. Beside it Ansible with a process for each host and task, through ``linerate.rdma.pod``,
``kubernetes.core.kubectl`` and ssh. All these bring is the answer of ``ansible.builtin.ping``, with pipelining: less
than ours, and the least that a task costs. They are measured on some hosts; what is beyond the start of Ansible is
scaled by their number.

Exec is served by the code of Kubernetes where it can be built, with kubectl of the same release, and otherwise by a
server of the tests, with kubectl of PATH. ssh is OpenSSH with Ansible's own options. The latency is before each
process, with exec as with ssh; connections are made without one. Containers and nodes are processes of this machine. A
thousand nodes have processors of their own for them, so that ours is also measured with containers that have no
process, and its pool of threads by itself. Each other way is one command, from its start to its end. Its processor time
is that of the client: with all children, and the connections that ssh keeps open.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import sys
import tempfile
import time
import typing

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent / "build/collections"))

from kubernetes.client import ApiClient, Configuration
from kubernetes.dynamic import DynamicClient

from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.observers import Observer, ObserversFacts
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.fact_kinds import HOST, IB_PORTS, list_kinds_from
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.exec.pod_exec import PARALLEL
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.read_by_observers import (
    ObserveRequest,
    read_nodes,
)
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.tests.benchmarks.support import exec_rig, sshd
from ansible_collections.linerate.rdma.tests.benchmarks.support.fleet import NOW, Fleet
from ansible_collections.linerate.rdma.tests.benchmarks.support.result import Arguments, Result, Results, parser, show
from ansible_collections.linerate.rdma.tests.benchmarks.support.spent import Spent, run

KINDS = list_kinds_from(HOST, IB_PORTS)
ROOT = pathlib.Path(__file__).parents[2]
ANSIBLE = str(pathlib.Path(sys.executable).with_name("ansible"))
NODES, HOSTS, FORKS, LATENCY = 1000, 40, 20, 0.3
SMALLEST = (4, 2, 0.01)
PING, RUN, NAMESPACE = "ansible.builtin.ping", "benchmark", "observers"
OURS, PLAYED, POOL = (
    "linerate.rdma.nodes_info",
    "the same, containers without a process",
    "its pool of threads alone, no fact is written",
)
BASELINE, BY_KUBECTL, BY_SSH = f"{PING} by linerate.rdma.pod", f"{PING} by kubernetes.core.kubectl", f"{PING} by ssh"
Variables = dict[str, typing.Any]
Kubectl = typing.Union[pathlib.Path, exec_rig.NotBuilt]
PathTable = dict[str, typing.Union[Variables, exec_rig.NotBuilt, sshd.NotServed]]


def answer() -> Variables:
    """What a node prints, kind by kind."""
    with tempfile.TemporaryDirectory() as folder:
        fleet = Fleet(3)
        fleet.write(pathlib.Path(folder))
        said: Variables = {}
        for module in ("node_info", "subnet_manager_info"):
            said.update(
                json.loads(
                    pathlib.Path(folder, module, f"{fleet.names[0]}.json")
                    .read_text()
                    .replace(f'"{NOW}"', str(time.time()))
                )
            )
    return {kind: {"value": said[kind]} for kind in KINDS}


class Machine:
    """Ansible on this machine.

    :ivar url: of the API server
    :ivar folder: for all that is written; its path must be short
    :ivar kubectl: the program, or why there is none
    """

    def __init__(self, url: str, folder: pathlib.Path, kubectl: Kubectl) -> None:
        self.url, self.folder, self.kubectl = url, folder, kubectl
        path = os.pathsep.join(
            (*([str(kubectl.parent)] if isinstance(kubectl, pathlib.Path) else []), os.environ["PATH"])
        )
        self._environment = {
            **os.environ,
            "PATH": path,
            "TMPDIR": str(folder),
            "KUBECACHEDIR": str(folder / "kube"),
            "ANSIBLE_CALLBACK_RESULT_FORMAT": "json",
        }

    def ansible(self, hosts: int, variables: Variables, *arguments: str) -> tuple[Spent, str]:
        """One command, on hosts with these variables."""
        known = {"ansible_pipelining": True, "ansible_python_interpreter": sys.executable, **variables}
        inventory = self.folder / "hosts.json"
        inventory.write_text(
            json.dumps({"all": {"hosts": {f"node-{number}": {} for number in range(hosts)}, "vars": known}})
        )
        return run([ANSIBLE, "-i", str(inventory), "-f", str(FORKS), *arguments], ROOT, self._environment)

    def ping(self, hosts: int, variables: Variables) -> Spent:
        """A task of the least size on each host."""
        spent, said = self.ansible(hosts, variables, "all", "-m", PING)
        if said.count("pong") != hosts:
            raise SystemExit(f"{said.count('pong')} of {hosts} hosts answered: {said[-1000:]}")
        return spent

    def look(self, nodes: int, expected: Variables, python: pathlib.Path, container: str) -> Spent:
        """All facts of all nodes.

        :param python: what runs in a container in its place
        :param container: its name, by which exec_rig.go tells one that has no process
        """
        with tempfile.TemporaryDirectory(dir=self.folder) as report:
            names, folder = [f"node-{number}" for number in range(nodes)], FactFolder(report, RUN)
            observers = tuple(Observer(name, "ready", pod=f"observer-{name}", container=container) for name in names)
            folder.write("observers", value=ObserversFacts(NAMESPACE, "", observers))
            wanted = {"facts_dir": report, "run": RUN, "host": self.url, "api_key": "token", "python": str(python)}
            spent, _said = self.ansible(
                0, {"ansible_connection": "local"}, "localhost", "-m", OURS, "-a", json.dumps(wanted)
            )
            for kind, value in expected.items():
                wrong = [
                    str(fact)[:500]
                    for fact in folder.of_nodes(kind, names).values()
                    if not _same(fact["value"], value["value"])
                ]
                if wrong:
                    raise SystemExit(f"{kind} of {len(wrong)} of {nodes} nodes is wrong: {wrong[0]}")
        return spent

    def ask(self, nodes: int, python: pathlib.Path, container: str) -> Spent:
        """The same by the threads of nodes_info alone, in this process: Ansible does not start, and no fact is
        written."""
        # no discovery: the paths are fixed
        cluster = Cluster(DynamicClient(ApiClient(Configuration(host=self.url)), discoverer=lambda *_arguments: None))
        observers = [
            Observer(f"node-{number}", "ready", pod=f"observer-{number}", container=container)
            for number in range(nodes)
        ]
        start, processor = time.monotonic(), time.process_time()
        errors = [
            one.error
            for _node, seen in read_nodes(cluster, NAMESPACE, observers, ObserveRequest(KINDS, python=str(python)))
            for one in seen.values()
        ]
        spent = Spent(time.monotonic() - start, time.process_time() - processor)
        if errors != [None] * nodes * len(KINDS):
            raise SystemExit(
                f"{len(errors)} facts of {nodes} nodes came, of which some are wrong:"
                f" {[error for error in errors if error][:1]}"
            )
        return spent


def _same(seen: typing.Any, expected: typing.Any) -> bool:
    """The controller's clock is written beside that of the node."""
    return {**seen, **expected} == seen if isinstance(seen, dict) else seen == expected


def ways(stack: contextlib.ExitStack, machine: Machine, latency: float) -> PathTable:
    """Ansible's ways to nodes, as variables; or why one is not to be had here."""
    by_pod = {
        "ansible_connection": "linerate.rdma.pod",
        "ansible_pod_namespace": NAMESPACE,
        "ansible_pod_api": machine.url,
        "ansible_pod_api_key": "token",
    }
    by_kubectl = {
        "ansible_connection": "kubernetes.core.kubectl",
        "ansible_kubectl_namespace": NAMESPACE,
        "ansible_kubectl_host": machine.url,
    }
    found: PathTable = {
        BASELINE: by_pod,
        BY_KUBECTL: machine.kubectl if isinstance(machine.kubectl, exec_rig.NotBuilt) else by_kubectl,
    }
    try:
        found[BY_SSH] = stack.enter_context(sshd.served(machine.folder, latency))
    except sshd.NotServed as reason:
        found[BY_SSH] = reason
    return found


def not_measured(found: PathTable) -> tuple[str, ...]:
    """What is missing, with the reason."""
    return tuple(f"not measured: {way} ({reason})" for way, reason in found.items() if isinstance(reason, Exception))


def compare(
    binary: typing.Optional[pathlib.Path], server: str, kubectl: Kubectl, nodes: int, hosts: int, latency: float
) -> typing.Iterator[Result]:
    with contextlib.ExitStack() as stack:
        folder, expected = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory())), answer()
        shown, python = folder / "answer.json", folder / "python"
        shown.write_text(json.dumps(expected))
        python.write_text(f"#!/bin/sh\ncat > /dev/null\nexec cat {shown}\n")
        python.chmod(0o755)
        url = stack.enter_context(exec_rig.served(latency, shown, binary))
        machine = Machine(url, folder, kubectl)
        ours = {OURS: machine.look(nodes, expected, python, "observer")}
        if binary:
            ours[PLAYED] = machine.look(nodes, expected, python, "played")
        ours[POOL] = machine.ask(nodes, python, "played" if binary else "observer")
        start, _said = machine.ansible(hosts, {}, "all", "-m", "ansible.builtin.meta", "-a", "noop")
        theirs = ways(stack, machine, latency)
        measured = {
            way: _scaled(machine.ping(hosts, known), start, nodes / hosts)
            for way, known in theirs.items()
            if isinstance(known, dict)
        }
        size, bytes_each = f"{nodes} nodes, {latency:g} s of latency", shown.stat().st_size
    scaled = "; ".join((f"{hosts} hosts with {FORKS} forks, scaled", *not_measured(theirs)))
    note = f"served by {server}; {PARALLEL} at once, {bytes_each // 1000} kB from each"
    for part, unit in enumerate(("s", "processor s")):
        for what, spent in {**measured, **ours}.items():
            yield Result(
                what,
                size,
                spent[part],
                unit,
                spent[part] / measured[BASELINE][part],
                BASELINE,
                note if what in ours else scaled,
            )


def _scaled(spent: Spent, start: Spent, times: float) -> Spent:
    """What more hosts would cost; Ansible starts once."""
    return Spent(*(begun + (all_of_it - begun) * times for all_of_it, begun in zip(spent, start)))


def main(arguments: Arguments = None) -> Results:
    made = parser(__doc__)
    made.add_argument("--nodes", type=int, default=NODES)
    made.add_argument("--hosts", type=int, default=HOSTS, help="that Ansible's own ways are measured on")
    made.add_argument("--own-server", action="store_true", help="do not build Kubernetes' code")
    options: argparse.Namespace = made.parse_args(arguments)
    nodes, hosts, latency = SMALLEST if options.smallest else (options.nodes, options.hosts, LATENCY)
    build = not options.smallest and not options.own_server
    binary, server = None, "the server of the tests"
    if build:
        try:
            binary, server = exec_rig.build(), "the code of Kubernetes"
        except exec_rig.NotBuilt as reason:
            server += f" ({reason})"
    try:
        kubectl: Kubectl = exec_rig.kubectl() if build else exec_rig.installed_kubectl()
    except exec_rig.NotBuilt as reason:
        kubectl = reason
    return show(compare(binary, server, kubectl, nodes, hosts, latency), options.json)


if __name__ == "__main__":
    main()
