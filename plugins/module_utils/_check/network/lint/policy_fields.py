# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the fields of a SriovNetworkNodePolicy by the rules of the operator's webhook."""

from __future__ import annotations

import re
import typing

from ...._model.base.phrases import count_of
from ...._model.operators.sriov_operator import Policy, SupportedNic
from .policy_context import LIST, POLICY, ClusterBefore, Objection

_RANGE = re.compile(r"([^#]*)#([0-9]{1,9})-([0-9]{1,9})")

_RESOURCE = re.compile(r"[a-zA-Z0-9_]+")


# The policy by itself


def check_fields(policy: Policy, cluster_before: ClusterBefore) -> typing.Iterator[Objection]:
    if not _RESOURCE.fullmatch(policy.resource_name):
        text = f'resource name "{policy.resource_name}" contains invalid characters'
        why = (
            "Operators up to release 1.6 and OpenShift's operator accept only letters, digits and underscores in a"
            " resource name."
        )
        yield Objection(
            POLICY,
            "webhook",
            text,
            "letters, digits and underscores",
            why,
            "Correct resource_name of the fabric, then run stage network again.",
        )
    if not (policy.vendor or policy.device or policy.pf_names or policy.root_devices or policy.net_filter):
        text = (
            "at least one of these parameters (vendor, deviceID, pfNames, rootDevices or netFilter) has to be defined"
            f" in nicSelector in CR {policy.name}"
        )
        yield Objection(
            POLICY,
            "webhook",
            text,
            "a nicSelector with at least one of these parameters",
            "The policy does not define which NICs it selects.",
            "Add pci, netdev, or vendor and device to select of the fabric. Then run stage network again.",
        )
    yield from _check_supported(policy, cluster_before.supported)
    for written in policy.pf_names:
        yield from _check_range(policy, written)
    # of an InfiniBand policy the webhook itself makes an RDMA one
    if policy.device_type == "vfio-pci" and (policy.rdma or policy.link_type.upper() == "IB"):
        why = "A function that is bound to vfio-pci has no RDMA device on the host."
        yield Objection(
            POLICY,
            "webhook",
            "'deviceType: vfio-pci' conflicts with 'isRdma: true'",
            "deviceType: netdevice",
            why,
            "Remove deviceType vfio-pci, or set rdma: false on the fabric. Then run stage network again.",
        )
    if policy.eswitch_mode == "switchdev" and policy.link_type.upper() not in ("", "ETH"):
        text = "'eSwitchMode: switchdev' can be used only with ethernet links"
        yield Objection(
            POLICY,
            "webhook",
            text,
            "eSwitchMode: legacy",
            "An InfiniBand HCA has no switchdev mode.",
            "Remove eSwitchMode from the policy, then run stage network again.",
        )
    if policy.vdpa_type and policy.device_type not in ("", "netdevice"):
        text = f"'deviceType: {policy.device_type}' conflicts with '{policy.vdpa_type}'"
        yield Objection(
            POLICY,
            "webhook",
            text,
            "deviceType: netdevice",
            "vDPA requires the kernel's own driver (netdevice).",
            "Remove vdpaType from the policy, or use deviceType netdevice. Then run stage network again.",
        )
    if policy.vdpa_type and policy.eswitch_mode != "switchdev":
        text = "vdpa requires the device to be configured in switchdev mode"
        yield Objection(
            POLICY,
            "webhook",
            text,
            "eSwitchMode: switchdev",
            "vDPA devices require the embedded switch of the NIC (switchdev mode).",
            "Remove vdpaType from the policy, or use eSwitchMode switchdev. Then run stage network again.",
        )


def _check_supported(
    policy: Policy, supported: typing.Optional[tuple[SupportedNic, ...]]
) -> typing.Iterator[Objection]:
    if supported is None:
        return
    if policy.vendor and not any(nic.vendor == policy.vendor for nic in supported):
        text = f"vendor {policy.vendor} is not supported"
    elif (
        policy.vendor
        and policy.device
        and not any((nic.vendor, nic.device) == (policy.vendor, policy.device) for nic in supported)
    ):
        text = f"vendor/device {policy.vendor}/{policy.device} is not supported"
    elif policy.device and not any(nic.device == policy.device for nic in supported):
        text = f"device {policy.device} is not supported"
    else:
        return
    expected = f"a NIC in the operator's ConfigMap {LIST}"
    parents = sorted(
        {nic.device for nic in supported if nic.virtual_device == policy.device and policy.vendor in ("", nic.vendor)}
    )
    if parents:
        why = (
            f"{policy.device} is the device ID of virtual functions. A policy selects physical functions and creates"
            " virtual functions on them."
        )
        remedy = (
            f"Set select.device of the fabric to the device ID of the physical function: {' or '.join(parents)}. Then"
            " run stage network again."
        )
    else:
        why = "The operator supports only the NICs in this ConfigMap, and its config daemon reports no other NICs."
        remedy = (
            "Correct vendor and device in select of the fabric, or add the NIC to supportedExtraNICs in the values of"
            " the operator's Helm chart. Then run stage network again."
        )
    yield Objection(POLICY, "webhook", text, expected, why, remedy)


def _check_range(policy: Policy, written: str) -> typing.Iterator[Objection]:
    """Yield objections to the range of virtual functions in an entry of pfNames, such as ``eth0#0-3``.

    :param policy: SriovNetworkNodePolicy with the entry
    :param written: text of the entry
    """
    if "#" not in written:
        return
    match = _RANGE.fullmatch(written)
    if match is None:
        text, why = (
            f"failed to parse {written} PF name",
            "The entry is neither an interface name nor an interface name with a range.",
        )
    elif int(match[3]) < int(match[2]):
        text, why = (
            f"failed to parse {written} PF name nicSelector, end range shall not be smaller than start range",
            "The range ends before it starts.",
        )
    elif int(match[3]) >= policy.vfs_count:
        text = f"failed to parse {written} PF name nicSelector, end range exceeds the maximum VF index"
        why = (
            f"The policy creates {count_of(policy.vfs_count, 'virtual function')}, with the numbers 0 to"
            f" {policy.vfs_count - 1}."
        )
    else:
        return
    yield Objection(
        POLICY,
        "webhook",
        text,
        f"eth0, or eth0#0-{max(0, policy.vfs_count - 1)}",
        why,
        "Correct the name in select.netdev of the fabric, then run stage network again.",
    )
