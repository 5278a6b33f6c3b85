# SPDX-License-Identifier: GPL-3.0-or-later

"""Has OpenShift admit the pods of a stage while they are made, and takes back what that needed. Elsewhere it does nothing."""

from __future__ import annotations

import contextlib
import dataclasses
import typing

from .._model.admission import ACCOUNT, MANIFEST, OPENSHIFT_GROUP
from .._model.intent import Fabric
from .._observe.apply import FIELD_MANAGER, Outcome, existing, ours, remove
from .._observe.kubernetes import ApiError, Cluster, Resource, kind_of
from .._render.admission import objects

#: kinds that are taken back after the others
_LAST = ("ServiceAccount", "SecurityContextConstraints")


@contextlib.contextmanager
def admitted(cluster: Cluster, fabrics: typing.Sequence[Fabric], run: str) -> typing.Iterator[typing.Tuple[Fabric, ...]]:
    """The fabrics, with an account in ``pods.service_account`` whose pods OpenShift admits.

    A fabric that names an account keeps it, and a namespace in which an admin has prepared ours (docs/rbac/measuring-openshift.yml) is left as it is. What is
    made here is gone afterwards: admission looks at pods when they are made, and these use no token.

    :param run: that owns what is made
    :raises ApiError: the server cannot be reached, or the user may not make it; then nothing of it stays
    """
    bare = [fabric for fabric in fabrics if fabric.pods.service_account is None]
    if not bare or not cluster.serves(OPENSHIFT_GROUP):
        yield tuple(fabrics)
        return
    lacking = sorted({fabric.network.namespace for fabric in bare if not _prepared(cluster, fabric.network.namespace)})
    wanted = objects(lacking, any(fabric.pods.mount_infiniband for fabric in bare), run) if lacking else ()
    made: typing.List[Resource] = []
    try:
        for definition in wanted:
            made.append(_apply(cluster, definition))
        yield tuple(_with_account(fabric) if fabric in bare else fabric for fabric in fabrics)
    finally:
        for item in reversed(made):
            metadata = item["metadata"]
            # an API server that is away then must not hide what was measured; the next run applies the same objects and removes them, as a teardown does
            with contextlib.suppress(ApiError):
                cluster.delete(kind_of(item), metadata.get("namespace", ""), metadata["name"], only={"uid": metadata["uid"]})


def take_back(cluster: Cluster, namespaces: typing.Iterable[str], check_mode: bool) -> typing.Tuple[Outcome, ...]:
    """What a run that was killed has left; what an admin has prepared stays.

    The constraints and the accounts are what any user may look for. The rest goes before them, so that without them nothing of it is there.

    :param namespaces: of the pods
    :raises ApiError: the server cannot be reached, or does not tell
    """
    if not cluster.serves(OPENSHIFT_GROUP):
        return ()

    def left(definitions: typing.Iterable[Resource]) -> typing.List[Resource]:
        return [item for item in (existing(cluster, definition) for definition in definitions) if item is not None and ours(item)]

    made = tuple(reversed(objects(namespaces)))
    found = left(item for item in made if item["kind"] in _LAST)
    rest = left(item for item in made if item["kind"] not in _LAST) if found else []
    return tuple(remove(cluster, item, check_mode) for item in (*rest, *found))


def _with_account(fabric: Fabric) -> Fabric:
    return dataclasses.replace(fabric, pods=dataclasses.replace(fabric.pods, service_account=ACCOUNT))


def _prepared(cluster: Cluster, namespace: str) -> bool:
    """Whether the account is there, and not from a run of ours."""
    account = existing(cluster, {"kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": namespace}})
    return account is not None and not ours(account)


def _apply(cluster: Cluster, definition: Resource) -> Resource:
    try:
        return {**definition, **cluster.apply(definition, FIELD_MANAGER, dry_run=False)[0]}
    except ApiError as error:
        if error.status != 403:
            raise
        remedy = f"Have an admin of the cluster apply {MANIFEST}, or name an account in pods.service_account of the fabrics"
        seen = f"OpenShift admits no pod with IPC_LOCK here, and you may not make what admits it: {error.text}"
        raise ApiError(error.status, error.reason, seen, f"{definition['kind']} {definition['metadata']['name']}", remedy) from error
