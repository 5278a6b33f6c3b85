# SPDX-License-Identifier: GPL-3.0-or-later

"""Change objects on the API server, and run commands in pods. The base class, which only reads, is in another
module.
"""

from __future__ import annotations

import typing

from ..._model.kubernetes.objects import Container
from .answers import list_warnings, read_object
from .cluster_reader import TIMEOUT, ClusterReader
from .errors import ApiError, api_error, call_again
from .exec.channels import Channels
from .exec.exec_connection import Refused, Way
from .kinds import Kind, Resource, kind_of, path_of
from .shell import Clock, Shell


class Cluster(ClusterReader):
    """A client of one API server, which reads and changes objects, and runs commands in pods."""

    def __init__(self, dynamic: typing.Any, guard: typing.Optional[typing.Callable[[], None]] = None) -> None:
        """Create a client that also writes.

        :param dynamic: a DynamicClient of the kubernetes client, as get_api_client of kubernetes.core returns it
        :param guard: function that is called before each write and raises an error if writes are forbidden; None: all
            writes are permitted
        """
        super().__init__(dynamic, guard)
        self._way: typing.Optional[Way] = None

    def guarded(self, guard: typing.Callable[[], None]) -> Cluster:
        """Return a client for the same API server with another guard of its writes.

        :param guard: function that is called before each write, and raises an error if writes are forbidden
        """
        return Cluster(self._dynamic, guard)

    def apply(self, definition: Resource, manager: str, dry_run: bool) -> tuple[Resource, tuple[str, ...]]:
        """Apply an object by server-side apply. Return the new object, and the warnings of the server.

        :param definition: fields of the object to apply
        :param manager: name of the field manager
        :param dry_run: whether the server only computes the result and does not store it
        :raises ApiError: the server or a webhook refuses it. The reason is Conflict if another manager owns a field
        """
        metadata = definition["metadata"]
        path = path_of(kind_of(definition), metadata.get("namespace", ""), metadata["name"])
        query = [("fieldManager", manager), ("force", "false")] + ([("dryRun", "All")] if dry_run else [])
        response = self._call("patch", path, query, definition, content_type="application/apply-patch+yaml")
        return read_object(response, f"PATCH {path}"), list_warnings(response)

    def patch(self, kind: Kind, namespace: str, name: str, change: Resource, manager: str = "") -> Resource:
        """Merge ``change`` into an object and return it (JSON merge patch, RFC 7386). A null value removes a key.

        :param kind: name of the kind, or its API path, plural and scope
        :param namespace: namespace of the object; empty for a cluster-scoped object
        :param change: fields of the object to set
        :param manager: field manager, which the API server records for each changed field. If empty, the API server
            derives it from the name of the client
        :raises ApiError: the server refuses it, or the object does not exist
        """
        query = [("fieldManager", manager)] if manager else []
        return self._json(
            "patch", path_of(kind, namespace, name), query, body=change, content_type="application/merge-patch+json"
        )

    def remove_field(self, kind: str, namespace: str, name: str, uid: str, field: str) -> Resource:
        """Remove a field of an object and return the object (JSON patch, RFC 6902). Other changes of the object are not
        overwritten.

        :param namespace: namespace of the object; empty for a cluster-scoped object
        :param uid: uid of the object. Another object of this name is not changed
        :param field: JSON pointer to the field
        :raises ApiError: the server refuses it, the object does not exist, or it has another uid
        """
        change = [{"op": "test", "path": "/metadata/uid", "value": uid}, {"op": "remove", "path": field}]
        return self._json(
            "patch", path_of(kind, namespace, name), body=change, content_type="application/json-patch+json"
        )

    def create(self, definition: Resource, manager: str = "") -> Resource:
        """Create an object, and return it as the API server stored it.

        :param definition: object to create
        :param manager: field manager. If empty, the API server derives it from the name of the client
        :raises ApiError: the server refuses it. The reason is AlreadyExists if the object exists
        """
        path, query = (
            path_of(kind_of(definition), definition["metadata"].get("namespace", "")),
            [("fieldManager", manager)] if manager else [],
        )
        return self._json("post", path, query, body=definition)

    def replace(self, definition: Resource) -> Resource:
        """Replace an object as a whole, and return it as the API server stored it.

        :raises ApiError: the server refuses it. The reason is Conflict if the object has another resourceVersion now
        """
        metadata = definition["metadata"]
        return self._json(
            "put", path_of(kind_of(definition), metadata.get("namespace", ""), metadata["name"]), body=definition
        )

    def delete(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        grace_seconds: typing.Optional[int] = None,
        dry_run: bool = False,
        *,
        only: typing.Mapping[str, str],
    ) -> bool:
        """Delete an object. Return False if it did not exist, or if it was replaced by another object of this name.

        :param namespace: namespace of the object; empty for a cluster-scoped object
        :param grace_seconds: seconds that the pods of the object have to end; None for the default of the object
        :param dry_run: whether the API server only checks the deletion
        :param only: required ``uid``, and perhaps ``resourceVersion``, of the object, as read when its owner was
            judged. Another object of this name is not deleted, and counts as absent
        :raises ApiError: the server refuses it
        """
        query = [("propagationPolicy", "Background")] + ([("dryRun", "All")] if dry_run else [])
        if grace_seconds is not None:
            query.append(("gracePeriodSeconds", str(grace_seconds)))
        # the API server ignores options in the URL of a request with a body
        body: Resource = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": only["uid"], **only},
            "propagationPolicy": "Background",
        }
        body.update(
            {"dryRun": ["All"]} if dry_run else {},
            **({} if grace_seconds is None else {"gracePeriodSeconds": grace_seconds}),
        )
        try:
            self._json("delete", path_of(kind, namespace, name), query, body)
        except ApiError as error:
            if error.absent or error.reason == "Conflict":
                return False
            raise
        return True

    def evict(self, namespace: str, pod: str, uid: str) -> bool:
        """Evict a pod, as a drain does, if its PodDisruptionBudgets allow it. Return False if the pod did not exist, or
        if it was replaced by another pod of this name.

        :param pod: name of the pod
        :param uid: uid of the pod. Another pod of this name, such as that of a StatefulSet on another node, remains,
            and counts as absent
        :raises ApiError: the server refuses it. ``held`` of the error is true while a PodDisruptionBudget forbids the
            eviction
        """
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": namespace},
            "deleteOptions": options,
        }
        try:
            self._json("post", f"{path_of('Pod', namespace, pod)}/eviction", body=body)
        except ApiError as error:
            if error.absent or error.reason == "Conflict":
                return False
            raise
        return True

    def exec(
        self, container: Container, command: typing.Sequence[str], stderr: bool = True, seconds: float = TIMEOUT[1]
    ) -> Channels:
        """Start a command in a container, and return the channels of its streams.

        :param container: namespace, pod and container; with an empty container name, the API server chooses the
            container
        :param command: words of the command
        :param stderr: whether to read the stderr of the command on a separate channel. If False, its stderr is lost
        :param seconds: limit in seconds of each step of the connection
        :raises ApiError: the container does not exist or does not run, or exec is forbidden
        """
        if self._way is None:
            self._way = Way(self._dynamic.configuration, self._dynamic.client.default_headers.items())
        streams = [("stdin", "true"), ("stdout", "true"), ("stderr", "true" if stderr else "false"), ("tty", "false")]
        names = [("container", container.name)] if container.name else []
        query = [*(("command", word) for word in command), *names, *streams]
        try:
            return self._way.open(f"{path_of('Pod', container.namespace, container.pod)}/exec", query, seconds)
        except Refused as refused:
            raise api_error(refused, f"exec in {container}") from refused

    def shell(self, namespace: str, pod: str, container: str, command: typing.Sequence[str], clock: Clock) -> Shell:
        """Start a shell in a container. After a temporary error, try again at most twice.

        :param pod: name of the pod
        :param container: name of the container; empty for the default of the API server
        :param command: command that runs the shell
        :param clock: function that returns the time of a monotonic clock, in seconds
        :raises ApiError: the container does not exist or does not run
        """
        target = Container(namespace, pod, container)
        return Shell(call_again(lambda: self.exec(target, command, stderr=False)), clock)
