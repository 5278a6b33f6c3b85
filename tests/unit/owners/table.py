# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run and a teardown of an intent do with an object that another party may own: a row for each kind that the
collection creates or changes. docs/security.md has it for admins."""

from __future__ import annotations

import typing

#: what becomes of an object: it is changed or removed, it stays and is named, the run refuses and names it
TAKE, KEEP, REFUSE = "take", "keep", "refuse"

#: whose the object is
OWNERS = {
    "own": "this intent",
    "earlier": "this intent, of an earlier release without its labels",
    "other": "another intent",
    "equal": "another intent with the same `intent_name`, for other nodes",
    "shared": "this intent, and another intent needs it too",
    "admin": "a user who made it without the label of the collection",
    "copied": "a user who copied it with the label of the collection",
    "used": "this intent, and a job that has not ended uses it",
    "beside": "this intent, and a tenant made a policy with its labels in another namespace, for other nodes",
}


class Cell(typing.NamedTuple):
    """What happens to an object.

    :ivar apply: by a run of this intent that renders another content under its name
    :ivar teardown: by a teardown of this intent
    """

    apply: str
    teardown: str


_OWN = {"own": Cell(TAKE, TAKE), "earlier": Cell(TAKE, TAKE)}
_OTHERS = {
    "other": Cell(REFUSE, KEEP),
    "equal": Cell(REFUSE, KEEP),
    "admin": Cell(REFUSE, KEEP),
}
_COPIED = {"copied": Cell(TAKE, KEEP)}
_BESIDE = {"beside": Cell(TAKE, TAKE)}
_FABRIC = {**_OWN, **_OTHERS, **_COPIED, "used": Cell(TAKE, REFUSE), **_BESIDE}
_SHARED = {
    "own": Cell(TAKE, TAKE),
    # an intent that selects all nodes of the pool
    "earlier": Cell(TAKE, TAKE),
    "other": Cell(REFUSE, KEEP),
    "equal": Cell(REFUSE, KEEP),
    "shared": Cell(REFUSE, KEEP),
    "admin": Cell(REFUSE, KEEP),
    "copied": Cell(TAKE, KEEP),
}

#: kinds of which the cells are played: by rendered objects of an intent
ROWS: dict[str, dict[str, Cell]] = {
    "SriovNetworkNodePolicy": _FABRIC,
    "SriovNetworkPoolConfig": _FABRIC,
    "SriovNetwork": _FABRIC,
    "SriovIBNetwork": _FABRIC,
    "MacvlanNetwork": _FABRIC,
    "IPoIBNetwork": _FABRIC,
    "HostDeviceNetwork": _FABRIC,
    "NetworkAttachmentDefinition": _FABRIC,
    "IPPool.nv-ipam.nvidia.com": _FABRIC,
    "CIDRPool.nv-ipam.nvidia.com": _FABRIC,
    "NicConfigurationTemplate": {**_OWN, **_OTHERS, **_COPIED, **_BESIDE},
    "Tuned": {**_OWN, **_OTHERS, **_COPIED, **_BESIDE},
    "MachineConfig": _SHARED,
    "KubeletConfig": _SHARED,
    # a run uses it as it is; it stays that of the intent that made it
    "Namespace": {
        "own": Cell(TAKE, TAKE),
        "earlier": Cell(TAKE, TAKE),
        "other": Cell(TAKE, KEEP),
        "equal": Cell(TAKE, KEEP),
        "admin": Cell(KEEP, KEEP),
        "copied": Cell(TAKE, KEEP),
        "used": Cell(TAKE, REFUSE),
    },
}

#: kinds whose owners other tests play, each with them
OTHER_TESTS: dict[str, tuple[str, ...]] = {
    # one for the cluster: fields of others stay
    "NicClusterPolicy": (
        "run/test_intents.py::test_the_nic_cluster_policy_of_another_intent_loses_no_entry",
        "run/test_removal_gate.py::test_a_job_of_a_user_counts_if_it_uses_the_intent",
        "owners/test_equal_names.py::test_a_second_default_intent_replaces_no_driver_of_the_first",
    ),
    "MachineConfigPool": (
        "run/test_removal_gate.py::test_a_teardown_unpauses_only_pools_of_its_intent",
        "run/test_roll.py::test_a_pool_that_somebody_else_has_paused_stays_so",
    ),
    "NodeHealthCheck": (
        "hostile/test_rolls.py::test_a_pause_of_others_stays",
        "hostile/test_rolls.py::test_a_teardown_resumes_only_the_health_checks_that_its_own_intent_paused",
    ),
    "MachineHealthCheck.machine.openshift.io": ("hostile/test_rolls.py::test_a_pause_of_others_stays",),
    "MachineHealthCheck.cluster.x-k8s.io": ("hostile/test_rolls.py::test_a_pause_of_others_stays",),
    "Node": (
        "run/test_roll_nodes.py::test_a_node_that_another_client_cordoned_waits_for_its_uncordon_and_counts_as_unavailable",
        "hostile/test_rolls.py::test_a_cordon_of_others_that_is_lifted_is_ours_from_then_on",
    ),
    "Lease": (
        "run/test_lease.py::test_what_nobody_of_us_wrote_is_never_taken_for_free",
        "run/test_lease.py::test_a_second_run_is_refused_by_name_while_the_first_one_renews",
    ),
    "Pod": (
        "hostile/test_tenants_pods.py::test_a_labelled_pod_of_a_tenant_is_not_deleted_and_ends_no_measurement",
        "hostile/test_rolls.py::test_each_eviction_names_the_uid_that_was_looked_at",
    ),
    "DaemonSet": (
        "hostile/test_observers_namespace.py"
        "::test_a_namespace_that_is_another_one_before_the_daemonset_is_made_gets_none",
    ),
    "ServiceAccount": ("run/test_admission.py::test_a_teardown_leaves_what_an_admin_has_prepared",),
    "SecurityContextConstraints": (
        "run/test_admission.py::test_constraints_that_an_admin_has_made_are_used_and_never_taken_for_ours",
    ),
    "NetworkPolicy": ("run/test_measuring.py::test_a_policy_of_somebody_else_or_changed_on_the_way_is_refused",),
    "PyTorchJob": (
        "run/test_intents.py::test_objects_of_the_other_intent_stay_and_are_named",
        "run/test_intents.py::test_the_default_name_proves_nothing",
    ),
    "TrainJob": ("run/test_intents.py::test_a_running_job_of_the_intent_is_named_and_ends_the_removal",),
    "TrainingRuntime": ("run/test_intents.py::test_objects_of_the_other_intent_stay_and_are_named",),
    "ConfigMap": ("run/test_intents.py::test_objects_of_the_other_intent_stay_and_are_named",),
    "ClusterPolicy": ("render/test_render_host.py::test_the_cluster_policy_is_patched_and_never_made_ours",),
}
