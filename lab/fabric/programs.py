# SPDX-License-Identifier: GPL-3.0-or-later

"""The programs of the fabric plane, and the part of the lab that runs them as processes."""

from __future__ import annotations

import dataclasses
import pathlib
import signal
import typing


class ProcessManager(typing.Protocol):
    """The interface by which the plane starts and stops programs. ``lab.processes.Processes`` implements it."""

    namespace: str
    logs: pathlib.Path

    def start(
        self,
        name: str,
        argv: typing.Sequence[typing.Union[str, pathlib.Path]],
        env: typing.Optional[typing.Mapping[str, str]] = None,
        cwd: typing.Optional[pathlib.Path] = None,
        stdin: typing.Optional[int] = None,
    ) -> int: ...

    def stop(self, name: str) -> None: ...

    def alive(self, name: str) -> bool: ...

    def signal(self, name: str, number: signal.Signals) -> None: ...

    def log(self, name: str, lines: int = 15) -> str: ...


@dataclasses.dataclass(frozen=True)
class Programs:
    """The programs of the plane.

    :param ibsim: the simulator, as :mod:`lab.build.ibsim` builds it
    :param umad2sim: the library of the same build that connects a program to the simulator
    :param root: root file system of the workers, which has opensm and the diagnostics, with its own loader
    """

    ibsim: pathlib.Path
    umad2sim: pathlib.Path
    root: pathlib.Path
