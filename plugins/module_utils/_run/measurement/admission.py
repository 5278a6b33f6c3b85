# SPDX-License-Identifier: GPL-3.0-or-later

"""Lets the API server admit the measuring pods, through a ServiceAccount and, on OpenShift, SecurityContextConstraints.
Removes these objects afterwards.
"""

from __future__ import annotations

import contextlib
import dataclasses
import typing

from ..._model.base.errors import RdmaError
from ..._model.intent.intent import Fabric
from ..._model.kubernetes.admission import ACCOUNT, MANIFEST, OPENSHIFT_GROUP
from ..._model.kubernetes.measuring import NAMESPACE, PREPARE
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.kinds import Resource, kind_of
from ..._observe.kubernetes.outcome import FIELD_MANAGER, Outcome, has_our_label, read_existing
from ..._observe.kubernetes.removal.remove import remove_object
from ..._render.cluster.admission import render_account, render_objects
from ..._render.cluster.names import MANAGED_BY, build_owner_label

#: kinds that are taken back after the others
_LAST = ("ServiceAccount", "SecurityContextConstraints")


@contextlib.contextmanager
def iterate_admitted(
    cluster: Cluster, fabrics: typing.Sequence[Fabric], run: str, own: bool = True, former: typing.Iterable[str] = ()
) -> typing.Iterator[tuple[Fabric, ...]]:
    """Return a context manager that provides the fabrics with a ServiceAccount in ``pods.service_account`` whose pods
    the API server admits. At its end, the objects that it created are removed: admission examines pods only at their
    creation, and these pods use no token.

    The account exists in the namespace of the measurement only. On OpenShift, SecurityContextConstraints are bound to
    it. A fabric with an account of its own keeps it. Objects that an admin has prepared
    (docs/rbac/measuring-openshift.yml) are not changed.

    :param fabrics: fabrics whose pods are to be admitted
    :param run: id of the run that owns the objects
    :param own: whether the collection created the namespace. The account ``default`` of a new namespace appears with a
        delay, so the pods use an account of the collection
    :param former: namespaces of the jobs, in which earlier releases bound the constraints. On OpenShift, leftovers of a
        killed run are first removed from them
    :raises ApiError: the API server cannot be reached, or the user may not create the objects; then none of them
        remains
    :raises RdmaError: on OpenShift, an admin prepared the namespace without the account
    """
    openshift = cluster.serves(OPENSHIFT_GROUP)
    if openshift:
        _remove_stale(cluster, former)
    bare = [fabric for fabric in fabrics if fabric.pods.service_account is None]
    if not bare or not (own or openshift):
        yield tuple(fabrics)
        return
    made: list[Resource] = []
    try:
        for definition in _render_admission_objects(cluster, bare, run, openshift, own):
            made.append(_apply_admission_object(cluster, definition))
        yield tuple(_add_account(fabric) if fabric in bare else fabric for fabric in fabrics)
    finally:
        for item in reversed(made):
            metadata = item["metadata"]
            # an API server that is away then must not hide what was measured; the next run removes the same objects, as
            # a teardown does
            with contextlib.suppress(ApiError):
                cluster.delete(
                    kind_of(item), metadata.get("namespace", ""), metadata["name"], only={"uid": metadata["uid"]}
                )


def _render_admission_objects(
    cluster: Cluster, bare: typing.Sequence[Fabric], run: str, openshift: bool, own: bool
) -> tuple[Resource, ...]:
    """Return the objects by which the pods are admitted, without those that an admin has prepared. Return an empty
    tuple if the admin prepared the account.

    :param bare: fabrics without an account of their own
    :param run: id of the run that owns the objects
    :param openshift: whether the cluster is OpenShift
    :param own: whether the collection created the namespace
    :raises RdmaError: an admin must prepare the account, because an admin prepared the namespace: any user with rights
        in it would gain the rights of the pods
    """
    if _of_others(cluster, {"kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": NAMESPACE}}):
        return ()
    if not openshift:
        return (render_account(NAMESPACE, {**MANAGED_BY, **build_owner_label(run)}),)
    if not own:
        seen = (
            f"the namespace {NAMESPACE} was prepared by an admin, but without the ServiceAccount {ACCOUNT}: a run"
            " binds SecurityContextConstraints only if it"
        )
        remedy = (
            f"Ask a cluster admin to apply {MANIFEST}, then rerun. Or delete the namespace, then rerun as a"
            f" cluster-admin, so that the run creates it: kubectl delete ns {NAMESPACE}"
        )
        raise RdmaError(f"{seen} created the namespace", remedy)
    made = render_objects([NAMESPACE], any(fabric.pods.mount_infiniband for fabric in bare), run)
    # constraints that an admin has made are used: our label would have them removed
    return made[1:] if _of_others(cluster, made[0]) else made


def _remove_stale(cluster: Cluster, namespaces: typing.Iterable[str]) -> None:
    """Remove the leftovers of a killed run. If the user lacks the right to search for them, return without an error.

    :param namespaces: namespaces that are searched for leftovers
    :raises ApiError: the API server cannot be reached
    """
    try:
        remove_leftovers(cluster, namespaces, False)
    except ApiError as error:
        if error.status != 403:
            raise


def remove_leftovers(cluster: Cluster, namespaces: typing.Iterable[str], check_mode: bool) -> tuple[Outcome, ...]:
    """Remove the ServiceAccounts, constraints and bindings that a killed run has left on OpenShift, and return the
    outcome of each object. Objects that an admin has prepared remain. On other clusters, nothing is removed.

    Any user may read the constraints and the accounts, but not the bindings. Constraints and accounts are therefore
    removed last: if none of them exists, no other leftover exists either, and the bindings need not be read.

    :param namespaces: namespaces of the jobs, in which earlier releases measured, in addition to the namespace of the
        measurement
    :param check_mode: whether nothing is deleted
    :raises ApiError: the API server cannot be reached, or refuses a request
    """
    if not cluster.serves(OPENSHIFT_GROUP):
        return ()

    def left(definitions: typing.Iterable[Resource]) -> list[Resource]:
        return [
            item
            for item in (read_existing(cluster, definition) for definition in definitions)
            if item is not None and has_our_label(item)
        ]

    made = tuple(reversed(render_objects([NAMESPACE, *namespaces])))
    found = left(item for item in made if item["kind"] in _LAST)
    rest = left(item for item in made if item["kind"] not in _LAST) if found else []
    return tuple(remove_object(cluster, item, check_mode) for item in (*rest, *found))


def _add_account(fabric: Fabric) -> Fabric:
    return dataclasses.replace(fabric, pods=dataclasses.replace(fabric.pods, service_account=ACCOUNT))


def _of_others(cluster: Cluster, definition: Resource) -> bool:
    """Return whether an object with the kind, namespace and name of ``definition`` exists without the label of the
    collection.
    """
    found = read_existing(cluster, definition)
    return found is not None and not has_our_label(found)


def _apply_admission_object(cluster: Cluster, definition: Resource) -> Resource:
    try:
        return {**definition, **cluster.apply(definition, FIELD_MANAGER, dry_run=False)[0]}
    except ApiError as error:
        if error.status != 403:
            raise
        remedy = (
            f"Ask a cluster admin to prepare the namespace {NAMESPACE}: {PREPARE}. On OpenShift, the admin also"
            f" applies {MANIFEST}"
        )
        seen = (
            f"no ServiceAccount in {NAMESPACE} admits pods with IPC_LOCK, and your user has no right to create it:"
            f" {error.text}"
        )
        raise ApiError(
            error.status, error.reason, seen, f"{definition['kind']} {definition['metadata']['name']}", remedy
        ) from error
