# SPDX-License-Identifier: GPL-3.0-or-later

"""Explanations of the findings of stage discover, for the pages that the report links to. Check ids: ``discover.*``."""

from __future__ import annotations

from .explanation import Explanation

EXPLAINED: dict[str, Explanation] = {
    "discover.clock": Explanation(
        means=(
            "The clock of a node or of the controller is wrong, or no time service keeps it. Each machine checks"
            " certificates, tokens and Leases against its own clock, and the logs of two nodes cannot be compared."
        ),
        measured=(
            "The time that the node reports, compared with the time of the controller before and after the query; and"
            " whether the kernel reports its clock as synchronized (adjtimex)."
        ),
        causes=(
            "No time service runs on the node, or it does not reach its servers.",
            "chronyd runs without `rtcsync`, so the kernel does not report its clock as synchronized.",
            "The clock of the controller is wrong: in this case all nodes differ from it by the same time.",
            "The node responded so slowly that the difference cannot be determined (unknown).",
        ),
        look=(
            "chronyc tracking",
            "chronyc sources -v",
            "timedatectl",
        ),
        remedy=(
            "On the machine that the finding names, add `rtcsync` to the configuration of chronyd, then run `systemctl"
            " enable --now chronyd` and `chronyc makestep`. Then run stage `discover` again."
        ),
    ),
    "discover.descriptions": Explanation(
        means=(
            "Two HCAs have the same node description. Their GUIDs still differ, but a reader of a topology or of the"
            " log of the subnet manager cannot distinguish the HCAs by name."
        ),
        measured="`node_desc` of each InfiniBand HCA, compared over all nodes.",
        causes=(
            "rdma-ndd does not run, so the HCA still has the description of its firmware or of a cloned image.",
            "Two nodes have the same host name.",
        ),
        look=(
            "cat /sys/class/infiniband/mlx5_0/node_desc",
            "systemctl status rdma-ndd",
            "smpquery nodedesc LID",
        ),
        remedy=(
            "Run rdma-ndd on each node (package rdma-core): `systemctl enable --now rdma-ndd`. It writes the host name"
            " and the device into the description. Then run stage `discover` again."
        ),
    ),
    "discover.driver": Explanation(
        means=(
            "A function that the intent requires has no driver, is bound to vfio-pci, or has a driver that has not"
            " created an RDMA device. The fabric cannot use this function."
        ),
        measured="The link `driver` of the PCI function in sysfs, and the RDMA devices of the function.",
        causes=(
            "The kernel module is not loaded: `mlx5_core`, or `mlx5_ib` for the RDMA device.",
            "An admin has bound the function to vfio-pci, for a virtual machine or a user-space program.",
            (
                "The driver refused the function: the firmware is in recovery, driver and firmware do not match, or"
                " there is no memory space for the BARs of the function."
            ),
            "A pod holds the whole function.",
        ),
        look=(
            "lspci -nnk -d 15b3:",
            "dmesg",
            "rdma dev",
            "driverctl list-overrides",
        ),
        remedy=(
            "On the node, load the driver (`modprobe mlx5_core mlx5_ib`), or return the function from vfio-pci to its"
            " driver (`driverctl unset-override ADDRESS`). If the driver refuses the function, dmesg shows the reason."
            " Then run stage `discover` again."
        ),
    ),
    "discover.fleet": Explanation(
        means=(
            "A node has fewer InfiniBand HCAs than the node with the most HCAs. Nodes of one delivery usually have the"
            " same hardware."
        ),
        measured="The number of InfiniBand HCAs of each node, and their PCI addresses.",
        causes=(
            "A card is defective, not seated, or disabled in the BIOS.",
            "The driver of a card is not loaded, or its link type is Ethernet.",
            "The hardware of the node differs on purpose.",
        ),
        look=(
            "lspci -nn -d 15b3:",
            "dmesg",
            "ibstat -l",
        ),
        remedy=(
            "Reseat or replace the card at the PCI address that the finding names, then run stage `discover` again. If"
            " the node differs on purpose, ignore this finding: it is only a warning."
        ),
    ),
    "discover.guids": Explanation(
        means=(
            "Two HCAs have the same GUID. The subnet manager cannot distinguish them: packets for one HCA reach the"
            " other, and links go up and down."
        ),
        measured="The node GUIDs and port GUIDs of all HCAs of all nodes.",
        causes=(
            "The firmware of a card was burnt with the GUIDs of another card.",
            "The flash image of one card was copied to other cards.",
        ),
        look=(
            "ibstat",
            "mstflint -d ADDRESS query",
        ),
        remedy=(
            "Drain the nodes. Give each card its own GUIDs again (they are on its label) with `mstflint -d ADDRESS"
            " -guid 0x... sg`, and reset the card. Then run stage `discover` again."
        ),
    ),
    "discover.hardware_addresses": Explanation(
        means=(
            "Two NICs of an Ethernet fabric have the same MAC address, so a switch sends packets for one NIC to the"
            " other. If the inventory contains one machine under two names, the second node was never checked."
        ),
        measured=(
            "`address` in sysfs of each network interface of the NICs that an Ethernet fabric of the intent selects."
            " The members of a bond of one node share one address."
        ),
        causes=(
            "`ansible_host` of two nodes points to the same machine.",
            "A connection profile or an image sets the same MAC address on several machines.",
            "The firmware of a card was burnt with the addresses of another card.",
        ),
        look=(
            "cat /etc/machine-id",
            "ip -d link show dev ibp60s0",
            "ethtool -P ibp60s0",
        ),
        remedy=(
            "Correct `ansible_host` in the inventory. Otherwise remove the setting that overrides the permanent"
            " address (`cloned-mac-address` of NetworkManager, `MACAddress=` of systemd.link), or give the card its"
            " own address again. Then run stage `discover` again."
        ),
    ),
    "discover.hcas": Explanation(
        means=(
            "A node does not have the number of HCAs or NICs that the intent requires for a fabric. Pods cannot get"
            " the missing HCAs."
        ),
        measured=(
            "The InfiniBand HCAs of a node, or the physical functions that match `select` of an Ethernet fabric,"
            " compared with `hcas_per_node`. HCAs that pods hold are counted."
        ),
        causes=(
            "`select` or `hcas_per_node` does not match the hardware.",
            "A card is missing, defective or switched off.",
            "The port is set to the other link type (Ethernet instead of InfiniBand, or the reverse).",
            "The driver or its RDMA module is not loaded.",
        ),
        look=(
            "lspci -nn -d 15b3:",
            "ibstat",
            "rdma link",
            "mstconfig -d ADDRESS -e query LINK_TYPE_P1",
        ),
        remedy=(
            "Correct `select` and `hcas_per_node` if the intent is wrong. Otherwise repair the HCA: reseat it, load"
            " `mlx5_ib`, or set `LINK_TYPE_P1`, then drain and reboot the node. Then run stage `discover` again."
        ),
    ),
    "discover.models": Explanation(
        means=(
            "An HCA is slower and of another model than the HCAs at the same PCI address of most nodes. A collective"
            " runs at the speed of its slowest HCA."
        ),
        measured=(
            "PCI vendor, PCI device, PSID and rate of each HCA, compared between nodes that have their HCAs at the"
            " same PCI addresses."
        ),
        causes=(
            "The card was replaced with a slower model.",
            "The node is of another delivery, and all of its HCAs are slower (warn).",
            "The port of the card is cabled to a slower switch port, and the card has another PSID.",
        ),
        look=(
            "lspci -s ADDRESS -vv",
            "mstflint -d ADDRESS query",
            "ibstat",
        ),
        remedy=(
            "Compare the part number of the card with that of the other nodes, and replace a wrong part. If the"
            " difference is intended, waive the finding with the reason, or describe a fabric of the intent for each"
            " rate. Then run stage `discover` again."
        ),
    ),
    "discover.node": Explanation(
        means=(
            "Data collection failed on the node, so its HCAs are unknown. The findings of later stages on this node"
            " are unknown as well."
        ),
        measured="Whether the module `node_info` (or `nodes_info`, through a pod on the node) returned data.",
        causes=(
            "ssh does not reach the node: wrong address, key or host key, or a firewall.",
            "The node has no Python 3.9 or later, or sudo asks for a password.",
            "The node is down, or `--limit` excluded it.",
            "The pod that inspects the node does not run, or its image cannot be pulled.",
        ),
        look=(
            "ansible NODE -m ansible.builtin.ping -b",
            "kubectl get node NODE",
            "kubectl get pods -A -o wide -l app.kubernetes.io/name=linerate-observer",
        ),
        remedy=(
            "Make the node reachable (test: `ansible NODE -m ansible.builtin.ping -b`), or remove it from the group"
            " `rdma_nodes`. Then run stage `discover` again."
        ),
    ),
    "discover.nodes": Explanation(
        means=(
            "The number of nodes in the inventory differs from the number in the intent. No stage checks a node that"
            " is not in the inventory, and no other finding names it."
        ),
        measured=(
            "The number of nodes in the group `rdma_nodes` of the inventory, compared with"
            " `rdma_cluster.nodes_expected`. Without this key there is no finding."
        ),
        causes=(
            "An admin or a controller of the cloud deleted the Node object.",
            (
                "The node lost a label by which the inventory selects nodes. A kubelet can remove most labels from its"
                " own node."
            ),
            "The node did not join the cluster after a reinstallation.",
            (
                "Nodes were added or removed on purpose, but the intent still has the old number (warn if there are"
                " more nodes than expected)."
            ),
        ),
        look=(
            "kubectl get nodes --show-labels",
            "ansible-inventory --graph rdma_nodes",
        ),
        remedy=(
            "Find the missing machine in your list of machines, and find the reason why it is not in the cluster or"
            " has no label (`kubectl get nodes --show-labels`). If the number of nodes is right, correct"
            " `rdma_cluster.nodes_expected`. Then run stage `discover` again."
        ),
    ),
    "discover.numa": Explanation(
        means=(
            "The BIOS of a node reports a different NUMA node for an HCA than comparable nodes report for the HCA at"
            " the same address. The topology manager of the kubelet, NCCL and perftest choose CPUs by this value. If"
            " it is wrong, all data crosses from one socket to the other."
        ),
        measured=(
            "`numa_node` of each HCA in sysfs, compared with HCAs of the same model at the same PCI address of other"
            " nodes."
        ),
        causes=(
            "NPS (AMD) or SNC (Intel) has a different setting in the BIOS of this node.",
            "The node has an older BIOS with an error in its tables.",
            "A user or a program has written to the file `numa_node`: the kernel log contains a message about it.",
        ),
        look=(
            "cat /sys/class/infiniband/*/device/numa_node",
            "lspci -vv",
            "dmesg",
        ),
        remedy=(
            "Drain the node, give its BIOS the same version, and the same setting of NPS or SNC, as on the other"
            " nodes, and reboot it. Then run stage `discover` again."
        ),
    ),
    "discover.pcie": Explanation(
        means=(
            "The PCIe link of an HCA runs below the maximum of the card. This limits the bandwidth of the HCA,"
            " independent of the network."
        ),
        measured="`current_link_speed` and `current_link_width` of the function in sysfs, compared with its maximum.",
        causes=(
            "The slot has fewer lanes or an older generation than the card.",
            "The card or its riser is not seated correctly, so the link trained down.",
            "The BIOS limits the slot, or splits its lanes (bifurcation).",
        ),
        look=(
            "lspci -vv -s ADDRESS",
            "cat /sys/bus/pci/devices/0000:3c:00.0/current_link_speed",
        ),
        remedy=(
            "Drain the node and check the settings of the slot in its BIOS. If they are right, power the node off"
            " and reseat the card, or move it to a slot that offers the expected speed and width. Then run stage"
            " `discover` again."
        ),
    ),
    "discover.port": Explanation(
        means="A port that the intent requires is not up, or it has no LID. It carries no traffic.",
        measured=(
            "The state, physical state, LID and rate of each port in sysfs. For an Ethernet NIC, the state of its"
            " interface, and of each port if its RDMA device has several ports."
        ),
        causes=(
            "The cable is missing, the cable or transceiver is bad, or the port at the other end is off (Polling).",
            "The link is up, but no subnet manager has configured it (Initializing).",
            "The port was disabled (Disabled).",
            (
                "The interface was never brought up: virtual functions have no link while their physical function has"
                " none."
            ),
            (
                "A port of an RDMA device with several ports on Ethernet is not active (unknown: the intent does not"
                " say whether the fabric uses it)."
            ),
            ("Several ports of an RDMA device on Ethernet are active (warn): stage `bandwidth` measures one of them."),
            (
                "A member of a bond is down (unknown: the intent does not say whether the fabric needs it), or its"
                " speed or MTU differs from that of the other members (warn)."
            ),
            (
                "The MTU of the interface on a node differs from that on other nodes, and the intent sets no MTU"
                " (unknown)."
            ),
        ),
        look=(
            "ibstat",
            "ip -br link",
            "ibportstate LID PORT",
            "mlxlink -d ADDRESS",
        ),
        remedy=(
            "Polling: check the cable and the port at its other end. Initializing: start a subnet manager. Disabled:"
            " run `ibportstate LID PORT enable`. Ethernet: run `ip link set DEVICE up`. Then run stage `discover`"
            " again."
        ),
    ),
    "discover.read": Explanation(
        means=(
            "Some files of a node could not be read. Their values are unknown, and findings that need these values"
            " have the status unknown."
        ),
        measured="The error for each file below /sys and /proc that the module could not read.",
        causes=(
            "Virtual functions were created or removed while the files were read. A rerun gives the correct result.",
            "The task did not run as root.",
            "A security module (SELinux, lockdown) refuses the access.",
        ),
        look=(
            "ls -l /sys/class/infiniband",
            "ausearch -m avc -ts recent",
        ),
        remedy=(
            "Run stage `discover` again. If the finding remains, read the file that the finding names on the node, as"
            " root."
        ),
    ),
    "discover.select": Explanation(
        means=(
            "An address in `select.pci` does not match the fabric. The intended HCA is left out, so the fabric has too"
            " few HCAs."
        ),
        measured=(
            "Each address of `select.pci`, compared with the functions of each node: the function must exist, be"
            " physical, have the right link layer and match the other selectors."
        ),
        causes=(
            "The address has a typing mistake, or it is from a different server model.",
            "The address is that of a virtual function.",
            "PCI addresses changed after a card was added or the BIOS was changed.",
            "`vendor`, `device` or `netdev` of the same `select` contradicts the address.",
        ),
        look=(
            "lspci -D -nn",
            "ls -l /sys/class/net",
        ),
        remedy=(
            "Correct `select.pci` of the fabric, then run stage `discover` again. If the server models differ, use a"
            " selector that matches all of them, such as `subnet_manager: any` with `hcas_per_node`."
        ),
    ),
    "discover.sriov": Explanation(
        means=(
            "An HCA cannot create the virtual functions that the intent requires. The finding names the responsible"
            " layer: firmware, BIOS or kernel."
        ),
        measured="`sriov_totalvfs` of the physical function, and the SR-IOV capability in its PCI configuration space.",
        causes=(
            "SR-IOV is disabled in the firmware of the card (`SRIOV_EN`), or `NUM_OF_VFS` is 0.",
            "SR-IOV, ARI or MMCONFIG is disabled in the BIOS.",
            (
                "The node is a virtual machine with a virtual function, or with a whole function without the SR-IOV"
                " capability."
            ),
            "The kernel was built without CONFIG_PCI_IOV.",
        ),
        look=(
            "cat /sys/class/infiniband/mlx5_0/device/sriov_totalvfs",
            "lspci -vvv -s ADDRESS",
            "mstconfig -d ADDRESS -e query SRIOV_EN NUM_OF_VFS",
        ),
        remedy=(
            "Firmware: run `mstconfig -d ADDRESS set SRIOV_EN=1 NUM_OF_VFS=8` on the node, then drain and"
            " power-cycle it. BIOS: drain the node and enable SR-IOV. Stage `platform` with `platform_settle: true`"
            " does both. Then run stage `discover` again."
        ),
    ),
}
