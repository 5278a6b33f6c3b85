# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the BIOS of many nodes from their BMCs in parallel, each within its own time limit. The answer of a BMC affects
its own node only.
"""

from __future__ import annotations

import dataclasses
import typing

from ...._model.base.errors import ParseError
from ...._model.node.bios import KEYS, BiosJob, Key, NodeBios
from ...._model.node.identity import Claims
from ...._observe.process import many
from ...._observe.redfish.bmc import Bmc, BmcError, Cause
from ...._observe.redfish.session import ROOT, Session
from ...._observe.redfish.trust import Trust
from ...._parse.redfish import resources
from ...._parse.redfish.registry import Registry
from ...._parse.redfish.resource import get_last_part
from ...._parse.redfish.settings import explain_why_held, list_others_pending, list_settings
from .registries import Registries, find_registry

#: BMCs at once. A thread costs 0.15 MiB and a file, of which most shells allow 1,024; tests/benchmarks/bmcs.py has the
#: figures. That many may hang until their time is over before another one has to wait
PARALLEL = 512
#: seconds of one BMC, all answers together
SECONDS = 60.0
#: of a job queue: pages of 50 on an iDRAC, which keeps 256 jobs; jobs of a page whose BMC tells them one by one only
_MOST_PAGES, _MOST_JOBS = 8, 32
#: jobs of the BIOS that are kept, those that are over among them: an iDRAC has 256 of all kinds
_MOST_BIOS_JOBS = 1_000
#: systems behind one BMC
_MOST_SYSTEMS = 8
#: causes that concern one resource alone
_PARTIAL: tuple[Cause, ...] = ("rights", "not_found", "busy", "status", "not_json", "too_large", "not_understood")

_NAME_THE_SYSTEM = "Set rdma_bmc_system (option system) to the system of the node"
#: vendors whose managers tell what holds the BIOS
_TELLING = ("dell", "supermicro", "super micro")

T = typing.TypeVar("T")
U = typing.TypeVar("U")


class Found(typing.NamedTuple):
    """The registry that defines the attributes of a BIOS and their allowed values, or the reason why there is none.

    :ivar registry: the registry; None if it could not be read
    :ivar error: reason why it could not be read; empty if it was
    """

    registry: typing.Optional[Registry]
    error: str = ""


@dataclasses.dataclass(frozen=True)
class BiosQuery:
    """The settings to read from each BMC, and how to read them.

    :ivar keys: keys of the intent whose settings are read
    :ivar seconds: time limit of all requests to one BMC, in seconds
    :ivar claims: identities that the nodes report, by which the system of a node is found among several systems of one
        BMC
    :ivar to_write: whether the BIOS may be written afterwards. The system must then be certain without the identity
        that the node reports
    """

    keys: tuple[Key, ...] = KEYS
    seconds: float = SECONDS
    claims: Claims = dataclasses.field(default_factory=Claims)
    to_write: bool = False


def read(
    bmcs: typing.Iterable[Bmc], trust: Trust, asked: BiosQuery, parallel: int = PARALLEL
) -> typing.Iterator[tuple[Bmc, typing.Union[NodeBios, BmcError]]]:
    """Yield each BMC with the BIOS of its node, or with the error that prevented the reading, in the order of
    completion.

    If the caller ends the iteration early, no further BMC is contacted, and running requests end within their time
    limit.

    :param bmcs: BMCs to read
    :param trust: TLS settings by which the certificates of BMCs are verified
    :param asked: settings to read, and how to read them
    :param parallel: maximum number of BMCs that are read at the same time
    """
    registries = Registries()
    return many.iterate_outcomes(
        lambda bmc: read_one(bmc, trust, asked, registries), bmcs, parallel, BmcError, Bmc.unforeseen
    )


def read_one(bmc: Bmc, trust: Trust, asked: BiosQuery, registries: Registries) -> NodeBios:
    """Return the BIOS of a node as its BMC reports it: the settings with their current, pending and allowed values.

    :param trust: TLS settings by which the certificate of the BMC is verified
    :param asked: settings to read, and how to read them
    :param registries: cache of parsed registries
    :raises BmcError: the BMC does not answer, or its answer cannot be parsed
    """
    with Session(bmc, trust, asked.seconds) as session:
        return BiosReader(session, asked, registries).read()


class BiosReader:
    """A reader of the BIOS of one BMC. Its ``read`` may be called repeatedly: the system and the registry, which do not
    change with the settings, are read once.

    :param session: connection to the BMC
    :param asked: settings to read, and how to read them
    :param registries: cache of parsed registries
    :ivar system: the system of the node, as the BMC describes it
    :raises BmcError: the BMC has no system that is certain to be that of the node
    """

    def __init__(self, session: Session, asked: BiosQuery, registries: Registries) -> None:
        self._session, self._keys, self._registries = session, asked.keys, registries
        self.system = find_system(session, asked.claims, asked.to_write)
        self._found: typing.Optional[Found] = None

    def read(self) -> NodeBios:
        """Return the current BIOS settings, with their pending and allowed values. A part that cannot be read, such as
        the job queue, is reported in ``errors`` of the result.

        :raises BmcError: the BMC does not answer, or its answer cannot be parsed
        """
        session, system = self._session, self.system
        bios = _ask_bmc(session, lambda: resources.parse_bios(session.get(system.bios)))
        errors: list[str] = []
        failures = [bios.refused] if bios.refused else []
        pending, pending_error = _read_part(
            session, "the settings object", lambda: _read_pending(session, bios), typing.cast(dict[str, typing.Any], {})
        )
        jobs, lockdown = _read_jobs_and_lockdown(session, system, errors, failures)
        found = self._found = self._found or _find_registry_or_error(session, system, bios.registry, self._registries)
        settings = list_settings(bios, pending, found.registry, explain_why_held(bios, lockdown, jobs), self._keys)
        return NodeBios(
            vendor=system.vendor,
            model=system.model,
            version=system.version,
            settings=settings,
            others_pending=list_others_pending(settings, pending),
            registry=found.registry.path if found.registry else "",
            registry_error=found.error,
            settings_uri=bios.settings,
            apply_times=bios.apply_times,
            jobs=jobs,
            lockdown=lockdown,
            # in the words of the BMC
            last_apply="; ".join(text for text in failures if not session.bmc.holds_secret(text)),
            pending_error=pending_error,
            errors=tuple(errors),
            identity=system.identity,
            asserted=session.bmc.asserted,
        )


def find_system(session: Session, claims: Claims, to_write: bool) -> resources.System:
    """Return the system of a node among the systems of its BMC: the one that the inventory names, else the only one
    with a BIOS, else the only one whose identity matches the node. The GPU baseboard is a system without a BIOS. A
    system that cannot be read is ignored if another one is proven to be that of the node and nothing is written.

    If the system may be written, the identity does not select among several systems, because a node with a false
    identity could select another one. Each system of the BMC then counts as a candidate: also one that could not be
    read, that is counted but not listed, or that shows no BIOS, because a BMC may hide the BIOS of a system that is off
    or starting.

    :param session: connection to the BMC
    :param claims: identities that the nodes report
    :param to_write: whether the system may be written or reset afterwards
    :raises BmcError: no system matches, or several do
    """
    bmc = session.bmc
    source = "the systems of the BMC"
    listed = _ask_bmc(session, lambda: session.get(f"{ROOT}/Systems"))
    paths = _ask_bmc(session, lambda: resources.list_members(listed, source))
    ids = {get_last_part(path): path for path in paths}
    if bmc.system and bmc.system not in ids:
        raise session.error(
            "not_found",
            f"the BMC has no system {bmc.system}",
            f"Set rdma_bmc_system to one of: {', '.join(ids) or 'none, the BMC has no systems'}",
        )
    if to_write and not bmc.system and _ask_bmc(session, lambda: resources.is_partial(listed, source)):
        raise session.error(
            "not_found",
            f"the system of the node is not certain: the BMC lists only some of its systems ({', '.join(ids)})",
            _NAME_THE_SYSTEM,
        )
    asked = {bmc.system: ids[bmc.system]} if bmc.system else dict(list(ids.items())[:_MOST_SYSTEMS])
    systems: dict[str, resources.System] = {}
    unread: list[BmcError] = []
    for name, path in asked.items():
        try:
            systems[name] = dataclasses.replace(resources.parse_system(session.get(path)), path=path)
        except BmcError as error:
            # such as the baseboard of an HGX that is not up yet: the system of the node may be another one
            if bmc.system or error.cause not in _PARTIAL:
                raise
            unread.append(error)
    with_bios = {name: system for name, system in systems.items() if system.bios}
    several = len(with_bios) > 1 or bool(unread)
    own = [
        system
        for system in with_bios.values()
        if several and claims.judge(bmc.node, system.identity, False).state == "proven"
    ]
    missing = [name for name in (asked if bmc.system else ids) if name not in systems]
    if len(own) == 1 and not (to_write and (len(systems) > 1 or missing)):
        return own[0]
    if to_write and with_bios and missing:
        raise session.error(
            "not_found",
            f"the system of the node is not certain: the BMC has {', '.join(with_bios)}, and these systems were not"
            f" read: {', '.join(missing)}{f' ({unread[0].what})' if unread else ''}",
            _NAME_THE_SYSTEM,
        )
    if unread:
        raise unread[0]
    if not with_bios:
        raise session.error(
            "not_found",
            f"none of the systems of the BMC ({', '.join(systems)}) has a Bios resource",
            "Update the firmware of the BMC, or configure the BMC of the host",
        )
    if len(with_bios) > 1:
        seen = f"several systems of the BMC have a Bios resource: {', '.join(with_bios)}"
        raise session.error("not_found", seen, _NAME_THE_SYSTEM)
    if to_write and len(systems) > 1:
        without = ", ".join(name for name in systems if name not in with_bios)
        raise session.error(
            "not_found",
            f"the system of the node is not certain: the BMC has {', '.join(with_bios)}, and these systems have no Bios"
            f" resource at present: {without}",
            _NAME_THE_SYSTEM,
        )
    return next(iter(with_bios.values()))


def read_others_pending(session: Session, system: resources.System) -> tuple[str, ...]:
    """Return the names of all BIOS attributes that have a pending value, sorted. Use this if the intent has no BIOS
    settings: another client has then set each pending value. No registry is read.

    :param session: connection to the BMC
    :param system: system of the node
    :raises BmcError: the BMC does not answer, or its answer cannot be parsed
    """
    bios = _ask_bmc(session, lambda: resources.parse_bios(session.get(system.bios)))
    return list_others_pending((), _ask_bmc(session, lambda: _read_pending(session, bios)))


def _find_registry_or_error(session: Session, system: resources.System, name: str, registries: Registries) -> Found:
    """Return the registry of a BIOS from its own BMC, or the reason why there is none.

    :param session: connection to the BMC
    :param system: system of the node
    :param name: name of the registry in the Bios resource
    :param registries: cache of parsed registries
    :raises BmcError: the BMC no longer answers
    """
    try:
        return Found(_ask_bmc(session, lambda: find_registry(session, system, name, registries)))
    except BmcError as error:
        if error.cause not in _PARTIAL:
            raise
        return Found(None, error.what)


def _read_jobs_and_lockdown(
    session: Session, system: resources.System, errors: list[str], failures: list[str]
) -> tuple[typing.Optional[tuple[BiosJob, ...]], typing.Optional[bool]]:
    """Return two values: the jobs of the BMC that block changes of the BIOS, and whether the BMC is in lockdown mode,
    which refuses changes. Each is None if the BMC does not support it or it cannot be read.

    :param session: connection to the BMC
    :param system: system of the node
    :param errors: list to which the reasons for unreadable parts are appended
    :param failures: list to which the error of the last failed job is appended
    """
    if not system.manager or not system.vendor.lower().startswith(_TELLING):
        return None, None

    def part(what: str, ask: typing.Callable[[], T]) -> typing.Optional[T]:
        found, error = _read_part(session, what, ask, None)
        errors.extend([error] if error else [])
        return found

    manager = part("manager", lambda: resources.parse_manager(session.get(system.manager)))
    if manager is None:
        return None, None
    queue = part("jobs", lambda: _read_bmc_jobs(session, manager.jobs)) if manager.jobs else None
    failed = resources.explain_failed_job(queue or ())
    failures.extend([failed] if failed else [])
    jobs = None if queue is None else resources.parse_bios_jobs(queue)
    return jobs, (
        part("lockdown mode", lambda: resources.is_locked_down(session.get(manager.lockdown)))
        if manager.lockdown
        else None
    )


def _read_pending(session: Session, bios: resources.Bios) -> dict[str, typing.Any]:
    return resources.parse_pending(session.get(bios.settings), bios.attributes) if bios.settings else {}


def _read_bmc_jobs(session: Session, path: str) -> list[typing.Mapping[str, typing.Any]]:
    source = "the jobs of the BMC"
    found: list[typing.Mapping[str, typing.Any]] = []
    page = f"{path}?$expand=*($levels=1)"
    for _page in range(_MOST_PAGES):
        answer = session.get(page)
        jobs = resources.list_expanded_members(answer, source)
        if jobs is None:
            paths = resources.list_members(answer, source)
            if len(paths) > _MOST_JOBS:
                raise session.error(
                    "not_understood", f"the BMC has {len(paths)} jobs and lists them only one by one", ""
                )
            found += resources.cut_jobs(session.get(path) for path in paths)
        else:
            found += resources.cut_jobs(jobs)
        if len(found) > _MOST_BIOS_JOBS:
            raise session.error("not_understood", f"the BMC has more than {_MOST_BIOS_JOBS} jobs of the BIOS", "")
        page = resources.next_page(answer)
        if not page:
            return found
    raise session.error("not_understood", f"the BMC has more than {_MOST_PAGES} pages of jobs", "")


def _read_part(
    session: Session, what: str, ask: typing.Callable[[], T], otherwise: U
) -> tuple[typing.Union[T, U], str]:
    """Read one resource of a BMC. If this resource alone cannot be read, return a default value instead.

    :param session: connection to the BMC
    :param what: name of the resource, for the reason
    :param ask: function without arguments that reads the resource
    :param otherwise: default value that is returned if the resource cannot be read
    :returns: the data with an empty text, or the default value with the reason
    :raises BmcError: the BMC no longer answers
    """
    try:
        return _ask_bmc(session, ask), ""
    except BmcError as error:
        if error.cause not in _PARTIAL:
            raise
        return otherwise, f"{what} could not be read: {error.what}"


def _ask_bmc(session: Session, ask: typing.Callable[[], T]) -> T:
    try:
        return ask()
    except ParseError as error:
        raise session.error("not_understood", error.seen, "Update the firmware of the BMC") from None
