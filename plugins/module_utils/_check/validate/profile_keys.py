# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that a fabric has the keys that its profile requires, and none that it does not support. Part of stage
validate. Check id: ``validate.profile``.

The table of profiles (_model/intent/profiles.py) defines the keys of each profile. This module applies it.
"""

from __future__ import annotations

import typing

from ..._model.base.phrases import count_of
from ..._model.base.rules import run_rule
from ..._model.intent.intent import Fabric, LineRate, Pods, Select
from ..._model.intent.profiles import IPOIB, PROFILES, attachment_kind, carries_rdma, find_traits, is_infiniband
from ..._model.run.findings import FAIL, WARN, Finding, build_pass
from .refusal import end_with_rerun, format_value

#: keys of a fabric and of its network that only some profiles take, with what the reader should know of them
_KEYS = {
    "mtu": "With this profile, no component sets the MTU on the interface of the pods.",
    "pods_per_node": "Only profiles whose pods share one interface of the node use this key.",
    "link_state": "Only virtual functions have their own link state.",
    "meta_plugins": "This attachment does not support chained CNI plugins.",
    "mode": "Only macvlan has modes.",
    "vlan": "Only virtual functions on Ethernet get a VLAN from their physical function.",
    "vlan_qos": "Only virtual functions on Ethernet get a VLAN from their physical function.",
    "trust": "Only virtual functions on Ethernet have a trust setting.",
    "spoof_check": "Only virtual functions on Ethernet have a spoof check.",
    "min_tx_rate": "Only virtual functions on Ethernet have their own rate.",
    "max_tx_rate": "Only virtual functions on Ethernet have their own rate.",
}

#: key, what was seen, what is expected, why
Mistake = tuple[str, str, str, str]


def check(fabric: Fabric, path: str) -> list[Finding]:
    """Check that a fabric sets each key that its profile requires and no key that its profile does not support. Return
    one failed finding for each such key, or one pass.

    :param path: path of the fabric in the intent
    """
    findings = [
        finding
        for rule in (
            _check_foreign_keys,
            _check_functions,
            _check_resource_name,
            _check_ipam,
            _check_network_name,
            _check_hca_selection,
            _check_rdma_flag,
            _check_routing,
            _check_uplinks,
            _check_interface_selection,
            _check_vlan_and_rates,
            _list_rdma_wishes,
        )
        for finding in run_rule(_report_profile_mistakes, rule, fabric, path)
    ]
    findings += _warn_of_unread_pods(fabric, path)
    return findings or [
        build_pass(
            "validate.profile", path, fabric.profile, f"the keys of one of these profiles: {', '.join(PROFILES)}"
        )
    ]


def _report_profile_mistakes(
    rule: typing.Callable[[Fabric], typing.Iterable[Mistake]], fabric: Fabric, path: str
) -> typing.Iterator[Finding]:
    for key, seen, expected, why in rule(fabric):
        remove = expected.startswith(("no ", "none ", "unset "))
        remedy = (
            f"{'Remove' if remove else 'Correct'} {path}.{key}, or use a different profile. docs/intent.md lists the"
            " keys of each profile."
        )
        yield Finding("validate.profile", f"{path}.{key}", FAIL, seen, expected, why, end_with_rerun(remedy))


def _check_foreign_keys(fabric: Fabric) -> typing.Iterator[Mistake]:
    infiniband = attachment_kind(fabric) == IPOIB
    for key, why in _KEYS.items():
        of_network = hasattr(fabric.network, key)
        value, path = getattr(fabric.network if of_network else fabric, key), f"network.{key}" if of_network else key
        if value in (None, ()):
            continue
        if key not in find_traits(fabric).keys:
            yield path, format_value(value), f"no {key} with {fabric.profile}", why
        elif infiniband and key in ("mtu", "mode", "meta_plugins"):
            yield (
                path,
                format_value(value),
                f"no {key} on InfiniBand",
                "An IPoIBNetwork does not have this key. Its MTU is the MTU of the partition.",
            )


def _check_functions(fabric: Fabric) -> typing.Iterator[Mistake]:
    its, profile = find_traits(fabric), fabric.profile
    if its.functions != bool(fabric.virtual_functions):
        why = (
            "Pods of this profile get virtual functions."
            if its.functions
            else "This profile creates no virtual functions."
        )
        yield (
            "virtual_functions",
            count_of(fabric.virtual_functions or 0, "virtual function"),
            "at least 1 virtual function" if its.functions else f"no virtual functions with {profile}",
            why,
        )


def _check_resource_name(fabric: Fabric) -> typing.Iterator[Mistake]:
    its, profile = find_traits(fabric), fabric.profile
    if its.resource == "needed" and not fabric.resource_name:
        yield (
            "resource_name",
            "no resource_name",
            "a resource_name",
            "Pods request the interface by the name of a resource.",
        )
    if its.resource == "none" and fabric.resource_name:
        yield (
            "resource_name",
            fabric.resource_name,
            f"no resource_name with {profile}",
            "Pods of this profile request no device, so the name has no use.",
        )


def _check_ipam(fabric: Fabric) -> typing.Iterator[Mistake]:
    its, profile = find_traits(fabric), fabric.profile
    if its.members != (fabric.ipam is not None):
        why = (
            "Pods need addresses on the fabric."
            if its.members
            else "Pods already have addresses of the cluster network."
        )
        yield (
            "ipam",
            "no ipam" if its.members else "an ipam mapping",
            "an ipam mapping" if its.members else f"no ipam with {profile}",
            why,
        )


def _check_network_name(fabric: Fabric) -> typing.Iterator[Mistake]:
    its, profile = find_traits(fabric), fabric.profile
    if its.members != bool(fabric.network.name):
        why = (
            "Pods refer to the attachment by name in their annotation."
            if its.members
            else "Pods of this profile use the cluster network, and need no attachment."
        )
        yield (
            "network.name",
            f"'{fabric.network.name}'" if fabric.network.name else "no network.name",
            "a network.name" if its.members else f"no network.name with {profile}",
            why,
        )


def _check_hca_selection(fabric: Fabric) -> typing.Iterator[Mistake]:
    its, profile = find_traits(fabric), fabric.profile
    if not its.members and fabric.select != Select(0):
        yield (
            "select",
            "a select mapping",
            f"no select with {profile}",
            "Pods of this profile use the cluster network, so no HCA belongs to the fabric.",
        )


def _check_rdma_flag(fabric: Fabric) -> typing.Iterator[Mistake]:
    if fabric.profile == "rdma_shared" and not fabric.rdma:
        yield (
            "rdma",
            "rdma: false",
            "rdma: true",
            "Profile rdma_shared gives pods RDMA devices. For pods without RDMA, use profile macvlan or ipoib.",
        )


def _check_uplinks(fabric: Fabric) -> typing.Iterator[Mistake]:
    if fabric.uplinks is not None and not is_infiniband(fabric):
        yield (
            "uplinks",
            str(fabric.uplinks),
            f"no uplinks with {fabric.profile}",
            "Stage fabric reads only the links of InfiniBand switches.",
        )


def _check_routing(fabric: Fabric) -> typing.Iterator[Mistake]:
    if fabric.routing is not None and not is_infiniband(fabric):
        yield (
            "routing",
            fabric.routing,
            f"no routing with {fabric.profile}",
            "Stage fabric reads only the forwarding tables of InfiniBand switches.",
        )


def _check_interface_selection(fabric: Fabric) -> typing.Iterator[Mistake]:
    """Yield the mistakes (key, value, expected value, reason) in the selection of a fabric whose pods are attached to
    one host interface. The selection must name exactly one interface, and the number of pods must be valid. Yield
    nothing for other fabrics.
    """
    by_name = find_traits(fabric).shared or (fabric.profile == "host_device" and not fabric.resource_name)
    if not by_name:
        return
    if len(fabric.select.netdev) != 1:
        why = "The attachment refers to one interface, with the same name on each node."
        yield (
            "select.netdev",
            f"{len(fabric.select.netdev)} names",
            "1 name",
            f"{why} For several rails, define one fabric per rail.",
        )
    if fabric.select.hcas_per_node > 1:
        why = "One interface belongs to one HCA. For several rails, define one fabric per rail."
        yield "select.hcas_per_node", str(fabric.select.hcas_per_node), "1", why
    if fabric.network.mode == "passthru" and fabric.pods_per_node != 1:
        why = "In mode passthru, the interface belongs to one pod."
        yield "pods_per_node", str(fabric.pods_per_node or "unset"), "1 with passthru", why
    if fabric.pods_per_node is not None and fabric.pods_per_node < 1:
        yield "pods_per_node", str(fabric.pods_per_node), "at least 1", "A network without pods cannot be tested."


def _list_rdma_wishes(fabric: Fabric) -> typing.Iterator[Mistake]:
    """Yield the settings of a fabric without RDMA that apply only to RDMA measurements, as key, value, expected value
    and reason. They have no effect, because TCP is measured.
    """
    if carries_rdma(fabric):
        return
    wanted, rate = fabric.bandwidth, fabric.line_rate
    expected, why = (
        "unset without RDMA",
        "Pods of this fabric have no RDMA, so stage bandwidth measures TCP, and this key has no effect.",
    )
    if wanted.latency:
        yield "bandwidth.latency", "true", expected, why
    if wanted.most_latency_us is not None:
        yield "bandwidth.most_latency_us", f"{wanted.most_latency_us:g}", expected, why
    if wanted.sweep:
        yield "bandwidth.sweep", "true", expected, why
    if wanted.layers not in (None, "none"):
        yield "bandwidth.layers", wanted.layers, expected, why
    if rate.fraction != LineRate.fraction:
        why += " The floor of TCP is a fraction of the bandwidth of the best pair (fleet_fraction)."
        yield "line_rate.fraction", f"{rate.fraction:g}", expected, why


def _warn_of_unread_pods(fabric: Fabric, path: str) -> typing.Iterator[Finding]:
    """Warn about settings of perftest on a fabric without RDMA, where TCP is measured. They are no failures, since
    several fabrics may share one mapping ``pods``.

    :param path: path of the fabric in the intent
    """
    unread = [
        key
        for key, usual in (
            ("message_bytes", Pods.message_bytes),
            ("queue_pairs", Pods.queue_pairs),
            ("iterations", Pods.iterations),
        )
        if getattr(fabric.pods, key) != usual and not carries_rdma(fabric)
    ]
    for key in unread:
        why = (
            "Pods of this fabric have no RDMA, so stage bandwidth measures TCP, and this key applies only to the"
            " measurement of RDMA."
        )
        remedy = f"Remove {path}.pods.{key}, or use a profile with RDMA. docs/intent.md lists the profiles."
        seen = str(getattr(fabric.pods, key))
        yield Finding(
            "validate.profile", f"{path}.pods.{key}", WARN, seen, "unset without RDMA", why, end_with_rerun(remedy)
        )


def _check_vlan_and_rates(fabric: Fabric) -> typing.Iterator[Mistake]:
    """Yield values of VLAN, priority and rates that the API server, the CNI plugin or the kernel would refuse, each as
    key, value, expected value and reason.
    """
    network = fabric.network
    if network.vlan is not None and not 0 <= network.vlan <= 4094:
        yield (
            "network.vlan",
            str(network.vlan),
            "0 to 4094",
            "The API server accepts 4095 and 4096, but the sriov CNI plugin rejects them, and pods would not start.",
        )
    if network.vlan_qos is not None and not 0 <= network.vlan_qos <= 7:
        yield "network.vlan_qos", str(network.vlan_qos), "0 to 7", "A VLAN priority has 3 bits."
    if network.vlan_qos and not network.vlan:
        yield (
            "network.vlan_qos",
            str(network.vlan_qos),
            "vlan together with vlan_qos",
            "The sriov CNI plugin rejects a priority without a VLAN, and pods would not start.",
        )
    for key in ("min_tx_rate", "max_tx_rate"):
        rate = getattr(network, key)
        if rate is not None and rate < 0:
            yield f"network.{key}", f"{rate} Mb/s", "at least 0 Mb/s", "The API server rejects a negative rate."
    low, high = network.min_tx_rate or 0, network.max_tx_rate or 0
    if 0 < high < low:
        yield (
            "network.min_tx_rate",
            f"{low} Mb/s",
            f"at most {high} Mb/s (max_tx_rate)",
            "The kernel rejects a minimum rate above the maximum rate (EINVAL), and pods would not start.",
        )
