# SPDX-License-Identifier: GPL-3.0-or-later

"""Read objects of a cluster for the jobs that use them. A malformed object, or a kind that the API server does not
know, does not prevent reading the others.
"""

from __future__ import annotations

import typing

from ..._model.base.errors import RdmaError
from ..._model.base.text import both_ends
from ..._model.boundary.form import describe_rejected
from ..._model.job.stack import Controller, has_rights
from ..._parse.job import stack
from ..._parse.kubernetes.resource import title_of
from .client import Cluster
from .errors import ApiError
from .kinds import Resource

#: objects of a kind that are not of its form and are named; the others are counted. And characters of what is said of
#: one
_NAMED, _SAID = 5, 300


class JobReader:
    """A reader of Kubernetes objects that parses them and collects errors. A missing object, and a kind that the API
    server does not know, are not errors.

    Any client that can create an object can create a malformed one. Such an object is reported as an error with its
    name, and the remaining objects are read.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._errors: list[str] = []
        #: objects that are not of their form, by kind
        self._broken: dict[str, int] = {}

    @property
    def errors(self) -> tuple[str, ...]:
        """Return the errors so far, one text each. Up to ``_NAMED`` malformed objects of each kind are named, and one
        text has the number of all further ones.
        """
        more = ((kind, number - _NAMED) for kind, number in self._broken.items() if number > _NAMED)
        return (*self._errors, *(f"{number} more of {kind} that could not be read" for kind, number in more))

    def note(self, error: str) -> None:
        """Append an error message to ``errors``."""
        self._errors.append(error)

    def all(
        self,
        kind: str,
        parser: typing.Callable[[Resource], typing.Any],
        namespace: str = "",
        selector: str = "",
        only: typing.Optional[typing.Callable[[Resource], bool]] = None,
    ) -> typing.Iterator[typing.Any]:
        """Yield all objects of a kind, parsed. A malformed object is left out. It is stored as an error, and so is a
        refusal of the server.

        :param parser: function that gets an object and returns its parsed form
        :param namespace: namespace of the objects; empty for all namespaces
        :param selector: label selector in the notation of kubectl; empty for all objects
        :param only: function that gets an object and returns whether to keep it, by its metadata; None keeps all
        :raises ApiError: the server cannot be reached
        """
        try:
            found = (
                self._cluster.pages(kind, namespace, selector)
                if only is None
                else self._cluster.pages(kind, namespace, selector, only=only)
            )
            yield from self._parsed(kind, parser, found)
        except RdmaError as error:
            self._keep(error)

    def known(
        self,
        kind: str,
        parser: typing.Callable[[Resource], typing.Any],
        namespace: str = "",
        only: typing.Optional[typing.Callable[[Resource], bool]] = None,
    ) -> typing.Optional[tuple[typing.Any, ...]]:
        """Return all objects of a kind, parsed. Return None if the API server does not know the kind or refuses the
        list. This is not stored as an error, because only a few jobs need objects of such a kind. A malformed object is
        left out and stored as an error.

        :param parser: function that gets an object and returns its parsed form
        :param namespace: namespace of the objects; empty for all namespaces
        :param only: function that gets an object and returns whether to keep it, by its metadata; None keeps all
        :raises ApiError: the API server cannot be reached
        """
        try:
            found = (
                self._cluster.pages(kind, namespace)
                if only is None
                else self._cluster.list(kind, namespace, only=only).items
            )
            return tuple(self._parsed(kind, parser, found))
        except RdmaError as error:
            if isinstance(error, ApiError) and error.status == 0:
                raise
        return None

    def _parsed(
        self, kind: str, parser: typing.Callable[[Resource], typing.Any], found: typing.Iterable[Resource]
    ) -> typing.Iterator[typing.Any]:
        """Yield each object, parsed. Malformed objects are left out and stored as errors.

        :param parser: function that gets an object and returns its parsed form
        :param found: objects as the API server returned them
        :raises ApiError: error of the iterator ``found``
        """
        # a list leaves out the kind of its items
        for item in ({"kind": kind, **item} for item in found):
            try:
                parsed = parser(item)
            except RdmaError as error:
                self._broken[kind] = self._broken.get(kind, 0) + 1
                if self._broken[kind] <= _NAMED:
                    self._errors.append(_describe_malformed_object(item, error))
                continue
            yield parsed

    def one(self, kind: str, namespace: str, name: str, parser: typing.Callable[[Resource], typing.Any]) -> typing.Any:
        """Return one object, parsed. Return None if it does not exist or could not be read. Only the second is stored
        as an error.

        :param namespace: namespace of the object; empty for a cluster-scoped object
        :param parser: function that gets the object and returns its parsed form
        :raises ApiError: the server cannot be reached
        """
        try:
            return parser(self._cluster.get(kind, namespace, name))
        except RdmaError as error:
            self._keep(error)
        return None

    def controllers(self) -> tuple[Controller, ...]:
        """Return the supported operators that run as Deployments and whose ServiceAccount has cluster-wide rights. No
        tenant can give it such rights, so a Deployment that only looks like an operator is left out.

        :raises ApiError: the server cannot be reached
        """
        found = [
            (operator, account)
            for operator, account in self.all(
                "Deployment", lambda item: (stack.parse_controller(item), stack.account_of(item))
            )
            if operator
        ]
        try:
            bindings = list(
                self._parsed("ClusterRoleBinding", stack.list_accounts, self._cluster.pages("ClusterRoleBinding"))
            )
        except RdmaError as error:
            self._keep(error)
            bindings = []
        return tuple(operator for operator, account in found if has_rights(account, bindings))

    def _keep(self, error: RdmaError) -> None:
        if isinstance(error, ApiError) and error.status == 0:
            raise error
        if not (isinstance(error, ApiError) and error.absent):
            self._errors.append(both_ends(error.seen))


def _describe_malformed_object(item: Resource, error: RdmaError) -> str:
    """Return a message with kind, namespace and name of a malformed object, and the error in it."""
    title, metadata = title_of(item), item.get("metadata")
    namespace = metadata.get("namespace") if isinstance(metadata, dict) else None
    seen = error.seen[len(title) :].lstrip(": ") if error.seen.startswith(title) else error.seen
    return both_ends(f"{title}{f' in namespace {describe_rejected(namespace)}' if namespace else ''}: {seen}", _SAID)
