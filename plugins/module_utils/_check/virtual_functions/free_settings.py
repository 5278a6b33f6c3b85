# SPDX-License-Identifier: GPL-3.0-or-later

"""The settings of free VFs that no CNI plugin changes, because the network does not name them: a VF in a later pod
keeps them. Check id: ``virtual_functions.free_settings``.

Stage bandwidth measures one VF of each physical function, so a setting of another VF is not measured. The CNI plugin
for Ethernet sets the VLAN of each VF, also where the network names none; rates, trust, spoof check and link state only
where it names them [sriov-cni pkg/sriov/sriov.go ApplyVFConfig].
"""

from __future__ import annotations

import collections
import typing

from ..._model.base.text import folded
from ..._model.intent.intent import Fabric
from ..._model.intent.profiles import is_infiniband, owns_rdma
from ..._model.node.hca import Hca, VfAdministration
from ..._model.run.findings import FAIL, WARN, Finding, ok
from .function_reports import FunctionReports

_CHECK = "virtual_functions.free_settings"
_ALIKE = "the same settings as other free VFs of the fabric"
_UNLIMITED = "no rate limit below the rate of the link"


def check_free(fabric: Fabric, functions: typing.Sequence[FunctionReports]) -> list[Finding]:
    """Find free VFs with a rate limit that the intent does not set, and free VFs whose settings differ from most others
    of the fabric.

    :param functions: of all nodes
    """
    free = [(layers, vf) for layers in functions for vf in layers.vfs if vf.netdevs and vf.held is None]
    found = [finding for layers in functions for finding in _report_limits(fabric, layers)]
    found += _report_others(fabric, free)
    if found or not free:
        return found
    return [ok(_CHECK, f"{fabric.name}, all nodes", f"{len(free)} free VFs", f"{_ALIKE}, {_UNLIMITED}")]


def _report_limits(fabric: Fabric, layers: FunctionReports) -> typing.Iterator[Finding]:
    limits = {vf.name: limit for vf in layers.vfs if vf.netdevs and vf.held is None and (limit := _find_limit(vf))}
    speeds = [netdev.speed_gbps for netdev in layers.hca.netdevs if netdev.speed_gbps]
    # some drivers show the rate of the link where there is no limit
    limits = {name: limit for name, limit in limits.items() if not speeds or limit < 1000 * max(speeds)}
    if not limits or {"min_tx_rate", "max_tx_rate"} & fabric.network.vf_settings.keys():
        return
    shown = folded([f"{name} {limit} Mb/s" for name, limit in limits.items()], 8)
    why = (
        f"Kernel: the physical function limits the rate of these free VFs: {shown}. The intent sets no max_tx_rate, so"
        " no CNI plugin changes the limit, and a pod that gets one of these VFs sends at this rate."
    )
    remedy = (
        "Remove the limit on the node: ip link set PF vf NUMBER min_tx_rate 0 max_tx_rate 0. Then find what sets it,"
        " such as a script, or a pod that ended while its node was down."
    )
    if not is_infiniband(fabric):
        remedy += f" If the limit is intended, set network.max_tx_rate in the fabric '{fabric.name}'."
    yield Finding(_CHECK, layers.subject, FAIL, f"{len(limits)} of {len(layers.vfs)} VFs", _UNLIMITED, why, remedy)


def _find_limit(vf: Hca) -> int:
    return (vf.administration.max_tx_rate if vf.administration else None) or 0


def _report_others(fabric: Fabric, free: typing.Sequence[tuple[FunctionReports, Hca]]) -> typing.Iterator[Finding]:
    """Report the VFs of each physical function that differ from most free VFs of the fabric, or from as many."""
    counts: dict[tuple[str, str], collections.Counter[str]] = {}
    shown = [(layers, vf, _list_settings(fabric, vf)) for layers, vf in free]
    for _layers, vf, settings in shown:
        for name, value in settings.items():
            counts.setdefault((name, _find_driver(vf)), collections.Counter())[value] += 1
    usual = {key: max(sorted(values), key=values.__getitem__) for key, values in counts.items()}
    others: dict[str, list[str]] = {}
    for layers, vf, settings in shown:
        differing = [
            f"{name} {value} (others have {usual[name, _find_driver(vf)]})"
            for name, value in settings.items()
            if value != usual[name, _find_driver(vf)]
        ]
        if differing:
            others.setdefault(layers.subject, []).append(f"{vf.name}: {', '.join(differing)}")
    for subject, texts in others.items():
        why = (
            f"Kernel: these free VFs have settings that differ from other free VFs of the fabric: {folded(texts, 8)}."
            " No CNI plugin changes these settings, so pods with these VFs can behave differently. Stage bandwidth"
            " tests one VF of each physical function."
        )
        remedy = (
            "Compare the VFs on the node: ip -d link show PF. Set the usual value (ip link set PF vf NUMBER ...), or"
            f" set it under network of the fabric '{fabric.name}', so that the CNI plugin applies it to each pod."
        )
        yield Finding(_CHECK, subject, WARN, folded(texts, 4), _ALIKE, why, remedy)


def _find_driver(vf: Hca) -> str:
    return (vf.pci.driver if vf.pci else None) or ""


def _list_settings(fabric: Fabric, vf: Hca) -> dict[str, str]:
    """Return the settings of a free VF that the network leaves as they are, by name."""
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
            shown["link policy"] = administration.link_policy
    if fabric.mtu is None:
        shown["MTU"] = (
            folded(sorted({str(netdev.mtu) for netdev in vf.netdevs if netdev.mtu is not None})) or "not shown"
        )
    if owns_rdma(fabric) and vf.rdma_device:
        shown["ports"] = str(len(vf.ports))
        for port in vf.ports:
            # a link that is down has other keys than one that a subnet manager has taken up
            if port.link_layer == "InfiniBand":
                shown[f"partition keys of a port {port.state}"] = folded(sorted(port.pkeys)) or "none"
    return shown
