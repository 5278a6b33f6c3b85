# SPDX-License-Identifier: GPL-3.0-or-later

"""Faults of the emulated HCAs, injected by what the kernel, iproute2 and pciutils of the worker have for that, each
with its way back. Each is a script on the worker; ibsim does not know of it."""

from __future__ import annotations

import string

from dev.steps import StepError

from . import objects
from .fabric import emulated
from .fault import Action, Fault, Target
from .planes import Lab
from .processes import wait_until

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
_ONES = "ff:ff:ff:ff:ff:ff:ff:ff"
_TWICE, _UNREAD = "02:c0:ff:ee:00:00:00:01", "02:c0:ff:ee:00:00:00:02"
_GUIDS_BACK = (
    f"[ ! -s $$kept ] || {{ read -r node port < $$kept; guids $$node $$port; rm $$kept; {_AGAIN.strip()}; }}\n"
)


def _script(text: str, said: str) -> Action:
    """Runs in the worker; ``$pci`` and ``$netdev`` are those of the HCA."""

    def act(lab: Lab, target: Target) -> str:
        hca = lab.fabric.fabrics.hca(target.device)
        script = string.Template(text).substitute(pci=hca.pci, netdev=hca.netdev, bus=hca.pci.split(":")[1])
        lab.agent(target.worker).check(script, limit=_LIMIT)
        return f"{target.worker} {target.device} {said}"

    return act


def _fault(name: str, what: str, on: str, said: str, off: str, healed: str) -> Fault:
    return Fault(name, what, _HCA, _script(on, said), _script(off, healed))


def _guids(node: str, port: str, again: str) -> str:
    return f"{_VF}{_KEEP_GUIDS}guids {node} {port}\n{again}"


#: what the PF lets the first VF do is kept, and it is let come up
_LET_UP = "[ -s $$kept.state ] || state link-state > $$kept.state\nip link set dev $netdev vf 0 state auto\n"
_STATE_BACK = (
    '[ ! -s $$kept.state ] || { ip link set dev $netdev vf 0 state "$$(cat $$kept.state)"; rm $$kept.state; }\n'
)
#: the operator would set the firmware to what it asks for, and reboot the node
_DAEMON = "pkill -{} -f '^(/usr/bin/)?sriov-network-config-daemon' || true\n"
#: the switch above an HCA, its ports downward, and the slot of a GPU; what the ports had is kept until the fault is
#: taken back
_ACS = """set -eu
switch=$$(dirname "$$(readlink -f /sys/bus/pci/devices/$pci/..)")
kept=/run/lab/acs-beside-$pci
"""
_ACS_ON = (
    "[ -s $$kept ] || for port in $$switch/*:*:0[01].0; do setpci -s $${{port##*/}} ECAP_ACS+6.w; done >"
    " $$kept\n{}\necho 1 > /sys/bus/pci/rescan\nfor port in $$switch/*:*:0[01].0; do setpci -s $${{port##*/}}"
    " ECAP_ACS+6.w=1d; done"
)
_ACS_OFF = (
    "{}\n[ ! -s $$kept ] || {{ for port in $$switch/*:*:0[01].0; do read -r bits; setpci -s $${{port##*/}}"
    " ECAP_ACS+6.w=$$bits; done < $$kept; rm $$kept; }}\nfor gpu in $$switch/*:01.0/*:00.0; do [ ! -e $$gpu ] || echo 1"
    " > $$gpu/remove; done"
)
_NUMA = "file=/sys/bus/pci/devices/$pci/numa_node\nkept=/run/lab/numa-of-$pci\n"
#: of the fabric of the HCAs, in the lab's own intent
_RESOURCE = "openshift.io/mlx_compute"
_THERE_LIMIT = 180.0
#: a card that is found anew waits for udev
_LIMIT = 300.0


def _offered(lab: Lab, worker: str) -> int:
    node = (
        objects.client(lab.authority.path("admin.kubeconfig"))
        .resources.get(api_version="v1", kind="Node")
        .get(name=worker)
    )
    return int(node.status.allocatable.to_dict().get(_RESOURCE, 0))


def _all_of(lab: Lab, target: Target) -> int:
    """How many VFs the HCAs of a worker have, on the fabric of the target."""
    return emulated.TOTAL_VFS * len(lab.fabric.fabrics.hcas_on(lab.fabric.fabrics.hca(target.device).fabric))


