# SPDX-License-Identifier: GPL-3.0-or-later

"""Write to a BMC. All writes of the collection go through this module. Before each PATCH and POST, it verifies that the
system belongs to the node, and that the run is still permitted to write.
"""

from __future__ import annotations

import json
import typing

from ..._model.base.errors import ParseError
from ..._model.node.identity import Claims, Identity
from ..._model.run.guard import Guard
from ..._parse.redfish.resources import System, job_of, parse_message_id, parse_refusal
from ..._parse.redfish.resources import parse_system as parse
from .failures import not_written
from .session import BmcAnswer, Session, Write

_TAKEN = (200, 201, 202, 204)


def refuse_stranger(session: Session, claims: Claims, machine: Identity) -> None:
    """Verify that the system of a BMC is the node of the session, and raise an error if it is not.

    :param session: connection to the BMC
    :param claims: identities of all nodes, with which the identity of the system is compared
    :param machine: identity that the BMC reports for the system
    :raises BmcError: with the cause ``identity``: the identity belongs to another machine, or it cannot be compared and
        the inventory does not declare that the BMC belongs to the node
    """
    found = claims.judge(session.bmc.node, machine, session.bmc.asserted)
    if found.refused:
        raise session.error("identity", found.why, found.remedy)


class Writer:
    """A client that writes to one BMC, and verifies before each write that the ComputerSystem of the BMC is the node.

    :param session: connection to the BMC
    :param system: the system as it was read earlier in the run
    :param claims: identities of the nodes, with which the system is compared before each write
    :param guard: permission to write. It is asked immediately before each write, and raises an error if the run may no
        longer write
    """

    def __init__(self, session: Session, system: System, claims: Claims, guard: Guard) -> None:
        self._session, self._path, self._claims, self._guard = session, system.path, claims, guard

    def patch(self, path: str, body: typing.Mapping[str, typing.Any]) -> str:
        """Change values of a resource, if it has not changed since it was last read.

        :param path: path of the resource on this BMC
        :param body: properties to change, with their new values
        :returns: id of the job that will apply the values; empty if there is none
        :raises BmcError: with the cause ``changed``: the resource has changed since it was read; ``closed``,
            ``timeout`` or ``busy``: it is unknown whether the BMC has accepted the values; with any other cause: the
            BMC has not accepted them
        :raises RdmaError: the permission to write is lost
        """
        known = self._session.etag(path)
        answer = self._send("PATCH", path, body, {"If-Match": known} if known else {})
        return job_of(answer.headers.get("Location", "")) if answer.status == 202 else ""

    def post(self, path: str, body: typing.Mapping[str, typing.Any]) -> None:
        """Start an action of a Redfish resource, such as a reset. The request is sent only once.

        :param path: path of the action on this BMC
        :param body: parameters of the action
        :raises BmcError: with the cause ``closed``, ``timeout`` or ``busy``: only the effect of the action shows
            whether the BMC accepted it; with any other cause: the BMC has not accepted it
        :raises RdmaError: the permission to write is lost
        """
        self._send("POST", path, body, {})

    def _send(
        self, method: str, path: str, body: typing.Mapping[str, typing.Any], headers: typing.Mapping[str, str]
    ) -> BmcAnswer:
        answer = self._session.send(
            method, path, Write(json.dumps(body).encode(), headers, self._prove_identity, self._guard)
        )
        if answer.status not in _TAKEN:
            raise not_written(
                self._session.bmc,
                f"{method} {path}",
                answer.status,
                parse_message_id(answer.data),
                parse_refusal(answer.data),
            )
        return answer

    def _prove_identity(self) -> None:
        """Read the system again and verify that it is the node, because another BMC may answer at the address now.

        :raises BmcError: the system cannot be read, or is not the node
        """
        try:
            system = parse(self._session.get(self._path))
        except ParseError as error:
            raise self._session.error("not_understood", error.seen, "Update the firmware of the BMC") from None
        refuse_stranger(self._session, self._claims, system.identity)
