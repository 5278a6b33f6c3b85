# SPDX-License-Identifier: GPL-3.0-or-later

"""Which lists, mappings and numbers of facts have no Bound or Range of the boundary, and why. All others are held
against theirs.

What one node, one pod or one BMC tells has its limits, because one of them must not end a stage for all. A new field of
facts needs a limit in its annotation, or a line here.
"""

from __future__ import annotations

from .free_text import fields_in

#: by reason: class and its fields
TABLE: dict[str, str] = {
    "one for each node of the inventory, or for each part of the intent, which are the admin's": (
        """
        Facts nodes hcas subnets topologies functions neighbours bandwidth collectives clocks by_pods proofs platforms
        runtimes applied unmade rolls bioses firmware rolled
        before plan servers pings stopped pods tunings tunings_after_roll
        platforms_after_roll kernel_settings variables images mistyped
        origins held
        latencies;
        LintFacts findings held errors; ControllerFacts
        stages room;
        RightsFacts asked denied; OperatorsSeen leave left versions; JobNeeds gpus; TuningSet nodes; NodeOutcome did;
        SharedPool share"""
    ),
    "what the collection itself has planned, counted, timed or written, of fields that have their limits": (
        """
        BandwidthFacts pods pairs leftovers remaining plans layers counted latencies;
        PairLatency commands; CountedPair ports; CoverPlan tests
        directions covered unused between_rails; Earlier
        runs unread pairs; EarlierPair figures places; LayerStep commands; PairLayers steps; PairResult commands;
        RoundPlan rounds all_rounds seconds most_seconds;
        CollectivesFacts pods runs leftovers remaining; RanTest nodes errors; EarlierCollectives runs unread steps
        latencies; EarlierStep figures; EarlierLatency figures;
        Wider commands; DisruptionPlan nodes pools unread closed pauses; NodePlan reasons pods lost blockers doubts
        uplinks;
        PoolPlan nodes at_once waves blockers; NodeOutcome
        seconds; NodeStep differences pods lost blockers wave untaken reasons notes; Roll rolls machines updated
        seconds others; RollPlan steps at_once rolls
        most shape pauses; SyncFacts waited_seconds nodes; SyncNode matched allocatable; AppliedObject warnings"""
    ),
    "objects of the API server: it holds numbers to 64 bits, and an answer is held to bytes and to values before it is "
    "read": (
        """
        AddressFacts taken pods leaks pools unclear errors unread unread_pools; SharedPool nodes pods;
        HealthCheck nodes;
        LabelExpression
        values; LabelSelector labels
        expressions; MachinePool machines updated degraded conditions sources labels; DriverPolicy nodes;
        DriverOfNodes nodes; ClusterPolicies drivers;
        FeatureDiscovery pods; WorkerConfig classes fields
        sources; NicDevice ports; NicDevices devices errors unread; ClusterPolicies names; HostConfig labels generated;
        KubeletStatus wanted others pools reached;
        ImageFacts rules named errors; MirrorRule mirrors; RegistrySources allowed blocked insecure; ClusterNode labels
        allocatable unread; Workload wanted
        ready images nodes; NicPolicy configs owners; OlmFacts operators; OperatorsSeen controllers configurations
        packages labelled made drivers hosts errors
        untrusted; NodeState wanted interfaces generation; OperatorFacts crds installations configs nodes states
        policies supported_nics discovery olm multus
        multus_pods attachments nic_policies troubles errors; Policy vfs_count node_selector root_devices pf_names
        priority mtu; StateInterface mtu total_vfs
        vfs_count vfs; StateVf index mtu; VfGroup mtu first last; WantedInterface vfs_count groups mtu; Controller
        wanted ready"""
    ),
    "one for each image that is needed, with what its registry answers, which is held to bytes": (
        """
        MirrorFacts answers unlisted elsewhere; MirrorAnswer needed_by put"""
    ),
    "a user's job and its log, about which the stage is: the parser holds it to a budget of what it keeps": (
        """
        NcclChoice size_bytes channels; NcclCommunicator ranks; NcclDevice index port rail reasons; NcclLeftOut hosts;
        NcclLog left_out versions processes communicators problems lines nccl_lines torn untold
        endpoints more_endpoints;
        NcclProblem hosts count line; NcclProcess pid devices environment choices mtus gid_indexes files beside;
        NcclRank rank pid gpu
        channels point_to_point_channels trees rings nodes routes unseen unanswered; NcclRoute device connection proxy
        channels lines; TrainingPod functions;
        KeptCommunicator ranks; KeptLog rank_kinds processes communicators; KeptProcess pid; KeptRank rank gpu"""
    ),
    "what a program of nccl-tests printed in pods of the collection: the parser holds it to lines, ranks and rows": (
        """
        NcclTestFigure time_us algorithm_gbs bus_gbs wrong largest_error p99_us; NcclTestRank rank group pid gpu;
        NcclTestRow size_bytes count root;
        NcclTests ranks announced rows unfinished out_of_bounds average_bus_gbs errors torn lacks
        reduced_bytes; NcclTestTransport
        transports reasons"""
    ),
    "a value of a BMC or of a module, whatever it is: compared as it is and shown, and cut where it is written": (
        """
        BiosAttribute current pending; Observed[dict] value"""
    ),
}


def listed() -> set[str]:
    """``Class.field`` of each."""
    return fields_in(TABLE)