def _await_all(lab: Lab, target: Target) -> int:
    """Wait until the worker offers the VFs of all HCAs of the fabric: a card that was found anew gets its own from the
    operator, which takes its time.

    :returns: how many they are
    :raises StepError: it does not
    """
    wanted = _all_of(lab, target)
    if not wait_until(lambda: _offered(lab, target.worker) >= wanted, _THERE_LIMIT):
        raise StepError(
            f"{target.worker} offers {_offered(lab, target.worker)} of {wanted} {_RESOURCE}",
            "see the log of its device plugin",
        )
    return wanted


def _and_all(action: Action) -> Action:
    """Return an action that takes a fault back, and then waits until the worker offers all its VFs again."""

    def act(lab: Lab, target: Target) -> str:
        said = action(lab, target)
        _await_all(lab, target)
        return said

    return act


_TOLD = "echo '$bus {}' > /sys/module/mlx5_core/parameters/port"


#: what a card stores is kept until the fault is taken back, and the card is reset with it or with something else
_STORE, _STORE_BACK = "lab-firmware keep $pci\nlab-firmware set $pci '{}'\n", "lab-firmware restore $pci\n"
_ANEW = "lab-firmware reset $pci\n"
_PATH = "set -eu\nPATH=/usr/local/sbin:/usr/local/bin:$$PATH\n"


def _firmware(name: str, what: str, setting: str, said: str, healed: str) -> Fault:
    """The card has it since a reset of it, before which the operator's config daemon was stopped."""
    on = f"{_PATH}{_DAEMON.format('STOP')}{_STORE.format(setting)}{_ANEW}"
    off = f"resume() {{ {_DAEMON.format('CONT').strip()}; }}\ntrap resume EXIT\n{_PATH}{_STORE_BACK}{_ANEW}"
    return Fault(name, what, _HCA, _script(on, said), _and_all(_script(off, healed)))


def _lose_at_reset(lab: Lab, target: Target) -> str:
    lab.fabric.set_flaw(target.worker, target.device, emulated.MISSING)
    lab.leave_hcas()
    return f"{target.worker} {target.device} does not come back from the next reset"


def _find_again(lab: Lab, target: Target) -> str:
    lab.fabric.set_flaw(target.worker, target.device, None)
    lab.refresh()
    return f"{target.worker} {target.device} is there"


def _start_plugin_again(lab: Lab, worker: str) -> None:
    pods = objects.client(lab.authority.path("admin.kubeconfig")).resources.get(api_version="v1", kind="Pod")
    where = {
        "namespace": "sriov-network-operator",
        "label_selector": "app=sriov-device-plugin",
        "field_selector": f"spec.nodeName={worker}",
    }
    pods.delete(**where)


def _offer_fewer(lab: Lab, target: Target) -> str:
    """The plugin looks at VFs when it starts; the one that has no driver then gets it back afterwards."""
    before, agent = _await_all(lab, target), lab.agent(target.worker)
    hca = lab.fabric.fabrics.hca(target.device)
    script = string.Template(
        _VF + "[ $word = bind ] || { pkill -STOP -f '^(/usr/bin/)?sriov-network-config-daemon' || true; }\nbind $word\n"
    )
    agent.check(script.substitute(pci=hca.pci, netdev=hca.netdev, word="unbind"), limit=_LIMIT)
    try:
        _start_plugin_again(lab, target.worker)
        fewer = wait_until(lambda: 0 < _offered(lab, target.worker) < before, _THERE_LIMIT)
    finally:
        agent.check(
            script.substitute(pci=hca.pci, netdev=hca.netdev, word="bind") + _DAEMON.format("CONT"), limit=_LIMIT
        )
    if not fewer:
        raise StepError(
            f"{target.worker} still offers {_offered(lab, target.worker)} of {before} {_RESOURCE}",
            "see the log of its device plugin",
        )
    return f"{target.worker} offers {_offered(lab, target.worker)} of {before} {_RESOURCE}"


def _offer_all(lab: Lab, target: Target) -> str:
    if _offered(lab, target.worker) < _all_of(lab, target):
        _start_plugin_again(lab, target.worker)
    return f"{target.worker} offers {_await_all(lab, target)} {_RESOURCE}"


#: by the stand-in for mstconfig
_WAITS, _WAITS_FOR_NOTHING = f"{_PATH}lab-firmware keep $pci\nmstconfig -d $pci -y set {{}}", f"{_PATH}{_STORE_BACK}"

