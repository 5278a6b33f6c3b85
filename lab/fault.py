# SPDX-License-Identifier: GPL-3.0-or-later

"""A fault of the lab, and the object that it strikes: the same for the faults of all planes."""

from __future__ import annotations

import dataclasses
import typing

from .planes import Lab


@dataclasses.dataclass(frozen=True)
class Target:
    """The object that a fault strikes. If a device is named, the fabric is that of the device.

    :param leaf: of the fabric, counted from 1
    :param percent: of messages lost
    :param counter: the kernel's name of an error counter
    :param value: of the counter
    """

    fabric: str = "fabric-1"
    worker: str = "worker-1"
    device: str = "mlx5_0"
    leaf: int = 2
    percent: int = 50
    counter: str = "symbol_error"
    value: int = 123


#: does something to the lab, and returns what is now so
Action = typing.Callable[[Lab, Target], str]


@dataclasses.dataclass(frozen=True)
class Fault:
    """A fault with its two directions.

    :param what: one line for the user
    :param uses: fields of the target that matter
    :param on: injects it
    :param off: takes it back
    """

    name: str
    what: str
    uses: tuple[str, ...]
    on: Action
    off: Action


def on_worker(lab: Lab, worker: str, script: str) -> None:
    """Run a shell script on a worker.

    :raises StepError: the script fails
    """
    lab.agent(worker).check(script)


def run_script(script: str, said: str) -> Action:
    """Return the action that runs a shell script on the worker of the target.

    :param said: the state of the worker after it
    """

    def act(lab: Lab, target: Target) -> str:
        on_worker(lab, target.worker, script)
        return f"{target.worker}: {said}"

    return act


def take_nothing_back(_lab: Lab, _target: Target) -> str:
    """Do nothing: the fault is an event, after which the lab heals itself."""
    return "nothing to take back"
