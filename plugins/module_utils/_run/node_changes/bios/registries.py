# SPDX-License-Identifier: GPL-3.0-or-later

"""Registries of BIOS attributes, which define the attributes of a BIOS and their allowed values. Each is read from its
own BMC, and parsed once for all BMCs that send the same body.
"""

from __future__ import annotations

import collections
import dataclasses
import hashlib
import threading
import typing

from ...._observe.redfish.session import ROOT, Session
from ...._parse.redfish import resources
from ...._parse.redfish.registry import Registry, find_candidates, find_location, is_system_supported, parse

#: parsed registries that are kept: about one for each model and version of its BIOS
_MOST_PARSED = 64
#: registries of one BMC among which the supported systems decide
_MOST_REGISTRIES = 4


class _Turn:
    """A lock for the threads that parse the same registry, and the number of these threads."""

    def __init__(self) -> None:
        self.lock, self.threads = threading.Lock(), 0


class Registries:
    """A cache of parsed registries of BIOS attributes, by the SHA-256 of their bodies. Nodes of one model usually have
    the same registry, which is then parsed only once.

    Each BMC sends its own body. A registry is never used for a BMC with a different body, because the vendor, model and
    version that a BMC reports do not prove that the registry is the same.

    :param most: maximum number of registries that are kept; the oldest one is dropped first
    """

    def __init__(self, most: int = _MOST_PARSED) -> None:
        self._most, self._lock = most, threading.Lock()
        self._parsed: collections.OrderedDict[str, Registry] = collections.OrderedDict()
        self._turns: dict[str, _Turn] = {}

    def parsed(self, body: bytes, path: str, parse: typing.Callable[[], Registry]) -> Registry:
        """Return the registry that a body contains. Equal bodies are parsed once, also if several threads ask at the
        same time.

        :param body: body of the registry, as the BMC sent it
        :param path: path of the registry on its BMC, which the result gets
        :param parse: function without arguments that parses the body. Its exceptions are passed on, and nothing is
            stored then
        """
        key = hashlib.sha256(body).hexdigest()
        # many threads come with the same body at the same time, and one of them parses it; none waits for another body
        with self._lock:
            turn = self._turns.setdefault(key, _Turn())
            turn.threads += 1
        try:
            with turn.lock:
                found = self._find_parsed_registry(key)
                if found is None:
                    found = parse()
                    self._store_registry(key, found)
        finally:
            with self._lock:
                turn.threads -= 1
                if not turn.threads:
                    del self._turns[key]
        return dataclasses.replace(found, path=path)

    def _find_parsed_registry(self, key: str) -> typing.Optional[Registry]:
        with self._lock:
            return self._parsed.get(key)

    def _store_registry(self, key: str, found: Registry) -> None:
        with self._lock:
            self._parsed[key] = found
            while len(self._parsed) > self._most:
                self._parsed.popitem(last=False)


def find_registry(session: Session, system: resources.System, name: str, registries: Registries) -> Registry:
    """Return the registry of BIOS attributes of a BMC that applies to a system.

    :param session: connection to the BMC
    :param system: the system as the BMC reports it
    :param name: name of the registry in the Bios resource. A BMC may have several registries of this name, of which the
        supported systems decide
    :param registries: cache of parsed registries
    :raises BmcError: the BMC does not answer, or none of its registries applies to the system
    :raises ParseError: an answer cannot be parsed
    """
    known = find_candidates(
        resources.list_members(session.get(f"{ROOT}/Registries"), "the registries of the BMC"), name
    )
    if not known:
        raise session.error("not_found", "the BMC has no registry of BIOS attributes", "")
    if len(known) == 1:
        path = find_location(session.get(known[0]))
        body = session.body(path)
        return registries.parsed(body, path, lambda: parse(session.resource(path, body), path))
    for candidate in known[:_MOST_REGISTRIES]:
        path = find_location(session.get(candidate))
        found = session.get(path)
        if is_system_supported(found, system.model, system.serial):
            return parse(found, path)
    raise session.error(
        "not_found",
        f"none of the registries of BIOS attributes ({', '.join(known)}) applies to {system.model or 'this system'}",
        "",
    )
