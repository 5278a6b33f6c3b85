# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Faults of the cluster plane, injected for real, each with its way back. Those of the fabrics are in fabric/faults.py."""

from __future__ import annotations

import dataclasses
import signal
import typing

from . import controlplane, workers
from .console import LabError
from .description import Worker
from .fabric.faults import FAULTS as FABRIC_FAULTS
from .fabric.faults import Target
from .planes import Lab
from .run import run

Action = typing.Callable[[Lab, Target], str]


@dataclasses.dataclass(frozen=True)
class Fault:
    """As a fault of the fabrics, for the whole lab: what it does, what of the target matters, and its two directions."""

    name: str
    what: str
    uses: typing.Tuple[str, ...]
    on: Action
    off: Action


def ssh_command(lab: Lab, worker: str) -> typing.List[str]:
    """ssh as root to a worker; works in the lab's network namespace."""
    return workers.ssh(lab.folder, _worker(lab, worker))


def _on_worker(lab: Lab, worker: str, script: str) -> None:
    run([*ssh_command(lab, worker), "--", script], limit=60, remedy=f"can 'lab/ssh {worker}' log in?")


def _worker(lab: Lab, name: str) -> Worker:
    for worker in lab.description.workers:
        if worker.name == name:
            return worker
    raise LabError(f"no worker '{name}'", f"use one of {', '.join(worker.name for worker in lab.description.workers)}")


def _power_off(lab: Lab, target: Target) -> str:
    lab.processes.stop(_worker(lab, target.worker).name)
    return f"{target.worker} has no power"


def _power_on(lab: Lab, target: Target) -> str:
    lab.start_worker(_worker(lab, target.worker), lab.build())
    workers.wait_ready(lab.description, lab.folder, lab.processes, lab.authority)
    lab.refresh()
    return f"{target.worker} has booted"


def _freeze(lab: Lab, target: Target) -> str:
    lab.processes.signal(_worker(lab, target.worker).name, signal.SIGSTOP)
    return f"{target.worker} hangs"


def _thaw(lab: Lab, target: Target) -> str:
    lab.processes.signal(_worker(lab, target.worker).name, signal.SIGCONT)
    return f"{target.worker} goes on"


def _stop_api(lab: Lab, _target: Target) -> str:
    lab.processes.stop("kube-apiserver")
    return "the API server is gone"


def _start_api(lab: Lab, _target: Target) -> str:
    controlplane.start_api(lab.description, lab.folder, lab.processes, lab.authority)
    return "the API server serves"


def _restart_api(lab: Lab, target: Target) -> str:
    _stop_api(lab, target)
    return _start_api(lab, target)


def _storage_link(state: str) -> Action:
    def act(lab: Lab, target: Target) -> str:
        netdev = lab.description.sriov.netdev
        _on_worker(lab, target.worker, f"ip link set {netdev} {state}")
        return f"{target.worker} {netdev} is {state}"

    return act


def _in_pods(command: str) -> Action:
    """Run a command in the network namespace of each of a worker's pods that has a VF, which is net1 there."""

    def act(lab: Lab, target: Target) -> str:
        script = f'for pod in /run/netns/*; do if nsenter --net="$pod" ip link show net1 > /dev/null 2>&1; then nsenter --net="$pod" {command}; fi; done'
        _on_worker(lab, target.worker, script)
        return f"{target.worker}: {command}"

    return act


_ALL = (
    Fault("worker-off", "a worker loses power; taken back, it boots anew", ("worker",), _power_off, _power_on),
    Fault("worker-frozen", "a worker hangs: its links are up, it does not answer", ("worker",), _freeze, _thaw),
    Fault("api-down", "the API server is gone", (), _stop_api, _start_api),
    Fault("api-restart", "the API server is restarted; nothing to take back", (), _restart_api, _start_api),
    Fault("vf-down", "the PF of the storage NIC is down, so its VFs lose their carrier", ("worker",), _storage_link("down"), _storage_link("up")),
    Fault(
        "slow-node",
        "the VFs in a worker's pods are limited to 1 Mb/s",
        ("worker",),
        _in_pods("tc qdisc replace dev net1 root tbf rate 1mbit burst 64kb latency 400ms"),
        _in_pods("tc qdisc del dev net1 root"),
    ),
)


def _of_fabric(name: str) -> Fault:
    fault = FABRIC_FAULTS[name]

    def act(action: typing.Callable[..., str]) -> Action:
        def both(lab: Lab, target: Target) -> str:
            said = action(lab.fabric, target)
            lab.refresh()
            return said

        return both

    return Fault(name, fault.what, fault.uses, act(fault.on), act(fault.off))


FAULTS: typing.Mapping[str, Fault] = {fault.name: fault for fault in (*_ALL, *map(_of_fabric, FABRIC_FAULTS))}
