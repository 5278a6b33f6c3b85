# SPDX-License-Identifier: GPL-3.0-or-later

"""Explanations of the findings of stage bandwidth, for the pages that the report links to. Check ids:
``bandwidth.*``.
"""

from __future__ import annotations

from ..._model.run.explanation import Explanation

EXPLAINED: dict[str, Explanation] = {
    "bandwidth.cleanup": Explanation(
        means=(
            "Pods of the measurement are still there, or an earlier run had left some. They hold virtual functions that"
            " jobs need."
        ),
        measured="Pods with the label of the measurement after the stage, and before it.",
        causes=(
            "The run was interrupted, so the next one removed them (warn).",
            "A pod hangs in Terminating: its node is lost, or a finalizer holds it.",
        ),
        look=("kubectl get pods -A -l app.kubernetes.io/managed-by=linerate.rdma",),
        remedy="Delete them by hand (`kubectl delete pod`); see their events if they stay in Terminating.",
    ),
    "bandwidth.coverage": Explanation(
        means=(
            "Which links the tests went over, where rounds are made to use each link. A link that no test went over is"
            " not known to be good."
        ),
        measured=(
            "The way of each test with a figure, by the forwarding tables, against all links that these nodes can use,"
            " each in both directions."
        ),
        causes=(
            "A node has no pod, or its tests gave no figure: its cable stays open.",
            "The forwarding table of a switch could not be read whole.",
            (
                "Ethernet: a port heard no switch by LLDP, or several, so which links it shares with others is not"
                " known. It was measured all the same: a warning."
            ),
        ),
        look=("ibqueryerrors", "iblinkinfo", "tcpdump -nn -i DEVICE ether proto 0x88cc"),
        remedy=(
            "See `bandwidth.measured` and `bandwidth.pod` for the nodes at these links, or switch LLDP on at the ports"
            " of the leaves, then run the stage again."
        ),
    ),
    "bandwidth.fleet": Explanation(
        means=(
            "A pair is slower than others of its rail whose links can do the same. One of its ends, or the way between"
            " them, is at fault."
        ),
        measured=(
            "The average of the pair against `line_rate.fleet_fraction` of the best pair of the same rail and kind, or"
            " of the best one between rails."
        ),
        causes=(
            "Another NUMA node, a slower PCIe link, or ACS at one end.",
            "Congestion on one way between two leaves.",
            "Errors on a link: each retransmission costs.",
            "TCP: processors that were busy (warn).",
            (
                "Fewer queue pairs than fill the link: with more of them the pair is as fast as the others (warn;"
                " unknown where others are fast with as few)."
            ),
        ),
        look=(
            "ibqueryerrors",
            "lspci -vv -s ADDRESS",
            "numactl --hardware",
        ),
        remedy="See `bandwidth.suspect` for the end at fault, then `bandwidth.link` and `fabric.errors_growing` there.",
    ),
    "bandwidth.floor": Explanation(
        means=(
            "A pair is slower than its links allow for. What could be is known from the links, never from what they"
            " trained down to."
        ),
        measured=(
            "The average of perftest between two pods against `line_rate.fraction` of the slowest of what port and PCIe"
            " at both ends could carry. A pair of RDMA below it is measured once more with more queue pairs and larger"
            " messages."
        ),
        causes=(
            "A link or PCIe link that trained down: see `bandwidth.link`.",
            (
                "CPUs of another NUMA node than the HCA's, which the finding names; ACS, or small PCIe reads"
                " (`tuning.pci`)."
            ),
            "A rate limit that the physical function has for the sender's VF, which the finding names.",
            "Errors, or congestion by other tenants.",
            (
                "Fewer queue pairs than fill the link: with more of them the pair reaches its floor, and with as few"
                " nobody does (warn)."
            ),
            (
                "What comes and goes: the pair reaches its floor with more queue pairs, and others do with as few, so"
                " that nothing is proven (unknown)."
            ),
            "MTU 1500 where 9000 was meant, or PFC on one side only (RoCE).",
            "The floor is too high for what is bought (unknown where the links' rate is not told).",
        ),
        look=(
            "ib_write_bw -d mlx5_0 --report_gbits -D 10",
            "mlxlink -d ADDRESS",
            "ip link show DEVICE",
            "ibqueryerrors",
        ),
        remedy=(
            "Do what the finding says where it names a cause. Otherwise see `bandwidth.suspect` for the end at fault."
            " Look there at PCIe, NUMA node, MTU and error counters; where nothing tells the rate, write it into"
            " `line_rate.expected_gbps`."
        ),
    ),
    "bandwidth.latency": Explanation(
        means=(
            "Small messages between two pods take longer than between others, or longer than the intent admits. Jobs"
            " with many small messages wait for the slowest pair."
        ),
        measured=(
            "`ib_write_lat` with 10,000 messages of 8 bytes, once all rounds are over; each port is in one pair at"
            " least. The median of a pair against `latency_ratio` (1.5) times the median of the pairs, and against"
            " `most_latency_us`. p99 is shown, and not judged."
        ),
        causes=(
            "Idle states or the governor of the CPUs.",
            "The pod runs on CPUs of another NUMA node than the HCA's.",
            "More switches between the nodes than between those of other pairs.",
            "A queue that other traffic fills.",
            "The image has no ib_write_lat (unknown).",
        ),
        look=("ib_write_lat -d mlx5_0 -s 8 -F", "cpupower idle-info", "cpupower frequency-info"),
        remedy="See stage tuning of both nodes beside two that are fast; compare the paths of the pairs.",
    ),
    "bandwidth.packets": Explanation(
        means=(
            "The queue pairs that were measured send smaller packets than the MTU of the fabric has room for, or send"
            " by RoCE v1. The figures are then of other packets than a job is to send."
        ),
        measured=(
            "`Mtu` and `GID index`, as `ib_write_bw` says them of its own run, against `mtu` of the fabric, and against"
            " RoCE v2 where the fabric has `roce`. Over rdma_cm the GID index is not judged, because rdma_cm chooses"
            " another one."
        ),
        causes=(
            "The NetworkAttachmentDefinition gives the interface in the pod no MTU.",
            "The VF, the port or the other end has a smaller MTU than the fabric.",
            "The interface in the pod has no address, so its device has no GID of RoCE v2.",
            "perftest of the image does not say it, or a script stands in its place.",
        ),
        look=("ip link show DEVICE", "ibv_devinfo -d mlx5_0", "show_gids"),
        remedy=(
            "Set `mtu` of the network, so that the NetworkAttachmentDefinition names it, and compare the MTU in the pod"
            " with that of the VF on its node. Give the interface in the pod an address (`ipam`)."
        ),
    ),
    "bandwidth.layer": Explanation(
        means=(
            "At which step a pair loses its bandwidth, from the cable up to the pod. A step that could not be measured"
            " is named with its reason, and the layers on both sides of it are then named together."
        ),
        measured=(
            "The same pair by `ib_write_bw`: between the physical functions on the hosts, between free virtual"
            " functions on the hosts, between the pods, and from GPU memory where the pod has a GPU. The first step is"
            " held against the floor of the pair, each other one against the step before: less than 0.9 of it is a"
            " loss. On the hosts, observers measure."
        ),
        causes=(
            "PF on the host: the cable, the fabric, the HCA or its slot.",
            "VF on the host: SR-IOV, a rate limit or QoS of the virtual function.",
            (
                "VF in the pod: a rate limit that the CNI plugin sets (`network.max_tx_rate`), CPUs of another NUMA"
                " node, too few CPUs (`pods.cpu`)."
            ),
            "GPU memory: the PCIe path between GPU and HCA, ACS, no GPUDirect RDMA.",
            "No step: others used the fabric or the node in the rounds, or the fault comes and goes (warn).",
        ),
        look=(
            "mlxlink -d ADDRESS -c -m",
            "ip -d link show dev PF",
            "kubectl get pod POD -n NAMESPACE -o yaml",
            "nvidia-smi topo -m",
        ),
        remedy=(
            "Do what the finding names for its step. `ip link set dev PF vf NUMBER max_tx_rate 0` takes a rate limit"
            " away; `pods.cpu` of the fabric gives the pods more CPUs; `bandwidth.layers: none` leaves the steps out."
        ),
    ),
    "bandwidth.link": Explanation(
        means=(
            "The network link or the PCIe link of an HCA runs below what both of its ends support. No pair over it can"
            " be right."
        ),
        measured="Active and possible speed and width of port (iblinkinfo, ethtool) and PCIe (sysfs).",
        causes=(
            "Cable or transceiver: bad, dirty, or of an older generation.",
            "The card is not seated well, or its riser is bad.",
            "The slot is smaller than the card (warn).",
            "MaxPayload is too low (warn).",
            "The card reports a PCIe maximum below that of its board, or below the rate of its port (warn).",
            "`line_rate.expected_gbps` is below what the link runs at, without a reason (unknown).",
        ),
        look=(
            "mlxlink -d ADDRESS",
            "lspci -vv -s ADDRESS",
            "ethtool DEVICE",
            "iblinkinfo",
        ),
        remedy=(
            "Seat or replace cable or card. If some links are meant to be slower, declare a fabric for each rate, or"
            " `line_rate.expected_gbps`."
        ),
    ),
    "bandwidth.measured": Explanation(
        means="There is no figure for a pair, and the finding names the known cause; or the figure is no measurement.",
        measured="Exit codes and output of perftest (or iperf3) at both ends, and whether its figure can be one.",
        causes=(
            "The tool ended with an error at one end: its text decides.",
            (
                "A completion status (`Failed status 4`): each number has a cause of its own, such as memory that the"
                " HCA can't access, or a lossy path."
            ),
            "The pod was evicted or killed in the middle.",
            "GIDs of the two ends do not fit (RoCE), or iWARP without `pods.connection: rdma_cm`.",
            "A hang: packets are dropped without an error, such as by a firewall on UDP 4791.",
            "A node has too few partners.",
        ),
        look=(
            "kubectl get events -n NAMESPACE",
            "kubectl describe pod POD -n NAMESPACE",
            "ibv_devinfo",
        ),
        remedy="Do what the finding names for this cause, and run the stage again.",
    ),
    "bandwidth.pod": Explanation(
        means="There is no pod to measure with on a node, or it lacks an address, a tool, or an RDMA device.",
        measured="The pod of each node and rail: its events, its network-status, its devices, and its tools.",
        causes=(
            "The node offers no free virtual function: other pods hold them.",
            "The image can't be pulled, or lacks a tool.",
            (
                "The network is not there, or is not what the intent makes, so it was not copied into the namespace"
                " `linerate-measure`."
            ),
            "A prepared namespace `linerate-measure` does not allow IPC_LOCK (pod security, SCC).",
            "A taint: `pods.tolerations`.",
            (
                "Two pods have one address, one virtual function or one HCA, or the HCA of a pod is not the one of its"
                " rail: the facts are of several runs, or were changed."
            ),
            "Its address is not of `ipam`, or is one that `exclude` or `gateway` of it keeps from pods.",
        ),
        look=(
            "kubectl describe pod POD -n NAMESPACE",
            "kubectl describe node NODE",
        ),
        remedy=(
            "Do what the finding names; for a free function end the pods that hold them, for IPC_LOCK label the"
            " prepared namespace `linerate-measure` `pod-security.kubernetes.io/enforce: privileged`."
        ),
    ),
    "bandwidth.rounds": Explanation(
        means=(
            "Not all pairs fit into the stage's time, so not everybody met everybody. A slow node is told all the same."
        ),
        measured="Rounds that were planned against all that there are, and the time of each.",
        causes=("A large fleet, or long measurements.",),
        look=("kubectl get nodes",),
        remedy=(
            "No action if that is enough. Else set `bandwidth.rounds` of the fabric to the number that the finding"
            " names."
        ),
    ),
    "bandwidth.routing": Explanation(
        means=(
            "The intent says how the switches route (`routing`), and the counters of their ports say otherwise. Which"
            " links a test used is then not known, so the link that `bandwidth.suspect` names may not be the one at"
            " fault."
        ),
        measured=(
            "Tests whose figures alone name no link, and two between leaves in any case, are measured once more, with"
            " the counters of both leaves' uplinks read before and after. Static routing sends all of a test over one"
            " uplink, the one of the forwarding tables; adaptive routing spreads it."
        ),
        causes=(
            (
                "The subnet manager routes adaptively, as NVIDIA's does unless somebody changed it (`ar_updn`), and the"
                " intent says `static`."
            ),
            (
                "The intent says `adaptive`, and the subnet manager does not route so, not on service level 0, or"
                " bounded to one port a burst."
            ),
            "The subnet manager computed new tables since stage fabric read them.",
            (
                "Ports have several LIDs (LMC above 0). Tests take the first; what takes others goes other ways, on"
                " which these links were not measured."
            ),
        ),
        look=(
            "perfquery -x LID PORT",
            "ibnetdiscover",
            "ibtracert SOURCE_LID DESTINATION_LID",
        ),
        remedy=(
            "See `routing_engine` and `ar_mode` in opensm.conf, or UFM, and say it in `routing` of the fabric. Then run"
            " the stages fabric and bandwidth again, in one run."
        ),
    ),
    "bandwidth.rping": Explanation(
        means="A pair can't do RDMA at all, or lost round trips. rping is tried before anything is measured.",
        measured="rping between two pods: round trips and exit code.",
        causes=(
            "The address is not on the virtual function, so the RDMA CM finds no device (ADDR_ERROR).",
            "The virtual function's link is down, or has no GUID.",
            "Packets are dropped on the way in silence: UDP 4791 in a firewall.",
            "The pod may not open the RDMA device.",
        ),
        look=(
            "rdma link",
            "ip addr",
            "rping -s -v",
            "show_gids",
        ),
        remedy=(
            "Compare `ip addr` and `rdma link` in both pods. On InfiniBand set `network.link_state: enable`; on RoCE"
            " let UDP port 4791 through."
        ),
    ),
    "bandwidth.suspect": Explanation(
        means=(
            "What failing pairs have in common: the node, the HCA, the leaf or the way that explains them; or the link"
            " that is slow."
        ),
        measured=(
            "Which measurements passed and failed, and what each depends on; where rounds use each link, the links on"
            " the way of each test. Where these name no link, the slowest tests are measured once more, with the"
            " counters of the ports in question read before and after."
        ),
        causes=(
            "The end or the link that is named.",
            "Several that the pairs can't tell apart: with two nodes nobody can say which.",
            (
                "A link between two leaves, where switches may choose the way: the intent says `routing: static` where"
                " they don't."
            ),
            "Ethernet: one of the links between two leaves. The switches alone know which of them a flow takes.",
            "A cause that comes and goes: then nothing is common.",
            (
                "A node that is left out of the later rounds: its pairs with three others held up the rounds and"
                " failed, and these others passed elsewhere."
            ),
        ),
        look=(
            "ibqueryerrors",
            "ethtool -S DEVICE",
            "mlxlink -d ADDRESS -c -m",
            "lspci -vv -s ADDRESS",
        ),
        remedy=(
            "Look at what is named: PCIe speed and width, link width and speed, error counters, MTU, the virtual"
            " function's state. Measure with a further node where two can't be told apart."
        ),
    ),
    "bandwidth.sweep": Explanation(
        means=(
            "The measurement over all message sizes failed, though the one of a single size worked. The report lacks"
            " its curve."
        ),
        measured="perftest with `-a` between the same two pods.",
        causes=(
            "It took longer than `pods.limit_seconds`.",
            "The pod ended in the middle.",
        ),
        look=("ib_write_bw -a -d mlx5_0 --report_gbits",),
        remedy="Raise `pods.limit_seconds`, or leave the sweep out (`bandwidth.sweep: false`).",
    ),
    "bandwidth.trend": Explanation(
        means=(
            "A pair is slower than it was itself in the runs that are kept. It is above its floor still; a link that"
            " gets worse shows here long before the floor does."
        ),
        measured=(
            "The figure of each pair with RDMA, against its median in the kept runs with the same `rdma_fabrics`, if"
            " three or more have one: more than 3 % less is a warning. A kept run that cannot be read is named, and not"
            " counted."
        ),
        causes=(
            "A cable or transceiver that ages or got dirty, or a link that retrains.",
            "Something else used the fabric or the node during this run.",
            "Firmware, driver, BIOS or tuning changed since.",
            "A file of a kept run was cut off or changed.",
        ),
        look=(
            "ibqueryerrors",
            "mlxlink -d ADDRESS -c -m",
            "ansible-playbook linerate.rdma.difference",
        ),
        remedy=(
            "Run stage bandwidth again while the fabric is idle. If the pair stays slower, look at the error counters"
            " and the temperature of its links, and see what changed (`linerate.rdma.difference`)."
        ),
    ),
}
