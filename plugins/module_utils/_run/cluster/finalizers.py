# SPDX-License-Identifier: GPL-3.0-or-later

"""Removes two obstacles to the deletion of a namespace of the collection: finalizers of kubelets, and mirror pods.

The collection gives its pods no finalizer. The kubelet of a node may add one, which would block the deletion of the
namespace and every later run. Removing a finalizer does not end a running pod: its object disappears when the kubelet
reports that the pod has ended. The same holds for a mirror pod, which any kubelet can create in the namespace.
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


def remove_finalizers(
    cluster: Cluster, namespace: str, selector: str, made: typing.Callable[[Resource], bool]
) -> tuple[str, ...]:
    """Remove the finalizers from those pods of the collection that are being deleted, and return the uids of these
    pods.

    The removal does not depend on the resourceVersion, so that a kubelet cannot prevent it by frequent status updates.
    This is safe because the API server refuses new finalizers on an object that is being deleted. A pod whose patch is
    refused, or that was replaced meanwhile, is skipped, and so are all pods if they cannot be listed: the code that
    waits for the pods reports the reason.

    :param namespace: namespace of the collection, in which no other client creates pods
    :param selector: label selector of the pods
    :param made: function that gets a pod and returns whether the collection created it, by more than its labels
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
    """Delete the objects of those mirror pods that are being deleted, and return their names. An object whose deletion
    is refused is skipped.

    Any kubelet can create a mirror pod in any namespace, and only that kubelet confirms its end. Without this function
    the namespace would remain, and each later run would wait for its deletion in vain.

    :param namespace: namespace of the collection that is being deleted, so that no new pod can be created in it
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
    """A periodic task that removes finalizers and mirror pods while a deletion is awaited, every ``LOOK_AT_FINALIZERS``
    seconds.

    :param clock: function that returns the time of a monotonic clock, in seconds
    :ivar works: functions that call :func:`remove_finalizers` and :func:`end_mirror_pods` with their arguments
    """

    def __init__(self, clock: Clock, *works: typing.Callable[[], object]) -> None:
        self._clock, self.works = clock, works
        self._next = clock() + LOOK_AT_FINALIZERS

    def sweep_once(self) -> None:
        """Call the functions in ``works`` if the interval since the last call has passed."""
        if self._clock() >= self._next:
            self._next = self._clock() + LOOK_AT_FINALIZERS
            for work in self.works:
                work()


def is_bare(item: Resource) -> bool:
    """Return whether a pod has no owner reference, as pods for measurements."""
    return not item["metadata"].get("ownerReferences")
