#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: sriov_sync
short_description: Waits until the operators have made of the fabrics what they ask for
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Waits for each node of each fabric until the operator has seen the policy, its config daemon has made the virtual functions,
    the kubelet offers them, and the C(NetworkAttachmentDefinition) is there. For networks without virtual functions, until NVIDIA's network operator
    reports C(ready) where it has a part, multus can read the attachment, nv-ipam has given each node a share, and the kubelet offers the devices.
  - Watches the API server, so that a failure ends the wait within a second of the event and its requests do not grow with time.
    It survives a restart of the API server.
  - Ends early with the cause when waiting cannot help; a failed sync with the text of the config daemon's log, a config daemon that does not run,
    no selected interface with the nearest match, a missing label, a refused policy, a drain with the pods and C(PodDisruptionBudgets) that hold it,
    C(maxUnavailable) that rounds down to 0, a C(MachineConfigPool) that is paused or degraded, a node that is lost, comes and goes, or boots in a loop.
  - A C(Succeeded) from before the policy was seen is not believed. The wanted state of the node is compared with all of the policy,
    and what the config daemon reports with all of the wanted state.
  - A node that becomes ready while it is watched must stay so for 12 seconds. The config daemon ends the device plugin before it says C(Succeeded),
    and the kubelet tells every 10 seconds only what the node offers, so that it may be what the plugin offered that is gone.
  - C(SriovNetworkPoolConfigs), C(MachineConfigPools), C(PodDisruptionBudgets), pods and their logs only explain; where they cannot be read the wait goes on.
  - It is no failure of the module when a node fails or the time is over; both are in the result for the check of the stage to judge.
  - While it runs on the controller, each change of a node's state is shown.
options:
  targets:
    description: What to wait for. Without it, with O(facts_dir), it follows from O(fabrics) and what became of their objects.
    type: list
    elements: dict
    suboptions:
      fabric:
        description: Name of the fabric.
        type: str
        required: true
      policies:
        description: Names of its C(SriovNetworkNodePolicies).
        type: list
        elements: str
        required: true
      resource:
        description: Extended resource with its prefix.
        type: str
        required: true
      attachment:
        description: Namespace and name of its C(NetworkAttachmentDefinition), with a slash between them.
        type: str
        required: true
      nodes:
        description: Nodes that must get there, as the cluster names them.
        type: list
        elements: str
        required: true
      hcas_per_node:
        description: Physical functions that the policies must select on each node.
        type: int
        required: true
      predicates:
        description:
          - What must hold, by name. V(virtual_functions) alone waits for the SR-IOV network operator; networks without virtual functions
            have V(objects), V(attachment), V(pool), V(resource) and V(ready).
        type: list
        elements: str
        default: [virtual_functions]
      objects:
        description: Kind and name of each object that its operator must report as ready, such as C(NicClusterPolicy nic-cluster-policy).
        type: list
        elements: str
        default: []
      plugin:
        description: Keys and values that the first CNI plugin of the attachment must have.
        type: dict
        default: {}
      pool:
        description: Kind, and namespace and name, of the pool of nv-ipam in which each node must have a share.
        type: str
        default: ""
  fabrics:
    description: In place of O(targets), the variable C(rdma_fabrics). What must come of it is worked out with the facts of the run.
    type: raw
  cluster:
    description: Beside O(fabrics), the variable C(rdma_cluster).
    type: raw
  applied:
    description: Beside O(fabrics), the fact that tells what became of the objects.
    type: str
    default: applied
  namespace:
    description: Namespace of the operator.
    type: str
    default: sriov-network-operator
  state:
    description: Wait for the virtual functions, or, V(absent), until none is left after the policies were deleted.
    type: str
    choices: [present, absent]
    default: present
  wait_seconds:
    description: Limit of the wait. In check mode the module looks once.
    type: int
    default: 1800
  progress_file:
    description: File to which a line is added at each change of a node's state. Without it the lines go to Ansible's output.
    type: path
extends_documentation_fragment:
  - linerate.rdma._options.cluster_facts
  - linerate.rdma._options.lease
  - kubernetes.core.k8s_auth_options
requirements:
  - kubernetes >= 24.2.0
attributes:
  check_mode:
    support: full
    description: Looks once and does not wait.
  diff_mode:
    support: N/A
    description: Changes nothing.
  idempotent:
    support: full
    description: Only reads.
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
  description: The last state.
  returned: success
  type: dict
  contains:
    finished:
      description: Each node is ready or has failed.
      type: bool
    timed_out:
      description: The limit was reached first.
      type: bool
    waited_seconds:
      description: How long it took.
      type: float
    nodes:
      description: For each fabric and node its C(phase) (V(ready), V(waiting), V(failed)), C(detail), C(remedy), C(matched) PCI addresses and C(allocatable).
      type: list
      elements: dict
"""

import time
import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._check.network.wait.state import Target
from ansible_collections.linerate.rdma.plugins.module_utils._cluster import connect, facts_spec, progress
from ansible_collections.linerate.rdma.plugins.module_utils._fact_modules import folder_of, run_with_fact
from ansible_collections.linerate.rdma.plugins.module_utils._folder import value_of
from ansible_collections.linerate.rdma.plugins.module_utils._lease import LEASE_SPEC, waiting
from ansible_collections.linerate.rdma.plugins.module_utils._model.apply import AppliedObject
from ansible_collections.linerate.rdma.plugins.module_utils._model.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._plan.network import targets
from ansible_collections.linerate.rdma.plugins.module_utils._run.wait_for_network import IN_NAMESPACE, SELECTORS, kinds_of, look, wait
from ansible_collections.linerate.rdma.plugins.module_utils._run.watch import WatchFeed

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


def targets_of(module: AnsibleModule) -> typing.Tuple[Target, ...]:
    """Those that the caller names, else those of the intent, by what became of its objects."""
    options, folder = module.params, folder_of(module)
    if options["targets"] is not None or folder is None:
        given: typing.Tuple[Target, ...] = load(typing.Tuple[Target, ...], options["targets"] or [], "targets")
        return given
    intent = parse_intent(options["fabrics"], None, options["cluster"])
    applied = load(typing.Tuple[AppliedObject, ...], value_of(folder, options["applied"], "applied"), "applied")
    return targets(intent, folder.start().nodes, applied, every=options["state"] == "absent")


def work(module: AnsibleModule) -> typing.Dict[str, typing.Any]:
    options = module.params
    targets = targets_of(module)
    namespaces = dict.fromkeys(IN_NAMESPACE, options["namespace"])
    cluster, release = connect(module), options["state"] == "absent"
    if module.check_mode:
        return {"sync": to_data(look(cluster, namespaces, targets, release))}
    feed = WatchFeed(cluster, namespaces, kinds_of(targets), selectors=SELECTORS)
    with waiting(module, cluster), progress(options["progress_file"]) as say:
        feed.start()
        try:
            return {"sync": to_data(wait(feed, targets, options["wait_seconds"], time.monotonic, say, release))}
        finally:
            feed.stop()


def main() -> None:
    module = AnsibleModule(
        argument_spec=facts_spec(
            **LEASE_SPEC,
            targets={"type": "list", "elements": "dict", "options": TARGET},
            fabrics={"type": "raw"},
            cluster={"type": "raw"},
            applied={"type": "str", "default": "applied"},
            namespace={"type": "str", "default": "sriov-network-operator"},
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
