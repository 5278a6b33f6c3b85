#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: sriov_plan
short_description: Plan which nodes the operators of SR-IOV, machine configs and NVIDIA's network would drain or reboot
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Reads the cluster and determines what applying O(objects) would do to each node. It changes nothing. It follows the
    rules of release 1.6.0 of the SR-IOV network operator.
  - Lists each node that would be drained or rebooted, with the reason. Reasons are the number of virtual functions, the
    MTU, the driver, the firmware, the RDMA mode and the systemd mode.
  - Lists the pods that would be evicted, and the order of the nodes (C(maxUnavailable) of C(SriovNetworkPoolConfigs)).
  - Lists what blocks the change. Blockers are C(PodDisruptionBudgets), a C(maxUnavailable) that rounds down to 0, and
    C(MachineConfigPools) that are paused or degraded.
  - RV(allowed) says whether C(rdma_cluster.disruption) allows the change and nothing blocks it. If something could not
    be read, the change is not allowed.
  - The plan includes new C(MachineConfigs) and C(KubeletConfigs), with the C(MachineConfigPool) that rolls them out. A
    pool that another C(KubeletConfig) also selects blocks the change, because only one C(KubeletConfig) takes effect on
    a node.
  - The plan includes the driver of NVIDIA's network operator (C(spec.ofedDriver) of the C(NicClusterPolicy)), with all
    nodes on which the operator loads or removes it. It drains them to load a driver, and removes a driver from all of
    them at the same time, without a drain. If the default route, an address or a bond of a node is on a NIC whose
    driver changes, the change is not allowed without a waiver.
  - With C(host.gpudirect) of V(peermem) in O(cluster), the plan includes all nodes with the driver of the GPU operator
    (C(nvidia.com/gpu.present)). The operator restarts this driver when stage host enables nvidia-peermem in the
    C(ClusterPolicy), and evicts the pods that use GPUs before that.
  - Of O(objects), only C(SriovNetworkNodePolicies), C(SriovNetworkPoolConfigs), C(MachineConfigs), C(KubeletConfigs)
    and the C(NicClusterPolicy) matter.
options:
  nodes:
    description: Nodes that must be in the plan. The plan also includes other nodes that the policies select. The
      default is all nodes of the run.
    type: list
    elements: str
  cluster:
    description: The variable C(rdma_cluster).
    type: raw
  waivers:
    description: The variable C(rdma_waivers). A waiver for C(network.lint_uplink) allows a driver of NICs that a node
      uses itself. Other waivers change nothing.
    type: raw
  again:
    description: Whether O(objects) were planned before, and the nodes and the other operators may have changed since.
      Then the plan before remains the fact of the run, unless O(objects) may not be applied any more.
    type: bool
    default: false
extends_documentation_fragment:
  - linerate.rdma._options.cluster_facts
  - linerate.rdma._options.objects
  - linerate.rdma._attributes.reads
  - linerate.rdma._authentication.options
requirements:
  - kubernetes >= 24.2.0
"""

EXAMPLES = r"""
- name: Show what the objects would do to the nodes
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
forbidden:
  description: Whether a known reason forbids to apply the objects. V(false) if a state is only unknown, such as that of
    an operator which check mode does not install.
  returned: success
  type: bool
refused:
  description:
    - Why the objects may not be applied, for each node or pool, with the remedy. It names the key of C(rdma_cluster)
      that would allow them.
    - Empty if the objects may be applied.
  returned: success
  type: list
  elements: str
  sample:
    - >-
      worker-1: drain and reboot: mlx5_0 0000:3c:00.0 firmware NUM_OF_VFS 0 -> 8. The node's wanted state changes in a
      way that needs a reboot of it. The intent does not allow that, so nothing was applied. When the nodes may go down,
      set rdma_cluster.disruption to reboot; else undo what is named beside 'measured'.
