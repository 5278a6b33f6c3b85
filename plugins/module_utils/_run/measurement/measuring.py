# SPDX-License-Identifier: GPL-3.0-or-later

"""Creates and removes the namespace of the measuring pods, with a NetworkPolicy and a copy of each measured network.

The caller holds the Lease of the cluster (_ansible/lease.py). Therefore no other run is active, and an existing
namespace is a leftover or was prepared by an admin.
"""

from __future__ import annotations

import contextlib
import dataclasses
import typing

from ..._model.base.errors import RdmaError
from ..._model.intent.intent import ClusterIntent, Fabric
from ..._model.intent.profiles import PLAIN, attachment_kind
from ..._model.kubernetes.measuring import LABEL, NAMESPACE, POLICY, PREPARE, PREPARED, Refusal
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.kinds import Resource
from ..._observe.kubernetes.outcome import FIELD_MANAGER, has_our_label, read_existing
from ..._observe.kubernetes.shell import Clock
from ..._parse.kubernetes.observers import explain_remaining_namespace, owned_namespace
from ..._parse.kubernetes.resource import name_of
from ..._plan.measured_network import ForeignNetwork, copy_of
from ..._render.cluster.names import MANAGED_BY
from ..._render.measurement.measuring import move_fabrics, render_namespace, render_policy
from ..cluster.finalizers import FinalizerSweep, end_mirror_pods, is_bare, remove_finalizers
from .admission import iterate_admitted

#: seconds between two looks at a namespace that is to go
LOOK = 1.0
_OURS = ",".join(f"{key}={value}" for key, value in MANAGED_BY.items())


class ForeignMeasuringNamespace(RdmaError):
    """Raised if the namespace of the measurement exists and lacks the label of the collection. It belongs to another
    user and must not be used.
    """

    def __init__(self) -> None:
        seen = (
            f"the namespace {NAMESPACE} exists but does not belong to linerate.rdma: it has no label {LABEL}."
            " Nothing was changed"
        )
        remedy = (
            f"Delete the namespace: kubectl delete namespace {NAMESPACE}. If an admin created it for the measurement,"
            f" label it: kubectl label namespace {NAMESPACE} {LABEL}={PREPARED}"
        )
        super().__init__(seen, remedy)


@dataclasses.dataclass(frozen=True)
class HcasByNode:
    """The fabrics of a measurement after its namespace was prepared: those on which measuring pods may be created, and
    the refusals of the others.

    :ivar fabrics: all fabrics, with their networks in the namespace of the measurement
    :ivar refused: refusal of each fabric on which no pod may be created, by name of the fabric
    """

    fabrics: tuple[Fabric, ...]
    refused: typing.Mapping[str, Refusal]


