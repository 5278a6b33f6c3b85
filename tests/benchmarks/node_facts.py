# SPDX-License-Identifier: GPL-3.0-or-later

"""Facts of one node of the lab, hca_info against what is typed by hand: build/venv/bin/python tests/benchmarks/node_facts.py --host worker-1

By hand: one ssh command each, for what rows S1.1, S1.3, S1.6 and S1.8 of the main line look up, and the PCIe link, NUMA node and SR-IOV beside it.
Here: one ``ansible -m linerate.rdma.hca_info`` as a whole, with the start of Ansible on this machine. Both ways use the same ssh options: once with a
connection for each command, as by hand, and once over one that is kept open. They take turns, so that other load of the machine meets both.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import time
import typing

ROOT = pathlib.Path(__file__).parent.parent.parent
BIN = pathlib.Path(sys.executable).parent
LIMIT_SECONDS = 120
CONNECTIONS = {
    "each its own": "-o ControlMaster=no -o ControlPath=none",
    "kept open": "-o ControlMaster=auto -o ControlPersist=10m -o ControlPath=/tmp/node-facts-%C",
}


def by_hand(sysfs: str) -> typing.Tuple[str, ...]:
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


def variables(inventory: str, host: str) -> typing.Dict[str, typing.Any]:
    """Of the host, with the lab's folder put in."""
    done = subprocess.run([BIN / "ansible-inventory", "-i", inventory, "--host", host], cwd=ROOT, capture_output=True, text=True, check=True)
    return typing.cast(typing.Dict[str, typing.Any], json.loads(done.stdout.replace("{{ lab_folder }}", str(ROOT / ".lab"))))


def run(command: typing.Sequence[typing.Union[str, pathlib.Path]], ssh_arguments: str = "") -> typing.Tuple[float, int, str]:
    """Wall time in seconds, exit code and output."""
    environment = {**os.environ, "ANSIBLE_SSH_ARGS": ssh_arguments}
    start = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
    return time.monotonic() - start, done.returncode, done.stdout + done.stderr


def must(command: typing.Sequence[typing.Union[str, pathlib.Path]], ssh_arguments: str = "") -> typing.Tuple[float, str]:
    """The same of a command that may not fail."""
    spent, code, output = run(command, ssh_arguments)
    if code:
        raise SystemExit(f"'{command[-1]}' ended with {code}: {output.strip()}")
    return spent, output


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-i", "--inventory", default="inventory/lab")
    parser.add_argument("--host", default="worker-1")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    host = variables(options.inventory, options.host)
    roots = host.get("rdma_sysfs", ["/sys"])
    module = [BIN / "ansible", "-i", options.inventory, options.host, "-m", "linerate.rdma.hca_info", "-a", json.dumps({"sysfs": roots})]
    print(f"connection     commands   by hand    hca_info   hca_info / by hand   median of {options.runs}: by hand, hca_info of each run")
    for name, arguments in CONNECTIONS.items():
        key = ["-i", host["ansible_ssh_private_key_file"]] if "ansible_ssh_private_key_file" in host else []
        extra = shlex.split(host.get("ansible_ssh_extra_args", ""))
        address = f"{host.get('ansible_user', 'root')}@{host.get('ansible_host', options.host)}"
        ssh = [host.get("ansible_ssh_executable", "ssh"), *shlex.split(arguments), *extra, *key, address]
        # also opens the connection that is kept
        there = must([*ssh, "for tool in lspci ip ibv_devices ibv_devinfo ibstat ls lshw grep; do command -v $tool; done; true"])[1].split()
        tools = {pathlib.PurePath(path).name for path in there}
        commands = [command for command in by_hand(roots[-1]) if command.split()[0] in tools]
        hands, modules = [], []
        for _run in range(options.runs):
            # some end with 1 where they find nothing; what counts here is that they were asked
            hands.append(sum(run([*ssh, command])[0] for command in commands))
            modules.append(must(module, arguments)[0])
        hand, one = statistics.median(hands), statistics.median(modules)
        runs = "; ".join(f"{by_hands:.1f}, {by_module:.1f}" for by_hands, by_module in zip(hands, modules))
        print(f"{name:<14} {len(commands):>8}   {hand:5.1f} s    {one:5.1f} s    {one / hand:<18.2f}   {runs}")
        missing = {command.split()[0] for command in by_hand(roots[-1])} - tools
        if missing:
            print(f"               left out, not installed there: {', '.join(sorted(missing))}")
        if "ControlPersist" in arguments:
            run([*ssh[:-1], "-O", "exit", address])


if __name__ == "__main__":
    main()
