#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: sriov_plan
short_description: Tells which nodes would be drained or rebooted for a set of policies, MachineConfigs and KubeletConfigs, before they are applied
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Reads the cluster once and works out, by the rules of the operator's release 1.6.0, what applying O(objects) would do to each node.
  - It names each node that is drained or rebooted with the reason (number of virtual functions, MTU, driver, firmware, RDMA mode, systemd mode),
    the pods that go, the turns in which it happens (C(maxUnavailable) of C(SriovNetworkPoolConfigs)), and what is in the way
    (C(PodDisruptionBudgets), C(maxUnavailable) that rounds down to 0, C(MachineConfigPools) that are paused or degraded).
  - RV(allowed) says whether C(rdma_cluster.disruption) allows it and nothing is in the way. What could not be read is never allowed.
  - C(MachineConfigs) and C(KubeletConfigs) that are not there yet are in the same plan, with the C(MachineConfigPool) that rolls them out.
    A pool that takes another C(KubeletConfig) as well is in the way, since a node has the settings of one of them alone.
  - Changes nothing.
options:
  objects:
    description:
      - What is to be applied; only C(SriovNetworkNodePolicies), C(SriovNetworkPoolConfigs), C(MachineConfigs) and C(KubeletConfigs) matter.
      - P(linerate.rdma.render_host#filter) makes those of the hosts; M(linerate.rdma.network_objects) makes all of them, see O(objects_from).
    type: list
    elements: dict
    default: []
    suboptions:
      fabric:
        description: Name of the fabric to which the object belongs.
        type: str
        default: ""
      object:
        description: The object.
        type: dict
        required: true
  objects_from:
    description: Take the objects from this fact of the run, which M(linerate.rdma.network_objects) has written.
    type: str
  nodes:
    description: Nodes that must take part. Other nodes that the policies select are planned as well.
    type: list
    elements: str
  cluster:
    description: The variable C(rdma_cluster), as the user wrote it.
    type: raw
extends_documentation_fragment:
  - linerate.rdma._options.cluster_facts
  - kubernetes.core.k8s_auth_options
requirements:
  - kubernetes >= 24.2.0
attributes:
  check_mode:
    support: full
    description: Only reads.
  diff_mode:
    support: N/A
    description: Changes nothing.
  idempotent:
    support: full
    description: Only reads.
"""

EXAMPLES = r"""
- name: Plan what it will do to the nodes
  linerate.rdma.sriov_plan:
    objects: "{{ rdma_cluster | linerate.rdma.render_host }}"
    nodes: [worker-1, worker-2]
    cluster: {disruption: reboot}
  register: network_plan
"""

RETURN = r"""
allowed:
  description: Whether the objects may be applied.
  returned: success
  type: bool
refused:
  description: Why not, for each node or pool, with what to do; the key of C(rdma_cluster) that would allow it is named. Empty when they may be applied.
  returned: success
  type: list
  elements: str
  sample:
    - >-
      worker-1: drain and reboot: mlx5_0 0000:3c:00.0 firmware NUM_OF_VFS 0 -> 8. The node's wanted state changes in a way that needs a reboot of it.
      The intent does not allow that, so nothing was applied.
      When the nodes may go down, set rdma_cluster.disruption to reboot; else undo what is named beside 'measured'.
lines:
  description: The plan in words; empty when no node is drained or rebooted.
  returned: success
  type: list
  elements: str
  sample: ["worker-1 is drained: ens1f0 0000:3b:00.0 virtual functions 4 -> 8", "default pool: 2 nodes, 1 at a time, in 2 waves"]
plan:
  description: For the check of the stage.
  returned: success
  type: dict
  contains:
    nodes:
      description: For each node its C(action) (V(nothing), V(configure), V(drain), V(reboot), V(unknown)), C(reasons), C(pods), C(lost), C(blockers),
          C(pool), and C(rolled_by), the C(MachineConfigPool) that reboots it.
      type: list
      elements: dict
    pools:
      description: For each pool its C(nodes), C(at_once), C(waves), C(limit), C(blockers), and C(machines) for a C(MachineConfigPool).
      type: list
      elements: dict
    drains:
      description: Whether the operator drains at all.
      type: bool
    unread:
      description: Kinds that could not be read, and why.
      type: dict
"""

import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._check.network.disruption.sriov import lines, refusal, untouched
from ansible_collections.linerate.rdma.plugins.module_utils._cluster import connect, facts_spec
from ansible_collections.linerate.rdma.plugins.module_utils._fact_modules import OBJECT_SPEC, nodes_of, objects_of, run_with_fact
from ansible_collections.linerate.rdma.plugins.module_utils._model.host import HOST_KINDS
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent import ClusterIntent
from ansible_collections.linerate.rdma.plugins.module_utils._model.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.sriov_operator import node_pool, policy
from ansible_collections.linerate.rdma.plugins.module_utils._run.read_disruption_plan import Rendered, read_plan


def work(module: AnsibleModule) -> typing.Dict[str, typing.Any]:
    nodes = nodes_of(module)
    intent = load(ClusterIntent, module.params["cluster"] or {}, "rdma_cluster")
    objects = [item["object"] for item in objects_of(module, "hosts", "objects")]
    rendered = Rendered(
        tuple(policy(item) for item in objects if item.get("kind") == "SriovNetworkNodePolicy"),
        tuple(node_pool(item) for item in objects if item.get("kind") == "SriovNetworkPoolConfig"),
        tuple(item for item in objects if item.get("kind") in HOST_KINDS),
    )
    if objects and rendered == Rendered():
        planned = untouched(nodes)
    else:
        planned = read_plan(connect(module), intent.operator_namespace, rendered, nodes, intent.resource_prefix)
    refused = refusal(intent, planned, nodes)
    return {"allowed": not refused, "refused": list(refused), "lines": list(lines(planned)), "plan": to_data(planned)}


def main() -> None:
    module = AnsibleModule(
        argument_spec=facts_spec(
            objects={"type": "list", "elements": "dict", "default": [], "options": OBJECT_SPEC},
            objects_from={"type": "str"},
            nodes={"type": "list", "elements": "str"},
            cluster={"type": "raw"},
        ),
        supports_check_mode=True,
    )
    run_with_fact(module, lambda: work(module), "disruption")


if __name__ == "__main__":
    main()