class MeasuringNamespace:
    """A client that creates, restricts and removes the namespace of the measurement."""

    def __init__(
        self, cluster: Cluster, run: str, limit: float, clock: Clock, pause: typing.Callable[[float], None]
    ) -> None:
        """Create a client for the namespace; nothing is created yet.

        :param cluster: client of the API server
        :param run: id of the run that owns the namespace
        :param limit: longest wait in seconds for the removal of a leftover namespace
        :param clock: function that returns the time of a monotonic clock, in seconds
        :param pause: function that sleeps for a number of seconds
        """
        self._cluster = cluster
        self._run = run
        self._limit = limit
        self._clock = clock
        self._pause = pause

    def take(self) -> bool:
        """Create the namespace, or use the one that an admin has prepared. Return whether the collection created it.

        A leftover namespace of the collection is deleted with all its contents and created again.

        :raises ForeignMeasuringNamespace: the namespace is not for the measurement
        :raises RdmaError: the leftover namespace is not removed in time
        :raises ApiError: the API server cannot be reached, or the user may not create the namespace
        """
        if self._remove_leftovers() == "prepared":
            return False
        try:
            self._cluster.create(render_namespace(self._run), FIELD_MANAGER)
        except ApiError as error:
            if error.status != 403:
                raise
            remedy = f"Ask a cluster admin to prepare the namespace: {PREPARE}"
            raise ApiError(
                error.status,
                error.reason,
                f"your user has no right to create the namespace: {error.text}",
                f"namespace {NAMESPACE}",
                remedy,
            ) from error
        return True

    def _remove_leftovers(self) -> str:
        """Remove the leftovers of an earlier measurement. Return the owner of the namespace that was found: ``own``
        (the collection), ``prepared`` (an admin), ``foreign``, or ``none`` if it did not exist. A namespace that an
        admin prepared remains without the leftovers.

        :raises ForeignMeasuringNamespace: the namespace is not for the measurement
        :raises RdmaError: the namespace is not removed in time
        :raises ApiError: the API server refuses, or cannot be reached
        """
        found = self._find_namespace()
        if found is None:
            return "none"
        whose, _run = owned_namespace(found, LABEL)
        going = bool(found["metadata"].get("deletionTimestamp"))
        if whose == "foreign" and not going:
            raise ForeignMeasuringNamespace
        if whose == "prepared" and not going:
            self._remove_own()
            return whose
        if not going:
            self._cluster.delete("Namespace", "", NAMESPACE, only={"uid": found["metadata"]["uid"]})
        self._await_gone(found["metadata"].get("uid"))
        return whose

    def leave(self) -> None:
        """Request the deletion of the namespace with all its contents, without waiting for its end. In a namespace that
        an admin prepared, delete only the networks and the NetworkPolicy of the collection.

        Errors of the API server are ignored, so that they do not hide the results. The next measurement or a teardown
        removes the remaining objects.
        """
        with contextlib.suppress(RdmaError):
            found = self._find_namespace()
            if found is None or found["metadata"].get("deletionTimestamp"):
                return
            whose, _run = owned_namespace(found, LABEL)
            if whose == "own":
                self._cluster.delete("Namespace", "", NAMESPACE, only={"uid": found["metadata"]["uid"]})
            elif whose == "prepared":
                self._remove_own()

    def apply_network_policy(self) -> None:
        """Create the NetworkPolicy that admits connections to measuring pods from pods of this run only. Call this
        before any measuring pod is created.

        :raises ApiError: the API server cannot be reached, or the user may not create the NetworkPolicy
        :raises RdmaError: a NetworkPolicy of this name is not managed by linerate.rdma, or a webhook changed the new
            one
        """
        wanted = render_policy(self._run)
        title, found = f"NetworkPolicy {NAMESPACE}/{POLICY}", read_existing(self._cluster, wanted)
        remedy = f"Delete the NetworkPolicy, then rerun: kubectl delete networkpolicy -n {NAMESPACE} {POLICY}"
        if found is not None and not has_our_label(found):
            raise RdmaError(f"{title} exists but does not belong to linerate.rdma. Nothing was measured", remedy)
        try:
            made = self._cluster.apply(wanted, FIELD_MANAGER, dry_run=False)[0]
        except ApiError as error:
            if error.status != 403:
                raise
            seen = (
                "other pods could run commands in the measuring pods, and your user has no right to restrict them:"
                f" {error.text}"
            )
            remedy = f"Ask a cluster admin to grant this right: {PREPARE}"
            raise ApiError(error.status, error.reason, seen, title, remedy) from error
        spec = made.get("spec") or {}
        if any(spec.get(key) != value for key, value in wanted["spec"].items()):
            seen = (
                f"{title} differs from the request of this run: a webhook or a controller changed it. Nothing was"
                " measured"
            )
            raise RdmaError(
                seen,
                (
                    "Find the webhook or the controller that changes it, then rerun: kubectl get networkpolicy -n"
                    f" {NAMESPACE} {POLICY} -o yaml"
                ),
            )

    def _remove_own(self) -> None:
        """Remove the networks and the NetworkPolicy that runs created in a namespace that an admin prepared. Pods are
        not removed.
        """
        self._remove_copies()
        found = read_existing(self._cluster, render_policy(self._run))
        if found is not None and has_our_label(found):
            self._cluster.delete("NetworkPolicy", NAMESPACE, POLICY, only={"uid": found["metadata"]["uid"]})

    def _remove_copies(self) -> None:
        try:
            found = self._cluster.list(PLAIN, NAMESPACE, _OURS).items
        except ApiError as error:
            # a cluster without multus
            if error.absent:
                return
            raise
        for item in found:
            self._cluster.delete(PLAIN, NAMESPACE, name_of(item), only={"uid": item["metadata"]["uid"]})

    def _await_gone(self, uid: typing.Optional[str]) -> None:
        end = self._clock() + self._limit
        sweep = FinalizerSweep(
            self._clock,
            lambda: remove_finalizers(self._cluster, NAMESPACE, _OURS, is_bare),
            lambda: end_mirror_pods(self._cluster, NAMESPACE),
        )
        while True:
            sweep.sweep_once()
            found = self._find_namespace()
            if found is None or found["metadata"].get("uid") != uid:
                return
            if self._clock() >= end:
                why = explain_remaining_namespace(found)
                seen = (
                    f"the namespace {NAMESPACE} of an earlier measurement{f' ({why})' if why else ''} still exists"
                    f" {self._limit:.0f} s after its deletion"
                )
                raise RdmaError(seen, f"Find the reason: kubectl get namespace {NAMESPACE} -o yaml")
            self._pause(LOOK)

    def _find_namespace(self) -> typing.Optional[Resource]:
        try:
            return {"kind": "Namespace", **self._cluster.get("Namespace", "", NAMESPACE)}
        except ApiError as error:
            if error.absent:
                return None
            raise


