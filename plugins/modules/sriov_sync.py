#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: sriov_sync
short_description: Wait until the operators have set up the networks of the fabrics
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - For networks with virtual functions (VFs), waits until each node of each fabric is ready. A node is ready when the
    operator has processed the policy, the config daemon has created the VFs, the kubelet reports them as allocatable,
    and the C(NetworkAttachmentDefinition) exists.
  - For networks without VFs, waits until the NVIDIA network operator reports C(ready) for its objects, multus can read
    the attachment, nv-ipam has assigned each node its block of addresses, and the kubelet reports the devices as
    allocatable.
  - Watches the API server. A failure ends the wait within a second, and a long wait does not cause more requests. The
    wait continues after a restart of the API server.
  - Ends early if waiting cannot help, and reports the cause. Examples are a failed sync with the log of the config
    daemon, a missing label, a refused policy, a policy that selects no interface, a blocked drain, a paused or degraded
    C(MachineConfigPool), and a node that is lost or reboots repeatedly.
  - Does not trust a C(Succeeded) from before the operator processed the policy. It compares the desired state of the
    node with the whole policy, and the reported state with the whole desired state.
  - A node that becomes ready must stay ready for 12 seconds. The config daemon stops the device plugin before it
    reports C(Succeeded), and the kubelet updates the node status only every 10 seconds. Until then, the kubelet may
    report devices that are already gone.
  - Reads C(SriovNetworkPoolConfigs), C(MachineConfigPools), C(PodDisruptionBudgets), pods and their logs only to
    explain. If they cannot be read, the wait continues.
  - Does not fail if a node fails or the time is over. The check of the stage judges the result.
options:
  targets:
    description: Nodes and networks to wait for. With O(facts_dir), the default follows from O(fabrics) and from the
      result of applying their objects.
    type: list
    elements: dict
    suboptions:
      fabric:
        description: Name of the fabric.
        type: str
        required: true
      policies:
        description: Names of the C(SriovNetworkNodePolicies) of the fabric.
        type: list
        elements: str
        required: true
      resource:
        description: Extended resource, including its prefix.
        type: str
        required: true
      attachment:
        description: Namespace and name of the C(NetworkAttachmentDefinition) of the fabric, separated by a slash.
        type: str
        required: true
      nodes:
        description: Kubernetes names of the nodes that must become ready.
        type: list
        elements: str
        required: true
      hcas_per_node:
        description: Number of physical functions that the policies must select on each node.
        type: int
        required: true
      predicates:
        description:
          - Names of the conditions to wait for.
          - V(virtual_functions) waits for the SR-IOV network operator. Networks without VFs use V(objects),
            V(attachment), V(pool), V(resource) and V(ready).
        type: list
        elements: str
        default: [virtual_functions]
      objects:
        description: Kind and name of each object that its operator must report as ready, such as C(NicClusterPolicy
          nic-cluster-policy).
        type: list
        elements: str
        default: []
      plugin:
        description: Keys and values that the first CNI plugin of the attachment must contain.
        type: dict
        default: {}
      pool:
        description: Kind, namespace and name of the nv-ipam pool in which each node must have a block of addresses.
        type: str
        default: ""
  fabrics:
    description: The variable C(rdma_fabrics), as an alternative to O(targets). The module derives the targets from it
      and from the facts of the run.
    type: raw
  cluster:
    description: The variable C(rdma_cluster). Used with O(fabrics).
    type: raw
  applied:
    description: Kind of the fact with the result of M(linerate.rdma.custom_resources). Used with O(fabrics).
    type: str
    default: applied
  namespace:
    description: Namespace of the operator. The default is the one where it is seen.
    type: str
  state:
    description: V(present) waits until the networks are ready. V(absent) waits until no VF is left after the policies
      were deleted.
    type: str
    choices: [present, absent]
    default: present
  wait_seconds:
    description: Maximum time in seconds to wait.
    type: int
    default: 1800
extends_documentation_fragment:
  - linerate.rdma._options.cluster_facts
  - linerate.rdma._options.lease
  - linerate.rdma._options.progress
  - linerate.rdma._attributes.reads
  - linerate.rdma._authentication.options
requirements:
  - kubernetes >= 24.2.0
"""

EXAMPLES = r"""
- name: Wait for the virtual functions
  linerate.rdma.sriov_sync:
    targets:
      - fabric: storage
        policies: [linerate-storage]
        resource: openshift.io/igbvf
        attachment: test/storage
        nodes: [worker-1, worker-2]
        hcas_per_node: 1
  register: network_sync