HCA_FAULTS: tuple[Fault, ...] = (
    _fault(
        "pcie-narrow",
        "an HCA has 8 lanes of 16",
        _TOLD.format("pcie_width=8"),
        "has x8",
        _TOLD.format("pcie_width=16"),
        "has x16",
    ),
    _fault(
        "pcie-gen4",
        "an HCA runs at Gen4",
        _TOLD.format("pcie_speed=4"),
        "has 16 GT/s",
        _TOLD.format("pcie_speed=5"),
        "has 32 GT/s",
    ),
    _fault(
        "read-request-small",
        "an HCA asks for 128 bytes at once",
        "setpci -s $pci CAP_EXP+8.w=0000:7000",
        "has MaxReadReq 128",
        "setpci -s $pci CAP_EXP+8.w=2000:7000",
        "has MaxReadReq 512",
    ),
    _fault(
        "acs-redirects",
        "a GPU is below the switch of an HCA, whose ports send what the two say to each other up to the root port",
        _ACS + _ACS_ON.format(_TOLD.format("gpu=1")),
        "has a GPU beside it, behind ports that redirect",
        _ACS + _ACS_OFF.format(_TOLD.format("gpu=0")),
        "has no GPU beside it",
    ),
    _fault(
        "vf-guid-zero",
        "the first VF of an HCA has no GUID",
        _guids(_ZERO, _ZERO, _AGAIN),
        "has a VF without a GUID",
        _VF + _GUIDS_BACK,
        "has the GUIDs it had",
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
        "vf-guid-ones",
        "the first VF of an HCA was given back by its pod with GUIDs of ones",
        _guids(_ONES, _ONES, _AGAIN),
        "has a VF with GUIDs of ones",
        _VF + _GUIDS_BACK,
        "has the GUIDs it had",
    ),
    _fault(
        "vf-unserved",
        "the subnet manager does not serve the VFs of an HCA, of which the first may come up",
        _VF + _LET_UP + _TOLD.format("virtualization=0"),
        "has VFs at INIT",
        _VF + _STATE_BACK + _TOLD.format("virtualization=1"),
        "has VFs that are served",
    ),
    _fault(
        "vf-link-disabled",
        "the PF has the links of its VFs disabled, those that pods have as well",
        _VF
        + "for number in $$(seq 0 $$(($$(cat $$pf/sriov_numvfs) - 1))); do ip link set dev $netdev vf $$number state"
        " disable; done",
        "has its VFs' links disabled",
        _VF
        + "for number in $$(seq 0 $$(($$(cat $$pf/sriov_numvfs) - 1))); do ip link set dev $netdev vf $$number state"
        " auto; done",
        "lets its VFs' links come up",
    ),
    _fault(
        "vf-stuck",
        "the first VF of an HCA is in a network namespace that a crashed pod has left",
        _VF + "ip netns add lost-$bus\nip link set dev $$(ls $$pf/virtfn0/net) netns lost-$bus",
        "has a VF in a namespace in which nothing runs",
        "ip netns delete lost-$bus 2> /dev/null || true",
        "has its VF back",
    ),
    _fault(
        "hca-cable-pulled",
        "the cable of an HCA is pulled, by the word of its kernel alone: at once, for what runs",
        _TOLD.format("state=1 phys_state=2"),
        "has no link",
        _TOLD.format("state=4 phys_state=5"),
        "has its link",
    ),
    _fault(
        "pkey-other",
        "the port of an HCA is in another partition than those of the others",
        _TOLD.format("pkey0=0x8001"),
        "has the P_Key 0x8001 alone",
        _TOLD.format("pkey0=0xffff"),
        "is a full member of the default partition",
    ),
    _fault(
        "numa-other",
        "an HCA is on another NUMA node, by the word of the platform",
        _NUMA + "[ -s $$kept ] || cat $$file > $$kept\necho $$((1 - $$(cat $$kept))) > $$file",
        "is on the other NUMA node",
        _NUMA + "[ ! -s $$kept ] || { cat $$kept > $$file; rm $$kept; }",
        "is on the NUMA node it was on",
    ),
    _firmware(
        "pf-without-sriov",
        "an HCA has no SR-IOV, which is off in its firmware: sriov_totalvfs is absent",
        "SRIOV_EN=False(0)",
        "has no SR-IOV",
        "has SR-IOV",
    ),
    _firmware(
        "firmware-one-vf",
        "the firmware of an HCA has one VF",
        "NUM_OF_VFS=1",
        "has one VF at most",
        "has the VFs it had",
    ),
    _firmware(
        "firmware-ethernet",
        "the firmware of an HCA has its port on Ethernet",
        "LINK_TYPE_P1=ETH(2)",
        "is on Ethernet",
        "is on InfiniBand",
    ),
    Fault(
        "hca-lost-at-reset",
        "an HCA does not come back from the next reset of its worker",
        _HCA,
        _lose_at_reset,
        _find_again,
    ),
    Fault(
        "plugin-offers-fewer",
        "the device plugin of a worker was started while a VF of an HCA had no driver",
        _HCA,
        _offer_fewer,
        _offer_all,
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