@contextlib.contextmanager
def prepare_measurement(
    place: MeasuringNamespace,
    cluster: Cluster,
    fabrics: typing.Sequence[Fabric],
    shared: ClusterIntent,
    run: str,
    stays: bool = False,
) -> typing.Iterator[HcasByNode]:
    """Return a context manager that provides the namespace of the measurement, with the networks, a NetworkPolicy and
    an account whose pods are admitted. The value of the context is the fabrics that can be measured, and the refusals
    of the others. The namespace is removed afterwards.

    Other pods cannot connect to the pods in the namespace if the network of the cluster enforces NetworkPolicies.

    :param place: client that creates and removes the namespace
    :param fabrics: fabrics to measure
    :param shared: settings of the cluster that all fabrics share
    :param run: id of the run that owns the objects
    :param stays: whether the namespace and its pods remain after a body without an error
    :raises ForeignMeasuringNamespace: the namespace is not for the measurement
    :raises RdmaError: a leftover namespace is not removed in time, or a NetworkPolicy of this name is not managed by
        linerate.rdma or was changed by a webhook
    :raises ApiError: the API server cannot be reached, or refuses an object
    """
    try:
        own = place.take()
        place.apply_network_policy()
        seats = _prepare_fabrics(cluster, fabrics, shared, run, own)
        former = [fabric.network.namespace for fabric in fabrics]
        with iterate_admitted(cluster, seats.fabrics, run, own, former) as admissible:
            yield dataclasses.replace(seats, fabrics=admissible)
    except BaseException:
        place.leave()
        raise
    if not stays:
        place.leave()


def _prepare_fabrics(
    cluster: Cluster, fabrics: typing.Sequence[Fabric], shared: ClusterIntent, run: str, own: bool
) -> HcasByNode:
    refused: dict[str, Refusal] = {}
    for fabric in fabrics:
        refusal = _find_missing_prerequisite(fabric, own) or _copy_network(cluster, fabric, shared, run)
        if refusal is not None:
            refused[fabric.name] = refusal
    return HcasByNode(move_fabrics(fabrics), refused)


def _find_missing_prerequisite(fabric: Fabric, own: bool) -> typing.Optional[Refusal]:
    """Return a refusal if the intent names pull secrets or a ServiceAccount for the pods of a fabric, and the
    collection created the namespace. Return None otherwise.

    A namespace that the collection created contains neither, and the collection does not copy secrets.

    :param own: whether the collection created the namespace
    """
    named = (
        [f"pods.image_pull_secrets: {', '.join(fabric.pods.image_pull_secrets)}"]
        if fabric.pods.image_pull_secrets
        else []
    )
    named += [f"pods.service_account: {fabric.pods.service_account}"] if fabric.pods.service_account else []
    return Refusal("unprepared", f"The intent sets {'; '.join(named)}.") if named and own else None


def _copy_network(cluster: Cluster, fabric: Fabric, shared: ClusterIntent, run: str) -> typing.Optional[Refusal]:
    """Copy the network of a fabric into the namespace of the measurement. Return a refusal with the reason if this is
    not possible. Return None if the network was copied, or if the fabric has no network to copy.

    :param shared: settings of the cluster that all fabrics share
    :param run: id of the run that owns the copy
    :raises ApiError: the API server cannot be reached
    """
    if not attachment_kind(fabric):
        return None
    wanted = fabric.network
    title = f"NetworkAttachmentDefinition {wanted.namespace}/{wanted.name}"
    try:
        found = cluster.get(PLAIN, wanted.namespace, wanted.name)
    except ApiError as error:
        if error.status == 0:
            raise
        return (
            Refusal("no_network", f"{title} does not exist.")
            if error.absent
            else Refusal("network_refused", f"{title}: {error.text}.")
        )
    try:
        cluster.create(copy_of(found, fabric, shared, NAMESPACE, run), FIELD_MANAGER)
    except ForeignNetwork as error:
        return Refusal("foreign_network", f"{error.seen}.")
    except ApiError as error:
        if error.status == 0:
            raise
        return Refusal("network_refused", f"The copy of {title} in {NAMESPACE} was rejected: {error.text}.")
    return None
