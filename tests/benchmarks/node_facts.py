# SPDX-License-Identifier: GPL-3.0-or-later

"""Facts of one node of the lab, node_info against what is typed by hand: python -m lab exec build/venv/bin/python
tests/benchmarks/node_facts.py

By hand: one ssh command each, for what rows S1.1, S1.3, S1.6 and S1.8 of the main line look up, and the PCIe link, NUMA
node and SR-IOV beside it. Here: one ``ansible -m linerate.rdma.node_info`` as a whole, with the start of Ansible on
this machine. Both ways use the same ssh options: once with a connection for each command, as by hand, and once over one
that is kept open. They take turns, so that other load of the machine meets both. Without a lab, ``--smallest`` asks
this machine, with six HCAs in a folder and a shell in place of ssh: it says nothing of a connection's cost.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
import typing

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent / "build/collections"))

from ansible_collections.linerate.rdma.tests.benchmarks.support.result import Arguments, Result, Results, parser, show
from ansible_collections.linerate.rdma.tests.unit.sysfs_tree import Tree, add_six_hcas

ROOT = pathlib.Path(__file__).parent.parent.parent
BIN = pathlib.Path(sys.executable).parent
LIMIT_SECONDS = 120
CONNECTIONS = {
    "each its own": "-o ControlMaster=no -o ControlPath=none",
    "kept open": "-o ControlMaster=auto -o ControlPersist=10m -o ControlPath=/tmp/node-facts-%C",
}


def by_hand(sysfs: str) -> tuple[str, ...]:
    """The commands; the tree of the simulated HCAs takes the place of /sys where the source reads files."""
    return (
        "lspci | grep -i -e infiniband -e ethernet",  # S1.1
        "ip a",  # S1.1
        "ibv_devices",  # S1.3
        "ibv_devinfo",  # S1.3
        "ibstat",  # S1.3
        "lspci -nn",  # S1.6
        f"ls -al {sysfs}/class/net/*/device/infiniband/*/device",  # S1.6
        "lshw -c network -businfo",  # S1.6
        "lspci -vvv",  # S1.4: SR-IOV capability; PCIe link
        f"grep . {sysfs}/class/infiniband/*/device/numa_node",  # S4.1
        f"grep . {sysfs}/class/infiniband/*/device/sriov_*vfs",  # S1.4
        "ip -d link show",  # S1.8: VFs with their GUIDs and link state
    )


def variables(inventory: str, host: str) -> dict[str, typing.Any]:
    """Of the host, with the lab's folder put in."""
    done = subprocess.run(
        [BIN / "ansible-inventory", "-i", inventory, "--host", host],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return typing.cast(dict[str, typing.Any], json.loads(done.stdout.replace("{{ lab_folder }}", str(ROOT / ".lab"))))


def run(command: typing.Sequence[typing.Union[str, pathlib.Path]], ssh_arguments: str = "") -> tuple[float, int, str]:
    """Wall time in seconds, exit code and output."""
    environment = {**os.environ, "ANSIBLE_SSH_ARGS": ssh_arguments}
    start = time.monotonic()
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
    )
    return time.monotonic() - start, done.returncode, done.stdout + done.stderr


def must(command: typing.Sequence[typing.Union[str, pathlib.Path]], ssh_arguments: str = "") -> tuple[float, str]:
    """The same of a command that may not fail."""
    spent, code, output = run(command, ssh_arguments)
    if code:
        raise SystemExit(f"'{command[-1]}' ended with {code}: {output.strip()}")
    return spent, output


@dataclasses.dataclass(frozen=True)
class Node:
    """The node that is asked.

    :ivar inventory: of Ansible
    :ivar shell: the command before that of the hand, for options of ssh; :ivar end: closes a connection that is kept
    :ivar sysfs: folders, the last of which has the HCAs
    """

    name: str
    inventory: str
    sysfs: typing.Sequence[str]
    shell: typing.Callable[[str], list[str]]
    end: typing.Callable[[str], list[str]]


def by_ssh(inventory: str, name: str) -> Node:
    host = variables(inventory, name)
    key = ["-i", host["ansible_ssh_private_key_file"]] if "ansible_ssh_private_key_file" in host else []
    extra = shlex.split(host.get("ansible_ssh_extra_args", ""))
    address = f"{host.get('ansible_user', 'root')}@{host.get('ansible_host', name)}"

    def ssh(options: str) -> list[str]:
        return [host.get("ansible_ssh_executable", "ssh"), *shlex.split(options), *extra, *key]

    sysfs = host.get("rdma_sysfs", ["/sys"])
    return Node(
        name,
        inventory,
        sysfs,
        lambda options: [*ssh(options), address],
        lambda options: [*ssh(options), "-O", "exit", address],
    )


def here(folder: pathlib.Path) -> Node:
    """This machine, with the HCAs of a tree in a folder."""
    add_six_hcas(Tree(folder / "sysfs"))
    inventory = folder / "hosts.json"
    inventory.write_text(
        json.dumps(
            {"all": {"hosts": {"here": {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}}}}
        )
    )
    return Node(
        "here",
        str(inventory),
        ["/sys", str(folder / "sysfs")],
        lambda _options: ["sh", "-c"],
        lambda _options: ["true"],
    )


def compare(node: Node, connection: str, arguments: str, runs: int) -> typing.Iterator[Result]:
    """By hand and by the module, in turns."""
    wanted = json.dumps({"sysfs": list(node.sysfs)})
    module = [str(BIN / "ansible"), "-i", node.inventory, node.name, "-m", "linerate.rdma.node_info", "-a", wanted]
    shell = node.shell(arguments)
    # also opens the connection that is kept
    there = must(
        [*shell, "for tool in lspci ip ibv_devices ibv_devinfo ibstat ls lshw grep; do command -v $tool; done; true"]
    )[1].split()
    tools = {pathlib.PurePath(path).name for path in there}
    every = by_hand(node.sysfs[-1])
    commands = [command for command in every if command.split()[0] in tools]
    hands, modules = [], []
    for _run in range(runs):
        # some end with 1 where they find nothing; what counts here is that they were asked
        hands.append(sum(run([*shell, command])[0] for command in commands))
        modules.append(must(module, arguments)[0])
    run(node.end(arguments))
    missing = sorted({command.split()[0] for command in every} - tools)
    left_out = f"; not installed there: {', '.join(missing)}" if missing else ""
    size, baseline = f"{node.name}, connection {connection}", f"{len(commands)} commands by hand"
    for what, times, more in ((baseline, hands, left_out), ("node_info", modules, "")):
        middle, all_times = statistics.median(times), ", ".join(f"{taken:.2f}" for taken in times)
        yield Result(
            what, size, middle, "s", middle / statistics.median(hands), baseline, f"median of {all_times}{more}"
        )


def main(arguments: Arguments = None) -> Results:
    made = parser(__doc__)
    made.add_argument("-i", "--inventory", default="inventory/lab")
    made.add_argument("--host", default="worker-1")
    made.add_argument("--runs", type=int, default=3)
    options = made.parse_args(arguments)
    if options.smallest:
        with tempfile.TemporaryDirectory() as folder:
            return show(compare(here(pathlib.Path(folder)), "none", "", 1), options.json)
    node = by_ssh(options.inventory, options.host)
    return show(
        [result for name, ssh in CONNECTIONS.items() for result in compare(node, name, ssh, options.runs)], options.json
    )


if __name__ == "__main__":
    main()
