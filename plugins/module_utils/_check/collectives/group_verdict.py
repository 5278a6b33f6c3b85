# SPDX-License-Identifier: GPL-3.0-or-later

"""The verdict on one test of a collective, and the figure of a group that is proven."""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.schedule.collectives import (
    Kind,
)
from ..._model.measurement.collectives import RanTest, TestName
from ..._model.run.findings import FAIL, Finding
from .course_findings import (
    GroupRun,
)
from .floor import spell_gbs
from .judge import CollectiveFigure
from .repeats import Change


@dataclasses.dataclass(frozen=True)
class GroupVerdict:
    """The verdict on one test of a collective, with its findings and figure.

    :ivar findings: findings on the test
    :ivar passes: whether the test is proven and fast enough; None if it is not proven or gave no figure
    :ivar figure: bus bandwidth of the test; None if it gave none
    :ivar floor_gbs: lowest bus bandwidth in GB/s that passes; None if it is unknown
    :ivar bound_gbs: upper bound that the links allow, in GB/s; None if unknown
    :ivar changes: settings that a repeat of the test may change; empty unless the test is too slow
    """

    findings: tuple[Finding, ...]
    passes: typing.Optional[bool] = None
    figure: typing.Optional[CollectiveFigure] = None
    floor_gbs: typing.Optional[float] = None
    bound_gbs: typing.Optional[float] = None
    changes: tuple[Change, ...] = ()


#: checks of a figure that is proven
_OF_FIGURES = ("collectives.bandwidth", "collectives.cause")


@dataclasses.dataclass(frozen=True)
class GroupFigure:
    """The bus bandwidth of a group whose transport is proven, and the floor with which it is compared.

    :ivar collective: name of the collective
    :ivar kind: step to which the group belongs; ``soak`` for a soak
    :ivar nodes: names of the nodes
    :ivar bus_gbs: bus bandwidth that is compared with the floor, in GB/s
    :ivar floor_gbs: floor in GB/s; None if the group has none
    :ivar sizes: message sizes in bytes, each with its bus bandwidth in GB/s
    :ivar bound_gbs: upper bound that the links allow, in GB/s; None if unknown
    """

    collective: TestName
    kind: typing.Union[Kind, typing.Literal["soak"]]
    nodes: tuple[str, ...]
    bus_gbs: float
    floor_gbs: typing.Optional[float]
    sizes: tuple[tuple[int, float], ...] = ()
    bound_gbs: typing.Optional[float] = None

    @property
    def slow(self) -> bool:
        """Return whether the bus bandwidth is below the floor; False if the group has no floor."""
        return self.floor_gbs is not None and self.bus_gbs < self.floor_gbs


def describe_run(item: GroupVerdict, passes: typing.Optional[bool], ran: typing.Optional[RanTest]) -> GroupRun:
    """Return the result of one run of a group in the form in which repeated runs of the same group are compared.

    :param item: verdict on the run
    :param passes: whether the run was proven and fast enough; None if it was not proven or gave no figure
    :param ran: facts of the run; None if the test did not run
    """
    # a figure below its floor is compared as such
    failed = [found for found in item.findings if found.status == FAIL and found.check not in _OF_FIGURES]
    failure = (ran.failure if ran is not None else "") or (f"{failed[0].check}: {failed[0].measured}" if failed else "")
    return GroupRun(passes, item.figure.bus_gbs if item.figure is not None else None, failure)


def describe_verdict(item: GroupVerdict, passes: typing.Optional[bool]) -> str:
    """Return the verdict on a test as text for the progress of the stage.

    :param passes: whether the test was proven and fast enough; None if it was not proven or gave no figure
    """
    figure = spell_gbs(item.figure.bus_gbs) if item.figure is not None else "no valid bandwidth"
    return f"{figure}, {'fast enough' if passes else 'not verified' if passes is None else 'too slow'}"
