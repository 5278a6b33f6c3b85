# SPDX-License-Identifier: GPL-3.0-or-later

"""Explanations of the findings of stage discover, for the pages that the report links to. Check ids: ``discover.*``."""

from __future__ import annotations

from ..._model.run.explanation import Explanation

EXPLAINED: dict[str, Explanation] = {
    "discover.clock": Explanation(
        means=(
            "The clock of a node, or of the controller, is off or kept by nobody. Certificates, tokens and Leases hold"
            " by the clock of who reads them, and logs of two nodes can't be put side by side."
        ),
        measured=(
            "The time in the node's answer against the controller's before and after it, and whether the kernel's clock"
            " is marked as synchronised (adjtimex)."
        ),
        causes=(
            "No time service runs on the node, or it does not reach its servers.",
            "chronyd runs without `rtcsync`, so the kernel's clock is not marked.",
            "The controller itself is off: then all nodes differ from it alike.",
            "The node answered so slowly that the difference can't be told.",
        ),
        look=(
            "chronyc tracking",
            "chronyc sources -v",
            "timedatectl",
        ),
        remedy=(
            "Have chronyd run with `rtcsync` on the machine that is named: `systemctl enable --now chronyd`, then"
            " `chronyc makestep`."
        ),
    ),
    "discover.descriptions": Explanation(
        means=(
            "Two HCAs call themselves the same in the fabric. GUIDs still tell them apart, but a reader of a topology"
            " or a log of the subnet manager does not."
        ),
        measured="`node_desc` of each InfiniBand HCA, compared over all nodes.",
        causes=(
            "rdma-ndd does not run, so the description is still that of the firmware or of a cloned image.",
            "Two nodes have the same host name.",
        ),
        look=(
            "cat /sys/class/infiniband/mlx5_0/node_desc",
            "systemctl status rdma-ndd",
            "smpquery nodedesc LID",
        ),
        remedy=(
            "Run rdma-ndd on each node (package rdma-core): `systemctl enable --now rdma-ndd`. It writes host name and"
            " device."
        ),
    ),
    "discover.driver": Explanation(
        means=(
            "A function that the intent needs has no driver, belongs to vfio-pci, or has a driver that made no RDMA"
            " device. Nothing above it can work."
        ),
        measured="The link `driver` of the PCI function in sysfs, and the RDMA devices below it.",
        causes=(
            "The module is not loaded: `mlx5_core`, or `mlx5_ib` for the RDMA device.",
            "Somebody gave the function to vfio-pci, for a virtual machine or a program of its own.",
            (
                "The driver refused the function: firmware in recovery, a mismatch of driver and firmware, or no memory"
                " for its BARs."
            ),
            "The function is in a pod that has all of it.",
        ),
        look=(
            "lspci -nnk -d 15b3:",
            "dmesg",
            "rdma dev",
            "driverctl list-overrides",
        ),
        remedy=(
            "Load the driver (`modprobe mlx5_core mlx5_ib`), or take the function back from vfio-pci (`driverctl"
            " unset-override ADDRESS`). Where the driver refuses it, dmesg says why."
        ),
    ),
    "discover.fleet": Explanation(
        means="A node has fewer InfiniBand HCAs than the best of the fleet. Nodes of one order are usually alike.",
        measured="How many InfiniBand HCAs each node shows, and at which PCI addresses.",
        causes=(
            "A card is dead, not seated, or switched off in the BIOS.",
            "Its driver is not loaded, or its link type is Ethernet.",
            "The node is meant to differ.",
        ),
        look=(
            "lspci -nn -d 15b3:",
            "dmesg",
            "ibstat -l",
        ),
        remedy=(
            "Seat or replace the card at the address that is named. Nodes that are meant to differ are right as they"
            " are: this finding only warns."
        ),
    ),
    "discover.guids": Explanation(
        means=(
            "Two HCAs have one GUID. The subnet manager can't tell them apart: routes of one lead to the other, and"
            " links come and go."
        ),
        measured="Node and port GUIDs of all HCAs of all nodes.",
        causes=(
            "Firmware was burnt with another card's GUIDs.",
            "An image of one card's flash was copied to others.",
        ),
        look=(
            "ibstat",
            "mstflint -d ADDRESS query",
        ),
        remedy=(
            "Give each card its own GUIDs back (they are on its label), by `mstflint -d ADDRESS -guid 0x... sg`, then"
            " reset it. Until then switch one of the two off."
        ),
    ),
    "discover.hardware_addresses": Explanation(
        means=(
            "Two NICs of an Ethernet fabric have one MAC address. A switch sends the packets of one to the"
            " other. If the inventory has one machine under two names, the second node was never looked at."
        ),
        measured=(
            "`address` of each network interface in sysfs, of the NICs that an Ethernet fabric of the intent selects."
            " The parts of a bond of one node share one."
        ),
        causes=(
            "`ansible_host` of two nodes leads to one machine.",
            "A connection profile or an image sets the same MAC address on several machines.",
            "Firmware was burnt with another card's addresses.",
        ),
        look=(
            "cat /etc/machine-id",
            "ip -d link show dev ibp60s0",
            "ethtool -P ibp60s0",
        ),
        remedy=(
            "Correct `ansible_host` in the inventory. Otherwise remove the setting that overrides the permanent address"
            " (`cloned-mac-address` of NetworkManager, `MACAddress=` of systemd.link), or give the card its own address"
            " back."
        ),
    ),
    "discover.hcas": Explanation(
        means=(
            "A node does not show as many HCAs or NICs as the intent wants for a fabric. What is not there can't be"
            " given to pods."
        ),
        measured=(
            "InfiniBand HCAs of a node, or the physical functions that `select` of an Ethernet fabric fits, against"
            " `hcas_per_node`. Those that pods hold count."
        ),
        causes=(
            "`select` or `hcas_per_node` says something else than the hardware.",
            "A card is absent, dead or switched off.",
            "The port is set to the other link type (Ethernet instead of InfiniBand, or the reverse).",
            "The driver or its RDMA part is not loaded.",
        ),
        look=(
            "lspci -nn -d 15b3:",
            "ibstat",
            "rdma link",
            "mstconfig -d ADDRESS -e query LINK_TYPE_P1",
        ),
        remedy=(
            "Correct `select` and `hcas_per_node` if the intent is wrong. Else bring the HCA back: seat it, load"
            " `mlx5_ib`, or set `LINK_TYPE_P1` and reboot."
        ),
    ),
    "discover.node": Explanation(
        means=(
            "Nobody knows what is on the node: it gave no answer. All that later stages would say of it is unknown as"
            " well."
        ),
        measured="Whether the module `node_info` (or `nodes_info`, through an observer) came back with an answer.",
        causes=(
            "ssh does not reach it: address, key, host key, firewall.",
            "It has no Python 3.9, or sudo asks for a password.",
            "The node is down, or was left out by `--limit`.",
            "Its observer does not run: no pod on the node, or the image can't be pulled.",
        ),
        look=(
            "ansible NODE -m ansible.builtin.ping -b",
            "kubectl get node NODE",
            "kubectl get pods -A -o wide -l app.kubernetes.io/name=linerate-observer",
        ),
        remedy=(
            "Make the node answer (`ansible NODE -m ansible.builtin.ping -b`), or take it out of the group"
            " `rdma_nodes`."
        ),
    ),
    "discover.nodes": Explanation(
        means=(
            "The inventory has another number of nodes than the intent expects. A node that is not in the inventory is"
            " not judged by any stage, and no other finding names it."
        ),
        measured=(
            "The number of nodes in the inventory's group `rdma_nodes`, compared with `rdma_cluster.nodes_expected`."
            " Without this key there is no finding."
        ),
        causes=(
            "The Node object was deleted, by an admin or by a controller of the cloud.",
            "The node lost a label by which the inventory selects nodes. A kubelet can take most labels off its node.",
            "The node did not join the cluster after a reinstallation.",
            "Nodes were added or removed on purpose, and the intent still has the former number (warn if there are more"
            " nodes than expected).",
        ),
        look=(
            "kubectl get nodes --show-labels",
            "ansible-inventory --graph rdma_nodes",
        ),
        remedy=(
            "Find the machine that is missing in your own list, and see why it is not in the cluster or has no label."
            " If the number is right, correct `rdma_cluster.nodes_expected`."
        ),
    ),
    "discover.numa": Explanation(
        means=(
            "The BIOS of a node says of an HCA that it is on another NUMA node than its like at the same address. The"
            " kubelet's topology manager, NCCL and perftest choose CPUs by that word; if it is wrong, all data crosses"
            " from one socket to the other."
        ),
        measured=(
            "`numa_node` of each HCA in sysfs, against HCAs of the same model at the same PCI address of other nodes."
        ),
        causes=(
            "NPS (AMD) or SNC (Intel) is set otherwise in the BIOS of this node.",
            "An older BIOS, with a fault in its tables.",
            "Somebody has written the file: it says so in the kernel's log.",
        ),
        look=(
            "cat /sys/class/infiniband/*/device/numa_node",
            "lspci -vv",
            "dmesg",
        ),
        remedy="Set NPS or SNC and the version of the BIOS as on the other nodes, and reboot.",
    ),
    "discover.pcie": Explanation(
        means=(
            "The PCIe link of an HCA runs below what the card can do. That bounds its bandwidth whatever the network"
            " does."
        ),
        measured="`current_link_speed` and `current_link_width` of the function against its maximum in sysfs.",
        causes=(
            "The slot has fewer lanes, or an older generation.",
            "The card or its riser is not seated well, so the link trained down.",
            "The BIOS limits the slot, or splits its lanes (bifurcation).",
        ),
        look=(
            "lspci -vv -s ADDRESS",
            "cat /sys/bus/pci/devices/0000:3c:00.0/current_link_speed",
        ),
        remedy=(
            "Seat the card anew, or move it to a slot that offers what it needs; see the slot's settings in the BIOS."
        ),
    ),
    "discover.port": Explanation(
        means="A port that the intent needs is not up, or has no LID. Nothing goes over it.",
        measured=(
            "State, physical state, LID and rate of each port in sysfs; of an Ethernet NIC the state of its interface."
        ),
        causes=(
            "No cable, a bad cable or transceiver, or the port at the other end is off (Polling).",
            "The link is up and no subnet manager has configured it (Initializing).",
            "The port was switched off (Disabled).",
            "The interface was never set up: VFs have no link while their physical function has none.",
            "A part of a bond is down, or has another speed or MTU than the others (warn).",
            "The interface of a node has another MTU than those of other nodes, and the intent names none (unknown).",
        ),
        look=(
            "ibstat",
            "ip -br link",
            "ibportstate LID PORT",
            "mlxlink -d ADDRESS",
        ),
        remedy=(
            "Polling: check the cable and the port at its other end. Initializing: start a subnet manager. Disabled:"
            " `ibportstate LID PORT enable`. Ethernet: `ip link set DEVICE up`."
        ),
    ),
    "discover.read": Explanation(
        means=(
            "Some files of a node could not be read. What they would say is unknown, and findings that need it say so."
        ),
        measured="The error of each file that the module tried to read below /sys and /proc.",
        causes=(
            "VFs came or went while the node was looked at; the next run is right.",
            "The task did not run as root.",
            "A security module (SELinux, lockdown) refuses it.",
        ),
        look=(
            "ls -l /sys/class/infiniband",
            "ausearch -m avc -ts recent",
        ),
        remedy="Run the stage again. If it stays, read the file that is named by hand, as root.",
    ),
    "discover.select": Explanation(
        means=(
            "An address in `select.pci` is not what the fabric needs. The HCA that was meant is left out, so the fabric"
            " has too few."
        ),
        measured=(
            "Each address of `select.pci` against the functions of each node: there, physical, of the right link layer,"
            " and fitting the other selectors."
        ),
        causes=(
            "A typing mistake, or an address of another server model.",
            "The address is that of a virtual function.",
            "PCI addresses moved after a card was added or the BIOS was changed.",
            "`vendor`, `device` or `netdev` beside it contradict it.",
        ),
        look=(
            "lspci -D -nn",
            "ls -l /sys/class/net",
        ),
        remedy=(
            "Correct `select.pci` of the fabric. Where models of servers differ, use a selector that fits all of them,"
            " such as `subnet_manager: any` with `hcas_per_node`."
        ),
    ),
    "discover.sriov": Explanation(
        means=(
            "An HCA that shall make virtual functions can't. The finding names the layer that says no: firmware, BIOS"
            " or kernel."
        ),
        measured="`sriov_totalvfs` of the physical function, and its SR-IOV capability in the PCI configuration space.",
        causes=(
            "SR-IOV is off in the card's firmware (`SRIOV_EN`), or `NUM_OF_VFS` is 0.",
            "SR-IOV, ARI or MMCONFIG is off in the BIOS.",
            "The node is a virtual machine that got a VF or a whole function without the capability.",
            "The kernel has no CONFIG_PCI_IOV.",
        ),
        look=(
            "cat /sys/class/infiniband/mlx5_0/device/sriov_totalvfs",
            "lspci -vvv -s ADDRESS",
            "mstconfig -d ADDRESS -e query SRIOV_EN NUM_OF_VFS",
        ),
        remedy=(
            "Firmware: `mstconfig -d ADDRESS set SRIOV_EN=1 NUM_OF_VFS=8`, then a power cycle. BIOS: switch on SR-IOV."
            " Stage `platform` with `platform_settle: true` does both."
        ),
    ),
}
