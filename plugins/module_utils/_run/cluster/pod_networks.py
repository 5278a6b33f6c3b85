# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the devices of the node on which the secondary networks of a pod are."""

from __future__ import annotations

import dataclasses
import typing

from ..._model.boundary.devices import INTERFACE, PCI_ADDRESS
from ..._model.kubernetes.objects import Attachment
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.kinds import Resource
from ..._parse.kubernetes.multus import MOST_INTERFACES, network_status
from ..._parse.kubernetes.resource import ResourceError, list_known, mapping_at, name_of
from ..._parse.operators.nvidia_network_operator import parse_attachment

#: keys of the configuration of a CNI plugin that name an interface of the node: macvlan, ipvlan, ipoib and vlan have a
#: master, host-device a device or the PCI address
_INTERFACES, _ADDRESS = ("master", "device"), "pciBusID"


@dataclasses.dataclass(frozen=True)
class NetworkDevices:
    """The devices of the node that a pod uses by its networks.

    :ivar addresses: PCI addresses of its devices
    :ivar claimed: PCI addresses that only the annotation of the pod names
    :ivar interfaces: interfaces of the node on which its networks are
    """

    addresses: tuple[str, ...] = ()
    claimed: tuple[str, ...] = ()
    interfaces: tuple[str, ...] = ()


class PodNetworks:
    """A reader of the networks of pods. It lists the NetworkAttachmentDefinitions of a namespace once, if a pod names a
    network of the namespace.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[str, typing.Optional[dict[str, Attachment]]] = {}

    def read(self, pod: Resource, has_devices: bool) -> NetworkDevices:
        """Return the devices of the node that a pod uses, from the annotation of multus. Any client that may write the
        pod can write the annotation. So an address in it counts only if the pod requests network devices, or if the
        network of the entry exists. Invalid entries are left out.

        :param pod: the pod
        :param has_devices: whether the pod requests a resource or has a claim that may be for network devices
        :raises ApiError: the API server cannot be reached
        """
        try:
            entries = network_status(pod)[:MOST_INTERFACES]
        except ResourceError:
            return NetworkDevices()
        addresses: dict[str, None] = {}
        claimed: dict[str, None] = {}
        interfaces: dict[str, None] = {}
        for entry in entries:
            name = entry.get("name")
            exists, attachment = self._find(name) if isinstance(name, str) else (False, None)
            told = _list_addresses(entry)
            (addresses if has_devices or exists else claimed).update(dict.fromkeys(told))
            config = attachment.plugin if attachment is not None else {}
            interfaces.update(dict.fromkeys(list_known(INTERFACE, map(config.get, _INTERFACES))))
            addresses.update(dict.fromkeys(list_known(PCI_ADDRESS, (config.get(_ADDRESS),))))
        return NetworkDevices(tuple(addresses), tuple(claimed), tuple(interfaces))

    def _find(self, network: str) -> tuple[bool, typing.Optional[Attachment]]:
        """Return whether a network exists, and its NetworkAttachmentDefinition. A network counts as existing if its
        namespace could not be read.

        :param network: namespace/name
        """
        namespace, slash, name = network.partition("/")
        if not slash:
            return False, None
        if namespace not in self._known:
            self._known[namespace] = self._list(namespace)
        known = self._known[namespace]
        return (True, None) if known is None else (name in known, known.get(name))

    def _list(self, namespace: str) -> typing.Optional[dict[str, Attachment]]:
        try:
            items = self._cluster.list("NetworkAttachmentDefinition", namespace).items
        except ApiError as error:
            if error.status == 0:
                raise
            return {} if error.absent else None
        return {name_of(item): parse_attachment(item) for item in items}


def _list_addresses(entry: Resource) -> tuple[str, ...]:
    try:
        return list_known(PCI_ADDRESS, (mapping_at(entry, "device-info", "pci").get("pci-address"),))
    except ResourceError:
        return ()
