# SPDX-License-Identifier: GPL-3.0-or-later

"""Sets the BIOS of many nodes through their BMCs. Each BMC must be proven to belong to its node. New values wait for a
reset, which this module never orders.
"""

from __future__ import annotations

import dataclasses
import typing

from ...._analysis.fleet.bios import Wanted
from ...._model.node.bios import BiosChange, BiosJob, BiosPlan, BiosWrite, NodeBios
from ...._model.node.identity import Claims
from ...._model.run.guard import Guard
from ...._observe.process import many
from ...._observe.redfish.bmc import Bmc, BmcError
from ...._observe.redfish.session import Session
from ...._observe.redfish.trust import Trust
from ...._observe.redfish.writer import Writer, refuse_stranger
from ...._plan.bios import is_value_pending, make_body, plan_bios
from .read_bios import PARALLEL, BiosQuery, BiosReader
from .registries import Registries

#: seconds of one BMC, all answers together; it is read twice
SECONDS = 120.0
#: refusals that concern this moment: somebody else wrote meanwhile, or the connection broke and nobody knows what
#: became of it
_LOOK_AGAIN = ("changed", "closed")


@dataclasses.dataclass(frozen=True)
class May:
    """The conditions under which a BMC may be written.

    :ivar claims: identities that the nodes report, by which each BMC is proven to belong to its node
    :ivar guard: permission to write. It is asked before each write, and raises an error if the run no longer holds the
        Lease
    """

    claims: Claims
    guard: Guard


def set_all(
    bmcs: typing.Iterable[Bmc],
    wanted: typing.Mapping[str, Wanted],
    trust: Trust,
    may: May,
    check_mode: bool = False,
    parallel: int = PARALLEL,
    seconds: float = SECONDS,
) -> typing.Iterator[tuple[Bmc, typing.Union[BiosChange, BmcError]]]:
    """Write the desired settings to all BMCs. Yield each BMC with the written changes, or with its error, in the order
    of completion.

    :param bmcs: BMCs to write
    :param wanted: desired settings by node; for each node, the accepted values of each BIOS setting, by key of the
        intent
    :param trust: TLS settings by which the certificates of BMCs are verified
    :param may: conditions of each write
    :param check_mode: whether the changes are only computed
    :param parallel: maximum number of BMCs that are written at the same time
    :param seconds: time limit of all requests to one BMC, in seconds
    """
    registries = Registries()

    def work(bmc: Bmc) -> BiosChange:
        return set_one(bmc, wanted[bmc.node], trust, registries, may, check_mode, seconds)

    return many.iterate_outcomes(work, bmcs, parallel, BmcError, Bmc.unforeseen)


def set_one(
    bmc: Bmc,
    wanted: Wanted,
    trust: Trust,
    registries: Registries,
    may: May,
    check_mode: bool = False,
    seconds: float = SECONDS,
) -> BiosChange:
    """Write to one BMC those desired settings that differ and do not wait for a reset yet. Return the written values,
    and whether values wait for a reset.

    :param wanted: accepted values of each BIOS setting, by key of the intent
    :param trust: TLS settings by which the certificate of the BMC is verified
    :param registries: cache of parsed registries
    :param may: identities of the nodes and the permission to write, which are checked before the write
    :param check_mode: whether the changes are only computed
    :param seconds: time limit of all requests to the BMC, in seconds
    :raises BmcError: the BMC is not proven to belong to the node, a setting cannot be written, or the BMC did not
        accept or keep the values
    :raises RdmaError: the run no longer holds the Lease
    """
    asked = BiosQuery(tuple(wanted), seconds, may.claims, to_write=True)
    with Session(bmc, trust, asked.seconds) as session:
        reader = BiosReader(session, asked, registries)
        refuse_stranger(session, may.claims, reader.system.identity)
        writer = Writer(session, reader.system, may.claims, may.guard)
        bios, todo = _decide_bios_writes(session, reader, wanted)
        if check_mode or not todo:
            return _build_bios_change(bios, wanted, todo, check_mode)
        try:
            job = writer.patch(bios.settings_uri, make_body(bios, todo))
        except BmcError as error:
            if error.cause not in _LOOK_AGAIN:
                raise
            bios, left = _decide_bios_writes(session, reader, wanted)
            if not left:
                # it took them before the connection broke, or somebody else has set the same
                return _build_bios_change(bios, wanted, todo if error.cause == "closed" else (), check_mode)
            todo, job = left, writer.patch(bios.settings_uri, make_body(bios, left))
        return _build_bios_change(_verify_write(session, reader, wanted, job), wanted, todo, check_mode, job)


def _decide_bios_writes(session: Session, reader: BiosReader, wanted: Wanted) -> tuple[NodeBios, tuple[BiosWrite, ...]]:
    """Read the BIOS, and compare it with the desired values. Return the current BIOS, and the values that must be
    written.

    :param session: connection to the BMC
    :param reader: reader of its BIOS
    :param wanted: accepted values of each BIOS setting, by key of the intent
    :raises BmcError: a desired setting cannot be written
    """
    bios = reader.read()
    if bios.pending_error:
        raise session.error(
            "not_understood",
            f"the settings that wait for a reset are unknown: {bios.pending_error}",
            "Check the log of the BMC, restart the BMC, then rerun",
        )
    found = plan_bios(bios, wanted)
    if found.refusals:
        first = found.refusals[0]
        remedies = dict.fromkeys(one.remedy for one in found.refusals)
        raise session.error(
            first.cause, "; ".join(f"{one.key}: {one.why.rstrip('.')}" for one in found.refusals), "; ".join(remedies)
        )
    return bios, found.writes


def _verify_write(session: Session, reader: BiosReader, wanted: Wanted, job: str) -> NodeBios:
    """Read the BIOS after a write that the BMC accepted, verify that each written value is in force or waits for a
    reset, and return the BIOS.

    :param session: connection to the BMC
    :param reader: reader of its BIOS
    :param wanted: accepted values of each BIOS setting, by key of the intent
    :param job: id of the job with which the BMC applies the values; empty if there is no job
    :raises BmcError: a written value is neither in force nor waiting for a reset
    """
    bios = reader.read()
    if job and bios.jobs == ():
        # a queue of jobs may show a new one late
        bios = dataclasses.replace(bios, jobs=(BiosJob(job, "new"),))
    left = BiosPlan() if bios.pending_error else plan_bios(bios, wanted)
    lost = [f"{one.attribute} (still {one.before})" for one in left.writes] + [one.why for one in left.refusals]
    if bios.pending_error or lost:
        what = bios.pending_error or f"these settings are not pending: {', '.join(lost)}"
        raise session.error(
            "not_kept",
            f"the BMC accepted the settings, but {what}",
            "Check the log of the BMC. Update its firmware, or change these settings on the BIOS setup screen, then"
            " rerun",
        )
    return bios


def _build_bios_change(
    bios: NodeBios, wanted: Wanted, writes: tuple[BiosWrite, ...], check_mode: bool, job: str = ""
) -> BiosChange:
    waiting = is_value_pending(bios, wanted) or (check_mode and any(write.reset_required for write in writes))
    return BiosChange(writes, waiting, job or (bios.jobs[0].id if bios.jobs and waiting else ""))
