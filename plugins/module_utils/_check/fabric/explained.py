# SPDX-License-Identifier: GPL-3.0-or-later

"""Explanations of the findings of stage fabric, for the pages that the report links to. Check ids: ``fabric.*``."""

from __future__ import annotations

from ..._model.run.explanation import Explanation

EXPLAINED: dict[str, Explanation] = {
    "fabric.activity": Explanation(
        means=(
            "The master subnet manager answers but does not sweep. It will not see a port that comes or goes, so the"
            " fabric is frozen as it is."
        ),
        measured=(
            "Its activity count (`sminfo`) twice, `fabric_activity_seconds` apart, and whether its record of the"
            " standby was refreshed meanwhile."
        ),
        causes=(
            "The manager hangs, or was started with its sweep switched off (`sweep_interval 0`).",
            "It sweeps more seldom than the stage looks.",
            "It changed or was started anew between the two looks.",
            "Only its answers to a polling standby made the count rise, so nothing is proven (unknown).",
        ),
        look=(
            "sminfo",
            "saquery -s",
            "journalctl -u opensm",
        ),
        remedy=(
            "See the manager's log and restart it. If it sweeps seldom by intent, raise `fabric_activity_seconds` above"
            " `sweep_interval`."
        ),
    ),
    "fabric.capability": Explanation(
        means=(
            "Links of the fabric run below what both of their ends support. This one sums up the whole fabric, with"
            " links of other tenants; `fabric.rate` judges yours."
        ),
        measured=(
            "`iblinkinfo`: width and speed that are active, and what both ends support, for each end of each link."
        ),
        causes=(
            "A cable or transceiver of an older generation.",
            "A link that trained down: dirt, a bent cable, a bad seat.",
            "A port that was set to less.",
            "Not all lines of iblinkinfo could be read (unknown).",
        ),
        look=(
            "iblinkinfo --line",
            "ibportstate LID PORT query",
        ),
        remedy="Replace cables that are the limit. Else see the speeds enabled at both ports with `ibportstate`.",
    ),
    "fabric.errors": Explanation(
        means=(
            "Ports have counted link errors since their counters were cleared, which may be long ago; or some ports"
            " could not be asked. Growth is what matters: see `fabric.errors_growing`."
        ),
        measured="Error counters of all ports (`ibqueryerrors`), against its thresholds.",
        causes=(
            "Old errors: cables were pulled, nodes were rebooted, and nobody cleared the counters.",
            "A link that is bad now.",
            "A switch or host did not answer the query.",
        ),
        look=(
            "ibqueryerrors",
            "ibqueryerrors --details",
        ),
        remedy=(
            "Clear them (`ibqueryerrors --clear-errors`) and look again after a day of load. Mend those that count"
            " again."
        ),
    ),
    "fabric.errors_growing": Explanation(
        means=(
            "A port counts errors while one looks. Each bit error costs a retransmission, for which a whole collective"
            " waits; discards mean congestion."
        ),
        measured=(
            "Two readings of all error counters during the stage; growth of a counter is judged by its class: physical,"
            " physical further up, congestion, configuration."
        ),
        causes=(
            (
                "A dirty or bent cable, a bad transceiver, or a bad seat (SymbolErrorCounter, LinkErrorRecovery,"
                " PortRcvErrors)."
            ),
            "A slow receiver behind the port: PCIe that trained down, or a host that hangs (PortXmitDiscards).",
            "A bad link further up the way (PortRcvRemotePhysicalErrors).",
            "Partitions that do not agree (constraint errors).",
            "A counter at its maximum, which can't grow any more (unknown).",
            "Less than 10 s between the two readings: `fabric_error_seconds` is too small (unknown).",
        ),
        look=(
            "ibqueryerrors --details",
            "perfquery -x LID PORT",
            "mlxlink -d ADDRESS -c -e -m",
        ),
        remedy=(
            "Physical errors: clean and seat the cable at both ends, then replace it, then the port. Discards: look for"
            " the slow receiver behind the port. Then `ibqueryerrors --clear-errors` and run the stage again."
        ),
    ),
    "fabric.foreign": Explanation(
        means="The topology shows an HCA under the name of a node of yours, and the node has no such HCA.",
        measured=(
            "Node descriptions of all HCAs in the topology against the HCAs that the nodes themselves show. It is a"
            " warning where the node has all its HCAs of the fabric, each in the topology by its GUID."
        ),
        causes=(
            "The node's driver lost the HCA, and its port is still up.",
            "Another machine has the same host name.",
            "The description is left over from another host: the card was moved.",
        ),
        look=(
            "ibhosts",
            "lspci -nn -d 15b3:",
            "dmesg",
        ),
        remedy=(
            "Look for the HCA on the node that is named. If it is another machine's, correct that machine's host name"
            " or description."
        ),
    ),
    "fabric.guids": Explanation(
        means=(
            "Two devices of the fabric have one GUID. The subnet manager takes them for one, so routes to them are"
            " wrong."
        ),
        measured="Links of the topology: a port can't have two cables; and node GUIDs over all nodes.",
        causes=(
            "Firmware was burnt with another card's GUIDs.",
            "A virtual switch or a split port was cloned.",
            (
                "A cable was moved while the discovery walked through the fabric, or the node that shows the topology"
                " tells of a cable that is not there."
            ),
        ),
        look=(
            "ibnetdiscover",
            "mstflint -d ADDRESS query",
        ),
        remedy=(
            "Give one of the two its own GUID back (`mstflint -d ADDRESS -guid 0x... sg`), or replace the board. Switch"
            " it off until then."
        ),
    ),
    "fabric.hca": Explanation(
        means=(
            "A node has an HCA on the fabric, and the topology does not show it. A pass says rail, leaf and port of"
            " each HCA."
        ),
        measured="The port GUID of each HCA against the ends of links in the topology (`ibnetdiscover`).",
        causes=(
            "The port went down between the two looks.",
            "The discovery did not reach it: its switch does not answer.",
            "The HCA is on another fabric than the one that was discovered.",
        ),
        look=(
            "ibnetdiscover",
            "ibstat",
        ),
        remedy="Run ibnetdiscover on that node itself and compare. Check the cable's far end.",
    ),
    "fabric.hcas": Explanation(
        means=(
            "A node does not have `hcas_per_node` HCAs on this fabric. What its other HCAs see is said beside it. Or an"
            " HCA of a node is on two fabrics that take it from each other."
        ),
        measured="Which subnet manager each port of the node sees. HCAs that see the fabric's manager are on it.",
        causes=(
            "A port is down: cable, transceiver, switch port.",
            "A cable is in another fabric's switch.",
            "The port could not be asked: ib_umad is not loaded, no device node, no right (unknown).",
            "`hcas_per_node` is wrong for this model of server.",
            "Two fabrics name one HCA in different ways, such as by its vendor and by its address.",
        ),
        look=(
            "ibstat",
            "sminfo -C mlx5_0",
            "ls -l /dev/infiniband",
        ),
        remedy=(
            "Bring up the ports and cables that are named, or correct `hcas_per_node`. Where ports could not be asked:"
            " `modprobe ib_umad`."
        ),
    ),
    "fabric.island": Explanation(
        means=(
            "Some switches see each other and no subnet manager, though others do: all of their links to the rest are"
            " down. Their nodes are cut off."
        ),
        measured="What the ports without a manager discover: the switches and HCAs that they reach.",
        causes=(
            (
                "The links between a leaf and its spines are down: a power failure of a line card, pulled cables, ports"
                " switched off."
            ),
            "The port of the switch at the other end of a single cable is not up.",
        ),
        look=(
            "ibnetdiscover",
            "iblinkinfo",
            "ibportstate LID PORT query",
        ),
        remedy="See the ports of these switches towards the spines, on the switch itself, and their cables.",
    ),
    "fabric.lids": Explanation(
        means=(
            "A port tells a LID that is another port's. Whoever sends to that LID reaches one of the two, so nothing is"
            " proven of the other."
        ),
        measured=(
            "The LIDs of all ports of physical functions that see a manager of the fabric, against each other; and the"
            " LID that the topology shows at the GUID of each port. Where the topology shows it at one of two ports, it"
            " is that one's."
        ),
        causes=(
            "The subnet manager gave new LIDs while the stage looked.",
            "Two functions share one port and its LID (a card for several hosts or sockets).",
            "A node tells what is not true of its ports: its driver, or whoever rules it.",
        ),
        look=(
            "smpquery nodeinfo LID",
            "cat /sys/class/infiniband/mlx5_0/ports/1/lid",
            "saquery PR --src-to-dst LID:LID",
        ),
        remedy=(
            "Run the stage again. If it stays, ask the LID from another node (`smpquery nodeinfo`), and take out the"
            " node that tells what it does not have."
        ),
    ),
    "fabric.manager": Explanation(
        means=(
            "A port says that a subnet manager runs on it (IsSM bit), and nothing answers there. When it wakes up it"
            " may believe that it is still the master."
        ),
        measured="`saquery` for all ports with the IsSM bit, and `sminfo` to each of them.",
        causes=(
            "The manager's process hangs: stopped, out of memory, or on a machine under load.",
            "The port can't be reached: a link on the way is down.",
        ),
        look=(
            "saquery -s",
            "sminfo LID",
            "systemctl status opensm",
        ),
        remedy="See the process and its log on that machine, and restart it: `systemctl restart opensm`.",
    ),
    "fabric.membership": Explanation(
        means="It can't be made out which HCAs belong to the fabric. All that is said of the fabric depends on it.",
        measured=(
            "Groups of HCAs that see the same subnet manager, against `hcas_per_node` and `select.subnet_manager`."
        ),
        causes=(
            "No subnet manager runs, so no port sees one.",
            "Two fabrics have as many HCAs on a node, and the intent does not say which is meant.",
            "The manager failed over to another GUID than the one in `select.subnet_manager`.",
            "No port could be asked: a tool, the module ib_umad or the right is missing (unknown).",
        ),
        look=(
            "sminfo -C mlx5_0",
            "ibstat",
            "modprobe ib_umad",
        ),
        remedy=(
            "Bring up the ports and their subnet manager. Where two fit, write the GUID into `select.subnet_manager`;"
            " list all that may be the master."
        ),
    ),
    "fabric.node": Explanation(
        means="A node did not say what its ports see. Nothing is known of its part of the fabric.",
        measured="Whether `node_info` and `subnet_manager_info` came back with an answer from the node.",
        causes=(
            "infiniband-diags is not on the node, or not in the observers' image.",
            "ssh, sudo or the observer does not work.",
            "The node is down.",
        ),
        look=(
            "ansible NODE -m ansible.builtin.ping -b",
            "sminfo",
        ),
        remedy=(
            "Make the node answer as root, with the package infiniband-diags; or take it out of the group `rdma_nodes`."
        ),
    ),
    "fabric.one_master": Explanation(
        means=(
            "A fabric has exactly one master subnet manager. Without one, ports that come up get no LID. With two, each"
            " undoes the other's routes."
        ),
        measured=(
            "Which master each port sees (`sminfo`), and all managers that the subnet administration lists (`saquery"
            " -s`, `saquery SMIR`)."
        ),
        causes=(
            "None: the manager ended or was never started, and there is no standby.",
            "None: it hangs; its port still has the IsSM bit.",
            "None: its machine, or a link on the way to it, is down.",
            "Two: two fabrics were joined, or one was told to ignore the others (`ignore_other_sm`, another SM key).",
        ),
        look=(
            "sminfo",
            "saquery -s",
            "systemctl status opensm",
            "journalctl -u opensm",
        ),
        remedy=(
            "None: start it again (`systemctl start opensm`), see its log for why it ended, and run a second one as"
            " standby. Two: stop all but one, see their logs, and give each its own priority."
        ),
    ),
    "fabric.partitions": Explanation(
        means=(
            "Partition keys keep HCAs of one fabric apart. Their ports are active and every manager answers, and the"
            " packets between them are dropped without an error: `rping` hangs or ends with an address error, and a job"
            " with status 12."
        ),
        measured=(
            "The partition keys in the port of each HCA of the fabric (`pkeys` in sysfs), each against those of the"
            " others."
        ),
        causes=(
            "A port was forgotten in a partition, or is in another one.",
            "Ports are limited members (0x7fff): two of them never meet.",
            "An HCA or a VF was replaced, and the partition still names the GUID of the one before.",
        ),
        look=(
            "cat /sys/class/infiniband/mlx5_0/ports/1/pkeys/0",
            "smpquery pkeys LID",
        ),
        remedy=(
            "Make the ports full members of one partition: /etc/opensm/partitions.conf and a restart of opensm, or a"
            " PKey of UFM."
        ),
    ),
    "fabric.priority": Explanation(
        means=(
            "Two subnet managers have the same priority, so the lower GUID decides which is the master. After a failure"
            " and its repair nobody knows who rules."
        ),
        measured="The priority of each manager in the answer of `sminfo`.",
        causes=("The default priority was left on each.",),
        look=(
            "sminfo LID",
            "saquery -s",
        ),
        remedy=(
            "Give the one that shall be master a higher `sm_priority` in its configuration (opensm:"
            " /etc/opensm/opensm.conf), and restart it."
        ),
    ),
    "fabric.rails": Explanation(
        means=(
            "HCA k of a node is not on the leaf of the others' HCA k. Traffic of one rail then takes the way over the"
            " spines, and slows down all that share it."
        ),
        measured=(
            "The leaf at the other end of each HCA's cable, compared among servers of one model by the slots of their"
            " HCAs. Where the intent does not say `rails` and more than a quarter of the nodes is cabled in ways of its"
            " own, it is unknown."
        ),
        causes=(
            "Two cables of a node are swapped.",
            "A cable is in the wrong leaf.",
            "The fabric is not built in rails.",
        ),
        look=(
            "ibnetdiscover",
            "iblinkinfo",
        ),
        remedy=(
            "Put the cables right at one of the ends that are named. If the fabric has no rails, write `rails: none`"
            " into it; if it has, write `rails: leaf`, and each wrong cable is named."
        ),
    ),
    "fabric.rate": Explanation(
        means=(
            "A link runs below what both of its ends support, or below its like. A collective runs at the pace of its"
            " slowest link."
        ),
        measured=(
            "Width and speed of each link of the fabric's HCAs and between its switches, against what iblinkinfo says"
            " that both ends support."
        ),
        causes=(
            "The link trained down: a dirty, bent or badly seated cable or transceiver (1X or 2X instead of 4X).",
            "A cable of an older generation.",
            "A port whose speeds were limited by hand.",
            "A slower or split port of the switch, as it is meant (warn).",
        ),
        look=(
            "iblinkinfo --line",
            "ibportstate LID PORT query",
            "mlxlink -d ADDRESS -m",
        ),
        remedy="Seat or replace the cable or transceiver, then see the speeds enabled at both ports (`ibportstate`).",
    ),
    "fabric.select": Explanation(
        means="The intent lists the PCI address of an HCA for the fabric, and its port sees another subnet manager.",
        measured="The manager that each HCA of `select.pci` sees, against that of the fabric.",
        causes=(
            "The cable of the HCA is in another fabric.",
            "`select.pci` has the wrong address.",
        ),
        look=(
            "sminfo -C mlx5_0",
            "lspci -D -nn -d 15b3:",
        ),
        remedy="Correct `select.pci` of the fabric, or the cable of the HCA.",
    ),
    "fabric.standby": Explanation(
        means=(
            "Only one subnet manager is there. When it stops, ports that come up later stay without a LID; running"
            " traffic goes on until then."
        ),
        measured="All managers that the subnet administration lists, other than the master.",
        causes=(
            "Nobody runs a second one.",
            "The standby ended or hangs (`fabric.manager`).",
            "Another SM key keeps them from knowing each other.",
        ),
        look=(
            "saquery -s",
            "sminfo",
        ),
        remedy="Run a second subnet manager with a lower priority, on another machine.",
    ),
    "fabric.topology": Explanation(
        means=(
            "The map of the fabric is missing or does not fit together. Rails, uplinks, rates and errors can't be"
            " judged by it."
        ),
        measured=(
            "`ibnetdiscover` from one port of the fabric: its nodes, its links, and whether each link ends at a node."
        ),
        causes=(
            "infiniband-diags is missing on all nodes of the fabric.",
            "Switches did not answer in time.",
            "The fabric changed while it was discovered.",
        ),
        look=(
            "ibnetdiscover",
            "ibswitches",
        ),
        remedy=(
            "Run ibnetdiscover by hand on a node of the fabric, as root. If it fails there as well, follow its error;"
            " else run the stage again."
        ),
    ),
    "fabric.uplinks": Explanation(
        means=(
            "A leaf has fewer links to other switches than the intent says, or than its like. Nodes below it share less"
            " bandwidth to the rest."
        ),
        measured=(
            "Links from each leaf to other switches, against `uplinks` of the fabric, else the most frequent number"
            " among comparable leaves. A leaf with fewer HCAs whose HCAs have no smaller share of its links than those"
            " of the others is a warning."
        ),
        causes=(
            "A cable between leaf and spine is pulled, or a port is down.",
            (
                "A spine or line card is off. A spine that is off takes a link from each leaf: only `uplinks` of the"
                " fabric tells it."
            ),
            "The leaf is cabled otherwise by plan, such as the last one, which has half of the hosts.",
        ),
        look=(
            "iblinkinfo --down",
            "ibnetdiscover",
        ),
        remedy="See the ports of both switches (`iblinkinfo --down`), and seat or replace the cable.",
    ),
}
