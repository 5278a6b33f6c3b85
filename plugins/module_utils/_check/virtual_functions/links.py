# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the links of VFs, and find VFs that a pod has left behind in a network namespace. Check ids:
``virtual_functions.link_state``, ``virtual_functions.stuck``.
"""

from __future__ import annotations

import collections
import typing

from ..._model.base.phrases import count_of
from ..._model.base.text import join_first
from ..._model.intent.profiles import is_infiniband
from ..._model.node.hca import Hca
from ..._model.run.findings import FAIL, WARN, Finding, build_pass
from .function_reports import FunctionReports
from .guids import NO_GUIDS, find_guid
from .ip_link import format_command

#: the value in sysfs that the CNI plugin writes for a link state of the network
_POLICIES = {"auto": "Follow", "enable": "Up", "disable": "Down"}


def check_link_state(layers: FunctionReports) -> typing.Optional[Finding]:
    """Check that the links of the VFs can come up. Return None on Ethernet if the intent sets no link state and the
    driver shows none.

    The CNI plugin sets the link state when a pod gets the VF, and only if the network specifies one. Until then an
    InfiniBand VF has the default of the driver, which is down [src ib-sriov-cni pkg/sriov/sriov.go].

    :param layers: reports of kernel, operator and config daemon on the physical function
    """
    check, wanted = "virtual_functions.link_state", layers.fabric.network.link_state
    policies = {
        vf.name: vf.administration.link_policy
        for vf in layers.vfs
        if vf.administration and vf.administration.link_policy
    }
    states = {vf.name: port.state for vf in layers.vfs for port in vf.all_ports[:1] if port.state is not None}
    counted = _spell_counts(policies.values()) or "not read"
    measured = f"link state of the VFs: {counted}" + (
        f"; their ports: {_spell_counts(value or '' for value in states.values())}" if states else ""
    )
    expected = f"link state {_POLICIES[wanted]} of each VF in a pod" if wanted else "link state other than Down"
    total = count_of(len(layers.vfs), "VF")
    unserved = [vf.name for vf in layers.vfs if _is_unserved(layers.hca, vf)]
    if unserved:
        why = (
            "The links of these VFs are up, but the subnet manager does not activate their ports. A subnet manager"
            " without support for VFs behaves this way."
        )
        remedy = (
            f"Run sminfo on {layers.node} to find the master subnet manager. Enable its support for VFs: set"
            " virt_enabled 2 in its opensm.conf (only the opensm of NVIDIA's packages has this option), or"
            " enable virtualization in UFM or in the switch. If it is enabled already, search its log for the"
            " port GUIDs of these VFs (ibstat lists them). Then run stage virtual_functions again."
        )
        measured = f"ports of {len(unserved)} of {total} not ACTIVE: {join_first(unserved, 8)}"
        return Finding(check, layers.subject, FAIL, measured, "each port of a VF ACTIVE", why, remedy)
    down = [name for name in policies or states if (policies or states)[name] in ("Down", "DOWN")]
    if wanted is None:
        if down and is_infiniband(layers.fabric):
            why = (
                "The link of an InfiniBand VF is down until the CNI plugin sets its state, and the intent does not set"
                " network.link_state."
            )
            remedy = (
                f"Set network.link_state: enable in the fabric '{layers.fabric.name}', then run stages network and"
                " virtual_functions again. The subnet manager must also support VFs (opensm: virt_enabled 2)."
            )
            measured = f"link of {len(down)} of {total} down: {join_first(down, 8)}"
            return Finding(check, layers.subject, FAIL, measured, "0 VFs with a link that stays down", why, remedy)
        disabled = [vf for vf in layers.vfs if vf.netdevs and policies.get(vf.name) == "Down"]
        if disabled:
            why = (
                "The physical function disables the links of these free VFs. The intent sets no network.link_state, so"
                " no CNI plugin enables them."
            )
            remedy = (
                f"Set network.link_state: auto in the fabric '{layers.fabric.name}', then run stages network and"
                f" virtual_functions again. Or run on {layers.node}, as root:"
                f" {format_command(layers.hca, disabled, 'state auto')}. Then run stage virtual_functions again."
            )
            measured = f"link of {len(disabled)} of {total} disabled: {join_first([vf.name for vf in disabled], 8)}"
            return Finding(check, layers.subject, FAIL, measured, "0 VFs with a disabled link", why, remedy)
        if len(policies or states) == len(layers.vfs) and not down:
            return build_pass(check, layers.subject, measured, expected)
        if not is_infiniband(layers.fabric) and not policies:
            return None
    held = {vf.name for vf in layers.in_pods} - {vf.name for vf in _list_idle(layers)}
    late = [name for name, policy in policies.items() if wanted and name in held and policy != _POLICIES[wanted]]
    if late:
        why = (
            "These VFs are in pods, and the CNI plugin has not set their link state: the pods are older than the"
            " setting, or the link state was changed on the node later."
        )
        command = format_command(layers.hca, [vf for vf in layers.vfs if vf.name in late], f"state {wanted}")
        remedy = (
            "Run kubectl get network-attachment-definitions -A -o yaml, and check that"
            f" '{layers.fabric.network.name}' sets link_state: {wanted}. Then recreate the pods that have these"
            f" VFs. Or, without new pods, run on {layers.node} as root: {command}. Then run stage"
            " virtual_functions again."
        )
        shown = join_first([f"{name} {policies[name]}" for name in late], 8)
        return Finding(check, layers.subject, FAIL, f"link state of VFs in pods: {shown}", expected, why, remedy)
    if len(policies) == len(layers.vfs):
        return build_pass(check, layers.subject, measured, expected)
    why = "Neither sysfs nor ip link on the node shows the link state of these VFs."
    remedy = (
        f"Run ip link show on {layers.node} as root. If it shows the VFs without a link-state, the driver does"
        " not report it: waive this finding, because stage bandwidth tests the links. If the command is missing,"
        f" install iproute2 on {layers.node}. Then run stage virtual_functions again."
    )
    unread = [vf.name for vf in layers.vfs if vf.name not in policies]
    measured = f"link state of {len(unread)} of {total} not read: {join_first(unread, 8)}"
    return Finding(check, layers.subject, WARN, measured, expected, why, remedy)


def check_idle(layers: FunctionReports) -> typing.Optional[Finding]:
    """Return a warning about VFs whose interface is in a network namespace without processes, so that no pod uses it.

    Return None if there are no such VFs.
    """
    lost = [(vf.name, vf.held.idle or "") for vf in _list_idle(layers) if vf.held]
    if not lost:
        return None
    names = join_first([f"{name} in {namespace}" for name, namespace in lost], 8)
    spaces = list(dict.fromkeys(namespace for _name, namespace in lost))
    why = (
        "These VFs are in network namespaces in which no process runs. A pod that is starting can be the cause."
        " Otherwise a pod crashed and the CNI plugin did not return its VFs to the node. The kubelet counts such"
        " VFs as free, so the next pod that gets one fails."
    )
    remedy = (
        "Search for pods that are starting or crashing: kubectl get pods -A -o wide --field-selector"
        f" spec.nodeName={layers.node}. If none of them uses this network, return the VFs to the node: run on"
        f" {layers.node}, as root, {'; '.join(f'ip netns delete {space}' for space in spaces[:8])}. Then run"
        " stage virtual_functions again."
    )
    return Finding(
        "virtual_functions.stuck",
        layers.subject,
        WARN,
        f"{len(lost)} of {count_of(len(layers.vfs), 'VF')} in network namespaces without processes: {names}",
        "0 VFs in network namespaces without processes",
        why,
        remedy,
    )


def _list_idle(layers: FunctionReports) -> list[Hca]:
    return [vf for vf in layers.vfs if vf.held and vf.held.idle]


def _is_unserved(physical: Hca, vf: Hca) -> bool:
    """Return whether only the subnet manager keeps the port of a VF from becoming active: the VF has GUIDs and its link
    is up, and a port of the HCA is active.

    [k8s-rdma-sriov-dev-plugin issue 26: DOWN, LinkUp; Mellanox/network-operator issue 249: the same, base LID 65535]

    :param physical: physical function of the VF
    """
    ports = [port for port in vf.all_ports if port.link_layer == "InfiniBand"]
    if not ports or not any(port.state == "ACTIVE" for port in physical.all_ports):
        return False
    if find_guid(vf) in (None, *NO_GUIDS) or ports[0].guid in NO_GUIDS:
        return False
    policy = vf.administration.link_policy if vf.administration else None
    # where the policy is not shown, the link of a port that is DOWN may be disabled
    waits = ("INIT", "ARMED") if policy is None else ("DOWN", "INIT", "ARMED")
    return policy != "Down" and ports[0].physical_state == "LinkUp" and ports[0].state in waits


def _spell_counts(values: typing.Iterable[str]) -> str:
    """Return each value with the number of its occurrences as text, such as ``4 Down, 4 Up``.

    :param values: one value for each VF
    """
    return join_first([f"{count} {value}" for value, count in sorted(collections.Counter(values).items())], 8)
