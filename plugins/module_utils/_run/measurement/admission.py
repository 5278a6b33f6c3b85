# SPDX-License-Identifier: GPL-3.0-or-later

"""Has the pods that measure admitted while they are made: by an account of theirs, on OpenShift with constraints; and
takes back what that needed."""

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
from ..._observe.kubernetes.outcome import FIELD_MANAGER, Outcome, ours, read_existing
from ..._observe.kubernetes.remove import remove_object
from ..._render.cluster.admission import render_account, render_objects
from ..._render.cluster.names import MANAGED_BY, owner

#: kinds that are taken back after the others
_LAST = ("ServiceAccount", "SecurityContextConstraints")


@contextlib.contextmanager
def admitted(
    cluster: Cluster, fabrics: typing.Sequence[Fabric], run: str, own: bool = True, former: typing.Iterable[str] = ()
) -> typing.Iterator[tuple[Fabric, ...]]:
    """Yield the fabrics, with an account in ``pods.service_account`` whose pods are admitted.

    The account is in the namespace of the measurement alone, and on OpenShift the constraints are bound to it there. A
    fabric that names an account keeps it, and what an admin has prepared (docs/rbac/measuring-openshift.yml) is left as
    it is. What is made here is gone afterwards: admission looks at pods when they are made, and these use no token.

    :param run: that owns what is made
    :param own: whether the namespace of the measurement is the collection's own. Its account ``default`` comes a moment
        later, so that pods take ours
    :param former: namespaces of the jobs, in which earlier releases bound the constraints; what a killed run left there
        is removed first
    :raises ApiError: the server cannot be reached, or the user may not make it; then nothing of it stays
    :raises RdmaError: on OpenShift, the namespace is prepared, and its account is not
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
    """Return the objects that let the pods be admitted, without those that an admin has prepared.

    :raises RdmaError: an admin has to prepare it. Who made a namespace that is there is not known, and whoever has
        rights in it would have those of the pods
    """
    if _of_others(cluster, {"kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": NAMESPACE}}):
        return ()
    if not openshift:
        return (render_account(NAMESPACE, {**MANAGED_BY, **owner(run)}),)
    if not own:
        seen = (
            f"the namespace {NAMESPACE} was prepared, and has no ServiceAccount {ACCOUNT} of an admin: a run binds"
            " SecurityContextConstraints only where it"
        )
        remedy = (
            f"Have an admin of the cluster apply {MANIFEST}; or delete the namespace, and a run of a cluster-admin"
            f" makes it: kubectl delete ns {NAMESPACE}"
        )
        raise RdmaError(f"{seen} made the namespace", remedy)
    made = render_objects([NAMESPACE], any(fabric.pods.mount_infiniband for fabric in bare), run)
    # constraints that an admin has made are used: our label would have them removed
    return made[1:] if _of_others(cluster, made[0]) else made


def _remove_stale(cluster: Cluster, namespaces: typing.Iterable[str]) -> None:
    """Remove what a killed run has left. A user who may not look for it measures all the same.

    :raises ApiError: the server cannot be reached
    """
    try:
        take_back(cluster, namespaces, False)
    except ApiError as error:
        if error.status != 403:
            raise


def take_back(cluster: Cluster, namespaces: typing.Iterable[str], check_mode: bool) -> tuple[Outcome, ...]:
    """Remove what a killed run has left; what an admin has prepared stays.

    The constraints and the accounts are what any user may look for. The rest goes before them, so that without them
    nothing of it is there.

    :param namespaces: of the jobs, where earlier releases measured; the namespace of the measurement is looked at as
        well
    :raises ApiError: the server cannot be reached, or does not tell
    """
    if not cluster.serves(OPENSHIFT_GROUP):
        return ()

    def left(definitions: typing.Iterable[Resource]) -> list[Resource]:
        return [
            item
            for item in (read_existing(cluster, definition) for definition in definitions)
            if item is not None and ours(item)
        ]

    made = tuple(reversed(render_objects([NAMESPACE, *namespaces])))
    found = left(item for item in made if item["kind"] in _LAST)
    rest = left(item for item in made if item["kind"] not in _LAST) if found else []
    return tuple(remove_object(cluster, item, check_mode) for item in (*rest, *found))


def _add_account(fabric: Fabric) -> Fabric:
    return dataclasses.replace(fabric, pods=dataclasses.replace(fabric.pods, service_account=ACCOUNT))


def _of_others(cluster: Cluster, definition: Resource) -> bool:
    """Return whether an object of this kind and name is there, and not from a run of ours."""
    found = read_existing(cluster, definition)
    return found is not None and not ours(found)


def _apply_admission_object(cluster: Cluster, definition: Resource) -> Resource:
    try:
        return {**definition, **cluster.apply(definition, FIELD_MANAGER, dry_run=False)[0]}
    except ApiError as error:
        if error.status != 403:
            raise
        remedy = (
            f"Have an admin of the cluster prepare the namespace {NAMESPACE}: {PREPARE}. On OpenShift the admin applies"
            f" {MANIFEST} as well"
        )
        seen = f"no account in {NAMESPACE} admits pods with IPC_LOCK, and you may not make it: {error.text}"
        raise ApiError(
            error.status, error.reason, seen, f"{definition['kind']} {definition['metadata']['name']}", remedy
        ) from error
