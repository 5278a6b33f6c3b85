# SPDX-License-Identifier: GPL-3.0-or-later

"""The only way to write to a BMC: to a system that is proven to be the node's, by who may write now. Both are asked
before each PATCH and POST."""

from __future__ import annotations

import json
import typing

from ..._model.base.errors import ParseError
from ..._model.node.identity import Claims, Identity
from ..._model.run.guard import Guard
from ..._parse.redfish.resources import System, job_of, parse_message_id, said
from ..._parse.redfish.resources import parse_system as parse
from .failures import not_written
from .session import BmcAnswer, Session, Write

_TAKEN = (200, 201, 202, 204)


def refuse_stranger(session: Session, claims: Claims, machine: Identity) -> None:
    """:raises BmcError: ``identity``: the system is not proven to be that of the node, nor asserted where that can't be
    compared"""
    found = claims.judge(session.bmc.node, machine, session.bmc.asserted)
    if found.refused:
        raise session.error("identity", found.why, found.remedy)


class Writer:
    """Writes to one system.

    :param system: as it was read
    :param claims: what the nodes call themselves
    :param guard: the right to write
    """

    def __init__(self, session: Session, system: System, claims: Claims, guard: Guard) -> None:
        self._session, self._path, self._claims, self._guard = session, system.path, claims, guard

    def patch(self, path: str, body: typing.Mapping[str, typing.Any]) -> str:
        """New values for a resource, if it still is as it was read last.

        :returns: id of the job that will apply them; empty where there is none
        :raises BmcError: ``changed`` where it was changed since, ``closed`` and ``timeout`` where nobody knows whether
            it took them, else it did not
        :raises RdmaError: the right to write is lost
        """
        known = self._session.etag(path)
        answer = self._send("PATCH", path, body, {"If-Match": known} if known else {})
        return job_of(answer.headers.get("Location", "")) if answer.status == 202 else ""

    def post(self, path: str, body: typing.Mapping[str, typing.Any]) -> None:
        """An action, sent once.

        :raises BmcError: ``closed``, ``timeout`` or ``busy`` where only its consequence tells whether it was taken,
            else it was not
        :raises RdmaError: the right to write is lost
        """
        self._send("POST", path, body, {})

    def _send(
        self, method: str, path: str, body: typing.Mapping[str, typing.Any], headers: typing.Mapping[str, str]
    ) -> BmcAnswer:
        answer = self._session.send(method, path, Write(json.dumps(body).encode(), headers, self._prove, self._guard))
        if answer.status not in _TAKEN:
            raise not_written(
                self._session.bmc, f"{method} {path}", answer.status, parse_message_id(answer.data), said(answer.data)
            )
        return answer

    def _prove(self) -> None:
        """Read anew: what answers at the address may be another BMC by now."""
        try:
            system = parse(self._session.get(self._path))
        except ParseError as error:
            raise self._session.error("not_understood", error.seen, "Update the firmware of the BMC") from None
        refuse_stranger(self._session, self._claims, system.identity)
