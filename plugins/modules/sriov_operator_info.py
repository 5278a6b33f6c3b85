#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: sriov_operator_info
short_description: Tells which SR-IOV network operator a cluster has, and whether it serves
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Reads what the SR-IOV network operator needs and shows, whichever way it was installed (Helm, OLM, inside NVIDIA's network operator).
  - Custom resource definitions, Deployments, config daemon, C(SriovOperatorConfig), multus, and the nodes with their labels and extended resources.
  - What the API server does not let us read is returned in C(operators.errors), never taken for absent.
options:
  namespace:
    description: Namespace of the operator.
    type: str
    default: sriov-network-operator
  nodes:
    description: Nodes that the operator must serve. Where one lacks a label of O(node_selector), node feature discovery is looked at as well.
    type: list
    elements: str
    default: []
  node_selector:
    description: Label of the nodes that take part.
    type: dict
    default: {}
  wait_seconds:
    description:
      - Limit of a wait until the operator serves the nodes.
      - With V(0) the module looks once. A wait that ends without success is no failure; what is missing is in the answer.
    type: int
    default: 0
  progress_file:
    description: File to which a line is added whenever what is missing changes. Without it the lines go to Ansible's output.
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
    description: Only reads, and looks once.
  diff_mode:
    support: N/A
    description: Changes nothing.
  idempotent:
    support: full
    description: Only reads.
"""

EXAMPLES = r"""
- name: See which operator there is
  linerate.rdma.sriov_operator_info:
    namespace: openshift-sriov-network-operator
  register: operators_info
"""

RETURN = r"""
namespaces:
  description: Namespaces of the operators that were found.
  returned: success
  type: list
  elements: str
configs:
  description: Namespaces with a C(SriovOperatorConfig).
  returned: success
  type: list
  elements: str
operators:
  description: What was found.
  returned: success
  type: dict
  contains:
    crds:
      description: Established custom resource definitions of the operator, of attachments and of whereabouts.
      type: list
      elements: str
    installations:
      description: Each SR-IOV network operator with its Deployment, version, origin and resource prefix.
      type: list
      elements: dict
    configs:
      description: Namespaces with a C(SriovOperatorConfig) called C(default).
      type: list
      elements: str
    daemon:
      description: The config daemon's DaemonSet in O(namespace), with the nodes on which it is ready; null when there is none.
      type: dict
    multus:
      description: DaemonSets that look like multus.
      type: list
      elements: dict
    multus_pods:
      description: Pods in O(namespace) that carry the annotation which multus writes.
      type: int
    attachments:
      description: How many C(NetworkAttachmentDefinitions) there are; null when the API server does not know the kind.
      type: int
    nodes:
      description: Name, labels, readiness and extended resources of each node.
      type: list
      elements: dict
    states:
      description: What the operator wants of each node, and what its config daemon reports (C(SriovNetworkNodeState)).
      type: list
      elements: dict
    policies:
      description: The C(SriovNetworkNodePolicies) in O(namespace).
      type: list
      elements: dict
    supported_nics:
      description: PCI ids that the operator supports (its ConfigMap C(supported-nic-ids)); null when there is none.
      type: list
      elements: dict
    discovery:
      description: Workers of node feature discovery, where they are ready and what they are told; null when no node lacks a label.
      type: list
      elements: dict
    olm:
      description: C(ClusterServiceVersions) and C(Subscriptions) of the operator in O(namespace), with their state.
      type: list
      elements: dict
    troubles:
      description: Pods in O(namespace) that are not ready, each with its cause.
      type: list
      elements: str
    errors:
      description: What could not be read, and why.
      type: list
      elements: str
"""

import time
import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._cluster import connect, facts_spec, progress
from ansible_collections.linerate.rdma.plugins.module_utils._fact_modules import folder_of, run_with_fact
from ansible_collections.linerate.rdma.plugins.module_utils._lease import LEASE_SPEC, waiting
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent import ClusterIntent
from ansible_collections.linerate.rdma.plugins.module_utils._model.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._observe.feature_discovery import with_discovery
from ansible_collections.linerate.rdma.plugins.module_utils._observe.sriov_operator import observe
from ansible_collections.linerate.rdma.plugins.module_utils._run.wait_for_operator import wait_until_serving


def work(module: AnsibleModule) -> typing.Dict[str, typing.Any]:
    options, cluster, folder = module.params, connect(module), folder_of(module)
    nodes = options["nodes"] or (folder.start().nodes if folder else [])
    selector = {key: str(value) for key, value in options["node_selector"].items()}
    if module.check_mode or not options["wait_seconds"]:
        facts = observe(cluster, options["namespace"])
    else:
        intent = ClusterIntent(node_selector=selector, operator_namespace=options["namespace"])
        with waiting(module, cluster), progress(options["progress_file"]) as say:
            facts = wait_until_serving(cluster, intent, nodes, options["wait_seconds"], time.monotonic, time.sleep, say)
    namespaces = sorted({item.deployment.namespace for item in facts.installations})
    seen = with_discovery(cluster, facts, selector, nodes)
    return {"operators": to_data(seen), "namespaces": namespaces, "configs": list(seen.configs)}


def main() -> None:
    module = AnsibleModule(
        argument_spec=facts_spec(
            **LEASE_SPEC,
            namespace={"type": "str", "default": "sriov-network-operator"},
            nodes={"type": "list", "elements": "str", "default": []},
            node_selector={"type": "dict", "default": {}},
            wait_seconds={"type": "int", "default": 0},
            progress_file={"type": "path"},
        ),
        supports_check_mode=True,
    )
    run_with_fact(module, lambda: work(module), "operators", keep=("namespaces", "configs"))


if __name__ == "__main__":
    main()
