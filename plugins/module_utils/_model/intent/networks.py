# SPDX-License-Identifier: GPL-3.0-or-later

"""The secondary network of a fabric in the intent, and the addresses of its pods (ipam)."""

from __future__ import annotations

import dataclasses
import typing

#: what a network may have set for a VF on Ethernet, when a pod takes it
VF_SETTINGS = ("vlan", "vlan_qos", "trust", "spoof_check", "min_tx_rate", "max_tx_rate")


@dataclasses.dataclass(frozen=True)
class PodSecurity:
    """The Pod Security level for the namespace of the jobs. If it is not given, the namespace keeps its level.

    :ivar enforce: the level: value of the label pod-security.kubernetes.io/enforce
    :ivar reason: reason, printed in the report. With ``privileged``, a user who can create pods there is root on the
        nodes
    """

    enforce: typing.Literal["privileged", "baseline", "restricted"]
    reason: str


@dataclasses.dataclass(frozen=True)
class Network:
    """The network attachment that pods name in their annotation.

    :ivar name: name of the SriovNetwork, MacvlanNetwork and so on, and of the NetworkAttachmentDefinition; empty for
        the pod network only
    :ivar namespace: namespace of the jobs' pods; the measuring pods have a separate namespace
    :ivar pod_security: Pod Security level of the namespace; None leaves it unchanged
    :ivar link_state: link state of the VF; None for the operator's default
    :ivar meta_plugins: chained CNI plugins, in the format of the CNI configuration
    :ivar mode: macvlan mode; None is "bridge"
    :ivar vlan: VLAN id of the VF on Ethernet; None leaves it to the driver
    :ivar vlan_qos: 802.1p priority in the VLAN tag
    :ivar trust: whether the VF may set its own address and promiscuous mode; None for the driver's default
    :ivar spoof_check: whether the HCA drops packets of the VF with a foreign source address; None for the driver's
        default
    :ivar min_tx_rate: guaranteed transmit rate of the VF in Mb/s; 0 for none, None leaves it to the driver
    :ivar max_tx_rate: highest transmit rate of the VF in Mb/s; 0 for no limit, None leaves it to the driver
    """

    namespace: str
    name: str = ""
    pod_security: typing.Optional[PodSecurity] = None
    link_state: typing.Optional[typing.Literal["auto", "enable", "disable"]] = None
    meta_plugins: tuple[dict[str, typing.Any], ...] = ()
    mode: typing.Optional[typing.Literal["bridge", "private", "vepa", "passthru"]] = None
    vlan: typing.Optional[int] = None
    vlan_qos: typing.Optional[int] = None
    trust: typing.Optional[bool] = None
    spoof_check: typing.Optional[bool] = None
    min_tx_rate: typing.Optional[int] = None
    max_tx_rate: typing.Optional[int] = None

    @property
    def vf_settings(self) -> dict[str, typing.Union[int, bool]]:
        """Return the settings that the CNI plugin applies to a pod's VF, by name. Settings that the intent leaves to
        the driver are omitted.
        """
        return {name: getattr(self, name) for name in VF_SETTINGS if getattr(self, name) is not None}


@dataclasses.dataclass(frozen=True)
class Route:
    """A route in the pods. The field names are those of CNI.

    :ivar dst: destination network
    :ivar gw: gateway address in the range; None for the default gateway of the range
    """

    dst: str
    gw: typing.Optional[str] = None


@dataclasses.dataclass(frozen=True)
class NvIpamPool:
    """The nv-ipam pool from which each node gets a share.

    :ivar name: name of the IPPool or CIDRPool
    :ivar kind: shares are blocks of addresses (IPPool), or separate networks (CIDRPool)
    :ivar namespace: namespace that nv-ipam watches (its flag --ippools-namespace)
    :ivar per_node_block_size: number of addresses per node; IPPool only
    :ivar per_node_network_prefix: prefix length of a node's network; CIDRPool only, and required there
    :ivar gateway_index: index of the gateway in each node's network, 1 is the first host; unset for no gateway.
        CIDRPool only
    :ivar create: whether to create the pool; otherwise it must exist
    """

    name: str
    kind: typing.Literal["IPPool", "CIDRPool"] = "IPPool"
    namespace: str = "nvidia-network-operator"
    per_node_block_size: int = 100
    per_node_network_prefix: typing.Optional[int] = None
    gateway_index: typing.Optional[int] = None
    create: bool = True


@dataclasses.dataclass(frozen=True)
class Ipam:
    """The addresses of the pods on this network. Ranges have the format of whereabouts and nv-ipam.

    :ivar type: IPAM plugin that assigns the addresses
    :ivar range: network of the pods in CIDR form
    :ivar range_start: first address that pods get; unset for the first one of the range. whereabouts only
    :ivar range_end: last address that pods get; unset for the last one of the range. whereabouts only
    :ivar gateway: address of the gateway, which no pod gets; unset for none, or for that of ``pool.gateway_index``
    :ivar exclude: networks in the range whose addresses no pod gets
    :ivar routes: routes that the pods get
    :ivar pool: pool of nv-ipam; required with nv-ipam, and not allowed otherwise
    """

    type: typing.Literal["whereabouts", "nv-ipam"]
    range: str
    range_start: typing.Optional[str] = None
    range_end: typing.Optional[str] = None
    gateway: typing.Optional[str] = None
    exclude: tuple[str, ...] = ()
    routes: tuple[Route, ...] = ()
    pool: typing.Optional[NvIpamPool] = None
