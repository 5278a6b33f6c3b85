# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that no two functions of Ethernet fabrics have the same MAC address. Check id:
``virtual_functions.hardware_addresses``.

A CNI plugin sets the address of a VF only if a pod requests one, and the networks of the collection do not request any.
So a pod sends from the address that its VF has. Stage discover compares the physical functions.
"""

from __future__ import annotations

import typing

from ..._model.base.phrases import count_of
from ..._model.base.text import join_first
from ..._model.boundary.devices import assigned_address
from ..._model.node.hca import Hca
from ..._model.run.findings import FAIL, Finding, build_pass
from .function_reports import FunctionReports
from .ip_link import format_command

_CHECK, _EXPECTED = "virtual_functions.hardware_addresses", "each MAC address on 1 function"


class _Owner(typing.NamedTuple):
    """A function that has a MAC address.

    :ivar node: name of the node
    :ivar function: name of the function
    :ivar is_virtual: whether it is a VF
    :ivar in_pod: whether it is in a pod, which may have set the address, for example for a bond in the pod
    :ivar command: command on the node that sets another address; empty for a physical function
    """

    node: str
    function: str
    is_virtual: bool
    in_pod: bool
    command: str


def check_addresses(fabric: str, functions: typing.Iterable[FunctionReports]) -> list[Finding]:
    """Return a finding for each MAC address that a VF shares with another function of the fabric. If there is none and
    any VF has an address, return one pass.

    :param fabric: name of the fabric
    :param functions: reports on the physical functions of the fabric on all nodes
    """
    owners: dict[str, list[_Owner]] = {}
    for layers in functions:
        for hca in (layers.hca, *layers.vfs):
            for address in _list_addresses(hca):
                owners.setdefault(address, []).append(
                    _Owner(
                        layers.node,
                        hca.name,
                        hca.is_virtual,
                        hca.is_virtual and not hca.netdevs,
                        format_command(layers.hca, [hca], "mac ADDRESS") if hca.is_virtual else "",
                    )
                )
    shared = {address: its for address, its in sorted(owners.items()) if _is_conflict(its)}
    count = sum(any(owner.is_virtual for owner in its) for its in owners.values())
    if not shared:
        measured = f"{count_of(count, 'MAC address', 'MAC addresses')} of VFs, all unique"
        return [build_pass(_CHECK, f"{fabric}, all nodes", measured, "all unique")] if count else []
    return [_report(fabric, address, its) for address, its in shared.items()]


def _list_addresses(hca: Hca) -> set[str]:
    return {assigned_address(netdev.hardware_address) for netdev in hca.all_netdevs} - {""}


def _is_conflict(owners: typing.Sequence[_Owner]) -> bool:
    """Return whether functions must not share a MAC address. VFs in pods of one node may share one, since they may be
    members of a bond. Physical functions alone are not judged here.

    :param owners: functions that have the address
    """
    one_node = len({owner.node for owner in owners}) == 1
    bonded = one_node and all(owner.in_pod for owner in owners)
    return len(owners) > 1 and any(owner.is_virtual for owner in owners) and not bonded


def _report(fabric: str, address: str, owners: typing.Sequence[_Owner]) -> Finding:
    names = join_first([f"{owner.node} {owner.function}" for owner in owners], 8)
    why = (
        "A switch sends packets for one of these functions to another. A udev rule, a script or the network annotation"
        " of a pod has set the address."
    )
    last = next(owner for owner in reversed(owners) if owner.command)
    remedy = (
        "Remove the address from the udev rule, the script, or the annotation k8s.v1.cni.cncf.io/networks of the pod."
        f" Then give each function its own address: run on {last.node}, as root: {last.command}. Then run stage"
        " virtual_functions again."
    )
    measured = f"on {count_of(len(owners), 'function')}: {names}"
    return Finding(_CHECK, f"{fabric} {address}", FAIL, measured, _EXPECTED, why, remedy)
