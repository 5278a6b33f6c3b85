# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the GUIDs of InfiniBand VFs: each VF has one, it is the same in each layer, and no two VFs share one. Check id:
``virtual_functions.guids``.
"""

from __future__ import annotations

import typing

from ..._model.base.phrases import count_of
from ..._model.base.text import join_first
from ..._model.infiniband.fabric import ObservedTopologies, SeenSubnet
from ..._model.node.hca import NO_GUID, Hca, NodeHcas
from ..._model.run.findings import FAIL, UNKNOWN, Finding, build_pass
from .function_reports import FunctionReports
from .ip_link import format_command, format_each

#: the value of a VF that has no GUID yet, and the value that no port may have
_ONES = "0xffffffffffffffff"
NO_GUIDS = (NO_GUID, _ONES)
_EXPECTED = "one GUID per VF, the same in the physical function, the RDMA device and the report of the config daemon"
_RECREATE = (
    "Then create the VFs of one of these nodes again: drain the node, run echo 0 >"
    " /sys/bus/pci/devices/ADDRESS/sriov_numvfs as root on it (ADDRESS is the PCI address of the physical"
    " function), and delete the pod of its config daemon (label app=sriov-network-config-daemon). Then uncordon"
    " the node and run stage virtual_functions again."
)


def _bind_again(node: str, vfs: typing.Sequence[Hca]) -> str:
    """Return the instruction to bind VFs to their driver again.

    :param node: name of the node
    """
    first = format_each(vfs, "echo ADDRESS > /sys/bus/pci/drivers/mlx5_core/unbind")
    return (
        f"End the pods that use these VFs. Then bind each VF to its driver again on {node}, as root: {first}; then do"
        " the same with /sys/bus/pci/drivers/mlx5_core/bind."
    )


def check_guids(layers: FunctionReports) -> Finding:
    """Check that each InfiniBand VF has a node GUID and a port GUID other than zero, and that the physical function,
    the VF itself and the report of the config daemon show the same GUID.

    :param layers: reports of kernel, operator and config daemon on the physical function
    """
    check, expected = "virtual_functions.guids", _EXPECTED
    nameless = [vf.name for vf in layers.vfs if find_guid(vf) is None]
    total = count_of(len(layers.vfs), "VF")
    zero = [vf for vf in layers.vfs if find_guid(vf) in NO_GUIDS or any(port.guid in NO_GUIDS for port in vf.all_ports)]
    if zero:
        given = [vf.name for vf in zero if vf.administration and vf.administration.node_guid not in (None, *NO_GUIDS)]
        names = join_first([vf.name for vf in zero], 8)
        if given:
            why = (
                "The physical function has GUIDs for these VFs, but the driver started the VFs before the GUIDs"
                " were set, so their RDMA devices have none."
            )
            remedy = f"{_bind_again(layers.node, zero)} Then run stage virtual_functions again."
            names = join_first(given, 8)
        elif all(_ONES in (find_guid(vf), *(port.guid for port in vf.all_ports)) for vf in zero):
            why = (
                "The CNI plugin ib-sriov-cni has set the GUIDs of these VFs to ff:ff:ff:ff:ff:ff:ff:ff. It does"
                " this when a pod ends and its VF had no GUID before. Pods on these VFs fail."
            )
            remedy = (
                f"Set a different GUID for each VF on {layers.node}: run"
                f" {format_command(layers.hca, zero, 'node_guid GUID')}, and the same with port_guid GUID."
                f" {_bind_again(layers.node, zero)} Then run stage virtual_functions again."
            )
        else:
            why = "The config daemon has assigned no GUID to these VFs. Pods on them fail with 'GUID is not valid'."
            remedy = (
                f"If {layers.node} has the file /etc/sriov-operator/infiniband/guids, add a GUID for each VF to"
                f" it. Otherwise read the log of the config daemon on {layers.node} (kubectl get pods -A -l"
                f" app=sriov-network-config-daemon --field-selector spec.nodeName={layers.node} lists its pod for"
                " kubectl logs), and correct the error in it. Then run stages network and virtual_functions"
                " again."
            )
        measured = f"{len(zero)} of {total} without a valid GUID: {names}"
        return Finding(check, layers.subject, FAIL, measured, expected, why, remedy)
    unlike = [
        vf.name
        for vf in layers.vfs
        if vf.administration and vf.node_guid and vf.administration.node_guid not in (None, vf.node_guid)
    ]
    if unlike:
        why = (
            "The GUIDs of these VFs were changed in the physical function after the driver bound the VFs, so their RDMA"
            " devices still have the old GUIDs."
        )
        bind = _bind_again(layers.node, [vf for vf in layers.vfs if vf.name in unlike])
        remedy = f"{bind} Then run stage virtual_functions again."
        measured = (
            f"{len(unlike)} of {total} with another GUID in the RDMA device than in the physical function:"
            f" {join_first(unlike, 8)}"
        )
        return Finding(check, layers.subject, FAIL, measured, expected, why, remedy)
    reported = {vf.address: vf.guid for vf in layers.reported.vfs if vf.guid} if layers.reported else {}
    stale = [
        vf.name
        for vf in layers.vfs
        if vf.pci and vf.node_guid and not _is_same_guid(reported.get(vf.pci.address), vf.node_guid)
    ]
    if stale:
        why = (
            "The GUIDs were changed after the config daemon reported them, for example by hand, by ib-kubernetes, or by"
            " a CNI plugin that failed and did not restore them."
        )
        remedy = (
            "Run stage virtual_functions again. If the finding remains, delete the pod of the config daemon on"
            f" {layers.node}, so that it reports the GUIDs again: kubectl delete pod -A -l"
            f" app=sriov-network-config-daemon --field-selector spec.nodeName={layers.node}. Then run the stage"
            " once more."
        )
        measured = (
            f"{len(stale)} of {total} with another GUID in the kernel than in the report of the config daemon:"
            f" {join_first(stale, 8)}"
        )
        return Finding(check, layers.subject, FAIL, measured, expected, why, remedy)
    if nameless:
        why = "Neither an RDMA device on the node or in a pod on the node, nor ip link, shows a GUID for these VFs."
        measured = f"GUID of {len(nameless)} of {total} not read: {join_first(nameless, 8)}"
        remedy = (
            f"Run ip link show on {layers.node} as root. If it lists GUIDs of the VFs, let Ansible read the node"
            f" as root (ansible_become: true). If it lists none, update iproute2 on {layers.node}. If rdma link"
            f" on {layers.node} lists no device of a VF that is not in a pod, run modprobe mlx5_ib there. Then"
            " run stage virtual_functions again."
        )
        return Finding(check, layers.subject, UNKNOWN, measured, expected, why, remedy)
    return build_pass(check, layers.subject, f"{total}, each with a GUID", expected)


def find_guid(vf: Hca) -> typing.Optional[str]:
    """Return the GUID of a VF: that of its RDMA device, else that of its interface in a pod, else that which the
    physical function assigned to it. Return None if no GUID is found.
    """
    if vf.node_guid is not None or vf.rdma_device is not None:
        return vf.node_guid
    parts = vf.held
    shown = (parts.node_guid, *(netdev.port_guid for netdev in parts.netdevs)) if parts else ()
    set_for = (vf.administration.node_guid, vf.administration.port_guid) if vf.administration else ()
    return next((guid for guid in (*shown, *set_for) if guid is not None), None)


def _is_same_guid(reported: typing.Optional[str], guid: str) -> bool:
    """Return whether the report contains this GUID, or no GUID.

    The report may have the bytes in reverse order [src vishvananda/netlink rdma_link_linux.go; sample
    k8snetworkplumbingwg/sriov-network-operator issue 1046].

    :param reported: GUID in the report of the operator; None if the report has no GUID
    :param guid: GUID of the VF
    """
    if reported is None:
        return True
    octets = reported.lower().split(":")
    return guid in ("0x" + "".join(octets), "0x" + "".join(reversed(octets)))


def find_others(
    nodes: typing.Mapping[str, NodeHcas],
    topologies: typing.Mapping[str, ObservedTopologies],
    subnets: typing.Mapping[str, typing.Sequence[SeenSubnet]],
) -> dict[str, str]:
    """Return the GUIDs of all devices of the fabric that do not belong to these nodes, each with a description of its
    device. A device whose description begins with the host name of a node counts as its device.

    :param nodes: HCAs of each node
    :param topologies: topologies that fabric_info read, or the error, by node
    :param subnets: subnet manager that each port of each node sees
    """
    found: dict[str, str] = {}
    for observed in topologies.values():
        for seen in observed.value or ():
            if seen.topology is None:
                continue
            names = {node.guid: f"{node.called} ({node.kind}) in the topology" for node in seen.topology.nodes}
            found.update(names)
            for link in seen.topology.links:
                for end in (link.a, link.b):
                    if end.port_guid is not None:
                        found[end.port_guid] = names.get(end.guid, f"{end.guid} in the topology")
    for ports in subnets.values():
        for port in ports:
            if port.master is not None:
                found.setdefault(port.master.guid, "the master subnet manager")
    own = {
        guid
        for node in nodes.values()
        for hca in node.hcas
        if not hca.is_virtual
        for guid in (hca.node_guid, *(port.guid for port in hca.all_ports))
    }
    # a topology that shows virtual functions calls them by the name of their node
    ours = tuple(f"{name.partition('.')[0]} " for name in nodes)
    return {guid: name for guid, name in found.items() if guid not in own and not name.startswith(ours)}


def check_duplicate_guids(nodes: typing.Mapping[str, NodeHcas], others: typing.Mapping[str, str]) -> list[Finding]:
    """Check that no VF has the GUID of another function of any node, or of another device of the fabric. Return a
    failed finding for each such GUID, or one pass. Stage discover finds duplicates among physical functions.

    :param others: GUIDs of other devices of the fabric, each with its device
    """
    owners: dict[str, dict[str, bool]] = {}
    for name, node in nodes.items():
        for hca in node.hcas:
            infiniband = any(port.link_layer == "InfiniBand" for port in hca.all_ports) or (
                hca.pci is not None and hca.pci.device_class == "0207"
            )
            if infiniband:
                for guid in (find_guid(hca), *(port.guid for port in hca.all_ports)):
                    if guid is not None and guid not in NO_GUIDS:
                        owners.setdefault(guid, {})[f"{name} {hca.name}"] = hca.is_virtual
    findings = []
    for guid, functions in sorted(owners.items()):
        if len(functions) > 1 and any(functions.values()):
            why = (
                "The subnet manager cannot distinguish functions with the same GUID. Usually several nodes have the"
                " same file /etc/sriov-operator/infiniband/guids, from which the config daemon takes the GUIDs."
            )
            remedy = (
                f"Give each node its own file /etc/sriov-operator/infiniband/guids, or remove the file. {_RECREATE}"
            )
            findings.append(
                Finding(
                    "virtual_functions.guids",
                    guid,
                    FAIL,
                    f"on {count_of(len(functions), 'function')}: {join_first(list(functions), 8)}",
                    "each GUID on 1 function",
                    why,
                    remedy,
                )
            )
    for guid, functions in sorted(owners.items()):
        virtual_ones = [name for name, virtual in functions.items() if virtual]
        if guid in others and virtual_ones:
            why = (
                "The config daemon assigned a GUID to a VF that another device of the fabric has. The subnet manager"
                " cannot distinguish the two, and one of them loses its packets."
            )
            remedy = (
                "Remove the GUID from the file /etc/sriov-operator/infiniband/guids of the node. The file may be a copy"
                f" from another cluster. {_RECREATE}"
            )
            measured = f"on {join_first(virtual_ones, 8)} and on {others[guid]}"
            findings.append(
                Finding("virtual_functions.guids", guid, FAIL, measured, "each GUID on 1 function", why, remedy)
            )
    virtual = [guid for guid, functions in owners.items() if any(functions.values())]
    if virtual and not findings:
        findings.append(
            build_pass(
                "virtual_functions.guids",
                "all nodes",
                f"{count_of(len(virtual), 'GUID')} of VFs, all unique",
                "all unique",
            )
        )
    return findings
