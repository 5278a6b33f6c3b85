# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the devices of the node on which the secondary networks of a pod are."""

from __future__ import annotations

import dataclasses
import typing

from ..._model.boundary.devices import INTERFACE, PCI_ADDRESS
from ..._model.boundary.kubernetes import NAMESPACED
from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.kinds import Resource
from ..._parse.kubernetes.networks.ipam import attachment_plugins
from ..._parse.kubernetes.networks.multus import MOST_INTERFACES, network_status
from ..._parse.kubernetes.resource import ResourceError, full_name_of, list_known, mapping_at

#: keys of the configuration of a CNI plugin that name an interface of the node: macvlan, ipvlan, ipoib and vlan have a
#: master, host-device a device or the PCI address
_INTERFACES, _ADDRESS = ("master", "device"), "pciBusID"
#: types of CNI plugins whose networks are on a Linux bridge, and the bridge of a network that names none
#: [containernetworking/plugins plugins/main/bridge; kubevirt cnv-bridge]
_BRIDGES, _USUAL_BRIDGE = ("bridge", "cnv-bridge"), "cni0"
#: type of ovs-cni, and the interface of the node that has the ports of all bridges of Open vSwitch. Which bridge a port
#: belongs to is known to Open vSwitch alone
_OVS, _OVS_PORTS = "ovs", "ovs-system"


@dataclasses.dataclass(frozen=True)
class NetworkDevices:
    """The devices of the node that a pod uses by its networks.

    :ivar addresses: PCI addresses of its devices that are certain
    :ivar claimed: PCI addresses of devices that only the annotation of the pod names, so that any client that may write
        the pod can invent them
    :ivar interfaces: names of the interfaces of the node on which its networks are
    """

    addresses: tuple[str, ...] = ()
    claimed: tuple[str, ...] = ()
    interfaces: tuple[str, ...] = ()


class PodNetworks:
    """A reader of the networks of pods. It lists the NetworkAttachmentDefinitions of the cluster once, when a pod first
    names a network. A network is then looked up in this list, so that the text of a pod's annotation never becomes part
    of a request.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._was_read = False
        #: devices of each network by namespace/name; None if the networks could not be read
        self._known: typing.Optional[dict[str, NetworkDevices]] = None

    def read(self, pod: Resource, has_devices: bool) -> NetworkDevices:
        """Return the devices of the node that a pod uses, from the annotation of multus about its networks. Any client
        that may write the pod can write this annotation. So an address in it is certain only if the pod requests
        network devices, or if the network of the entry exists; otherwise it is in ``claimed``. Invalid entries are left
        out.

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
            network = self._find(entry.get("name"))
            told = _list_addresses(entry)
            (addresses if has_devices or network is not None else claimed).update(dict.fromkeys(told))
            if network is not None:
                interfaces.update(dict.fromkeys(network.interfaces))
                addresses.update(dict.fromkeys(network.addresses))
        return NetworkDevices(tuple(addresses), tuple(claimed), tuple(interfaces))

    def _find(self, network: typing.Any) -> typing.Optional[NetworkDevices]:
        """Return the devices of the node that a network names. Return None if the network does not exist, or if the
        value is not the name of a network. If the networks of the cluster could not be read, each name counts as an
        existing network without devices.

        :param network: namespace/name, as the annotation of a pod has it
        :raises ApiError: the API server cannot be reached
        """
        name = NAMESPACED.parse(network)
        if name is None or "/" not in name:
            return None
        if not self._was_read:
            self._known, self._was_read = self._list(), True
        return NetworkDevices() if self._known is None else self._known.get(name)

    def _list(self) -> typing.Optional[dict[str, NetworkDevices]]:
        try:
            # of one that is too large only the name is known
            items = self._cluster.pages("NetworkAttachmentDefinition", partial=True)
            return {full_name_of(item): _read_devices(item) for item in items}
        except ApiError as error:
            if error.status == 0:
                raise
            return {} if error.absent else None


def _read_devices(attachment: Resource) -> NetworkDevices:
    """Return the devices of the node that a NetworkAttachmentDefinition names. Any user with rights in its namespace
    may have written it, so malformed values are left out.
    """
    try:
        plugins = attachment_plugins(attachment, full_name_of(attachment))
    except ResourceError:
        return NetworkDevices()
    names = [name for plugin in plugins for name in _list_names(plugin)]
    addresses = [plugin.get(_ADDRESS) for plugin in plugins]
    return NetworkDevices(list_known(PCI_ADDRESS, addresses), (), list_known(INTERFACE, names))


def _list_names(plugin: typing.Mapping[str, typing.Any]) -> list[typing.Any]:
    """Return the values of a CNI plugin that name an interface of the node, and None for the keys that it lacks."""
    names = [*map(plugin.get, _INTERFACES)]
    if plugin.get("type") in _BRIDGES:
        names.append(plugin.get("bridge") or _USUAL_BRIDGE)
    if plugin.get("type") == _OVS:
        names.append(_OVS_PORTS)
    return names


def _list_addresses(entry: Resource) -> tuple[str, ...]:
    try:
        return list_known(PCI_ADDRESS, (mapping_at(entry, "device-info", "pci").get("pci-address"),))
    except ResourceError:
        return ()
