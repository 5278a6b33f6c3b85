# SPDX-License-Identifier: GPL-3.0-or-later

"""Find pods that may take network devices by ResourceClaims (Dynamic Resource Allocation)."""

from __future__ import annotations

import typing

from ..._model.kubernetes.device_claims import DeviceClaim, DeviceClaims, PodClaim
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.errors import ApiError
from ..._parse.kubernetes.dra.device_claims import CLAIM, TEMPLATE, read_claim, read_pod_claims
from ..._parse.kubernetes.resource import Resource, ResourceError

#: uses of devices that are no network devices
_OTHER_USES = ("gpu", "channel", "other")


class ClaimedDevices:
    """A reader of ResourceClaims and ResourceClaimTemplates. It lists those of a namespace once, when a pod of the
    namespace with claims is first asked about.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._claims: dict[str, DeviceClaims] = {}

    def may_be_network(self, spec: Resource, namespace: str) -> bool:
        """Return whether a claim of a pod may be for network devices. A claim that cannot be read, or whose DeviceClass
        is not known, may be. A pod without claims returns False.

        :param spec: spec of the pod, or of its template
        :param namespace: namespace of the pod
        :raises ApiError: the API server cannot be reached
        """
        try:
            asked = read_pod_claims(spec, "pod")
        except ResourceError:
            return True
        return any(self._is_network(namespace, claim) for claim in asked)

    def _is_network(self, namespace: str, asked: PodClaim) -> bool:
        if namespace not in self._claims:
            self._claims[namespace] = DeviceClaims(tuple(self._list_claims(namespace)))
        known = self._claims[namespace]
        claim = known.find(namespace, asked)
        if claim is None:
            return True
        uses = {known.use_of(name) for request in claim.requests for name in request.classes}
        return not uses.issubset(_OTHER_USES)

    def _list_claims(self, namespace: str) -> typing.Iterator[DeviceClaim]:
        for kind in (CLAIM, TEMPLATE):
            try:
                items = self._cluster.list(kind, namespace).items
            except ApiError as error:
                if error.status == 0:
                    raise
                continue
            for item in items:
                try:
                    yield read_claim(item)
                except ResourceError:
                    continue
