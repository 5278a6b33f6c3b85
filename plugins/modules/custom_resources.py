#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: custom_resources
short_description: Applies objects with a dry run of all first, or takes back all that the collection made
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Applies a list of objects server-side, after a server-side dry run of all of them. Admission webhooks judge the dry run as well.
  - What the API server or a webhook refuses keeps nobody else back. In the end the module fails with the server's own words, unless O(on_refusal=tell).
  - A webhook may need a moment to see what was just made. An object that is refused for want of another of O(objects) is tried again for 10 seconds.
  - With O(state=absent) it deletes every object of O(kinds) that carries O(label_selector), in the order of O(kinds), and waits until it is gone.
  - A namespace that was there before and does not carry the collection's label is neither changed nor deleted.
  - A cluster has one C(NicClusterPolicy) for all who use it. The collection's fields join what others wrote into it, and with O(state=absent)
    only they are taken back; a field that somebody else owns with another value is refused.
options:
  state:
    description: Whether to apply O(objects), or to take back what carries O(label_selector).
    type: str
    choices: [present, absent]
    default: present
  objects:
    description: What to apply, in this order. P(linerate.rdma.render_pods#filter) and P(linerate.rdma.render_job#filter) make such; see O(objects_from).
    type: list
    elements: dict
    default: []
    suboptions:
      fabric:
        description: Name of the fabric to which the object belongs; empty for what fabrics share.
        type: str
        default: ""
      object:
        description: The object, with C(kind), C(apiVersion) and C(metadata.name).
        type: dict
        required: true
  objects_from:
    description: Take the objects from this fact of the run, which M(linerate.rdma.network_objects) has written.
    type: str
  on_refusal:
    description:
      - Whether the module fails when an object was refused, after all others, or tells of it in RV(applied) only.
      - The stages have it told, and judge it.
    type: str
    choices: [fail, tell]
    default: fail
  kinds:
    description: What to take back, in this order.
    type: list
    elements: str
    choices:
      - PyTorchJob
      - TrainJob
      - TrainingRuntime
      - Pod
      - SriovNetwork
      - SriovIBNetwork
      - MacvlanNetwork
      - IPoIBNetwork
      - HostDeviceNetwork
      - NetworkAttachmentDefinition
      - NicClusterPolicy
      - SriovNetworkNodePolicy
      - SriovNetworkPoolConfig
      - IPPool.nv-ipam.nvidia.com
      - CIDRPool.nv-ipam.nvidia.com
      - Namespace
      - ConfigMap
    default:
      - PyTorchJob
      - TrainJob
      - TrainingRuntime
      - Pod
      - SriovNetwork
      - SriovIBNetwork
      - MacvlanNetwork
      - IPoIBNetwork
      - HostDeviceNetwork
      - NetworkAttachmentDefinition
      - NicClusterPolicy
      - SriovNetworkNodePolicy
      - SriovNetworkPoolConfig
      - IPPool.nv-ipam.nvidia.com
      - CIDRPool.nv-ipam.nvidia.com
      - Namespace
  find_leftovers:
    description:
      - With O(state=present), whether to look for networks, policies and pools that carry O(label_selector) and are not among O(objects).
        They are told, and stay.
      - It takes the right to list these kinds in all namespaces.
    type: bool
    default: false
  label_selector:
    description: What carries this label is taken back. It must name the collection's label; more can be added to it.
    type: str
    default: app.kubernetes.io/managed-by=linerate.rdma
  namespaces:
    description:
      - Look in these namespaces only. Without it all are looked through, which takes the right to list each kind everywhere.
    type: list
    elements: str
    default: []
  keep_namespaces:
    description: Namespaces that stay although they carry the label, such as the operator's while the operator stays.
    type: list
    elements: str
    default: []
  wait_seconds:
    description: How long to wait, for each kind, until its objects are gone.
    type: int
    default: 300
extends_documentation_fragment:
  - linerate.rdma._options.cluster_facts
  - linerate.rdma._options.lease
  - kubernetes.core.k8s_auth_options
requirements:
  - kubernetes >= 24.2.0
attributes:
  check_mode:
    support: full
    description: Asks the API server itself, by its dry run, so that a refusal shows before anything is made.
  diff_mode:
    support: full
    description: Shows each object before and after, without what only the API server writes.
  idempotent:
    support: full
    description: An object that the dry run would not change is not written.
"""

EXAMPLES = r"""
- name: Apply what a training job needs
  linerate.rdma.custom_resources:
    objects: "{{ rdma_job | linerate.rdma.render_job(rdma_fabrics, rdma_cluster) }}"
    kubeconfig: "{{ rdma_kubeconfig }}"
  register: network_applied

- name: Take back the pods of an interrupted run
  linerate.rdma.custom_resources:
    state: absent
    kinds: [Pod]
"""

RETURN = r"""
applied:
  description: What became of each object.
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
      description: Its namespace; empty when it has none.
      type: str
    fabric:
      description: Its fabric; empty for what fabrics share.
      type: str
    action:
      description:
        - V(created), V(changed), V(unchanged), V(deleted), V(released), V(absent) or V(refused). In check mode what would become of it.
        - V(released) is an object in which others have a part and which lost the collection's fields.
        - V(unjudged) in check mode, when the kind, the namespace or an object that it needs is not there yet, so that nobody can judge the object.
      type: str
    refusal:
      description: Why it was refused, in the words of the API server or its webhook.
      type: str
    reason:
      description: The API's reason of the refusal.
      type: str
      sample: Forbidden
    warnings:
      description: What the API server warned of.
      type: list
      elements: str
leftovers:
  description: What O(find_leftovers) found.
  returned: when O(find_leftovers)
  type: dict
  contains:
    objects:
      description: The objects, with RV(applied[].kind), RV(applied[].name), RV(applied[].namespace) and RV(applied[].fabric).
      type: list
      elements: dict
    errors:
      description: Kinds that could not be listed, and why.
      type: list
      elements: str
changes:
  description: One line for each object that was written, or would be.
  returned: success
  type: list
  elements: str
  sample: [created SriovNetworkNodePolicy sriov-network-operator/linerate-storage]
"""

import time
import typing

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.common.yaml import yaml_dump

from ansible_collections.linerate.rdma.plugins.module_utils._cluster import connect, facts_spec
from ansible_collections.linerate.rdma.plugins.module_utils._fact_modules import OBJECT_SPEC, objects_of, run_with_fact
from ansible_collections.linerate.rdma.plugins.module_utils._lease import LEASE_SPEC, working
from ansible_collections.linerate.rdma.plugins.module_utils._model.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._observe.apply import Outcome, Removal, apply_all, leftovers, remove_all
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes import Cluster, Resource

LABEL = "app.kubernetes.io/managed-by=linerate.rdma"
POOLS = ["IPPool.nv-ipam.nvidia.com", "CIDRPool.nv-ipam.nvidia.com"]
NETWORKS = ["SriovNetwork", "SriovIBNetwork", "MacvlanNetwork", "IPoIBNetwork", "HostDeviceNetwork", "NetworkAttachmentDefinition"]
Wanted = typing.Sequence[typing.Tuple[str, Resource]]
JOBS = ["PyTorchJob", "TrainJob", "TrainingRuntime"]
OF_FABRICS = [*NETWORKS, "NicClusterPolicy", "SriovNetworkNodePolicy", "SriovNetworkPoolConfig", *POOLS]
KINDS = [*JOBS, "Pod", *OF_FABRICS, "Namespace"]
#: not with the others: nobody should have to be allowed to list the ConfigMaps of all namespaces
NIC_MAP = "ConfigMap"


def describe(outcome: Outcome) -> str:
    applied = outcome.applied
    name = f"{applied.kind} {applied.namespace + '/' if applied.namespace else ''}{applied.name}"
    return f"created {name}, not judged by the API server yet" if applied.action == "unjudged" else f"{applied.action} {name}"


def difference(outcomes: typing.Iterable[Outcome]) -> typing.List[typing.Dict[str, str]]:
    def text(resource: typing.Any) -> str:
        return yaml_dump(resource, sort_keys=True) if resource is not None else ""

    return [
        {
            "before_header": f"{outcome.applied.kind} {outcome.applied.name}",
            "after_header": f"{outcome.applied.kind} {outcome.applied.name}",
            "before": text(outcome.before),
            "after": text(outcome.after),
        }
        for outcome in outcomes
        if outcome.changed
    ]


def is_of_runs(module: AnsibleModule, kinds: typing.Iterable[str]) -> bool:
    """Whether the module changes what runs prove. Jobs and their NIC maps are no run's: whoever submits one waits for none, and needs no right to the Lease."""
    return bool(module.params["run"]) or not set(kinds) <= {*JOBS, NIC_MAP}


def work(module: AnsibleModule) -> typing.Dict[str, typing.Any]:
    cluster, options = connect(module), module.params
    selector = options["label_selector"]
    if LABEL not in selector.split(","):
        module.fail_json(msg=f"label_selector is '{selector}'; it must contain {LABEL}, so that nothing else is deleted")
    present = options["state"] == "present"
    wanted = [(item["fabric"], item["object"]) for item in objects_of(module, "hosts", "objects")] if present else []
    kinds = [str(definition.get("kind")) for _fabric, definition in wanted] if present else options["kinds"]
    if not is_of_runs(module, kinds):
        return change(module, cluster, wanted)
    with working(module, cluster) as held:
        return change(module, held.cluster, wanted)


def change(module: AnsibleModule, cluster: Cluster, wanted: Wanted) -> typing.Dict[str, typing.Any]:
    options, selector = module.params, module.params["label_selector"]
    beside: typing.Dict[str, typing.Any] = {}
    if options["state"] == "present":
        outcomes = apply_all(cluster, wanted, module.check_mode)
        if options["find_leftovers"]:
            beside["leftovers"] = to_data(leftovers(cluster, OF_FABRICS, selector, [definition for _fabric, definition in wanted]))
    else:
        removal = Removal(tuple(options["kinds"]), selector, tuple(options["keep_namespaces"]), options["wait_seconds"], tuple(options["namespaces"]))
        outcomes = remove_all(cluster, removal, module.check_mode, time.monotonic, time.sleep)
    changed = [outcome for outcome in outcomes if outcome.changed]
    answer = {
        "changed": bool(changed),
        "applied": to_data([outcome.applied for outcome in outcomes]),
        "changes": [describe(outcome) for outcome in changed],
        "diff": difference(outcomes),
        **beside,
    }
    refused = [f"{describe(outcome)}: {outcome.applied.refusal}" for outcome in outcomes if outcome.applied.action == "refused"]
    if refused and options["on_refusal"] == "fail":
        module.fail_json(msg="; ".join(refused), **answer)
    return answer


def main() -> None:
    module = AnsibleModule(
        argument_spec=facts_spec(
            **LEASE_SPEC,
            state={"type": "str", "choices": ["present", "absent"], "default": "present"},
            objects={"type": "list", "elements": "dict", "default": [], "options": OBJECT_SPEC},
            objects_from={"type": "str"},
            on_refusal={"type": "str", "choices": ["fail", "tell"], "default": "fail"},
            kinds={"type": "list", "elements": "str", "choices": [*KINDS, NIC_MAP], "default": KINDS},
            find_leftovers={"type": "bool", "default": False},
            label_selector={"type": "str", "default": LABEL},
            namespaces={"type": "list", "elements": "str", "default": []},
            keep_namespaces={"type": "list", "elements": "str", "default": []},
            wait_seconds={"type": "int", "default": 300},
        ),
        supports_check_mode=True,
    )
    run_with_fact(module, lambda: work(module), "applied")


if __name__ == "__main__":
    main()
