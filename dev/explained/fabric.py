# SPDX-License-Identifier: GPL-3.0-or-later

"""Explanations of the findings of stage fabric, for the pages that the report links to. Check ids: ``fabric.*``."""

from __future__ import annotations

from .explanation import Explanation

EXPLAINED: dict[str, Explanation] = {
    "fabric.activity": Explanation(
        means=(
            "The master subnet manager responds but does not sweep. It does not detect ports that come up or go down,"
            " so the configuration of the fabric does not change any more."
        ),
        measured=(
            "Two readings of the activity count of the master, `fabric_activity_seconds` apart, and whether the master"
            " refreshed its record of the standby between them."
        ),
        causes=(
            "The subnet manager hangs, or was started with its sweep switched off (`sweep_interval 0`).",
            "The interval between two sweeps is longer than `fabric_activity_seconds`.",
            "The master changed, or it was restarted, between the two readings.",
            "Polls of a standby raise the count as well, so a sweep could not be verified (unknown).",
        ),
        look=(
            "sminfo",
            "saquery -s",
            "journalctl -u opensm",
        ),
        remedy=(
            "Check the log of the subnet manager and restart it. If a long `sweep_interval` is intended, set"
            " `fabric_activity_seconds` to more than the interval, or to more than twice the interval if there is a"
            " standby. Then run stage `fabric` again."
        ),
    ),
    "fabric.capability": Explanation(
        means=(
            "Links of the fabric run below the rate that both of their ports support. This finding summarizes the"
            " whole fabric, with the links of other tenants. The finding `fabric.rate` covers the links of your"
            " fabric."
        ),
        measured=(
            "The active width and speed of each link port, and the width and speed that both ports of the link support"
            " (`iblinkinfo`)."
        ),
        causes=(
            "The cable or the transceiver is of an older generation.",
            "The link trained down: the cable is dirty, bent or badly seated.",
            "A port is configured for a lower rate.",
            "Some lines of iblinkinfo could not be parsed (unknown).",
        ),
        look=(
            "iblinkinfo --line",
            "ibportstate LID PORT query",
        ),
        remedy=(
            "Run `ibportstate LID PORT query` for both ports of each link, and enable the higher rate where a port"
            " excludes it. Otherwise replace the cable or the transceiver while no job uses the link. Then run"
            " stage `fabric` again."
        ),
    ),
    "fabric.errors": Explanation(
        means=(
            "Ports have counted link errors since their counters were cleared, possibly long ago; or some ports could"
            " not be queried. New errors are more important: see the finding `fabric.errors_growing`."
        ),
        measured="The error counters of all ports (`ibqueryerrors`), compared with thresholds.",
        causes=(
            "The errors are old: cables were pulled or nodes were rebooted, and the counters were not cleared.",
            "A link is bad now.",
            "A switch or a host did not respond to the query.",
        ),
        look=(
            "ibqueryerrors",
            "ibqueryerrors --details",
        ),
        remedy=(
            "Clear the counters (`ibqueryerrors --clear-errors`), then run stage `fabric` again after a day of load."
            " Repair the links that count errors again."
        ),
    ),
    "fabric.errors_growing": Explanation(
        means=(
            "A port counted new errors during the stage. Each bit error causes a retransmission, and the whole"
            " collective waits for it. Discards mean congestion."
        ),
        measured=(
            "Two readings of all error counters during the stage. The class of a counter decides about its growth:"
            " physical, physical further up, congestion, management (warn), configuration."
        ),
        causes=(
            (
                "The cable is dirty or bent, the transceiver is bad, or the cable is badly seated (SymbolErrorCounter,"
                " LinkErrorRecovery, PortRcvErrors)."
            ),
            "The receiver behind the port is slow: its PCIe link trained down, or the host hangs (PortXmitDiscards).",
            "A link upstream on the path is bad (PortRcvRemotePhysicalErrors).",
            "Several managers and tools query the port at the same time (VL15Dropped, warn). No data is lost.",
            "The partitions of the two ends do not match (constraint errors).",
            "A counter has reached its maximum, so it cannot show new errors (unknown).",
            "The two readings are less than 10 s apart: `fabric_error_seconds` is too small (unknown).",
        ),
        look=(
            "ibqueryerrors --details",
            "perfquery -x LID PORT",
            "mlxlink -d ADDRESS -c -e -m",
        ),
        remedy=(
            "Physical errors: while no job uses the link, clean and reseat the cable at both ends, then replace the"
            " cable, then the port. Discards: repair the device behind the port that receives too slowly. Then run"
            " `ibqueryerrors --clear-errors` and run stage `fabric` again."
        ),
    ),
    "fabric.foreign": Explanation(
        means="The topology shows an HCA with the name of one of your nodes, but this node has no such HCA.",
        measured=(
            "The node descriptions of all HCAs in the topology, compared with the HCAs that the nodes report. The"
            " finding is a warning if all HCAs that the intent requires on the node are in the topology with their"
            " GUIDs."
        ),
        causes=(
            "The driver of the node lost the HCA, but the port of the HCA is still up.",
            "Another machine has the same host name.",
            "The card was moved from another host and still has the description of that host.",
        ),
        look=(
            "ibhosts",
            "lspci -nn -d 15b3:",
            "dmesg",
        ),
        remedy=(
            "Look for the HCA on the node that the finding names. If the HCA belongs to another machine, correct the"
            " host name or the description of that machine. Then run stage `fabric` again."
        ),
    ),
    "fabric.guids": Explanation(
        means=(
            "Two devices of the fabric have the same GUID. The subnet manager treats them as one device, so routes to"
            " them are wrong."
        ),
        measured=(
            "The links of the topology, in which a port must have only one cable; and the node GUIDs of all nodes."
        ),
        causes=(
            "The firmware of a card was burnt with the GUIDs of another card.",
            "A virtual switch or a split port was cloned.",
            (
                "A cable was moved during the discovery of the fabric, or the node that reported the topology reports"
                " a cable that does not exist."
            ),
        ),
        look=(
            "ibnetdiscover",
            "mstflint -d ADDRESS query",
        ),
        remedy=(
            "Give one of the two devices its own GUID again (`mstflint -d ADDRESS -guid 0x... sg`), or replace the"
            " board. Switch off the device until then. Then run stage `fabric` again."
        ),
    ),
    "fabric.hca": Explanation(
        means=(
            "A node has an HCA on the fabric, but the topology does not contain it. A passed finding contains the"
            " rail, leaf and port of each HCA."
        ),
        measured="The port GUID of each HCA, compared with the link ports in the topology (`ibnetdiscover`).",
        causes=(
            "The port went down between the two readings.",
            "The discovery did not reach the port: its switch does not respond.",
            "The HCA is on a different fabric from the discovered one.",
        ),
        look=(
            "ibnetdiscover",
            "ibstat",
        ),
        remedy=(
            "Run ibnetdiscover as root on this node and look for the port. Check the far end of the cable. Then run"
            " stage `fabric` again."
        ),
    ),
    "fabric.hcas": Explanation(
        means=(
            "A node does not have `hcas_per_node` HCAs on this fabric. The finding contains the subnet managers that"
            " its other HCAs see. Or two fabrics of the intent select the same HCA of a node. Or the cables of a node"
            " are swapped between two fabrics: the HCA at a PCI address is on another fabric than on most nodes of the"
            " same model."
        ),
        measured=(
            "The subnet manager that each port of the node sees. The HCAs that see the subnet manager of the fabric"
            " belong to it."
        ),
        causes=(
            "A port is down because of its cable, its transceiver or the switch port.",
            "A cable is connected to a switch of another fabric.",
            "The cables of two HCAs of a node are swapped (warn if as many nodes are cabled in the other way).",
            (
                "The port could not be queried: ib_umad is not loaded, the device node is missing, or the user has no"
                " permission (unknown)."
            ),
            "`hcas_per_node` does not match this server model.",
            "Two fabrics select the same HCA in different ways, for example by its vendor and by its address.",
        ),
        look=(
            "ibstat",
            "sminfo -C mlx5_0",
            "ls -l /dev/infiniband",
        ),
        remedy=(
            "Bring up the ports that the finding names and check their cables, or correct `hcas_per_node`. If ports"
            " could not be queried, run `modprobe ib_umad` on the node. Then run stage `fabric` again."
        ),
    ),
    "fabric.island": Explanation(
        means=(
            "Some switches are connected with each other but have no path to a subnet manager, although other switches"
            " have one: all of their links to the rest of the fabric are down. The nodes on these switches are cut"
            " off."
        ),
        measured="The switches and HCAs that ports without a subnet manager can reach (`ibnetdiscover`).",
        causes=(
            (
                "The links between a leaf and its spines are down: a line card has no power, cables were pulled, or"
                " ports were disabled."
            ),
            "The switch port at the other end of a single cable is not up.",
        ),
        look=(
            "ibnetdiscover",
            "iblinkinfo",
            "ibportstate LID PORT query",
        ),
        remedy=(
            "Check the ports of these switches towards the spines, on the switch itself, and check their cables. Then"
            " run stage `fabric` again."
        ),
    ),
    "fabric.lids": Explanation(
        means=(
            "A node reports a LID for its port that belongs to another port. Packets to this LID reach only one of the"
            " two ports, so the other port could not be verified."
        ),
        measured=(
            "The LIDs of all ports of physical functions that see a subnet manager of the fabric, compared with each"
            " other and with the LID that the topology shows at the GUID of each port. If the topology shows a LID at"
            " one of two ports, the LID belongs to this port."
        ),
        causes=(
            "The subnet manager assigned new LIDs during the stage.",
            "Two functions share one port and its LID (a card for several hosts or sockets).",
            "A node reports wrong data about its ports: its driver has a fault, or the node is compromised.",
        ),
        look=(
            "smpquery nodeinfo LID",
            "cat /sys/class/infiniband/mlx5_0/ports/1/lid",
            "saquery PR --src-to-dst LID:LID",
        ),
        remedy=(
            "Run stage `fabric` again. If the finding remains, query the LID from another node (`smpquery nodeinfo"
            " LID`), and remove the node with the wrong LIDs from the group `rdma_nodes`."
        ),
    ),
    "fabric.manager": Explanation(
        means=(
            "A port reports that a subnet manager runs on it (IsSM bit), but this subnet manager does not respond. If"
            " the process resumes, it may still act as the master."
        ),
        measured="All ports with the IsSM bit (`saquery`), and the response of each of them to `sminfo`.",
        causes=(
            (
                "The process of the subnet manager hangs: it was stopped, it is out of memory, or its machine is"
                " overloaded."
            ),
            "The port cannot be reached: a link on the path is down.",
        ),
        look=(
            "saquery -s",
            "sminfo LID",
            "systemctl status opensm",
        ),
        remedy=(
            "Check the process and its log on that machine, and restart it: `systemctl restart opensm`. Then run stage"
            " `fabric` again."
        ),
    ),
    "fabric.membership": Explanation(
        means="The HCAs of the fabric could not be identified. All other findings on the fabric depend on these HCAs.",
        measured=(
            "The groups of HCAs that see the same subnet manager, compared with `hcas_per_node` and"
            " `select.subnet_manager`."
        ),
        causes=(
            "No subnet manager runs, so no port sees a subnet manager.",
            "Two fabrics have the required number of HCAs on a node, and the intent does not select one of them.",
            "Another subnet manager has taken over, and its GUID is not in `select.subnet_manager`.",
            "No port could be queried: a tool, the module ib_umad or the permission is missing (unknown).",
        ),
        look=(
            "sminfo -C mlx5_0",
            "ibstat",
            "modprobe ib_umad",
        ),
        remedy=(
            "Bring up the ports and their subnet manager. If two fabrics match, set `select.subnet_manager` to the"
            " GUIDs of all subnet managers that may become the master. Then run stage `fabric` again."
        ),
    ),
    "fabric.node": Explanation(
        means="Data collection failed on a node, so the part of the fabric that its ports see is unknown.",
        measured="Whether the modules `node_info` and `subnet_manager_info` returned data from the node.",
        causes=(
            "infiniband-diags is missing on the node, or in the image of the pods that inspect the nodes.",
            "ssh, sudo or the pod that inspects the node does not work.",
            "The node is down.",
        ),
        look=(
            "ansible NODE -m ansible.builtin.ping -b",
            "sminfo",
        ),
        remedy=(
            "Make the node reachable as root, and install the package infiniband-diags on it; or remove the node from"
            " the group `rdma_nodes`. Then run stage `fabric` again."
        ),
    ),
    "fabric.one_master": Explanation(
        means=(
            "A fabric must have exactly one master subnet manager. Without a master, ports that come up get no LID."
            " With two masters, each undoes the routes of the other."
        ),
        measured=(
            "The master that each port sees (`sminfo`), and all subnet managers in the records of the subnet"
            " administration (`saquery -s`, `saquery SMIR`)."
        ),
        causes=(
            "No master: the subnet manager ended or was never started, and there is no standby.",
            "No master: the subnet manager hangs, and its port still has the IsSM bit.",
            "No master: the machine of the subnet manager, or a link on the path to it, is down.",
            (
                "Two masters: two fabrics were connected, or one subnet manager ignores the others (`ignore_other_sm`,"
                " a different SM key)."
            ),
        ),
        look=(
            "sminfo",
            "saquery -s",
            "systemctl status opensm",
            "journalctl -u opensm",
        ),
        remedy=(
            "No master: start the subnet manager again (`systemctl start opensm`), read its log for the reason why"
            " it ended, and start a second subnet manager on another machine. Two masters: stop all subnet managers"
            " except one, check their logs, and give each its own priority. Then run stage `fabric` again."
        ),
    ),
    "fabric.partitions": Explanation(
        means=(
            "Partition keys separate HCAs of one fabric. The ports are active and each subnet manager responds, but"
            " packets between these HCAs are dropped without an error: `rping` hangs or ends with an address error,"
            " and a job ends with status 12."
        ),
        measured=(
            "The partition keys in the port of each HCA of the fabric (`pkeys` in sysfs), compared with those of the"
            " other HCAs."
        ),
        causes=(
            "A port is missing from a partition, or it is in a different partition.",
            "Ports are limited members (0x7fff): two limited members cannot communicate.",
            "An HCA or a virtual function was replaced, but the partition still has the GUID of the old one.",
        ),
        look=(
            "cat /sys/class/infiniband/mlx5_0/ports/1/pkeys/0",
            "smpquery pkeys LID",
        ),
        remedy=(
            "Make the ports of the fabric full members of one partition: edit /etc/opensm/partitions.conf, equal on the"
            " hosts of all subnet managers, and run `pkill -HUP -x opensm` there, or set a PKey in UFM. Do not write"
            " `ALL=full` if the fabric has other tenants. Then run stage `fabric` again."
        ),
    ),
    "fabric.priority": Explanation(
        means=(
            "Two subnet managers have the same priority, so the lower GUID decides which of them is the master. After"
            " a failure and its repair, the master cannot be predicted."
        ),
        measured="The priority that each subnet manager reports (`sminfo`).",
        causes=("All subnet managers have the default priority.",),
        look=(
            "sminfo LID",
            "saquery -s",
        ),
        remedy=(
            "Set a higher `sm_priority` in the configuration of the intended master (opensm: /etc/opensm/opensm.conf),"
            " and restart it. Then run stage `fabric` again."
        ),
    ),
    "fabric.rails": Explanation(
        means=(
            "HCA k of a node is not on the same leaf as HCA k of the other nodes. The traffic of this rail then takes"
            " the path over the spines, and slows down all other traffic there."
        ),
        measured=(
            "The leaf at the other end of the cable of each HCA, compared among servers of one model by the slots of"
            " their HCAs. If the intent does not set `rails` and more than a quarter of the nodes have contradicting"
            " cablings, the finding is unknown."
        ),
        causes=(
            "Two cables of a node are swapped.",
            "A cable is connected to the wrong leaf.",
            "The fabric is not built in rails.",
        ),
        look=(
            "ibnetdiscover",
            "iblinkinfo",
        ),
        remedy=(
            "Correct the cables at one of the ports that the finding names. If the fabric has no rails, set `rails:"
            " none` in the intent. If it has rails, set `rails: leaf`, so that findings name each wrong cable. Then"
            " run stage `fabric` again."
        ),
    ),
    "fabric.rate": Explanation(
        means=(
            "A link runs below the rate that both of its ports support, or below the rate of comparable links. A"
            " collective runs at the speed of its slowest link."
        ),
        measured=(
            "The width and speed of each link of the HCAs of the fabric and of each link between its switches,"
            " compared with the width and speed that both ports support (`iblinkinfo`)."
        ),
        causes=(
            (
                "The link trained down because of a dirty, bent or badly seated cable or transceiver (1X or 2X instead"
                " of 4X)."
            ),
            "The cable is of an older generation.",
            "The speeds of a port are limited by its configuration.",
            "The switch port is slower or split. It is unknown whether on purpose (unknown, or warn on small fleets).",
        ),
        look=(
            "iblinkinfo --line",
            "ibportstate LID PORT query",
            "mlxlink -d ADDRESS -m",
        ),
        remedy=(
            "Run `ibportstate LID PORT query` for both ports, and enable the higher rate where a port excludes it."
            " Otherwise reseat or replace the cable or the transceiver while no job uses the link. Then run stage"
            " `fabric` again."
        ),
    ),
    "fabric.routes": Explanation(
        means=(
            "The forwarding tables of the switches have no path from a leaf to an HCA of the same rail. A switch drops"
            " packets for a LID without a port."
        ),
        measured=(
            "The forwarding tables (`dump_fts`), followed from each leaf of a rail to the LID of each HCA of the rail"
            " over the links of the topology (`ibnetdiscover`)."
        ),
        causes=(
            "A switch did not take a block of 64 LIDs from the subnet manager (unknown).",
            "A switch did not answer when its table was read (unknown).",
            "The subnet manager computed the paths anew between the reading of the topology and of the tables.",
            "A switch sends packets to a port without a link, or in a circle (warn without `routing: static`).",
            "`dump_fts` failed (warn).",
        ),
        look=(
            "dump_fts -n",
            "ibtracert SOURCE_LID DESTINATION_LID",
        ),
        remedy=(
            "Wait a minute, because the subnet manager may have changed the routes during the stage. If `ibtracert`"
            " does not reach the destination, read the log of the subnet manager for errors of the switch. At a"
            " time without jobs, restart the management agent of the switch, or the switch. Then run stage `fabric`"
            " again."
        ),
    ),
    "fabric.select": Explanation(
        means=(
            "The intent lists the PCI address of an HCA for the fabric, but the port of the HCA sees a different"
            " subnet manager."
        ),
        measured=(
            "The subnet manager that each HCA of `select.pci` sees, compared with the subnet manager of the fabric."
        ),
        causes=(
            "The cable of the HCA is connected to another fabric.",
            "`select.pci` contains a wrong address.",
        ),
        look=(
            "sminfo -C mlx5_0",
            "lspci -D -nn -d 15b3:",
        ),
        remedy=(
            "Correct `select.pci` of the fabric, or move the cable of the HCA to this fabric. Then run stage `fabric`"
            " again."
        ),
    ),
    "fabric.standby": Explanation(
        means=(
            "The fabric has only one subnet manager. If it stops, ports that come up later get no LID. Running traffic"
            " continues until then."
        ),
        measured="All subnet managers except the master in the records of the subnet administration.",
        causes=(
            "A second subnet manager was never started.",
            "The standby runs on the machine of the master, and stops with it.",
            "The standby ended or hangs (`fabric.manager`).",
            "The subnet managers have different SM keys, so they do not accept each other.",
        ),
        look=(
            "saquery -s",
            "sminfo",
        ),
        remedy="Start a second subnet manager with a lower priority on another machine. Then run stage `fabric` again.",
    ),
    "fabric.topology": Explanation(
        means=(
            "The topology of the fabric is missing or contradicts itself. Rails, uplinks, rates and errors cannot be"
            " checked with it."
        ),
        measured=(
            "The topology from one port of the fabric (`ibnetdiscover`): its devices, its links, and whether each link"
            " leads to a device."
        ),
        causes=(
            "infiniband-diags is missing on all nodes of the fabric.",
            "Switches did not respond in time.",
            "The fabric changed during the discovery.",
        ),
        look=(
            "ibnetdiscover",
            "ibswitches",
        ),
        remedy=(
            "Run ibnetdiscover as root on a node of the fabric. If it fails there as well, correct its error. Then run"
            " stage `fabric` again."
        ),
    ),
    "fabric.uplinks": Explanation(
        means=(
            "A leaf has fewer links to other switches than the intent requires, or than comparable leaves. The nodes"
            " on this leaf have less bandwidth to the rest of the fabric."
        ),
        measured=(
            "The links from each leaf to other switches, compared with `uplinks` of the fabric, or else with the most"
            " frequent number among comparable leaves. The finding is a warning if the leaf has fewer HCAs than the"
            " others, and at least as many links for each HCA."
        ),
        causes=(
            "A cable between the leaf and a spine is pulled, or a port is down.",
            (
                "A spine or a line card is off. If a spine is off, each leaf loses a link: only the key `uplinks` of"
                " the fabric detects this."
            ),
            "The leaf is cabled differently on purpose, for example the last leaf with half of the hosts.",
        ),
        look=(
            "iblinkinfo --down",
            "ibnetdiscover",
        ),
        remedy=(
            "Run `iblinkinfo --down` to find the ports of the leaf and of the other switches that are down. Enable"
            " them, and reseat or replace their cables. Then run stage `fabric` again."
        ),
    ),
}
