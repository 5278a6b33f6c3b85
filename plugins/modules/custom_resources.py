#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: custom_resources
short_description: Apply Kubernetes objects after a dry run, or remove the objects of the collection
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Applies a list of objects with server-side apply. A server-side dry run of all objects comes first, so that
    admission webhooks judge them too.
  - If the API server or a webhook refuses an object, the module still applies the others. Then it fails with the
    message of the server. To report the refusal without failing, set O(on_refusal=tell).
  - A webhook may need a moment to see a new object. If an object is refused because another one of O(objects) is
    missing, the module retries for 10 seconds.
  - O(state=absent) deletes all objects of O(kinds) that have O(label_selector), in the order of O(kinds). It waits
    until they are gone.
  - With O(fabrics) or O(cluster), objects of other intents stay, and RV(applied) has them with the action V(kept).
    Without both, O(label_selector) selects the objects of all intents of the cluster.
  - The module neither changes nor deletes an existing namespace without the label of the collection.
  - A cluster has only one C(NicClusterPolicy). The module adds the fields of the collection to it, and O(state=absent)
    removes only these fields. The API server refuses a field that another field manager owns with another value.
options:
  state:
    description: Whether to apply O(objects), or to remove the objects that have O(label_selector).
    type: str
    choices: [present, absent]
    default: present
  on_refusal:
    description:
      - Whether the module fails if an object was refused, or only reports it in RV(applied).
      - The stages use V(tell). Their checks judge the refusal.
    type: str
    choices: [fail, tell]
    default: fail
  kinds:
    description:
      - Kinds to remove, in this order.
      - A V(Namespace) with objects that the collection did not make is not removed. RV(applied[].refusal) lists them.
        The user needs the right to list all resources in the namespace. Otherwise it is not removed either. In check
        mode the module does not look for such objects.
      - V(SecurityContextConstraints) can be the only kind. It includes the C(ServiceAccount), the C(Role) and the
        C(RoleBinding) in O(namespaces) that let OpenShift admit the pods that measure. A run removes them itself,
        unless it is killed.
    type: list
    elements: str
    choices:
      [PyTorchJob, TrainJob, TrainingRuntime, Pod, SriovNetwork, SriovIBNetwork, MacvlanNetwork, IPoIBNetwork,
      HostDeviceNetwork, NetworkAttachmentDefinition, NicClusterPolicy, SriovNetworkNodePolicy, SriovNetworkPoolConfig,
      IPPool.nv-ipam.nvidia.com, CIDRPool.nv-ipam.nvidia.com, NicConfigurationTemplate, Tuned, Namespace, ConfigMap,
      SecurityContextConstraints]
    default:
      [PyTorchJob, TrainJob, TrainingRuntime, Pod, SriovNetwork, SriovIBNetwork, MacvlanNetwork, IPoIBNetwork,
      HostDeviceNetwork, NetworkAttachmentDefinition, NicClusterPolicy, SriovNetworkNodePolicy, SriovNetworkPoolConfig,
      IPPool.nv-ipam.nvidia.com, CIDRPool.nv-ipam.nvidia.com, NicConfigurationTemplate, Tuned, Namespace]
  absent_namespaces:
    description:
      - Namespaces that were not there when somebody looked whose they are, see
        RV(linerate.rdma.operators_info#module:absent).
      - With O(state=present), the module makes these. If one is there now, somebody else made it, and the API server is
        asked for nothing in it.
    type: list
    elements: str
    default: []
  find_leftovers:
    description:
      - With O(state=present), whether to look for networks, policies and pools that have O(label_selector) and are not
        in O(objects). On a cluster with the machine config operator, also for MachineConfigs and KubeletConfigs with
        the label of the collection.
      - With O(fabrics) and O(cluster), also for a C(Tuned) and C(NicConfigurationTemplates) that no stage of the intent
        applies.
      - RV(leftovers) lists them. The module does not remove them.
      - The user needs the right to list these kinds in all namespaces.
    type: bool
    default: false
  label_selector:
    description: Label of the objects to remove. It must contain the label of the collection. You can add more labels.
    type: str
    default: app.kubernetes.io/managed-by=linerate.rdma
  namespaces:
    description:
      - Search only these namespaces.
      - By default, the module searches all namespaces. The user then needs the right to list each kind in all
        namespaces.
    type: list
    elements: str
    default: []
  keep_namespaces:
    description: Namespaces to keep although they have the label, such as the namespace of the operator.
    type: list
    elements: str
    default: []
  wait_seconds:
    description: Maximum time in seconds to wait until the objects of a kind are gone.
    type: int
    default: 300
  within_disruption:
    description:
      - With O(state=absent), whether the module fails before it removes anything if C(disruption) of O(cluster) does
        not permit what the removal does to nodes, or if a job that uses the intent has not ended.
      - It counts all jobs in the namespaces of the intent that use its networks or resources, whoever made them, and
        pods of all namespaces that hold its resources on its nodes.
      - It also fails if the removal takes the driver of NVIDIA's network operator from under pods that use network
        devices, on any node of the cluster, or if the SR-IOV network operator would take nodes down that must not go
        down now, or would take virtual functions from running pods that it does not evict.
        M(linerate.rdma.sriov_plan) refuses the same nodes.
      - It counts policies, pool configurations and drivers of O(kinds), and MachineConfigs and KubeletConfigs of the
        intent, which M(linerate.rdma.machine_config_roll) removes.
    type: bool
    default: false
  runs_dir:
    description:
      - Report folder of the stages. The run in it saw which NICs the nodes use themselves.
      - With O(within_disruption), the module fails if the removal takes the link of a NIC with the default route or an
        address of its node, or the driver of such a NIC or of a bond. It warns of other uses, and of nodes of which the
        folder has nothing.
    type: path
  waivers:
    description: The variable C(rdma_waivers). A waiver for C(network.lint_uplink) with the subject in the message lets
      O(within_disruption) permit that a node loses a NIC that it uses itself.
    type: raw
extends_documentation_fragment:
  - linerate.rdma._options.cluster_facts
  - linerate.rdma._options.lease
  - linerate.rdma._options.objects
  - linerate.rdma._options.scope
  - linerate.rdma._attributes.changes
  - linerate.rdma._authentication.options
requirements:
  - kubernetes >= 24.2.0
attributes:
  check_mode:
    details:
      - The module uses the dry run of the API server, which also shows refusals.
  diff_mode:
    details:
      - The diff leaves out fields that only the API server writes.
  idempotent:
    details:
      - The module does not write an object that the dry run would not change.
"""

EXAMPLES = r"""
- name: Submit a training job
  linerate.rdma.custom_resources:
    objects: "{{ rdma_job | linerate.rdma.render_job(rdma_fabrics, rdma_cluster) }}"
  register: job_applied

- name: Remove the pods of an interrupted run
  linerate.rdma.custom_resources:
    state: absent
    kinds: [Pod]
    label_selector: app.kubernetes.io/managed-by=linerate.rdma,linerate.rdma/run
"""

RETURN = r"""
applied:
  description: Result for each object.
  returned: success
  type: list
  elements: dict
  contains:
    kind:
      description: Kind of the object.
      type: str
    name:
      description: Name of the object.
      type: str
    namespace:
      description: Namespace of the object. Empty if the object has none.
      type: str
    fabric:
      description: Fabric of the object. Empty if all fabrics share the object.
      type: str
    action:
      description:
        - V(created), V(changed), V(unchanged), V(deleted), V(released), V(absent), V(kept) or V(refused). In check
          mode, what would happen.
        - V(released) means that the object also has fields of others. Only the fields of the collection were removed.
        - V(kept) means that the object is not deleted. Either a user copied it with its label, and no run wrote it,
          or it may belong to another intent, for the reason in RV(applied[].refusal).
        - V(unjudged) occurs in check mode only. The kind, the namespace or an object that it needs does not exist yet,
          so the API server cannot judge it.
      type: str
    refusal:
      description: Message of the API server or of its webhook, if the object was refused.
      type: str
    reason:
      description: Reason code of the refusal, as the API server returned it.
      type: str
      sample: Forbidden
    warnings:
      description: Warnings of the API server.
      type: list
      elements: str
leftovers:
  description: Objects that O(find_leftovers) found.
  returned: when O(find_leftovers)
  type: dict
  contains:
    objects:
      description: The objects, with RV(applied[].kind), RV(applied[].name), RV(applied[].namespace) and
        RV(applied[].fabric).
      type: list
      elements: dict
    errors:
      description: Kinds that could not be listed, each with the reason.
      type: list
      elements: str
changes:
  description: One line for each object that was written, or would be written in check mode.
  returned: success
  type: list
  elements: str
  sample: [created SriovNetworkNodePolicy sriov-network-operator/linerate-storage]
counts:
  description: Number of items in each list or mapping of the result. The result itself is then a fact in O(facts_dir).
  returned: if O(facts_dir) and O(run) are set
  type: dict
"""

import time
import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._ansible.cluster import (
    connect,
    format_difference,
    make_facts_spec,
)
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.fact_modules import (
    OBJECT_SPEC,
    get_objects,
    read_last_nics_in_use,
    run_with_fact,
)
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.lease import LEASE_SPEC, hold_lease
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.scope import SCOPE_SPEC, read_scope
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.marks import SELECTOR
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.text import join_first
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.own_kinds import JOBS, KINDS, OF_FABRICS
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Waiver
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.apply import apply_all
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.client import Cluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.kinds import Resource
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.outcome import Outcome
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.removal.leftovers import (
    find_all_leftovers,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.removal.removable_objects import Removal
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.removal.remove import remove_all
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.removal.gate import refuse_removal
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.removal.known_uses import KnownUses
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.admission import remove_leftovers
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.machine_configs.paused_pools import (
    explain_by,
)

Wanted = typing.Sequence[tuple[str, Resource]]
#: not with the others: nobody should have to be allowed to list the ConfigMaps of all namespaces
NIC_MAP = "ConfigMap"
#: with the account that may use them
ADMISSION = "SecurityContextConstraints"


def describe(outcome: Outcome) -> str:
    applied = outcome.applied
    name = f"{applied.kind} {applied.namespace + '/' if applied.namespace else ''}{applied.name}"
    return (
        f"created {name}, not validated by the API server yet"
        if applied.action == "unjudged"
        else f"{applied.action} {name}"
    )


def is_of_runs(module: AnsibleModule, kinds: typing.Iterable[str]) -> bool:
    """Return whether a change of objects of the given kinds requires the Lease. It does if the change belongs to a run,
    or if the objects affect the results of runs. Objects of jobs and NIC maps do not require the Lease, so that a user
    without rights to the Lease can submit a job during a run.
    """
    return bool(module.params["run"]) or not set(kinds) <= {*JOBS, NIC_MAP}


def work(module: AnsibleModule) -> dict[str, typing.Any]:
    cluster, options = connect(module), module.params
    selector = options["label_selector"]
    if ADMISSION in options["kinds"] and options["kinds"] != [ADMISSION]:
        module.fail_json(
            msg=(
                f"kinds is {', '.join(options['kinds'])}; {ADMISSION} must be the only kind, because its account is"
                " removed together with it"
            )
        )
    if SELECTOR not in selector.split(","):
        module.fail_json(
            msg=f"label_selector is '{selector}'; it must contain {SELECTOR}, so that no other object is deleted"
        )
    present = options["state"] == "present"
    wanted = [(item["fabric"], item["object"]) for item in get_objects(module, "hosts", "objects")] if present else []
    kinds = [str(definition.get("kind")) for _fabric, definition in wanted] if present else options["kinds"]
    if not is_of_runs(module, kinds):
        return change(module, cluster, wanted)
    with hold_lease(module, cluster) as held:
        return change(module, held.cluster, wanted)


def change(module: AnsibleModule, cluster: Cluster, wanted: Wanted) -> dict[str, typing.Any]:
    options, selector = module.params, module.params["label_selector"]
    beside: dict[str, typing.Any] = {}
    scope = read_scope(options, cluster)
    if options["state"] == "present":
        absent, explain = options["absent_namespaces"], explain_by(cluster, scope)
        outcomes = apply_all(cluster, wanted, module.check_mode, absent=absent, scope=scope, explain_unrecorded=explain)
        if options["find_leftovers"]:
            tunes = load(ClusterIntent, options["cluster"] or {}, "rdma_cluster").tuning.set
            asked = [definition for _fabric, definition in wanted]
            beside["leftovers"] = to_data(find_all_leftovers(cluster, OF_FABRICS, selector, asked, scope, tunes))
    elif options["kinds"] == [ADMISSION]:
        outcomes = remove_leftovers(cluster, options["namespaces"], module.check_mode)
    else:
        removal = Removal(
            tuple(options["kinds"]),
            selector,
            tuple(options["keep_namespaces"]),
            options["wait_seconds"],
            tuple(options["namespaces"]),
            scope,
        )
        if options["within_disruption"]:
            intent = load(ClusterIntent, options["cluster"] or {}, "rdma_cluster")
            waivers = load(tuple[Waiver, ...], options["waivers"] or [], "rdma_waivers")
            uses = KnownUses(*read_last_nics_in_use(options["runs_dir"]), waivers)
            refuse_removal(cluster, removal, intent.disruption, intent, uses)
            if uses.told:
                module.warn(join_first(uses.told, 10, "; "))
        outcomes = remove_all(cluster, removal, module.check_mode, time.monotonic, time.sleep)
    changed = [outcome for outcome in outcomes if outcome.changed]
    answer = {
        "changed": bool(changed),
        "applied": to_data([outcome.applied for outcome in outcomes]),
        "changes": [describe(outcome) for outcome in changed],
        # a tenant may have made any number of large objects with the label
        **({"diff": format_difference(outcomes)} if module._diff else {}),
        **beside,
    }
    refused = [
        f"{describe(outcome)}: {outcome.applied.refusal}" for outcome in outcomes if outcome.applied.action == "refused"
    ]
    if refused and options["on_refusal"] == "fail":
        module.fail_json(msg="; ".join(refused), **answer)
    return answer


def main() -> None:
    module = AnsibleModule(
        argument_spec=make_facts_spec(
            **LEASE_SPEC,
            **SCOPE_SPEC,
            state={"type": "str", "choices": ["present", "absent"], "default": "present"},
            objects={"type": "list", "elements": "dict", "default": [], "options": OBJECT_SPEC},
            objects_from={"type": "str"},
            on_refusal={"type": "str", "choices": ["fail", "tell"], "default": "fail"},
            kinds={"type": "list", "elements": "str", "choices": [*KINDS, NIC_MAP, ADMISSION], "default": list(KINDS)},
            absent_namespaces={"type": "list", "elements": "str", "default": []},
            find_leftovers={"type": "bool", "default": False},
            label_selector={"type": "str", "default": SELECTOR},
            namespaces={"type": "list", "elements": "str", "default": []},
            keep_namespaces={"type": "list", "elements": "str", "default": []},
            wait_seconds={"type": "int", "default": 300},
            within_disruption={"type": "bool", "default": False},
            runs_dir={"type": "path"},
            waivers={"type": "raw"},
        ),
        supports_check_mode=True,
    )
    run_with_fact(module, lambda: work(module), "applied")


if __name__ == "__main__":
    main()
