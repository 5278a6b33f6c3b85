# SPDX-License-Identifier: GPL-3.0-or-later

"""Explanations of the findings of stage collectives, for the pages that the report links to. Check ids:
``collectives.*``.
"""

from __future__ import annotations

from ..._model.run.explanation import Explanation

_POD = "kubectl get pods -n linerate-measure -o wide"
_TOPO = "nvidia-smi topo -m"
_LOGS = "kubectl get pod POD -n NAMESPACE -o yaml"
_PROOF = "NCCL's log of each rank of the same run."

EXPLAINED: dict[str, Explanation] = {
    "collectives.bandwidth": Explanation(
        means=(
            "A collective is slower than the measured rails allow, or has no figure that counts. A job on these nodes"
            " gets no more."
        ),
        measured=(
            "The bus bandwidth of the fastest message of 1 GiB or more, against a share of what the slowest rail"
            " allows, or against `expected_busbw`."
        ),
        causes=(
            "One of `collectives.cause`, with its evidence.",
            "The transport of the run is not proven, so its figure does not count (unknown).",
            "Stage `bandwidth` did not measure each rail, so there is no floor (unknown).",
            "A figure above what the links carry: part of the data went another way (unknown).",
            "No group gave a figure that an entry of `expected_busbw` counts for (unknown).",
            (
                "The inside of the nodes is slower than the rails, and the floor is of that (warn): no"
                " nvidia-fabricmanager, ACS, NCCL_P2P_LEVEL; or the GPUs have no NVLink."
            ),
        ),
        look=(_LOGS, _TOPO),
        remedy="Begin with the findings of the smallest group that fails. docs/collectives.md derives the floor.",
    ),
    "collectives.cause": Explanation(
        means=(
            "Something that may make a collective slow although its links are fast. It is a candidate with its"
            " evidence, not a proof."
        ),
        measured="NCCL's log, the HCAs of the pods, the tuning of the nodes, and the rates of the rails.",
        causes=(
            "GPUDirect RDMA is off, or goes by a far HCA.",
            "Channels or rails that are unused, or unevenly used.",
            "ACS, a throttled GPU, or one weak rail: each rail waits for the slowest.",
            "On RoCE: another GID, MTU or traffic class, or one queue pair for each connection.",
            "A setting that overrides NCCL's own choice.",
        ),
        look=(_TOPO, "nvidia-smi -q -d PERFORMANCE,CLOCK,ECC", "lspci -vvv"),
        remedy="See `collectives.repeat`, which changes one thing after the other; or change one, and run it again.",
    ),
    "collectives.channels": Explanation(
        means=(
            "Not every channel of a rank is in the log. What is not in it is not proven, and the figure does not count."
        ),
        measured=_PROOF,
        causes=(
            "A rank's log could not be read, or was cut off.",
            "NVLS alone connects no ring.",
            "Each rank is alone in its communicator.",
        ),
        look=(_LOGS,),
        remedy="Run the stage again; see `collectives.started` for a pod that was lost meanwhile.",
    ),
    "collectives.cleanup": Explanation(
        means="Pods of the stage are left, or an earlier run left some. A pod that stays holds the GPUs of its node.",
        measured="Pods in `linerate-measure` after the stage.",
        causes=("The kubelet of a lost node did not end its pod.", "An earlier run was killed (warn)."),
        look=(_POD,),
        remedy="Delete it: `kubectl -n linerate-measure delete pod POD`. The next run does so as well.",
    ),
    "collectives.figures": Explanation(
        means=(
            "The figures are not those of a whole and correct run. With wrong values a figure means nothing, and"
            " training is damaged silently."
        ),
        measured="What nccl-tests printed: rows, `#wrong`, errors, its last line.",
        causes=(
            "A GPU, an HCA, a cable or a library damages data (`#wrong` is not 0).",
            "A setting of NCCL's chunks or buffers writes past a buffer.",
            "The run was cut off (unknown).",
        ),
        look=("dmesg", "nvidia-smi -q -d PERFORMANCE,CLOCK,ECC", _LOGS),
        remedy="See Xid and ECC errors of the nodes and the counters of the links; run again without settings of NCCL.",
    ),
    "collectives.gpu_direct": Explanation(
        means=(
            "Channels over RDMA do not use GPUDirect, although the intent wants it: data goes through the memory of the"
            " host."
        ),
        measured=_PROOF,
        causes=(
            "Neither nvidia-peermem nor DMA-BUF works (`host.gpudirect`).",
            "The HCA is too far from the GPU.",
            "ACS is on between them.",
        ),
        look=(_TOPO, "lsmod"),
        remedy="Load nvidia_peermem or use the open driver; or set `gpu_direct: false`, if that is meant.",
    ),
    "collectives.groups": Explanation(
        means=(
            "The log has another number of communicators than the test has groups, so it is not known whose figure"
            " it is."
        ),
        measured="Communicators in NCCL's log against `NCCL_TESTS_SPLIT`.",
        causes=(
            "The log of some ranks is missing.",
            "nccl-tests is too old for `NCCL_TESTS_SPLIT`.",
            "The image sets variables of nccl-tests.",
        ),
        look=(_LOGS,),
        remedy="Use nccl-tests 2.13.9 or newer, built with MPI=1.",
    ),
    "collectives.inside": Explanation(
        means="The GPUs of one node exchange data slower than those of the others, before any network.",
        measured="The same collective on each node alone, against 0.93 of the median of three nodes or more.",
        causes=("An NVLink is down.", "A GPU is throttled.", "The node has another topology."),
        look=("nvidia-smi nvlink -s", "nvidia-smi -q -d PERFORMANCE,CLOCK,ECC", _TOPO),
        remedy="Compare the node with another one of its model.",
    ),
    "collectives.latency": Explanation(
        means=(
            "Small messages between two nodes take longer than between others, or longer than the intent admits. A job"
            " that synchronises often waits for its slowest pair."
        ),
        measured=(
            "The mean of 1,000 all_reduces of 8 bytes on the slowest rail of the pair, against `latency_ratio` (1.5)"
            " times the median of the pairs, and against `most_latency_us`. p99 is shown, and not judged."
        ),
        causes=(
            "Idle states or the governor of the CPUs.",
            "More switches between the nodes than between those of other pairs.",
            "A queue that other traffic fills.",
            "The version of nccl-tests has no option -I (unknown).",
        ),
        look=(_TOPO, _LOGS),
        remedy="Compare stage tuning of this pair with another one; measure ib_write_lat between its pods.",
    ),
    "collectives.log": Explanation(
        means=(
            "There is no log of NCCL to judge, it is cut off, or it has more ranks than the nodes of its run can have."
        ),
        measured="Lines of NCCL in the files of each rank; ranks, hosts and channels in the log of each run.",
        causes=(
            "The program has no NCCL, or ended before its first line.",
            "The log could not be read from the pod.",
            "Another program than NCCL wrote the log, or a folder of facts was made by hand.",
        ),
        look=(_LOGS,),
        remedy="See `collectives.started`, and what the program printed.",
    ),
    "collectives.network": Explanation(
        means=(
            "Not every channel leaves each node over the network, by what is in the log, so the figure is not one of"
            " the network."
        ),
        measured="The connections of each channel, node by node.",
        causes=("The log is not whole.", "NVLink between nodes carries a part."),
        look=(_LOGS,),
        remedy="Run the stage again; see whether the image sets variables of NCCL.",
    ),
    "collectives.nodes": Explanation(
        means="A communicator has another number of nodes than the group.",
        measured="`nNodes` of each rank, and the hosts in the log.",
        causes=("The image sets NCCL_HOSTID.", "mpirun placed the ranks differently."),
        look=(_LOGS,),
        remedy="Take NCCL_HOSTID out of the image.",
    ),
    "collectives.pod": Explanation(
        means="A node has no pod that can run collectives, so it is not proven.",
        measured="The pod of each node, and the HCAs and rails that it got.",
        causes=(
            "The node has fewer free GPUs or functions than the pod asks for: jobs still run.",
            "The image can't be pulled.",
            "The pod got two functions of one rail, and none of another one.",
        ),
        look=(_POD, "kubectl describe node NODE"),
        remedy="Run the stage before jobs; give the pods a function of each rail.",
    ),
    "collectives.problem": Explanation(
        means="NCCL reported a problem during the test, which makes its figure doubtful.",
        measured="Warnings and errors in NCCL's log.",
        causes=("The finding names what NCCL said.",),
        look=(_LOGS,),
        remedy="See the stage that the finding names.",
    ),
    "collectives.rails": Explanation(
        means="Nothing of the run goes over a rail, so the job has less than the node has.",
        measured="The HCAs in NCCL's channels, with their rails.",
        causes=(
            "A port is down in the pod.",
            "No GPU of the run is near the HCA.",
            "The HCA is left out by NCCL_IB_HCA of the image.",
        ),
        look=("ibv_devinfo", _TOPO),
        remedy="Compare the HCAs of the pod with NCCL_IB_HCA; use as many GPUs as rails.",
    ),
    "collectives.ranks": Explanation(
        means="Ranks of the run are missing in the log, or did not complete.",
        measured="The ranks that nccl-tests lists, and those in NCCL's log.",
        causes=("A rank died, or its log could not be read.", "A node has fewer GPUs than `gpus_per_node`."),
        look=("nvidia-smi -L", _POD),
        remedy="See what the program printed, and dmesg of the node.",
    ),
    "collectives.repeat": Explanation(
        means=(
            "The smallest slow group ran again with one thing changed. A change that makes it faster shows the cause."
            " Or a group did not pass, ran again without a change, and passed: the fault may come back."
        ),
        measured=(
            "The bus bandwidth of the repeat against that of the group without the change. A rise of 10 % counts, if"
            " NCCL's log shows the change and proves the transport."
        ),
        causes=(
            "The finding names the change (warn).",
            "The figure of the group moves by 10 % or more without a change, or its first run failed (unknown).",
            "The figure of the group moves by less without a change (warn).",
            "The transport of the repeat is not proven, or the log does not show the change (unknown).",
        ),
        look=(_LOGS, _TOPO),
        remedy="Make the change that the finding names, in the image and in jobs, and run the stage again.",
    ),
    "collectives.soak": Explanation(
        means=(
            "An HCA counted errors while the largest proven group ran for `soak_minutes`, or its error counters are not"
            " known."
        ),
        measured=(
            "`counters` and `hw_counters` of each RDMA device in its pod (sysfs), before and after the soak. Any growth"
            " of link_downed, excessive_buffer_overrun_errors, local_link_integrity_errors or rnr_nak_retry_err fails;"
            " growth of another error counter warns."
        ),
        causes=(
            "Packets are lost and sent again (packet_seq_err, local_ack_timeout_err): PFC or ECN on RoCE, a bad link.",
            "The receiver does not keep up (out_of_buffer, rnr_nak_retry_err).",
            "The port was down for a moment (link_downed).",
            "The driver shows no error counters to the pod, or some of them only before or after the soak (unknown).",
            "A counter is at its maximum, where it stays, or was set back (unknown).",
            "No group of several nodes is proven, so that there was no soak (unknown).",
        ),
        look=("rdma statistic", "ethtool -S NAME", "ibqueryerrors --details"),
        remedy="See stage fabric for the links of this HCA and stage tuning for its RoCE settings; run the soak again.",
    ),
    "collectives.started": Explanation(
        means="A test did not start, did not end by itself, or printed no figures.",
        measured="The exit code and the output of mpirun, and its daemons in the other pods.",
        causes=(
            "The image lacks mpirun, or nccl-tests at `program_folder`.",
            "nccl-tests is built without MPI.",
            "A pod was lost, or the run took longer than `seconds`.",
            "The pods can't reach each other on eth0.",
            "A pod outside of the run took the place of a daemon of mpirun: see what docs/security.md says of it.",
        ),
        look=("kubectl describe pod POD -n linerate-measure", _POD),
        remedy="See what it printed; correct the image or the limit, and run the stage again.",
    ),
    "collectives.steps": Explanation(
        means=(
            "A step of the collective is not proven: no group of it was proven and fast, or a step before it was not."
        ),
        measured="Each node alone, two nodes rail by rail, the nodes of a leaf, one node of each leaf, all nodes.",
        causes=(
            "The findings of its groups.",
            "Fewer than two nodes have a pod.",
            "The lifetime of the pods was over.",
            "The topology shows leaves, but not that of this node (unknown): the steps by leaves were made without it.",
        ),
        look=(_POD,),
        remedy="Correct what the findings of the first unproven step name.",
    ),
    "collectives.suspect": Explanation(
        means=(
            "A port, node, leaf, uplink or rail makes groups slow, or gives no figure. It was left out of the later"
            " steps."
        ),
        measured="Groups that are slow, halved rail by rail, with partners that are known to be fast.",
        causes=(
            "A link, a PCIe slot or a GPU of this port is slow.",
            "What all rails of a node share: PCIe, ACS, CPUs.",
            "An uplink is missing, or flows share one.",
        ),
        look=(_TOPO, "lspci -vvv", "ibqueryerrors"),
        remedy="See the stages fabric, tuning, host and bandwidth of what is named, beside one that is fast.",
    ),
    "collectives.transport": Explanation(
        means="A rank does not use the network that it was given: TCP, or another way.",
        measured=_PROOF,
        causes=(
            "No RDMA device is in the pod.",
            "memlock is too small.",
            "The plugin of another network is in the image.",
        ),
        look=("ibv_devinfo", "ulimit -l"),
        remedy="See the stages virtual_functions and host of this node.",
    ),
    "collectives.trend": Explanation(
        means=(
            "A step of a collective is slower than in the runs before, or a kept run can't be read. The step may still"
            " be above its floor."
        ),
        measured=(
            "The median of the proven groups of the step, against 0.93 of its median in at least three kept runs. They"
            " must have the same `rdma_fabrics`, and the same fabric, GPUs and sizes in `rdma_cluster.collectives`."
        ),
        causes=(
            "A rail or an uplink is slower than it was.",
            "The image has another release of NCCL.",
            "Jobs use the fabric at the same time.",
            "A folder below runs/ of the report is torn.",
        ),
        look=("ansible-playbook linerate.rdma.difference -e rdma_before_dir=FILE",),
        remedy="See what changed since then, and stage bandwidth for the rails; run the stage again on an idle fabric.",
    ),
    "collectives.version": Explanation(
        means="The ranks of a test run different builds of NCCL, or their log does not say which build it is.",
        measured="The line with the version of NCCL in the log of each rank.",
        causes=("A tag of the image names another image on one of the nodes.", "The log is not whole (unknown)."),
        look=(_POD,),
        remedy="Name the image by its digest in `rdma_cluster.collectives.image`.",
    ),
    "collectives.wanted": Explanation(
        means=(
            "The intent asks for collectives, and nothing is known of them, or of other ones: another image, or other"
            " sizes of messages. Without `rdma_cluster.collectives` it passes, and nothing is proven."
        ),
        measured=(
            "Whether the stage ran over the fabric of the intent, in its image, with messages from `least_bytes` to"
            " `most_bytes`."
        ),
        causes=(
            "The run did not include the stage.",
            "The facts are of another intent.",
            "The memory of the GPUs is too small for `most_bytes`, and nccl-tests sent smaller messages (warn).",
        ),
        look=("ansible-playbook linerate.rdma.site --tags bandwidth,collectives",),
        remedy="Run the stage with this intent.",
    ),
    "collectives.way": Explanation(
        means=(
            "A channel does not go the way that the intent wants, or it is not known which way it goes. No figure of"
            " the run counts."
        ),
        measured=(
            "Each channel of each rank in NCCL's log: NVLink or PCIe inside of a node, RDMA by the HCAs of the fabric"
            " between nodes."
        ),
        causes=(
            "TCP (NET/Socket) in place of RDMA.",
            "The memory of the host (SHM) in place of NVLink or PCIe.",
            "An HCA that is not on the fabric.",
            "NVLink between nodes (MNNVL).",
            "The log is not whole (unknown).",
        ),
        look=(_LOGS, _TOPO),
        remedy="The finding names the channel and what to do.",
    ),
}
