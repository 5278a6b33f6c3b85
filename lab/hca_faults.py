# SPDX-License-Identifier: GPL-3.0-or-later

"""Faults of the emulated HCAs, injected by what the kernel, iproute2 and pciutils of the worker have for that, each with its way back."""

from __future__ import annotations

import string
import typing

from .cluster_faults import Action, Fault
from .fabric.fabric_faults import Target
from .planes import Lab

#: of the target, what each of them strikes
_HCA = ("worker", "device")
#: the first VF of an HCA, as PCI and as ip know it, and where what it was like is kept until the fault is taken back
_VF = """set -eu
pf=/sys/bus/pci/devices/$pci
function=$$(basename "$$(readlink $$pf/virtfn0)")
kept=/run/lab/vf-of-$pci
bind() { echo $$function > /sys/bus/pci/drivers/mlx5_core/$$1; }
state() { ip link show dev $netdev | sed -n "s/^ *vf 0 .*$$1 \\([0-9a-zA-Z:]*\\).*/\\1/p"; }
guids() { ip link set dev $netdev vf 0 node_guid "$$1"; ip link set dev $netdev vf 0 port_guid "$$2"; }
"""
_KEEP_GUIDS = '[ -s $$kept ] || echo "$$(state NODE_GUID) $$(state PORT_GUID)" > $$kept\n'
_AGAIN = "bind unbind; bind bind\n"
_ZERO = "00:00:00:00:00:00:00:00"
_TWICE, _UNREAD = "02:c0:ff:ee:00:00:00:01", "02:c0:ff:ee:00:00:00:02"
_GUIDS_BACK = f"[ ! -s $$kept ] || {{ read -r node port < $$kept; guids $$node $$port; rm $$kept; {_AGAIN.strip()}; }}\n"


def _script(text: str, said: str) -> Action:
    """Runs in the worker; ``$pci`` and ``$netdev`` are those of the HCA."""

    def act(lab: Lab, target: Target) -> str:
        hca = lab.fabric.fabrics.hca(target.device)
        lab.agent(target.worker).check(string.Template(text).substitute(pci=hca.pci, netdev=hca.netdev, bus=hca.pci.split(":")[1]))
        return f"{target.worker} {target.device} {said}"

    return act


def _fault(name: str, what: str, on: str, said: str, off: str, healed: str) -> Fault:
    return Fault(name, what, _HCA, _script(on, said), _script(off, healed))


def _guids(node: str, port: str, again: str) -> str:
    return f"{_VF}{_KEEP_GUIDS}guids {node} {port}\n{again}"


_TOLD = "echo '$bus {}' > /sys/module/mlx5_core/parameters/port"
#: by the stand-in for mstconfig, which keeps there what waits
_WAITS, _WAITS_FOR_NOTHING = "mstconfig -d $pci -y set {}", "rm -rf /run/lab/firmware/$pci"

HCA_FAULTS: typing.Tuple[Fault, ...] = (
    _fault("pcie-narrow", "an HCA has 8 lanes of 16", _TOLD.format("pcie_width=8"), "has x8", _TOLD.format("pcie_width=16"), "has x16"),
    _fault("pcie-gen4", "an HCA runs at Gen4", _TOLD.format("pcie_speed=4"), "has 16 GT/s", _TOLD.format("pcie_speed=5"), "has 32 GT/s"),
    _fault(
        "read-request-small",
        "an HCA asks for 128 bytes at once",
        "setpci -s $pci CAP_EXP+8.w=0000:7000",
        "has MaxReadReq 128",
        "setpci -s $pci CAP_EXP+8.w=2000:7000",
        "has MaxReadReq 512",
    ),
    _fault(
        "vf-guid-zero", "the first VF of an HCA has no GUID", _guids(_ZERO, _ZERO, _AGAIN), "has a VF without a GUID", _VF + _GUIDS_BACK, "has the GUIDs it had"
    ),
    _fault(
        "vf-guid-unread",
        "the first VF of an HCA was given a GUID that its driver has not read",
        _guids(_UNREAD, _UNREAD, ""),
        "has a VF whose driver has another GUID than its PF",
        _VF + _GUIDS_BACK,
        "has the GUIDs it had",
    ),
    _fault(
        "vf-guid-twice",
        "the first VF of an HCA has a GUID that those of other workers with this fault have, too",
        _guids(_TWICE, _TWICE, _AGAIN),
        f"has a VF with the GUID {_TWICE}",
        _VF + _GUIDS_BACK,
        "has the GUIDs it had",
    ),
    _fault(
        "firmware-sriov-waits",
        "the firmware of an HCA has SR-IOV switched off for the next reset",
        _WAITS.format("SRIOV_EN=False"),
        "loses its VFs with the next reset",
        _WAITS_FOR_NOTHING,
        "waits for nothing",
    ),
    _fault(
        "firmware-ethernet-waits",
        "the firmware of an HCA has its port switched to Ethernet for the next reset",
        _WAITS.format("LINK_TYPE_P1=ETH"),
        "is on Ethernet after the next reset",
        _WAITS_FOR_NOTHING,
        "waits for nothing",
    ),
)
