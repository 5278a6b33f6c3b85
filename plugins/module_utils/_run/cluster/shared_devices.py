# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the resources of the shared RDMA device plugin (k8s-rdma-shared-dev-plugin), whose pods use physical functions
of their node.
"""

from __future__ import annotations

import typing

from ..._model.base.errors import ParseError
from ..._model.boundary.devices import INTERFACE, PCI_ID
from ..._model.kubernetes.disruption import SharedResource
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.errors import ApiError
from ..._parse.kubernetes.resource import ResourceError, list_known, mapping_at
from ..._parse.limits import decode_json
from ..._parse.operators.nvidia_network_operator import nic_policy

_PART = "rdmaSharedDevicePlugin"
#: prefix of the resources unless the configuration of the plugin sets resourcePrefix
_PREFIX = "rdma"


class SharedDevices:
    """A reader of the resources of the shared RDMA device plugin. It reads the NicClusterPolicies once, when it is
    first asked about a resource.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: typing.Optional[dict[str, SharedResource]] = None

    def find(self, names: typing.Iterable[str]) -> tuple[SharedResource, ...]:
        """Return those of the named resources that belong to the shared RDMA device plugin. The selectors of a resource
        are known only if a NicClusterPolicy configures the resource. Other resources belong to the plugin if they have
        its default prefix ``rdma``.

        :param names: names of extended resources that a pod requests
        :raises ApiError: the API server cannot be reached
        """
        found = []
        for name in names:
            if self._known is None:
                self._known = self._read()
            if name in self._known:
                found.append(self._known[name])
            elif name.startswith(f"{_PREFIX}/"):
                found.append(SharedResource(name))
        return tuple(found)

    def _read(self) -> dict[str, SharedResource]:
        try:
            items = self._cluster.list("NicClusterPolicy").items
        except ApiError as error:
            if error.status == 0:
                raise
            return {}
        found = {}
        for item in items:
            try:
                config = decode_json(nic_policy(item).configs.get(_PART) or "{}", _PART, unique=False)
            except (ParseError, ResourceError):
                continue
            entries = config.get("configList") if isinstance(config, dict) else None
            for entry in entries if isinstance(entries, list) else ():
                shared = _read_entry(entry)
                found.update({shared.name: shared} if shared is not None else {})
        return found


def _read_entry(entry: typing.Any) -> typing.Optional[SharedResource]:
    if not isinstance(entry, dict) or not isinstance(entry.get("resourceName"), str):
        return None
    try:
        selectors = mapping_at(entry, "selectors")
    except ResourceError:
        return None
    interfaces, vendors, devices = (
        values if isinstance(values := selectors.get(key), list) else [] for key in ("ifNames", "vendors", "deviceIDs")
    )
    return SharedResource(
        f"{entry.get('resourcePrefix') or _PREFIX}/{entry['resourceName']}",
        True,
        list_known(INTERFACE, interfaces),
        list_known(PCI_ID, vendors),
        list_known(PCI_ID, devices),
    )
