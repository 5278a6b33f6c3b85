# SPDX-License-Identifier: GPL-3.0-or-later

"""Explanations of the findings of stage bandwidth, for the pages that the report links to. Check ids:
``bandwidth.*``.
"""

from __future__ import annotations

from .explanation import Explanation

EXPLAINED: dict[str, Explanation] = {
    "bandwidth.cleanup": Explanation(
        means=(
            "Measuring pods still exist, or an earlier run left measuring pods. These pods hold virtual functions that"
            " jobs need."
        ),
        measured="The pods with the label of the measurement, before and after the stage.",
        causes=(
            "An earlier run was interrupted, so the next run removed its pods (warn).",
            "A pod stays in Terminating: its node is lost, or a finalizer blocks the deletion.",
        ),
        look=("kubectl get pods -A -l app.kubernetes.io/managed-by=linerate.rdma",),
        remedy="Delete the pods by hand (`kubectl delete pod`). If a pod stays in Terminating, read its events.",
    ),
    "bandwidth.coverage": Explanation(
        means=(
            "The links that the tests used, if the rounds are planned to use each link. The state of a link that no"
            " test used is unknown."
        ),
        measured=(
            "The path of each test with a figure, from the forwarding tables, compared with all links that these nodes"
            " can use, each in both directions."
        ),
        causes=(
            "A node has no pod, or its tests gave no figure: its cable was not tested.",
            "The forwarding table of a switch could not be read completely.",
            (
                "Ethernet: LLDP shows no switch or several switches for a port, so the links that this port shares with"
                " other ports are unknown. The port was measured nevertheless (warn)."
            ),
            (
                "Ethernet: no test ran between two leaves, because it gave no figure or because there are too many"
                " leaves for a test of each pair of them. A missing path between these leaves is not noticed (warn)."
            ),
        ),
        look=("ibqueryerrors", "iblinkinfo", "tcpdump -e -nn -i DEVICE ether proto 0x88cc"),
        remedy=(
            "See the findings `bandwidth.measured` and `bandwidth.pod` of the nodes at these links, or enable LLDP on"
            " the ports of the leaves, then run stage bandwidth again."
        ),
    ),
    "bandwidth.errors": Explanation(
        means=(
            "RoCE: an HCA counted lost, damaged or repeated packets while a pair was measured, or its error counters"
            " are unknown."
        ),
        measured=(
            "`counters` and `hw_counters` of the RDMA device in each pod (sysfs), before and after the measurement of"
            " each pair. If the run has observers, also those of its physical function, with the errors, drops and"
            " pauses of its network interface (`ethtool -S`). An increase of link_downed, carrier_down_count,"
            " excessive_buffer_overrun_errors, local_link_integrity_errors or rnr_nak_retry_err fails. An increase of"
            " another error counter gives a warning. PFC pauses, CNP, ECN and packets out of order are reported beside"
            " a passed finding, because a network without loss has them too."
        ),
        causes=(
            "Packets are lost and sent again (packet_seq_err, local_ack_timeout_err): PFC or ECN is not configured.",
            "The port or a switch drops packets (rx_discards_phy, rx_roce_discards, ip4InDiscards).",
            "A bad cable or transceiver (rx_crc_errors_phy, rx_fcs_err_frames, rx_crc_errors).",
            "The driver shows no error counters to the pod, or a pod or an observer did not respond (unknown).",
        ),
        look=("rdma statistic show", "ethtool -S DEVICE | grep -E 'discard|pause|crc'", "mlnx_qos -i DEVICE"),
        remedy=(
            "Check PFC and ECN on the NIC and on the switch, and the cable. Then run stage bandwidth again. A counter"
            " that rises again names the side: discards of the receiver, timeouts of the sender."
        ),
    ),
    "bandwidth.fleet": Explanation(
        means=(
            "A pair is slower than other pairs of its rail whose links support the same rate. One of its ends, or the"
            " path between them, is at fault."
        ),
        measured=(
            "The average of the pair, compared with `line_rate.fleet_fraction` of the best pair of the same rail and"
            " kind, or of the best pair between rails."
        ),
        causes=(
            "CPUs on another NUMA node, a slower PCIe link, or ACS at one end.",
            "Congestion on one path between two leaves.",
            "Errors on a link: each retransmission costs bandwidth.",
            "TCP: busy CPUs (warn).",
            (
                "TCP: all pairs are below 5 Gb/s and below 5 % of the rate of their links, because of offloads, a rate"
                " limit, or a slow part that they share (warn)."
            ),
            (
                "Too few queue pairs to fill the link: with more queue pairs the pair is as fast as the other pairs"
                " (warn; unknown if other pairs are fast with as few queue pairs)."
            ),
        ),
        look=(
            "ibqueryerrors",
            "lspci -vv -s ADDRESS",
            "numactl --hardware",
        ),
        remedy=(
            "See the finding `bandwidth.suspect` for the end at fault, then the findings `bandwidth.link` and"
            " `fabric.errors_growing` of that end."
        ),
    ),
    "bandwidth.floor": Explanation(
        means=(
            "A pair is slower than its links allow. The floor is computed from the rate that the links support, never"
            " from the rate to which they trained down."
        ),
        measured=(
            "The average of perftest between two pods, compared with `line_rate.fraction` of the slowest rate that port"
            " and PCIe link support at both ends. An RDMA pair below the floor is measured again with more queue pairs"
            " and larger messages."
        ),
        causes=(
            "A network link or PCIe link that trained down: see the finding `bandwidth.link`.",
            (
                "CPUs on another NUMA node than the HCA (the finding names them); ACS, or small PCIe reads"
                " (`tuning.pci`)."
            ),
            "A rate limit that the physical function sets for the sender's VF (the finding names it).",
            "Errors on a link, or congestion by other tenants.",
            (
                "Too few queue pairs to fill the link: the pair reaches its floor with more queue pairs, and no pair"
                " reaches its floor with as few queue pairs (warn)."
            ),
            (
                "An intermittent cause: the pair reaches its floor with more queue pairs, but other pairs reach it with"
                " as few queue pairs, so the cause could not be verified (unknown)."
            ),
            "MTU 1500 instead of 9000, or PFC on only one side (RoCE).",
            (
                "RoCE packets of 1024 bytes: without a larger `mtu` in the intent, the floor is at most 0.97 of what"
                " their headers leave of the link."
            ),
            "The floor is too high for the hardware (unknown if the rate of the links is not reported).",
        ),
        look=(
            "ib_write_bw -d mlx5_0 --report_gbits -D 10",
            "mlxlink -d ADDRESS",
            "ip link show DEVICE",
            "ibqueryerrors",
        ),
        remedy=(
            "If the finding names a cause, follow its remedy. Otherwise see the finding `bandwidth.suspect` for the end"
            " at fault. At that end, check PCIe, NUMA node, MTU and error counters. If the rate of the links is not"
            " reported, set `line_rate.expected_gbps`."
        ),
    ),
    "bandwidth.latency": Explanation(
        means=(
            "Small messages between two pods take longer than between other pods, or longer than the intent allows."
            " Jobs with many small messages wait for the slowest pair."
        ),
        measured=(
            "`ib_write_lat` with 10,000 messages of 8 bytes, after all rounds. Each port is in at least one pair. The"
            " median of a pair is compared with `latency_ratio` (1.5) times the median of the pairs, and with"
            " `most_latency_us`. p99 is shown, but not compared with these limits."
        ),
        causes=(
            "Idle states or the frequency governor of the CPUs.",
            "The pod runs on CPUs on another NUMA node than the HCA.",
            "There are more switches between these nodes than between the nodes of other pairs.",
            "Other traffic fills a queue on the path.",
            "The image has no ib_write_lat (unknown).",
        ),
        look=("ib_write_lat -d mlx5_0 -s 8 -F", "cpupower idle-info", "cpupower frequency-info"),
        remedy=(
            "Compare the findings of stage tuning of both nodes with those of two fast nodes, and compare the paths of"
            " the pairs."
        ),
    ),
    "bandwidth.packets": Explanation(
        means=(
            "The measured queue pairs send smaller packets than the MTU of the fabric allows, use RoCE v1, or are in"
            " another traffic class than `roce` of the fabric says. The figures then apply to other packets than those"
            " of the jobs."
        ),
        measured=(
            "`Mtu` and `GID index`, as `ib_write_bw` reports them for its own run, compared with `mtu` of the fabric,"
            " and with RoCE v2 if the fabric has `roce`. With rdma_cm the GID index is not checked, because rdma_cm"
            " selects a different GID index. On a fabric with `roce`, whether `ib_write_bw` in both pods can set the"
            " traffic class (`--tclass`, with rdma_cm `--tos`)."
        ),
        causes=(
            "The NetworkAttachmentDefinition does not set the MTU of the interface in the pod.",
            "The VF, the port or the other end has a smaller MTU than the fabric.",
            "The interface in the pod has no address, so its RDMA device has no GID of RoCE v2.",
            "perftest in the image is too old to set the traffic class.",
            "perftest in the image does not report these values, or the image has a script in place of perftest.",
            (
                "The intent sets no `mtu`, and the usual MTU of 1500 leaves packets of 1024 bytes on RoCE: their"
                " headers take up to 9 % of the link, and the floor of the pairs is lower (warn)."
            ),
        ),
        look=("ip link show DEVICE", "ibv_devinfo -d mlx5_0", "show_gids"),
        remedy=(
            "Set `mtu` of the network, so that the NetworkAttachmentDefinition sets it. Compare the MTU in the pod with"
            " the MTU of the VF on its node. Give the interface in the pod an address (`ipam`)."
        ),
    ),
    "bandwidth.layer": Explanation(
        means=(
            "The step at which a pair loses bandwidth, from the cable up to the pod. If a step could not be measured,"
            " the finding gives the reason, and names the layers before and after this step together."
        ),
        measured=(
            "The same pair with `ib_write_bw`: between the physical functions on the hosts, between free virtual"
            " functions on the hosts, between the pods, and from GPU memory if the pod has a GPU. The first step is"
            " compared with the floor of the pair, each later step with the step before it: less than 0.9 of that step"
            " is a loss. On the hosts, the observers run the measurement."
        ),
        causes=(
            "PF on the host: the cable, the fabric, the HCA or its slot.",
            "VF on the host: SR-IOV, a rate limit or QoS of the virtual function.",
            (
                "VF in the pod: a rate limit that the CNI plugin sets (`network.max_tx_rate`), CPUs on another NUMA"
                " node, or too few CPUs (`pods.cpu`)."
            ),
            "GPU memory: the PCIe path between GPU and HCA, ACS, or no GPUDirect RDMA.",
            "No step: other jobs used the fabric or the node during the rounds, or the fault is intermittent (warn).",
        ),
        look=(
            "mlxlink -d ADDRESS -c -m",
            "ip -d link show dev PF",
            "kubectl get pod POD -n NAMESPACE -o yaml",
            "nvidia-smi topo -m",
        ),
        remedy=(
            "Follow the remedy that the finding names for its step. `ip link set dev PF vf NUMBER max_tx_rate 0`"
            " removes a rate limit. `pods.cpu` of the fabric gives the pods more CPUs. `bandwidth.layers: none`"
            " disables the measurement of the steps."
        ),
    ),
    "bandwidth.link": Explanation(
        means=(
            "The network link or the PCIe link of an HCA runs below the rate that both of its ends support. Pairs that"
            " use this link cannot reach their full rate."
        ),
        measured=(
            "Active and supported speed and width of the port (iblinkinfo, ethtool) and of the PCIe link (sysfs). For a"
            " bond, those of each function of the bond."
        ),
        causes=(
            "The cable or transceiver is bad, dirty, or of an older generation.",
            "The card is not seated correctly, or its riser is faulty.",
            "The slot is smaller than the card (warn).",
            "MaxPayload is too low (warn).",
            "The card reports a PCIe maximum below the maximum of its board, or below the rate of its port (warn).",
            "`line_rate.expected_gbps` is below the rate of the link, and the intent gives no reason (unknown).",
            (
                "The port of the Ethernet switch offers less than the ports of the same kind on other nodes run at"
                " (unknown), or less than the card supports (warn, without `line_rate.expected_gbps`)."
            ),
        ),
        look=(
            "mlxlink -d ADDRESS",
            "lspci -vv -s ADDRESS",
            "ethtool DEVICE",
            "iblinkinfo",
        ),
        remedy=(
            "Reseat or replace the cable or the card. If some links are slower by design, declare a fabric for each"
            " rate, or set `line_rate.expected_gbps`."
        ),
    ),
    "bandwidth.measured": Explanation(
        means="A pair has no figure, and the finding names the known cause; or its figure is not a valid measurement.",
        measured="Exit codes and output of perftest (or iperf3) at both ends, and whether the figure is valid.",
        causes=(
            "The tool ended with an error at one end: its error message names the cause.",
            (
                "A completion status (`Failed status 4`): each number has its own cause, such as memory that the HCA"
                " cannot access, or a lossy path."
            ),
            "The pod was evicted or killed during the measurement.",
            "The GIDs of the two ends do not match (RoCE), or iWARP is used without `pods.connection: rdma_cm`.",
            "A hang: packets are dropped without an error, for example by a firewall on UDP port 4791.",
            "A node was measured with too few partners.",
            (
                "An HCA was measured with slower HCAs alone, so its own rate is not proven (unknown; warn if its rail"
                " has no other HCA of its rate, or if the rounds were planned to use each link)."
            ),
            "TCP: the pair has a figure after earlier attempts did not reach the server (warn).",
        ),
        look=(
            "kubectl get events -n NAMESPACE",
            "kubectl describe pod POD -n NAMESPACE",
            "ibv_devinfo",
        ),
        remedy="Follow the remedy of the finding for this cause, then run stage bandwidth again.",
    ),
    "bandwidth.pod": Explanation(
        means="A node has no measuring pod, or the pod lacks an address, a tool, or an RDMA device.",
        measured=(
            "The pod of each node and rail: its events, its network-status annotation, its devices, and its tools."
        ),
        causes=(
            "The node has no free virtual function: other pods hold all of them.",
            "The image cannot be pulled, or lacks a tool.",
            (
                "The network does not exist, or differs from the network of the intent, so it was not copied into the"
                " namespace `linerate-measure`."
            ),
            "A prepared namespace `linerate-measure` does not allow IPC_LOCK (pod security, SCC).",
            "A taint of the node that `pods.tolerations` does not tolerate.",
            (
                "Two pods have the same address, virtual function or HCA, or the HCA of a pod is not the HCA of its"
                " rail: the facts come from several runs, or were changed."
            ),
            "The address of the pod is outside the range of `ipam`, or `exclude` or `gateway` of `ipam` reserves it.",
        ),
        look=(
            "kubectl describe pod POD -n NAMESPACE",
            "kubectl describe node NODE",
        ),
        remedy=(
            "Follow the remedy of the finding. To free a virtual function, end the pods that hold the virtual"
            " functions. To allow IPC_LOCK, set the label `pod-security.kubernetes.io/enforce: privileged` on the"
            " prepared namespace `linerate-measure`."
        ),
    ),
    "bandwidth.rounds": Explanation(
        means=(
            "Not all pairs fit into the time of the stage, so not every node was measured with every other node. The"
            " stage reveals a slow node nevertheless. Or an HCA only sent or only received, because the intent asks for"
            " one direction of each pair."
        ),
        measured=(
            "The number of planned rounds, compared with the number of all rounds, and the time of each. With"
            " `directions: one`, the roles of each HCA in the measured pairs."
        ),
        causes=(
            "The fleet is large, or the measurements take long.",
            "`directions: one` with two nodes, or with one or two rounds: the other direction is not measured.",
        ),
        look=("kubectl get nodes",),
        remedy=(
            "No action is required if this is sufficient. Otherwise set `bandwidth.rounds` of the fabric to the number"
            " that the finding names, or set `directions: both` there, then run stage bandwidth again."
        ),
    ),
    "bandwidth.rails": Explanation(
        means=(
            "A NIC of a node is not on the leaf of its rail. The traffic of this rail takes the path over the spines,"
            " where it meets other flows."
        ),
        measured=(
            "The leaf of each port of a RoCE fabric, by LLDP, compared among nodes of the same model that share leaves."
        ),
        causes=(
            "Two cables of a node are swapped, or a cable is on another leaf.",
            "The fabric is not built in rails, and the intent does not say `rails: none`.",
            "The intent has `rails: leaf`, and the leaves or the firmware of the NICs keep LLDP back (unknown).",
        ),
        look=("tcpdump -e -nn -i DEVICE ether proto 0x88cc",),
        remedy=(
            "Move the cables that the finding names. If the fabric has no rails, set `rails: none` in the intent. If it"
            " has, set `rails: leaf`. Then run stage bandwidth again."
        ),
    ),
    "bandwidth.routing": Explanation(
        means=(
            "The intent sets how the switches route (`routing`), but the counters of their ports contradict it. The"
            " links that a test used are then unknown, so the link that `bandwidth.suspect` names may not be the link"
            " at fault."
        ),
        measured=(
            "Tests whose figures alone do not identify a link, and always two tests between leaves, are repeated, and"
            " the counters of both leaves' uplinks are read before and after. Static routing sends all data of a test"
            " over one uplink, the uplink in the forwarding tables. Adaptive routing spreads the data over several"
            " uplinks."
        ),
        causes=(
            (
                "The subnet manager routes adaptively, but the intent sets `static`. NVIDIA's subnet manager routes"
                " adaptively by default (`ar_updn`)."
            ),
            (
                "The intent sets `adaptive`, but the subnet manager does not route adaptively, or not on service level"
                " 0, or keeps each burst on one port."
            ),
            "The subnet manager computed new forwarding tables after stage fabric read them.",
            (
                "Ports have several LIDs (LMC above 0). The tests use the first LID. Programs that use other LIDs use"
                " other paths, on which these links were not measured."
            ),
        ),
        look=(
            "perfquery -x LID PORT",
            "ibnetdiscover",
            "ibtracert SOURCE_LID DESTINATION_LID",
        ),
        remedy=(
            "Check `routing_engine` and `ar_mode` in opensm.conf, or UFM, and set `routing` of the fabric accordingly."
            " Then run stages fabric and bandwidth again in one run."
        ),
    ),
    "bandwidth.rping": Explanation(
        means="A pair cannot use RDMA at all, or lost round trips. rping runs before any measurement.",
        measured="rping between two pods: the number of round trips and the exit code.",
        causes=(
            "The address is not on the virtual function, so the RDMA connection manager finds no device (ADDR_ERROR).",
            "The link of the virtual function is down, or the virtual function has no GUID.",
            "Packets are dropped on the path without an error, for example by a firewall on UDP port 4791.",
            "The pod is not allowed to open the RDMA device.",
            (
                "The pair passed after earlier attempts were disconnected or did not resolve the address (warn): a link"
                " that goes down and up, an outdated entry of ARP or EVPN, a subnet manager that answers late."
            ),
        ),
        look=(
            "rdma link",
            "ip addr",
            "ip neigh",
            "rping -s -v",
            "show_gids",
        ),
        remedy=(
            "Compare the output of `ip addr` and `rdma link` in both pods. On InfiniBand set `network.link_state:"
            " enable`. On RoCE allow UDP port 4791 in the firewalls."
        ),
    ),
    "bandwidth.suspect": Explanation(
        means=(
            "The component that failed pairs have in common and that explains them: a node, an HCA, a leaf or a path;"
            " or the link that is slow."
        ),
        measured=(
            "The measurements that passed and failed, and the components that each of them uses; if the rounds use each"
            " link, the links on the path of each test. If these do not identify a link, the slowest tests are"
            " repeated, and the counters of the ports in question are read before and after."
        ),
        causes=(
            "The end or the link that the finding names is at fault.",
            "Several components that the pairs cannot distinguish: with only two nodes, the node at fault is unknown.",
            (
                "A link between two leaves, if the switches may choose the path. If they do not, set `routing: static`"
                " in the intent."
            ),
            "Ethernet: one of the links between two leaves. Only the switches know which of these links a flow uses.",
            "An intermittent cause: the failed pairs then have no component in common.",
            (
                "A node that is left out of the later rounds: its pairs with three other nodes delayed the rounds and"
                " failed, and these other nodes passed in other pairs."
            ),
        ),
        look=(
            "ibqueryerrors",
            "ethtool -S DEVICE",
            "mlxlink -d ADDRESS -c -m",
            "lspci -vv -s ADDRESS",
        ),
        remedy=(
            "Check the component that the finding names: PCIe speed and width, link width and speed, error counters,"
            " MTU, and the state of the virtual function. If two components cannot be distinguished, measure with an"
            " additional node."
        ),
    ),
    "bandwidth.sweep": Explanation(
        means=(
            "The measurement of all message sizes failed, although the measurement of a single size worked. The report"
            " lacks the curve of the pair."
        ),
        measured="perftest with `-a` between the same two pods.",
        causes=(
            "The measurement took longer than `pods.limit_seconds`.",
            "The pod ended during the measurement.",
        ),
        look=("ib_write_bw -a -d mlx5_0 --report_gbits",),
        remedy="Raise `pods.limit_seconds`, or disable the sweep (`bandwidth.sweep: false`).",
    ),
    "bandwidth.trend": Explanation(
        means=(
            "A pair is slower than in the kept runs. It is still above its floor, but a link that degrades is visible"
            " here long before it falls below the floor."
        ),
        measured=(
            "The figure of each RDMA pair, compared with its median in the kept runs with the same `rdma_fabrics`, if"
            " at least three runs have a figure: more than 3 % less is a warning. A kept run that cannot be read is"
            " named and ignored."
        ),
        causes=(
            "A cable or transceiver that degrades or is dirty, or a link that retrains.",
            "Other jobs used the fabric or the node during this run.",
            "Firmware, driver, BIOS or tuning changed since the kept runs.",
            "A file of a kept run was truncated or changed.",
        ),
        look=(
            "ibqueryerrors",
            "mlxlink -d ADDRESS -c -m",
            "ansible-playbook linerate.rdma.difference",
        ),
        remedy=(
            "Run stage bandwidth again while the fabric is idle. If the pair stays slower, check the error counters and"
            " the temperature of its links, and compare the runs (`ansible-playbook linerate.rdma.difference`)."
        ),
    ),
}