lines:
  description: The plan as text. Empty if no node would be drained or rebooted.
  returned: success
  type: list
  elements: str
  sample: ["worker-1 is drained: ens1f0 0000:3b:00.0 virtual functions 4 -> 8", "default pool: 2 nodes, 1 at a time, in
    2 waves"]
plan:
  description: The plan as data, for the check of the stage.
  returned: success
  type: dict
  contains:
    nodes:
      description:
        - For each node its C(action) (V(nothing), V(configure), V(drain), V(reboot) or V(unknown)), C(reasons),
          C(pods), C(lost), C(blockers) and C(pool).
        - C(rolled_by) is the C(MachineConfigPool) that reboots the node.
        - C(driver) is V(load) if NVIDIA's network operator drains the node to load its driver, and V(remove) if it
          removes the driver without a drain. It is V(reload) if the GPU operator restarts its driver.
        - C(undrained) is V(true) if the operator makes the change without a drain. Then C(action) is V(drain) all the
          same if the change takes the link of a NIC that the node uses (C(loses_link)), or changes the resource name of
          virtual functions that pods use. The same holds if it interrupts a NIC that pods use.
        - C(doubts) has the uses of the NICs that the change may disturb, without proof.
        - C(uplinks) has the default routes, addresses and bonds of the node on NICs whose driver changes.
      type: list
      elements: dict
    pools:
      description: For each pool its C(nodes), C(at_once), C(waves), C(limit) and C(blockers). A C(MachineConfigPool)
        also has C(machines). C(undrained) is V(true) for the nodes that change without a drain at the same time.
      type: list
      elements: dict
    drains:
      description: Whether the operator drains nodes. It does not if C(disableDrain) is set.
      type: bool
    unread:
      description: Kinds that could not be read, each with the reason.
      type: dict
counts:
  description: Number of items in each list or mapping of the result. The result itself is then a fact in O(facts_dir).
  returned: if O(facts_dir) and O(run) are set
  type: dict
"""

import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.disruption.judge_plan import (
    is_forbidden,
    list_refusals,
)
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.disruption.plan_text import describe_plan
from ansible_collections.linerate.rdma.plugins.module_utils._analysis.disruption.sriov import make_untouched_plan
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.cluster import connect, make_facts_spec
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.fact_modules import (
    OBJECT_SPEC,
    get_objects,
    list_nodes,
    read_nics_in_use,
    run_with_fact,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.host import HOST_KINDS
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Waiver
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators.sriov_operator import (
    namespace_of_operator,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.operators.sriov_operator import (
    node_pool,
    parse_policy,
)
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.read_disruption_plan import (
    RenderedObjects,
    read_plan,
)


def work(module: AnsibleModule) -> dict[str, typing.Any]:
    nodes = list_nodes(module)
    intent = load(ClusterIntent, module.params["cluster"] or {}, "rdma_cluster")
    objects = [item["object"] for item in get_objects(module, "hosts", "objects")]
    rendered = RenderedObjects(
        tuple(parse_policy(item) for item in objects if item.get("kind") == "SriovNetworkNodePolicy"),
        tuple(node_pool(item) for item in objects if item.get("kind") == "SriovNetworkPoolConfig"),
        tuple(item for item in objects if item.get("kind") in HOST_KINDS),
        tuple(item for item in objects if item.get("kind") == "NicClusterPolicy"),
        intent.host.gpudirect == "peermem",
    )
    if rendered == RenderedObjects():
        planned = make_untouched_plan(nodes)
    else:
        cluster = connect(module)
        namespace = namespace_of_operator(cluster, intent.operator_namespace) if rendered.are_for_nodes else ""
        planned = read_plan(cluster, namespace, rendered, nodes, intent, *read_nics_in_use(module))
    waivers = load(tuple[Waiver, ...], module.params["waivers"] or [], "rdma_waivers")
    refused = list_refusals(intent, planned, nodes, waivers)
    return {
        "allowed": not refused,
        "forbidden": is_forbidden(intent, planned, nodes, waivers),
        "refused": list(refused),
        "lines": list(describe_plan(planned)),
        "plan": to_data(planned),
    }


def main() -> None:
    module = AnsibleModule(
        argument_spec=make_facts_spec(
            objects={"type": "list", "elements": "dict", "default": [], "options": OBJECT_SPEC},
            objects_from={"type": "str"},
            nodes={"type": "list", "elements": "str"},
            cluster={"type": "raw"},
            waivers={"type": "raw"},
            again={"type": "bool", "default": False},
        ),
        supports_check_mode=True,
    )
    again = module.params["again"]
    run_with_fact(module, lambda: work(module), "disruption", stores=lambda done: not (again and done["allowed"]))


if __name__ == "__main__":
    main()
