# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the BIOS of many nodes from their BMCs: some at a time, each within a time of its own, and a registry once for all nodes that share it."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import threading
import time
import typing

from .._model.bios import KEYS, BiosJob, Key, NodeBios
from .._model.errors import ParseError
from .._observe import many
from .._observe.redfish.bmc import Bmc, BmcError, Cause
from .._observe.redfish.session import Session
from .._observe.redfish.trust import Trust
from .._parse.redfish import resources
from .._parse.redfish.registry import Registry, candidates, location, parse, supports
from .._parse.redfish.resource import last
from .._parse.redfish.settings import settings, why_held

#: BMCs at once. A thread costs 0.15 MiB and a file, of which most shells allow 1,024; tests/benchmarks/bmcs.py has the figures.
#: That many may hang until their time is over before another one has to wait
PARALLEL = 512
#: seconds of one BMC, all answers together
SECONDS = 60.0
#: seconds that a node waits for a registry that another one reads, before it reads it itself
_PATIENCE = 10.0
#: of a job queue: pages of 50 on an iDRAC, which keeps 256 jobs; jobs of a page whose BMC tells them one by one only
_MOST_PAGES, _MOST_JOBS = 8, 32
#: of registries among which the supported systems decide; of systems behind one BMC
_MOST_REGISTRIES, _MOST_SYSTEMS = 4, 8
#: causes that concern one resource alone
_PARTIAL: typing.Tuple[Cause, ...] = ("rights", "not_found", "busy", "status", "not_json", "too_large", "not_understood")
#: those of them that hold for each node of a model
_OF_MODEL: typing.Tuple[Cause, ...] = ("not_found", "not_json", "too_large", "not_understood")

_ROOT = "/redfish/v1"
#: vendors whose managers tell what holds the BIOS
_TELLING = ("dell", "supermicro", "super micro")

T = typing.TypeVar("T")
U = typing.TypeVar("U")


class Found(typing.NamedTuple):
    """A registry, or why there is none."""

    registry: typing.Optional[Registry]
    error: str = ""


class Registries:
    """Registries by what they are the same for. Who needs one while another one reads it waits, but not for long: that BMC may be slow.

    :param patience: seconds of waiting
    """

    def __init__(self, patience: float = _PATIENCE) -> None:
        self._patience = patience
        self._lock = threading.Lock()
        self._known: typing.Dict[typing.Hashable, concurrent.futures.Future[typing.Optional[Found]]] = {}

    def is_known(self, key: typing.Hashable) -> bool:
        """Whether somebody has read it, or is about to."""
        with self._lock:
            return key in self._known

    def get(self, key: typing.Hashable, read: typing.Callable[[], typing.Tuple[Found, bool]], end: float) -> Found:
        """The registry for ``key``.

        :param read: reads it, and says whether that holds for all; what it raises is of who asked alone
        :param end: of the time of who asks, by the monotonic clock
        """
        limit = min(end, time.monotonic() + self._patience)
        while True:
            with self._lock:
                known = self._known.get(key)
                mine = known or self._known.setdefault(key, concurrent.futures.Future())
            if known is None:
                return self._read(key, mine, read)
            try:
                found = known.result(max(0.0, limit - time.monotonic()))
            except concurrent.futures.TimeoutError:
                return self._read(key, concurrent.futures.Future(), read)
            if found is not None:
                return found

    def _read(
        self, key: typing.Hashable, mine: concurrent.futures.Future[typing.Optional[Found]], read: typing.Callable[[], typing.Tuple[Found, bool]]
    ) -> Found:
        shared = None
        try:
            found, for_all = read()
            shared = found if for_all else None
            return found
        finally:
            with self._lock:
                if shared is not None:
                    # whoever was too slow is not waited for any more
                    self._known[key] = mine
                elif self._known.get(key) is mine:
                    del self._known[key]
            mine.set_result(shared)


