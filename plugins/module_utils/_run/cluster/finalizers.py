# SPDX-License-Identifier: GPL-3.0-or-later

"""Frees a namespace of the collection that is being deleted from what a kubelet holds it up with.

The collection gives its pods no finalizer. The kubelet of their node may write one, and would hold up the namespace,
and with it each later run. A pod that runs still is not ended by that: its object goes when its kubelet says that it
has ended. The same holds for a mirror pod, which any kubelet may put into the namespace.
"""

from __future__ import annotations

import contextlib
import typing

from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.kinds import Resource
from ..._observe.kubernetes.shell import Clock
from ..._parse.kubernetes.foreign import is_mirror_pod
from ..._parse.kubernetes.resource import ResourceError, name_of

#: seconds between two looks at what holds a deletion up
LOOK_AT_FINALIZERS = 30.0


def take_off(
    cluster: Cluster, namespace: str, selector: str, made: typing.Callable[[Resource], bool]
) -> tuple[str, ...]:
    """Take them off the pods of ours that are being deleted, and return the uid of these pods.

    A pod may change meanwhile: its kubelet, which writes its status as often as it likes, must not be able to keep a
    finalizer by that. No finalizer is added to an object that is being deleted (the API server refuses it), so that
    none is taken off that was not seen here. What is refused, or of another pod by now, stays: whoever waits for the
    pod names what keeps it.

    :param namespace: of the collection, in which nobody else makes pods
    :param made: whether the collection has made a pod, beside that it has the labels
    """
    done: list[str] = []
    with contextlib.suppress(ApiError):
        # a kubelet may make mirror pods of any size
        for item in cluster.metadata("Pod", namespace, selector):
            metadata = item["metadata"]
            held = metadata.get("deletionTimestamp") and metadata.get("finalizers") and metadata.get("uid")
            # of another form is what a kubelet has made of it: nobody can say that it is ours
            with contextlib.suppress(ApiError, ResourceError):
                if not held or is_mirror_pod("Pod", item) or not made(item):
                    continue
                cluster.remove_field("Pod", namespace, name_of(item), str(metadata["uid"]), "/metadata/finalizers")
                done.append(str(metadata["uid"]))
    return tuple(done)


def end_mirror_pods(cluster: Cluster, namespace: str) -> tuple[str, ...]:
    """Delete the objects of mirror pods that are being deleted, and return their names. Any kubelet may put one into
    any namespace, and alone ends it: the namespace would stay, and with it each later run would wait in vain.

    :param namespace: of the collection, which is being deleted, so that no pod comes into it any more
    """
    done: list[str] = []
    with contextlib.suppress(ApiError):
        for item in cluster.metadata("Pod", namespace):
            metadata = item["metadata"]
            # what is refused, or of another pod by now, stays
            with contextlib.suppress(ApiError, ResourceError):
                if metadata.get("deletionTimestamp") and metadata.get("uid") and is_mirror_pod("Pod", item):
                    name = name_of(item)
                    cluster.delete("Pod", namespace, name, grace_seconds=0, only={"uid": str(metadata["uid"])})
                    done.append(name)
    return tuple(done)


class FinalizerSweep:
    """Frees what is awaited from what holds it up, every ``LOOK_AT_FINALIZERS`` seconds.

    :ivar works: call :func:`take_off` and :func:`end_mirror_pods` with their arguments
    """

    def __init__(self, clock: Clock, *works: typing.Callable[[], object]) -> None:
        self._clock, self.works = clock, works
        self._next = clock() + LOOK_AT_FINALIZERS

    def look(self) -> None:
        """Do the works if it is time."""
        if self._clock() >= self._next:
            self._next = self._clock() + LOOK_AT_FINALIZERS
            for work in self.works:
                work()


def is_bare(item: Resource) -> bool:
    """Return whether a pod has no owner, as those that measure have none."""
    return not item["metadata"].get("ownerReferences")
