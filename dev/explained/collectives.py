# SPDX-License-Identifier: GPL-3.0-or-later

"""Explanations of the findings of stage collectives, for the pages that the report links to. Check ids:
``collectives.*``.
"""

from __future__ import annotations

from .explanation import Explanation

_POD = "kubectl get pods -n linerate-measure -o wide"
_TOPO = "nvidia-smi topo -m"
_LOGS = "kubectl get pod POD -n NAMESPACE -o yaml"
_PROOF = "NCCL's log of each rank of the same run."

EXPLAINED: dict[str, Explanation] = {
    "collectives.bandwidth": Explanation(
        means=(
            "A collective is slower than the measured rails allow, or it has no valid bandwidth. A job on these nodes"
            " reaches no more than this bandwidth."
        ),
        measured=(
            "The bus bandwidth of the fastest message of at least 1 GiB, or that of a larger message which is below"
            " 0.85 of it, compared with a share of the bandwidth that the slowest rail allows, or with"
            " `expected_busbw`."
        ),
        causes=(
            "One of the findings `collectives.cause`.",
            "The bandwidth does not last: larger messages meet congestion, or a device throttles under load.",
            "The transport of the test could not be verified, so its bandwidth does not count (unknown).",
            "Stage `bandwidth` did not measure each rail, so there is no floor (unknown).",
            "The bandwidth is higher than the links allow, because a part of the data took another path (unknown).",
            "No group gave a bandwidth to which an entry of `expected_busbw` applies (unknown).",
            (
                "On RoCE, the bandwidth reaches its floor, and the test did not use the traffic class of the fabric"
                " (warn). The image sets NCCL_IB_TC, or its network plugin ignores the variable."
            ),
            (
                "The inside of the nodes is slower than the rails, and the floor is computed from the inside (warn)."
                " nvidia-fabricmanager does not run, ACS or NCCL_P2P_LEVEL slows the path, or the GPUs have no NVLink."
            ),
        ),
        look=(_LOGS, _TOPO),
        remedy=(
            "Begin with the findings of the smallest group that fails. docs/collectives.md explains how the floor is"
            " computed."
        ),
    ),
    "collectives.cause": Explanation(
        means=(
            "This setting or component may slow down a collective although its links are fast. It is a possible cause,"
            " not a confirmed one."
        ),
        measured="NCCL's log, the HCAs of the pods, the tuning of the nodes, and the rates of the rails.",
        causes=(
            "GPUDirect RDMA is off, or it uses an HCA far from the GPU.",
            "Channels or rails are unused, or the load on them is uneven.",
            "ACS is on, a GPU is throttled, or one rail is slow. All rails wait for the slowest rail.",
            "On RoCE, the GID, the MTU or the traffic class is wrong, or each connection has only one queue pair.",
            "A setting overrides NCCL's own choice.",
        ),
        look=(_TOPO, "nvidia-smi -q -d PERFORMANCE,CLOCK,ECC", "lspci -vvv"),
        remedy=(
            "See the finding `collectives.repeat`, for which the stage repeats the test with one change at a time. Or"
            " change one setting, then run stage collectives again."
        ),
    ),
    "collectives.channels": Explanation(
        means=(
            "The log does not contain every channel of a rank. The transport of the missing channels could not be"
            " verified, so the bandwidth does not count."
        ),
        measured=_PROOF,
        causes=(
            "The log of a rank could not be read, or it was cut off.",
            "NCCL used only NVLS, which connects no ring.",
            "Each rank is alone in its communicator.",
        ),
        look=(_LOGS,),
        remedy="Run stage collectives again. If a pod was lost during the test, see the finding `collectives.started`.",
    ),
    "collectives.cleanup": Explanation(
        means="Pods of the stage still exist, or an earlier run left pods. Such a pod holds the GPUs of its node.",
        measured="The pods in namespace `linerate-measure` after the stage.",
        causes=("The kubelet of a node that was lost did not end its pod.", "An earlier run was killed (warn)."),
        look=(_POD,),
        remedy="Delete the pod: `kubectl -n linerate-measure delete pod POD`. The next run also deletes it.",
    ),
    "collectives.figures": Explanation(
        means=(
            "The results are not those of a complete and correct run. If values are wrong, the bandwidth does not"
            " count, and training jobs can compute wrong results without an error."
        ),
        measured="The output of nccl-tests: rows, `#wrong`, errors, last line.",
        causes=(
            "A GPU, an HCA, a cable or a library corrupts data (`#wrong` is not 0).",
            "With a setting for chunks or buffers, NCCL writes beyond the end of a buffer.",
            "The run was cut off (unknown).",
        ),
        look=("dmesg", "nvidia-smi -q -d PERFORMANCE,CLOCK,ECC", _LOGS),
        remedy=(
            "Check Xid and ECC errors of the nodes and the error counters of the links. Then run stage collectives"
            " again without NCCL settings in the image."
        ),
    ),
    "collectives.gpu_direct": Explanation(
        means=(
            "Channels over RDMA do not use GPUDirect, although the intent requires it. Their data passes through host"
            " memory."
        ),
        measured=_PROOF,
        causes=(
            "Neither nvidia-peermem nor DMA-BUF works (finding `host.gpudirect`).",
            "The HCA is too far from the GPU.",
            "ACS is on between the GPU and the HCA.",
            "On GH200 and GB200, NCCL does not use it by itself, depending on its release (NCCL_NET_GDR_C2C).",
        ),
        look=(_TOPO, "lsmod"),
        remedy=(
            "Load nvidia_peermem on the node, or use the open GPU driver. If GPUDirect is not required, set"
            " `gpu_direct: false` in `rdma_cluster.collectives`. Then run stage collectives again."
        ),
    ),
    "collectives.groups": Explanation(
        means=(
            "The log has a different number of communicators than the test has groups. This collection cannot determine"
            " to which group the bandwidth belongs."
        ),
        measured="The number of communicators in NCCL's log, compared with `NCCL_TESTS_SPLIT`.",
        causes=(
            "The log of some ranks is missing.",
            "nccl-tests is too old for `NCCL_TESTS_SPLIT`.",
            "The image sets environment variables of nccl-tests.",
        ),
        look=(_LOGS,),
        remedy="Use nccl-tests 2.13.9 or newer, built with MPI=1, in the image. Then run stage collectives again.",
    ),
    "collectives.inside": Explanation(
        means=(
            "The GPUs of this node exchange data more slowly than those of the other nodes. The test does not use the"
            " network."
        ),
        measured=(
            "The bus bandwidth of the same collective on each node alone, compared with 0.93 x the median of at least"
            " three nodes."
        ),
        causes=(
            "An NVLink is down.",
            "A GPU is throttled.",
            "The topology of the node differs from that of the other nodes.",
        ),
        look=("nvidia-smi nvlink -s", "nvidia-smi -q -d PERFORMANCE,CLOCK,ECC", _TOPO),
        remedy=(
            "Compare the node with a comparable node: run the commands on both nodes. Correct the cause, then run stage"
            " collectives again."
        ),
    ),
    "collectives.latency": Explanation(
        means=(
            "Small messages between two nodes take longer than between the other pairs, or longer than the intent"
            " allows. A job that synchronizes often waits for its slowest pair."
        ),
        measured=(
            "The mean of 1,000 all_reduces of 8 bytes on the slowest rail of the pair, compared with `latency_ratio`"
            " (1.5) x the median of the pairs, and with `most_latency_us`. The finding also shows p99. A p99 of more"
            " than 10 x the mean, or below the mean, gives a warning."
        ),
        causes=(
            "Idle states or the governor of the CPUs.",
            "There are more switches between these nodes than between the nodes of other pairs.",
            "Other traffic fills a queue on the path.",
            "The version of nccl-tests has no option -I (unknown).",
        ),
        look=(_TOPO, _LOGS),
        remedy=(
            "Compare stage tuning of this pair with that of another pair, and measure ib_write_lat between its pods."
        ),
    ),
    "collectives.log": Explanation(
        means=(
            "There is no NCCL log to evaluate, the log is cut off, or it has more ranks than the nodes of its test can"
            " have."
        ),
        measured=(
            "The lines of NCCL in the log of each rank, and the number of ranks, hosts and channels in the log of each"
            " test."
        ),
        causes=(
            "The program does not use NCCL, or it ended before its first line in the log.",
            "The log could not be read from the pod.",
            "A program other than NCCL wrote the log, or a folder of facts was created manually.",
        ),
        look=(_LOGS,),
        remedy="See the finding `collectives.started`, and the output of the program.",
    ),
    "collectives.network": Explanation(
        means=(
            "According to the log, not every channel leaves each node over the network. The bandwidth is then not that"
            " of the network."
        ),
        measured="The connections of each channel on each node.",
        causes=("The log is not complete.", "NVLink between nodes carries a part of the data."),
        look=(_LOGS,),
        remedy="Check whether the image sets environment variables of NCCL, then run stage collectives again.",
    ),
    "collectives.nodes": Explanation(
        means="A communicator has a different number of nodes than the group of the test.",
        measured="`nNodes` of each rank, and the hosts in the log.",
        causes=("The image sets NCCL_HOSTID.", "mpirun placed the ranks on other nodes than requested."),
        look=(_LOGS,),
        remedy="Remove NCCL_HOSTID from the image, then run stage collectives again.",
    ),
    "collectives.pod": Explanation(
        means="A node has no pod that can run collectives, so its performance could not be verified.",
        measured="The pod of each node, with its HCAs and their rails.",
        causes=(
            "Jobs still run, so the node has fewer free GPUs or functions than the pod requests.",
            "The node cannot pull the image.",
            "The pod got two functions of one rail, and no function of another rail.",
        ),
        look=(_POD, "kubectl describe node NODE"),
        remedy="Run stage collectives before jobs start. Give each pod one function of each rail.",
    ),
    "collectives.problem": Explanation(
        means="NCCL reported a problem during the test, so its bandwidth is doubtful.",
        measured="The warnings and errors in NCCL's log.",
        causes=("The finding quotes the message of NCCL.",),
        look=(_LOGS,),
        remedy="Check the stage that the finding names, correct the cause, then run stage collectives again.",
    ),
    "collectives.rails": Explanation(
        means="No channel of the test uses this rail, so a job cannot use the full bandwidth of the node.",
        measured="The HCAs of the channels in NCCL's log, with their rails.",
        causes=(
            "A port is down in the pod.",
            "No GPU of the test is near the HCA.",
            "NCCL_IB_HCA in the image excludes the HCA.",
        ),
        look=("ibv_devinfo", _TOPO),
        remedy=(
            "Check that NCCL_IB_HCA in the image does not exclude the HCA, that its port is active, and that"
            " rdma_cluster.collectives.gpus_per_node is at least the number of rails. Then run stage collectives again."
        ),
    ),
    "collectives.ranks": Explanation(
        means="Ranks of the test are missing in the log, or they did not complete.",
        measured="The ranks that nccl-tests lists, and the ranks in NCCL's log.",
        causes=("A rank crashed, or its log could not be read.", "A node has fewer GPUs than `gpus_per_node`."),
        look=("nvidia-smi -L", _POD),
        remedy=(
            "Check the output of the program, and dmesg of the node. Correct the cause, then run stage collectives"
            " again."
        ),
    ),
    "collectives.repeat": Explanation(
        means=(
            "The stage repeated the smallest slow group with one change at a time. A change that increases the"
            " bandwidth shows the cause. Or a group did not pass, ran again without a change, and passed, so the"
            " problem may recur."
        ),
        measured=(
            "The bus bandwidth of the repeat, compared with that of the group without the change. An increase of at"
            " least 10 % counts, if NCCL's log shows the change and verifies the transport."
        ),
        causes=(
            "The change that the finding names increases the bandwidth (warn).",
            "The bandwidth of the group varies by at least 10 % without a change, or its first run failed (unknown).",
            "The group did not pass at first, and its bandwidth varies by less than 10 % without a change (warn).",
            "The transport of the repeat could not be verified, or the log does not show the change (unknown).",
        ),
        look=(_LOGS, _TOPO),
        remedy="Make the change that the finding names in the image and in the jobs, then run stage collectives again.",
    ),
    "collectives.soak": Explanation(
        means=(
            "An HCA counted errors while the largest verified group ran for `soak_minutes`, or its error counters are"
            " unknown."
        ),
        measured=(
            "`counters` and `hw_counters` of each RDMA device in its pod and of its physical function (sysfs), before"
            " and after the soak; for an Ethernet port also the link errors of its network interface. An increase of"
            " link_downed, carrier_down_count, excessive_buffer_overrun_errors, local_link_integrity_errors or"
            " rnr_nak_retry_err fails. An increase of another error counter gives a warning."
        ),
        causes=(
            (
                "Packets are lost and sent again (packet_seq_err, local_ack_timeout_err), because of PFC or ECN on"
                " RoCE, or because of a bad link."
            ),
            "The receiver is too slow (out_of_buffer, rnr_nak_retry_err).",
            "The port was down for a short time (link_downed, carrier_down_count).",
            "The pods have VFs, and their nodes have no observer that reads the physical functions (warn).",
            (
                "The driver shows no error counters to the pod, or shows some of them only before or only after the"
                " soak (unknown)."
            ),
            "A counter has reached its maximum and stays there, or it was reset (unknown).",
            "No group of several nodes was verified, so no soak ran (unknown).",
        ),
        look=("rdma statistic", "ethtool -S NAME", "ibqueryerrors --details"),
        remedy=(
            "Check stage fabric for the links of this HCA, and stage tuning for its RoCE settings. Correct the cause,"
            " then run stage collectives again."
        ),
    ),
    "collectives.started": Explanation(
        means="A test did not start, did not end by itself, or printed no results.",
        measured="The exit code and the output of mpirun, and the daemons of mpirun in the other pods.",
        causes=(
            "The image does not contain mpirun, or does not contain nccl-tests in `program_folder`.",
            "nccl-tests was built without MPI.",
            "A pod was lost, or the test took longer than `seconds`.",
            "The pods cannot reach each other over eth0.",
            "A pod outside of the run connected in place of a daemon of mpirun: see docs/security.md.",
        ),
        look=("kubectl describe pod POD -n linerate-measure", _POD),
        remedy="Check the output of the test. Correct the image or `seconds`, then run stage collectives again.",
    ),
    "collectives.steps": Explanation(
        means=(
            "A step of the collective is not verified: none of its groups was verified and fast, or an earlier step was"
            " not verified."
        ),
        measured=(
            "The steps: each node alone, two nodes rail by rail, the nodes of a leaf, one node of each leaf, all nodes."
        ),
        causes=(
            "The groups of the step have findings.",
            "Fewer than two nodes have a pod.",
            "The lifetime of the pods ended.",
            (
                "The topology shows leaves, but not the leaf of this node, so the steps by leaf ran without the node"
                " (unknown)."
            ),
        ),
        look=(_POD,),
        remedy=(
            "Correct the cause in the findings of the first step that is not verified, then run stage collectives"
            " again."
        ),
    ),
    "collectives.suspect": Explanation(
        means=(
            "A port, node, leaf, uplink or rail slows down groups, or gives no result. The later steps ran without it."
        ),
        measured="The slow groups, which the stage halves rail by rail and tests with nodes that are known to be fast.",
        causes=(
            "A link, a PCIe slot or a GPU of this port is slow.",
            "A component that all rails of a node share is slow: PCIe, ACS, the CPUs.",
            "An uplink is missing, or several flows share one uplink.",
        ),
        look=(_TOPO, "lspci -vvv", "ibqueryerrors"),
        remedy=(
            "Compare the findings of stages fabric, tuning, host and bandwidth on the suspect with those of a fast"
            " port, node, leaf or rail. Correct the cause, then run stage collectives again."
        ),
    ),
    "collectives.transport": Explanation(
        means="A rank does not use the network of the fabric, but TCP or another transport.",
        measured=_PROOF,
        causes=(
            "The pod has no RDMA device.",
            "The limit memlock is too small.",
            "The image contains the plugin of another network.",
        ),
        look=("ibv_devinfo", "ulimit -l"),
        remedy=(
            "Correct the findings of stages virtual_functions and host on this node, then run stage collectives again."
        ),
    ),
    "collectives.trend": Explanation(
        means=(
            "A step of a collective or its small messages are slower than in the earlier runs, or a kept run cannot be"
            " read. The step may still be above its floor."
        ),
        measured=(
            "The median of the verified groups of the step, compared with 0.93 x its median in at least three kept"
            " runs. These runs must have the same `rdma_fabrics`, and the same fabric, GPUs and sizes in"
            " `rdma_cluster.collectives`. The median latency of the pairs is compared with `latency_ratio` x its median"
            " in these runs."
        ),
        causes=(
            "A rail or an uplink is slower than before.",
            "The image contains a different release of NCCL.",
            "Jobs used the fabric during the test.",
            "A folder below runs/ of the report is damaged.",
        ),
        look=("ansible-playbook linerate.rdma.difference -e rdma_before_dir=FILE",),
        remedy=(
            "Check what has changed since the earlier runs, and check the rails in stage bandwidth. Then run stage"
            " collectives again on an idle fabric."
        ),
    ),
    "collectives.version": Explanation(
        means="The ranks of a test use different builds of NCCL, or their log does not report the build.",
        measured="The line with the version of NCCL in the log of each rank.",
        causes=(
            "On one of the nodes, a tag of the image refers to a different image.",
            "The log is not complete (unknown).",
        ),
        look=(_POD,),
        remedy="Set `rdma_cluster.collectives.image` to the digest of the image, then run stage collectives again.",
    ),
    "collectives.wanted": Explanation(
        means=(
            "The intent requires collectives, but their results are missing or belong to a different image or to"
            " different message sizes. Without `rdma_cluster.collectives` the check passes, and the performance is not"
            " verified."
        ),
        measured=(
            "Whether the stage ran over the fabric of the intent, in the image of the intent, with messages from"
            " `least_bytes` to `most_bytes`."
        ),
        causes=(
            "The run did not include the stage.",
            "The facts belong to a different intent.",
            "GPU memory is too small for `most_bytes`, so nccl-tests sent smaller messages (warn).",
        ),
        look=("ansible-playbook linerate.rdma.site --tags bandwidth,collectives",),
        remedy="Run stage collectives with the current intent.",
    ),
    "collectives.way": Explanation(
        means=(
            "A channel does not use the transport that the intent requires, or its transport is unknown. The bandwidth"
            " of the test does not count."
        ),
        measured=(
            "Each channel of each rank in NCCL's log: NVLink or PCIe inside a node, RDMA over the HCAs of the fabric"
            " between nodes."
        ),
        causes=(
            "The channel uses TCP (NET/Socket) instead of RDMA.",
            "The channel uses host memory (SHM) instead of NVLink or PCIe.",
            "The channel uses an HCA that is not on the fabric.",
            "The channel uses NVLink between nodes (MNNVL).",
            "The log is not complete (unknown).",
        ),
        look=(_LOGS, _TOPO),
        remedy="Follow the remedy in the finding, which names the channel.",
    ),
}