"""

RETURN = r"""
sync:
  description: The last state before the module returned.
  returned: success
  type: dict
  contains:
    finished:
      description: Whether every node is ready or has failed.
      type: bool
    timed_out:
      description: Whether the maximum time was reached first.
      type: bool
    waited_seconds:
      description: Duration of the wait in seconds.
      type: float
    nodes:
      description:
        - For each fabric and node its C(phase) (V(ready), V(waiting) or V(failed)), C(detail), C(remedy) and
          C(allocatable).
        - C(matched) lists the PCI addresses that the policies select.
      type: list
      elements: dict
counts:
  description: Number of items in each list or mapping of the result. The result itself is then a fact in O(facts_dir).
  returned: if O(facts_dir) and O(run) are set
  type: dict
"""

import time
import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.readiness.state import Target
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.cluster import (
    connect,
    make_facts_spec,
    open_progress,
)
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.fact_modules import find_folder, run_with_fact
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.lease import LEASE_SPEC, renew_lease
from ansible_collections.linerate.rdma.plugins.module_utils._app.folder import read_value
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.apply import AppliedObject
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.host import Roll
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators.sriov_operator import (
    namespace_of_operator,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._plan.network import list_targets
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.cluster_state import (
    IN_NAMESPACE,
    SELECTORS,
    list_kinds,
    only_of,
)
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.wait_for_network import judge_once, wait
from ansible_collections.linerate.rdma.plugins.module_utils._run.cluster.watch import REQUIRED, WatchFeed

TARGET = {
    "fabric": {"type": "str", "required": True},
    "policies": {"type": "list", "elements": "str", "required": True},
    "resource": {"type": "str", "required": True},
    "attachment": {"type": "str", "required": True},
    "nodes": {"type": "list", "elements": "str", "required": True},
    "hcas_per_node": {"type": "int", "required": True},
    "predicates": {"type": "list", "elements": "str", "default": ["virtual_functions"]},
    "objects": {"type": "list", "elements": "str", "default": []},
    "plugin": {"type": "dict", "default": {}},
    "pool": {"type": "str", "default": ""},
}


def find_targets(module: AnsibleModule) -> tuple[Target, ...]:
    """Return the targets to wait for (fabrics with their nodes and objects) from the option ``targets``. If the option
    is not set, return the targets of those fabrics of the intent for which the run has applied objects. Return no
    targets if the task has neither the option nor a folder of facts.
    """
    options, folder = module.params, find_folder(module)
    if options["targets"] is not None or folder is None:
        given: tuple[Target, ...] = load(tuple[Target, ...], options["targets"] or [], "targets")
        return given
    intent = parse_intent(options["fabrics"], None, options["cluster"])
    applied = load(tuple[AppliedObject, ...], read_value(folder, options["applied"], "applied"), "applied")
    return list_targets(intent, folder.start().nodes, applied, every=options["state"] == "absent")


def has_rolled(module: AnsibleModule) -> bool:
    """Return whether this run has already reset or rebooted nodes in a roll."""
    folder = find_folder(module)
    if folder is None or not folder.has("rolls"):
        return False
    rolls: tuple[Roll, ...] = load(tuple[Roll, ...], read_value(folder, "rolls", "rolls"), "rolls")
    return any(roll.rolls for roll in rolls)


def work(module: AnsibleModule) -> dict[str, typing.Any]:
    options = module.params
    targets = find_targets(module)
    cluster, release = connect(module), options["state"] == "absent"
    namespaces = dict.fromkeys(IN_NAMESPACE, namespace_of_operator(cluster, options["namespace"]))
    if module.check_mode:
        return {"sync": to_data(judge_once(cluster, namespaces, targets, release))}
    # a teardown may have taken the operator's definitions before
    feed = WatchFeed(
        cluster,
        namespaces,
        list_kinds(targets),
        selectors=SELECTORS,
        needed=() if release else REQUIRED,
        only=only_of(targets),
    )
    with renew_lease(module, cluster), open_progress(options["progress_file"]) as say:
        feed.start()
        try:
            return {
                "sync": to_data(
                    wait(
                        feed, targets, options["wait_seconds"], time.monotonic, say, release, rolled=has_rolled(module)
                    )
                )
            }
        finally:
            feed.stop()


def main() -> None:
    module = AnsibleModule(
        argument_spec=make_facts_spec(
            **LEASE_SPEC,
            targets={"type": "list", "elements": "dict", "options": TARGET},
            fabrics={"type": "raw"},
            cluster={"type": "raw"},
            applied={"type": "str", "default": "applied"},
            namespace={"type": "str"},
            state={"type": "str", "choices": ["present", "absent"], "default": "present"},
            wait_seconds={"type": "int", "default": 1800},
            progress_file={"type": "path"},
        ),
        required_one_of=[("targets", "fabrics")],
        supports_check_mode=True,
    )
    run_with_fact(module, lambda: work(module), "sync")


if __name__ == "__main__":
    main()