@dataclasses.dataclass(frozen=True)
class Asked:
    """What each BMC is asked.

    :ivar seconds: that one BMC has in all
    """

    keys: typing.Tuple[Key, ...] = KEYS
    seconds: float = SECONDS


def read(
    bmcs: typing.Iterable[Bmc], trust: Trust, asked: Asked, parallel: int = PARALLEL
) -> typing.Iterator[typing.Tuple[Bmc, typing.Union[NodeBios, BmcError]]]:
    """Each BMC with what it says about its BIOS, or why it says nothing, in the order in which they end.

    Who leaves the iterator early starts no more of them, and those that run end within their time.

    :param parallel: BMCs at once
    """
    registries = Registries()
    return many.outcomes(lambda bmc: read_one(bmc, trust, asked, registries), bmcs, parallel, BmcError, Bmc.unforeseen)


def read_one(bmc: Bmc, trust: Trust, asked: Asked, registries: Registries) -> NodeBios:
    """What one BMC says about its BIOS.

    :raises BmcError: it says nothing, or nothing that can be understood
    """
    with Session(bmc, trust, asked.seconds) as session:
        return Reader(session, asked.keys, registries).read()


class Reader:
    """The BIOS of one BMC, to be read once or again. What its values do not change is read once: the system, and the registry.

    :raises BmcError: the BMC says nothing about its system
    """

    def __init__(self, session: Session, keys: typing.Iterable[Key], registries: Registries) -> None:
        self._session, self._keys, self._registries = session, tuple(keys), registries
        self._system = system_of(session)
        self._found: typing.Optional[Found] = None

    def read(self) -> NodeBios:
        """What it says now.

        :raises BmcError: it says nothing, or nothing that can be understood
        """
        session, system = self._session, self._system
        bios = _understood(session, lambda: resources.bios(session.get(system.bios)))
        # without model or version, the names of its attributes tell one BIOS from another
        whole = system.vendor and system.model and system.version
        key = (system.vendor, system.model, system.version, bios.registry, "" if whole else frozenset(bios.attributes))

        def registry() -> Found:
            return self._registries.get(key, lambda: _find(session, system, bios.registry), session.end)

        # the first node of a model goes for the registry now, so that it is there when the others, who ask for the rest first, come for it
        if self._found is None and not self._registries.is_known(key):
            self._found = registry()
        errors: typing.List[str] = []
        failures = [bios.refused] if bios.refused else []
        pending, pending_error = _partly(session, "the settings object", lambda: _pending(session, bios), typing.cast(typing.Dict[str, typing.Any], {}))
        jobs, lockdown = _held(session, system, errors, failures)
        found = self._found = self._found or registry()
        return NodeBios(
            vendor=system.vendor,
            model=system.model,
            version=system.version,
            settings=settings(bios, pending, found.registry, why_held(bios, lockdown, jobs), self._keys),
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
        )


def system_of(session: Session) -> resources.System:
    """The system of the node: the one that is named, else the only one with a BIOS. GPUs of a baseboard are a system without one.

    :raises BmcError: there is none, or not one alone
    """
    bmc = session.bmc
    paths = _understood(session, lambda: resources.members(session.get(f"{_ROOT}/Systems"), "the systems of the BMC"))
    ids = {last(path): path for path in paths}
    if bmc.system and bmc.system not in ids:
        raise session.error("not_found", f"it has no system {bmc.system}", f"Use one of {', '.join(ids) or 'none: it has no systems'}")
    asked = {bmc.system: ids[bmc.system]} if bmc.system else dict(list(ids.items())[:_MOST_SYSTEMS])
    systems = {name: resources.system(session.get(path)) for name, path in asked.items()}
    with_bios = {name: system for name, system in systems.items() if system.bios}
    if not with_bios:
        raise session.error("not_found", f"none of its systems ({', '.join(systems)}) has a Bios", "Update its firmware, or ask the BMC of the host")
    if len(with_bios) > 1:
        raise session.error("not_found", f"several of its systems have a Bios: {', '.join(with_bios)}", "Name that of the node in the option system")
    return next(iter(with_bios.values()))


