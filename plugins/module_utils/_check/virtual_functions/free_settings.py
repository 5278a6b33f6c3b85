# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the settings of free VFs (VFs that no pod has) that no CNI plugin changes, because the network does not set
them. A later pod gets the VF with these settings. Check id: ``virtual_functions.free_settings``.

Stage bandwidth measures one VF of each physical function, so a setting of another VF is not measured. The CNI plugin
for Ethernet sets the VLAN of each VF, even if the network sets none. It sets rates, trust, spoof check and link state
only if the network sets them [sriov-cni pkg/sriov/sriov.go ApplyVFConfig].
"""

from __future__ import annotations

import collections
import typing

from ..._analysis.fleet.paths.partitions import JOIN, list_shared_keys
from ..._model.base.phrases import count_of
from ..._model.base.text import join_first
from ..._model.intent.intent import Fabric
from ..._model.intent.profiles import is_infiniband, owns_rdma
from ..._model.node.hca import Hca, VfAdministration
from ..._model.run.findings import FAIL, WARN, Finding, build_pass
from .function_reports import FunctionReports
from .ip_link import format_command

_CHECK = "virtual_functions.free_settings"
_ALIKE = "the same settings as other free VFs of the fabric"
_LINK_POLICY, _MTU, _PORTS, _PARTITIONS = "link policy", "MTU", "number of ports", "partition keys"
#: settings that ip link sets at the physical function
_OF_PHYSICAL_FUNCTION = ("trust", "spoof_check", "min_tx_rate", _LINK_POLICY)
#: settings that ip link calls by another name
_IP_LINK_NAMES = {"spoof_check": "spoofchk"}
#: what a setting of a physical function does to its VF
_EFFECTS = {
    "trust": "With trust on, a pod may change the MAC address of its VF and receive packets for other addresses.",
    "spoof_check": "With spoof_check on, the NIC drops packets whose source MAC address is not that of the VF.",
    "min_tx_rate": "The setting min_tx_rate is the rate in Mb/s that the NIC reserves for the VF.",
    _LINK_POLICY: "The link policy decides whether the link of the VF follows the port (Auto) or is always up or down.",
}
_UNLIMITED = "no rate limit below the rate of the link"


def check_free(fabric: Fabric, functions: typing.Sequence[FunctionReports]) -> list[Finding]:
    """Return the findings on free VFs that have a rate limit which the intent does not set, that are only limited
    members of their partitions, or whose settings differ from most free VFs of the fabric. If there are free VFs and
    all of them are right, return one pass.

    :param functions: reports on the physical functions of the fabric on all nodes
    """
    free = [(layers, vf) for layers in functions for vf in layers.vfs if vf.netdevs and vf.held is None]
    found = [finding for layers in functions for finding in _report_limits(fabric, layers)]
    limited = [(layers, vf) for layers, vf in free if _is_only_limited(vf)]
    found += _report_limited(limited)
    # of VFs that are only limited members the keys are told, whatever most others have
    found += _report_others(fabric, [item for item in free if item not in limited])
    if found or not free:
        return found
    return [build_pass(_CHECK, f"{fabric.name}, all nodes", f"{len(free)} free VFs", f"{_ALIKE}, {_UNLIMITED}")]


def _report_limits(fabric: Fabric, layers: FunctionReports) -> typing.Iterator[Finding]:
    limits = {vf: limit for vf in layers.vfs if vf.netdevs and vf.held is None and (limit := _find_limit(vf))}
    speeds = [netdev.speed_gbps for netdev in layers.hca.netdevs if netdev.speed_gbps]
    # some drivers show the rate of the link where there is no limit
    limits = {vf: limit for vf, limit in limits.items() if not speeds or limit < 1000 * max(speeds)}
    if not limits or {"min_tx_rate", "max_tx_rate"} & fabric.network.vf_settings.keys():
        return
    shown = join_first([f"{vf.name} {limit} Mb/s" for vf, limit in limits.items()], 8)
    why = (
        "The physical function limits the rate of each free VF under 'measured'. The intent sets no max_tx_rate, so no"
        " CNI plugin changes the limit, and it also applies to a pod that gets such a VF."
    )
    remedy = (
        f"Run on {layers.node}, as root:"
        f" {format_command(layers.hca, list(limits), 'min_tx_rate 0 max_tx_rate 0')}. If the limit returns,"
        " remove it from the program that sets it, such as a boot script. Then run stage virtual_functions"
        " again."
    )
    if not is_infiniband(fabric):
        remedy += f" If the limit is intended, set network.max_tx_rate in the fabric '{fabric.name}'."
    measured = f"{len(limits)} of {count_of(len(layers.vfs), 'VF')} with a rate limit: {shown}"
    yield Finding(_CHECK, layers.subject, FAIL, measured, _UNLIMITED, why, remedy)


def _is_only_limited(vf: Hca) -> bool:
    """Return whether an active InfiniBand port of a VF is only a limited member of all of its partitions.

    Ports that are not active are ignored, since a port whose link is down has other keys.
    """
    return any(
        bool(port.pkeys) and not list_shared_keys(port.pkeys, port.pkeys)
        for port in vf.ports
        if port.link_layer == "InfiniBand" and port.state == "ACTIVE"
    )


def _report_limited(limited: typing.Sequence[tuple[FunctionReports, Hca]]) -> typing.Iterator[Finding]:
    """Yield a failed finding for each physical function with VFs that are only limited members of their partitions.

    :param limited: VFs that are only limited members, each with the reports on its physical function
    """
    by_subject: dict[str, list[Hca]] = {}
    for layers, vf in limited:
        by_subject.setdefault(layers.subject, []).append(vf)
    for subject, vfs in by_subject.items():
        keys = join_first(sorted({key for vf in vfs for port in vf.ports for key in port.pkeys}))
        guids = join_first(sorted({port.guid or "unknown GUID" for vf in vfs for port in vf.ports}), 8)
        why = (
            "The subnet manager has made each VF under 'measured' only a limited member of its partitions. Two limited"
            " members drop each other's packets, so pods with such VFs do not reach each other."
        )
        remedy = (
            f"Make the ports of these VFs full members of a partition: {guids}, {JOIN} Then run stage"
            " virtual_functions again."
        )
        measured = f"only limited membership ({keys}) of {join_first([vf.name for vf in vfs], 8)}"
        yield Finding(_CHECK, subject, FAIL, measured, "full membership of a partition for each VF", why, remedy)


def _find_limit(vf: Hca) -> int:
    return (vf.administration.max_tx_rate if vf.administration else None) or 0


def _report_others(fabric: Fabric, free: typing.Sequence[tuple[FunctionReports, Hca]]) -> typing.Iterator[Finding]:
    """Warn about the free VFs of each physical function whose settings differ from those of most free VFs of the fabric
    with the same driver.

    :param free: the free VFs, each with the reports on its physical function
    """
    counts: dict[tuple[str, str], collections.Counter[str]] = {}
    shown = [(layers, vf, _list_settings(fabric, vf)) for layers, vf in free]
    for _layers, vf, settings in shown:
        for name, value in settings.items():
            counts.setdefault((name, _find_driver(vf)), collections.Counter())[value] += 1
    usual = {key: max(sorted(values), key=values.__getitem__) for key, values in counts.items()}
    others: dict[str, list[str]] = {}
    names: dict[str, set[str]] = {}
    changes: dict[str, dict[str, tuple[Hca, list[Hca]]]] = {}
    for layers, vf, settings in shown:
        unlike = [name for name, value in settings.items() if value != usual[name, _find_driver(vf)]]
        differing = [f"{name} is {settings[name]} (most have {usual[name, _find_driver(vf)]})" for name in unlike]
        if differing:
            names.setdefault(layers.subject, set()).update(unlike)
            others.setdefault(layers.subject, []).append(f"{vf.name}: {', '.join(differing)}")
        for name in (name for name in unlike if name in _OF_PHYSICAL_FUNCTION):
            setting = _format_setting(name, usual[name, _find_driver(vf)])
            of_subject = changes.setdefault(layers.subject, {})
            of_subject.setdefault(setting, (layers.hca, []))[1].append(vf)
    nodes = {layers.subject: layers.node for layers, _vf in free}
    for subject, texts in others.items():
        commands = [format_command(physical, vfs, text) for text, (physical, vfs) in changes.get(subject, {}).items()]
        why, remedy = _explain_settings(fabric, nodes[subject], names[subject], commands)
        yield Finding(_CHECK, subject, WARN, join_first(texts, 4, "; "), _ALIKE, why, remedy)


def _format_setting(name: str, value: str) -> str:
    """Return a setting of a VF with its value, as ip link takes it, such as ``spoofchk off``.

    :param name: name of the setting, one of ``_OF_PHYSICAL_FUNCTION``
    :param value: value as text
    """
    if name == _LINK_POLICY:
        return f"state {({'Up': 'enable', 'Down': 'disable'}).get(value, 'auto')}"
    return f"{_IP_LINK_NAMES.get(name, name)} {value}"


def _explain_settings(
    fabric: Fabric, node: str, names: typing.Collection[str], commands: typing.Sequence[str]
) -> tuple[str, str]:
    """Return the cause and the remedy for VFs whose settings differ from those of most VFs of the fabric.

    :param node: name of the node
    :param names: names of the settings that differ
    :param commands: commands on the node that give the VFs the settings of most VFs
    """
    causes, steps = [], []
    if any(name.startswith(_PARTITIONS) for name in names):
        causes.append("The subnet manager has put these VFs into other partitions than most VFs of the fabric.")
        steps.append(
            "Compare the members of the partitions in partitions.conf of the subnet manager: the port GUIDs of all VFs"
            " of the fabric must be members of the same partitions."
        )
    if _PORTS in names:
        causes.append("The RDMA device of these VFs did not start with all of its ports.")
        steps.append(
            f"Run rdma link on {node} to list the ports. Unbind each of these free VFs from its driver (echo"
            " ADDRESS > /sys/bus/pci/drivers/mlx5_core/unbind) and bind it again (the file bind), and correct"
            " the error that dmesg shows for it."
        )
    if _MTU in names:
        causes.append("The intent sets no MTU, so a VF keeps the MTU that its last pod set.")
        steps.append(f"Set mtu of the fabric '{fabric.name}' in the intent, then run stage network again.")
    if any(name in _OF_PHYSICAL_FUNCTION for name in names):
        causes += [effect for name, effect in _EFFECTS.items() if name in names]
        causes.append("The intent does not set this, so no CNI plugin changes it.")
        keys = ", ".join(
            "link_state" if name == _LINK_POLICY else name for name in _OF_PHYSICAL_FUNCTION if name in names
        )
        steps.append(
            f"Run on {node}, as root: {'; '.join(commands)}. Or set {keys} under network of the fabric"
            f" '{fabric.name}', and run stage network again."
        )
    return (
        " ".join((*causes, "A pod that gets one of these VFs can behave differently from other pods.")),
        " ".join((*steps, "Then run stage virtual_functions again.")),
    )


def _find_driver(vf: Hca) -> str:
    return (vf.pci.driver if vf.pci else None) or ""


def _list_settings(fabric: Fabric, vf: Hca) -> dict[str, str]:
    """Return the settings of a free VF that the network does not set, as text by name.

    :param vf: VF that no pod uses
    """
    shown: dict[str, str] = {}
    administration = vf.administration or VfAdministration()
    if not is_infiniband(fabric):
        named = fabric.network.vf_settings
        switches = {"trust": administration.trust, "spoof_check": administration.spoof_check}
        shown = {
            name: "on" if value else "off"
            for name, value in switches.items()
            if name not in named and value is not None
        }
        if administration.min_tx_rate is not None and not {"min_tx_rate", "max_tx_rate"} & named.keys():
            shown["min_tx_rate"] = str(administration.min_tx_rate)
        if administration.link_policy is not None and fabric.network.link_state is None:
            shown[_LINK_POLICY] = administration.link_policy
    if fabric.mtu is None:
        shown[_MTU] = (
            join_first(sorted({str(netdev.mtu) for netdev in vf.netdevs if netdev.mtu is not None})) or "not shown"
        )
    if owns_rdma(fabric) and vf.rdma_device:
        shown[_PORTS] = str(len(vf.ports))
        for port in vf.ports:
            # a link that is down has other keys than one that a subnet manager has taken up
            if port.link_layer == "InfiniBand":
                shown[f"{_PARTITIONS} of a port in state {port.state}"] = join_first(sorted(port.pkeys)) or "none"
    return shown
