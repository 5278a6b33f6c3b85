# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the fields of a SriovNetworkNodePolicy by the rules of the operator's webhook."""

from __future__ import annotations

import re
import typing

from ...._model.operators.sriov_operator import Policy, SupportedNic
from .policy_context import LIST, POLICY, ClusterBefore, Objection

_RANGE = re.compile(r"([^#]*)#([0-9]{1,9})-([0-9]{1,9})")

_RESOURCE = re.compile(r"[a-zA-Z0-9_]+")


# The policy by itself


def check_fields(policy: Policy, world: ClusterBefore) -> typing.Iterator[Objection]:
    if not _RESOURCE.fullmatch(policy.resource_name):
        text = f'resource name "{policy.resource_name}" contains invalid characters'
        why = "Operators up to 1.6 and OpenShift's take only letters, digits and underscores."
        yield Objection(
            POLICY, "webhook", text, "letters, digits and underscores", why, "Correct resource_name of the fabric."
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
            "a nicSelector",
            "Nothing says which NICs are meant.",
            "Add pci, netdev, or vendor and device to select.",
        )
    yield from _check_supported(policy, world.supported)
    for written in policy.pf_names:
        yield from _check_range(policy, written)
    # of an InfiniBand policy the webhook itself makes an RDMA one
    if policy.device_type == "vfio-pci" and (policy.rdma or policy.link_type.upper() == "IB"):
        why = "A function that is given to vfio-pci has no RDMA device on the host."
        yield Objection(
            POLICY,
            "webhook",
            "'deviceType: vfio-pci' conflicts with 'isRdma: true'",
            "netdevice",
            why,
            "Use one of the two.",
        )
    if policy.eswitch_mode == "switchdev" and policy.link_type.upper() not in ("", "ETH"):
        text = "'eSwitchMode: switchdev' can be used only with ethernet links"
        yield Objection(
            POLICY, "webhook", text, "legacy", "An InfiniBand HCA has no such switch.", "Remove eSwitchMode."
        )
    if policy.vdpa_type and policy.device_type not in ("", "netdevice"):
        text = f"'deviceType: {policy.device_type}' conflicts with '{policy.vdpa_type}'"
        yield Objection(
            POLICY,
            "webhook",
            text,
            "netdevice",
            "vDPA is made on top of the kernel's own driver.",
            "Remove vdpaType, or use netdevice.",
        )
    if policy.vdpa_type and policy.eswitch_mode != "switchdev":
        text = "vdpa requires the device to be configured in switchdev mode"
        yield Objection(
            POLICY,
            "webhook",
            text,
            "switchdev",
            "vDPA devices hang on the switch of the NIC.",
            "Remove vdpaType, or use switchdev.",
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
    expected = f"a NIC of the operator's ConfigMap {LIST}"
    parents = sorted(
        {nic.device for nic in supported if nic.virtual_device == policy.device and policy.vendor in ("", nic.vendor)}
    )
    if parents:
        why = (
            f"{policy.device} is the id of virtual functions; a policy selects physical ones, and makes the virtual"
            " ones."
        )
        remedy = f"Set select.device to that of the physical function: {' or '.join(parents)}."
    else:
        why = "The operator works only on NICs of its list, and its config daemon reports no others."
        remedy = "Correct vendor and device, or add the NIC to supportedExtraNICs of the chart."
    yield Objection(POLICY, "webhook", text, expected, why, remedy)


def _check_range(policy: Policy, written: str) -> typing.Iterator[Objection]:
    """Check the range of virtual functions in the name of a physical function, such as ``eth0#0-3``."""
    if "#" not in written:
        return
    match = _RANGE.fullmatch(written)
    if match is None:
        text, why = f"failed to parse {written} PF name", "It is neither a name nor a name with a range."
    elif int(match[3]) < int(match[2]):
        text, why = (
            f"failed to parse {written} PF name nicSelector, end range shall not be smaller than start range",
            "The range ends before it starts.",
        )
    elif int(match[3]) >= policy.vfs_count:
        text = f"failed to parse {written} PF name nicSelector, end range exceeds the maximum VF index"
        why = f"{policy.vfs_count} virtual functions are numbered 0 to {policy.vfs_count - 1}."
    else:
        return
    yield Objection(
        POLICY,
        "webhook",
        text,
        f"eth0, or eth0#0-{max(0, policy.vfs_count - 1)}",
        why,
        "Correct the name in select.netdev.",
    )