def _find(session: Session, system: resources.System, name: str) -> typing.Tuple[Found, bool]:
    """The registry of a BIOS, and whether that holds for all nodes of the model.

    :raises BmcError: the BMC does not answer any more
    """
    try:
        return Found(_understood(session, lambda: _registry(session, system, name))), True
    except BmcError as error:
        if error.cause not in _PARTIAL:
            raise
        return Found(None, error.what), error.cause in _OF_MODEL


def _registry(session: Session, system: resources.System, name: str) -> Registry:
    known = candidates(resources.members(session.get(f"{_ROOT}/Registries"), "the registries of the BMC"), name)
    if not known:
        raise session.error("not_found", "it has no registry of BIOS attributes", "")
    if len(known) == 1:
        path = location(session.get(known[0]))
        return parse(session.get(path), path)
    for candidate in known[:_MOST_REGISTRIES]:
        path = location(session.get(candidate))
        body = session.get(path)
        if supports(body, system.model, system.serial):
            return parse(body, path)
    raise session.error("not_found", f"none of its registries of BIOS attributes ({', '.join(known)}) names {system.model or 'this system'}", "")


def _held(
    session: Session, system: resources.System, errors: typing.List[str], failures: typing.List[str]
) -> typing.Tuple[typing.Optional[typing.Tuple[BiosJob, ...]], typing.Optional[bool]]:
    """Jobs that hold the BIOS, and whether the BMC is locked down; None where it has no such thing, or does not tell.

    :param errors: gets why something could not be read
    :param failures: gets what the last job failed for
    """
    if not system.manager or not system.vendor.lower().startswith(_TELLING):
        return None, None

    def part(what: str, ask: typing.Callable[[], T]) -> typing.Optional[T]:
        found, error = _partly(session, what, ask, None)
        errors.extend([error] if error else [])
        return found

    manager = part("manager", lambda: resources.manager(session.get(system.manager)))
    if manager is None:
        return None, None
    queue = part("jobs", lambda: _jobs(session, manager.jobs)) if manager.jobs else None
    failed = resources.failed_job(queue or ())
    failures.extend([failed] if failed else [])
    jobs = None if queue is None else resources.bios_jobs(queue)
    return jobs, part("lockdown mode", lambda: resources.lockdown(session.get(manager.lockdown))) if manager.lockdown else None


def _pending(session: Session, bios: resources.Bios) -> typing.Dict[str, typing.Any]:
    return resources.pending(session.get(bios.settings), bios.attributes) if bios.settings else {}


def _jobs(session: Session, path: str) -> typing.List[typing.Mapping[str, typing.Any]]:
    source = "the jobs of the BMC"
    found: typing.List[typing.Mapping[str, typing.Any]] = []
    page = f"{path}?$expand=*($levels=1)"
    for _page in range(_MOST_PAGES):
        answer = session.get(page)
        jobs = resources.expanded(answer, source)
        if jobs is None:
            paths = resources.members(answer, source)
            if len(paths) > _MOST_JOBS:
                raise session.error("not_understood", f"it has {len(paths)} jobs and tells them one by one only", "")
            jobs = [session.get(path) for path in paths]
        found += jobs
        page = resources.next_page(answer)
        if not page:
            return found
    raise session.error("not_understood", f"it has more than {_MOST_PAGES} pages of jobs", "")


def _partly(session: Session, what: str, ask: typing.Callable[[], T], otherwise: U) -> typing.Tuple[typing.Union[T, U], str]:
    """A part of the answer, and why it is missing.

    :raises BmcError: the BMC does not answer any more
    """
    try:
        return _understood(session, ask), ""
    except BmcError as error:
        if error.cause not in _PARTIAL:
            raise
        return otherwise, f"{what} could not be read: {error.what}"


def _understood(session: Session, ask: typing.Callable[[], T]) -> T:
    try:
        return ask()
    except ParseError as error:
        raise session.error("not_understood", error.seen, "Update the firmware of the BMC") from None
