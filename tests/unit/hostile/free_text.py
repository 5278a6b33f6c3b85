# SPDX-License-Identifier: GPL-3.0-or-later

"""Which texts of facts and of what parsers return have no form of the boundary, and why. All others are held against
theirs.

A new field of text needs a form in its annotation, or a line here.
"""

from __future__ import annotations

import typing

#: by reason: class and its fields
TABLE: dict[str, str] = {
    "CEL, in a length that the API server bounds, and values that are compared and never shown unescaped": (
        """
        SliceDevice attributes; DeviceClass selectors; DeviceAlternative selectors; Part kind value
        """
    ),
    "words of a system or of the collection for a reader, which every page and every message escapes": (
        """
        AddressFacts unclear errors; AppliedObject action refusal reason warnings; ArchiveFacts error remedy;
        Attachment fault; JobAttachment problem; BandwidthFacts
        leftovers remaining; BiosAttribute display_name read_only; BiosJob state name; BiosSetting looked_for;
        BiosValue label; ClusterNode not_ready unread;
        ClusterPolicies state error; ClusterQueue inactive; ClusterEvent reason message time; ControllerFacts error
        remedy rights_error room_error; CountedPair why;
        CoverPlan spread; Denied need text power; NodeDifference source key now wanted how; DisruptionPlan unread closed
        pauses; DriverChange limit policy reason; DriverPolicy message; DriverOfNodes state; Earlier
        runs unread; EarlierCollectives runs unread; HcaErrors why;
        FabricNode description; Facts unmade roll_error; Failure evidence; FeatureDiscovery unread; Finding check
        subject measured expected why remedy; Hca
        node_description unread; HcaFirmware settings_from not_asked errors; HelmFacts error; HostConfig what refusal;
        ImageFacts errors; InstallPlan message;
        Inventory refused; InventoryNode error; KubeletStatus error reached; LayerEnd binding;
        LayerStep why commands; Leftovers errors; LintFacts errors;
        LocalQueue inactive; LostManager description; MachinePool conditions message; ManagerPort error; Mark
        differences; MemlockProof evidence error;
        MirrorAnswer said; NcclProblem kind text place hosts; NicDevice message; NicDevices errors; NicMap broken;
        NicState reason message firmware; NodeBios
        registry_error last_apply pending_error others_pending errors; NodeHcas errors; NodeNeighbours errors;
        NodeOutcome why remedy did; NodePlan reasons lost blockers doubts uplinks;
        NodePlatform errors; NodeProfile message; NodeSetting why remedy; NodeState last_sync_error; NodeStep lost
        blockers reasons also notes; NodeTuning
        unread; Observed error; ObserverPod detail suspect; OlmObject message; OperatorFacts troubles errors says;
        OperatorStatus detail remedy; OperatorsSeen
        errors untrusted; LeftConfiguration command why;
        PairLayers why;
        PairLatency evidence commands;
        PairResult ping_evidence evidence commands sweep_failure; PciEvidence unread; Ping error;
        PingServer error; PodState detail
        suspect; PoolPlan limit blockers; PortGrowth why; RdmaPod error binding; Reported reason parts; Roll error
        others; RollPlan limit refusal shape;
        RoundPlan why; SeenCapabilities unread error; SeenErrors error; SeenForwarding error; SeenManagers error;
        SeenSubnet error; SeenTopology error;
        ServiceVersion reason message requirements; SlowPort could_be; Status status message reason;
        RetainedObject subject why remedy; Subscription troubles;
        UntrustedNamespace why; Wider why commands; CollectivePod error; CollectivesFacts ended leftovers remaining
        image; RanTest evidence command; Request words;
        SyncNode detail remedy matched; TrainingPod error; TuningSet refusal remedy; UnreadNic why; UnreadNode why;
        UnreadPool why;
        JobWorkload lost;
        Bios refused; Catalog state message"""
    ),
    "names of the inventory and of the intent, which are the admin's: stage validate holds those of the intent against "
    "their forms": (
        """
        AppliedObject fabric; ArchiveFacts place; CountedPair fabric client server node; EarlierPair fabric client
        server; PairLatency fabric client server; StepFigures fabric; LatencyFigures fabric; FabricBandwidth fabric;
        Facts nodes hcas subnets topologies functions neighbours clocks by_pods platforms runtimes bioses firmware
        before plan servers pings stopped tunings tunings_after_roll platforms_after_roll
        kernel_settings variables held images mistyped origins inventory_error inventory_kind inventory_where;
        CollectivesFacts fabric; LayerEnd node; LintFacts held; MemlockProof fabric; NodeOutcome node; NodePlan node;
        NodeStep node; PairLayers
        fabric client server; PairResult fabric client server; PoolPlan nodes; RdmaPod fabric node; RoundPlan fabric;
        SyncNode fabric node; TuningSet nodes;
        Folder path; Address base query; Challenge realm service scope; RegistryLogin basic token; JobNeeds kind queue;
        ImageSeen name; ImageReference repository host
        version"""
    ),
    "metadata that the API server itself holds to the rules of names and labels, matched and shown": (
        """
        ApiResource base plural kind; AppliedObject kind name namespace; Attachment name plugin; JobAttachment
        name kinds resource; Catalog
        name namespace address; Channel name
        newest versions; VolumeClaim name modes phase; ClusterNode labels allocatable; ClusterPod labels;
        ClusterPolicies
        names; ClusterQueue name groups cohort; DriverOfNodes name nodes; ResourceFlavor name labels taints tolerations;
        Controller operator name version origin release; FeatureDiscovery pods; EtcdMember node; HealthCheck kind
        namespace name nodes intent; HostConfig kind name
        labels generated; ForeignObjects foreign going; InstallPlan name namespace phase versions; InventoryNode groups;
        LabelExpression key operator values;
        LabelSelector labels; AddressLease pod; LocalQueue name cluster_queue; Machine namespace name labels
        node; MachinePool
        labels; NicState name; NicTemplate
        name cards serials; NodePlan pods pool rolled_by; NodeStep node pods pool; NodeProfile node wanted active;
        ObserverPod image_id template; ObserverSet template
        node_selector nodes run; OperatorFacts crds configs namespace; OperatorGroup name namespace targets;
        OperatorStatus package namespace subscription
        wanted installed upgrade; OperatorsSeen packages labelled made leave left versions; Package name catalog
        catalog_namespace
        default_channel; PolicyState kind name state;
        PoolPlan name; Reported name nodes; ServiceVersion name namespace phase version replaces definitions
        deployments webhooks; StorageClass name
        provisioner; Subscription name namespace package channel source source_namespace approval state current
        installed plan; UsedNetwork owner ipam; SharedPool pods; Roll pool
        config; UntrustedNamespace namespace; JobWorkload kind name namespace queue
        processes; TorchRun place nodes processes rendezvous"""
    ),
    "what an admin wrote into an object, compared with what is wanted and shown": (
        """
        DriverPolicy image version repositories; Recommendation tuned
        profile matches pool_labels; ImageFacts named; MachinePool max_unavailable; MirrorAnswer source
        place needed_by put; MirrorFacts unlisted
        elsewhere; MirrorRule owner source mirrors; NicPolicy configs owners; NicState template;
        NicTemplate addresses node_selector template type;
        NodePool max_unavailable; NodeProfile data; OperatorSettings
        mode disabled_plugins; Policy resource_name node_selector vendor device root_devices pf_names device_type
        link_type eswitch_mode net_filter vdpa_type;
        RegistrySources allowed blocked insecure; WorkerConfig classes fields sources"""
    ),
    "a number of bytes or infinity, which its parser requires": "ContainerdLimit loaded running",
    "a user's job and its log, which are linted and shown, and run nothing": (
        """
        PodContainer name path sources requests limits capabilities mounts; NcclChoice function algorithm protocol;
        NcclCommunicator name; NcclDevice name
        link reasons; NcclLeftOut source hosts why; KeptCommunicator name;
        KeptProcess host oob_address; KeptRank bus_id;
        NcclLog versions; NcclRank host bus_id; NcclProcess host version network oob_interface oob_address without_ib
        environment files
        beside;
        NcclRoute via; NcclTestRank host bus_id model; NcclTestRow type operation; NcclTests collective version library
        errors lacks;
        NcclTestTransport transports reasons;
        NetworkRequest namespace name interface; NodeChoice labels tolerations; NodeRequirement key operator values;
        PodDevices name interfaces devices; PodTemplate path volumes
        memory_volumes claims account
        host_paths; Replaced limits by of; Variable name value place"""
    ),
    "what a BMC tells of its own settings and of its model: written back to the same BMC alone, in JSON": (
        """
        Bios attributes registry apply_times; BiosAttribute name current pending; BiosJob id; BiosValue value;
        Condition attribute value; Dependency property;
        Entry name display_name values; NodeBios vendor model version registry apply_times; Registry path; System
        vendor model version serial resets"""
    ),
    "a value of a tool or a file of the node, compared with a table and shown": (
        """
        Boot boot machine;
        Identity uuid serials; NodePlatform kernel_arguments; Observed[dict] value; Observed[str] value; PortCounters
        counters wide; RowReading value where;
        PerftestReport parameters; FirmwareSetting next current default; NodeTuning rows"""
    ),
    "of the controller itself": (
        """
        ControllerFacts python stages library where server; HelmFacts binary version; Holder run host process; Lease
        doing"""
    ),
    "numbers with '-' and ',' between them, made of numbers that were read": (
        """
        RdmaPod cpus"""
    ),
}


def fields_in(table: typing.Mapping[str, str]) -> set[str]:
    """``Class.field`` of each that a table of reasons lists."""
    found: set[str] = set()
    for text in table.values():
        for entry in text.split(";"):
            cls, *fields = entry.split()
            found |= {f"{cls}.{field}" for field in fields}
    return found


def listed() -> set[str]:
    """``Class.field`` of each."""
    return fields_in(TABLE)
