#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: helm_release_plan
short_description: Plan the upgrade of a Helm release of an operator
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Compares a Helm release with the one that a run wants. It changes nothing.
  - Keeps the values of the release that O(values) does not set, such as those of an admin.
  - Fails if the upgrade can restart drivers (O(drains)) and C(disruption) of O(cluster) is V(none). A first
    installation is always permitted.
  - Before an upgrade of C(gpu-operator) or C(network-operator), reads on which nodes of the cluster the operator then
    restarts its driver, in the inventory or not. Before an upgrade of C(sriov-network-operator), reads on which nodes
    it restarts its config daemon, and with C(configurationMode) V(systemd) reboots them. It names them in RV(summary).
    It fails if their pods, their C(PodDisruptionBudgets), other operators or the limit C(node_pool) of O(cluster) do
    not permit a drain or reboot, as M(linerate.rdma.sriov_plan) does.
  - Fails if the upgrade replaces values of node feature discovery and C(disruption) is V(none), because it can remove
    labels by which other operators select nodes.
  - Fails if the release has a newer version of the chart than O(version), unless its operator never served.
  - Fails, or returns how long to wait, if a revision is not completed and O(waited_for) does not prove that it stayed
    unchanged for O(timeout). Another program is possibly changing the release then.
  - The role P(linerate.rdma.operators#role) calls this module. It is of little use elsewhere.
options:
  operator:
    description: Name of the operator.
    type: str
    required: true
  release:
    description: Name of the Helm release.
    type: str
    required: true
  namespace:
    description: Namespace of the release.
    type: str
    required: true
  version:
    description: Version of the chart. A V(v) at its begin has no meaning.
    type: str
    required: true
  values:
    description: Values that the release must have.
    type: dict
    default: {}
  drains:
    description: Whether the operator restarts drivers of nodes, and drains the nodes for that.
    type: bool
    default: false
  serves:
    description:
      - Whether the operator runs, or has run. A release whose first revision was not completed counts as a first
        installation if it does not, or if neither the version nor the values change.
      - A release that serves also keeps the values that O(values) does not set.
    type: bool
    default: true
  pinned:
    description: Whether the user chose the chart or its version. Otherwise the module refuses to replace a newer chart.
    type: bool
    default: false
  chosen:
    description: Whether the user chose O(values). Otherwise the list of PCI classes of node feature discovery keeps the
      items that the release has.
    type: bool
    default: false
  status:
    description: The RV(kubernetes.core.helm_info#module:status) of the release. Empty if there is none.
    type: dict
    default: {}
  cluster:
    description: The variable C(rdma_cluster).
    type: raw
  waivers:
    description: The variable C(rdma_waivers).
    type: raw
  nodes:
    description: Names of the nodes of the inventory. The default is all nodes of the run.
    type: list
    elements: str
  facts_dir:
    description: Report folder on the controller, from which the module reads the nodes of the run. Set O(run) as well.
    type: path
  run:
    description: ID of the run, as returned by M(linerate.rdma.stage_begin) or M(linerate.rdma.run_begin).
    type: str
  timeout:
    description: Timeout of Helm in seconds.
    type: int
    default: 300
  may_wait:
    description: Whether to return RV(wait_seconds) instead of a failure if another program is possibly changing the
      release.
    type: bool
    default: false
  waited_for:
    description: C(revision), C(status) and C(updated) of the release before a wait of O(timeout). Empty without a wait.
      The module compares them with those of O(status), and with no clock, because Helm writes the time of a revision by
      the clock of another machine.
    type: dict
    default: {}
extends_documentation_fragment:
  - linerate.rdma._attributes.reads
  - linerate.rdma._authentication.options
requirements:
  - kubernetes >= 24.2.0, for an upgrade of C(gpu-operator), C(network-operator) or C(sriov-network-operator)
"""

EXAMPLES = r"""
- name: Plan the upgrade of a release
  linerate.rdma.helm_release_plan:
    operator: gpu-operator
    release: gpu-operator
    namespace: gpu-operator
    version: v26.3.3
    drains: true
    status: "{{ helm_result.status }}"
    cluster: {disruption: drain}
    nodes: [worker-1, worker-2]
  register: release_plan
"""

RETURN = r"""
values:
  description: Values of the next revision.
  returned: success
  type: dict
needed:
  description: Whether Helm has to install or upgrade the release.
  returned: success
  type: bool
summary:
  description: The changes as text, with the keys of the values that change, and the nodes that the upgrade
    changes. Empty if the release is not upgraded.
  returned: success
  type: str
  sample: "chart gpu-operator-v26.3.0 -> v26.3.3; can restart drivers and drain nodes; restarts the driver of 2 nodes:
    worker-1, worker-9 (not in the inventory)"
wait_seconds:
  description: Seconds for which a revision that is not completed must stay unchanged to count as interrupted.
  returned: success
  type: int
other_chart:
  description: Whether the release has another version of the chart than O(version). False if there is no release.
  returned: success
  type: bool
"""

import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._ansible.cluster import connect, make_cluster_spec
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.fact_modules import list_nodes
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.module import run
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.operators import CHANGES_NODES
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Waiver
from ansible_collections.linerate.rdma.plugins.module_utils._plan.helm_release import (
    DesiredRelease,
    add_effect,
    plan_release,
)
from ansible_collections.linerate.rdma.plugins.module_utils._run.operators.upgrade_effect import read_upgrade_effect


def work(module: AnsibleModule) -> dict[str, typing.Any]:
    options = module.params
    intent = load(ClusterIntent, options["cluster"] or {}, "rdma_cluster")
    wanted = DesiredRelease(
        options["operator"],
        options["release"],
        options["namespace"],
        options["version"],
        options["values"],
        options["drains"],
        options["serves"],
        options["pinned"],
        options["chosen"],
    )
    planned = plan_release(
        wanted, options["status"], intent.disruption, options["timeout"], options["may_wait"], options["waited_for"]
    )
    if planned.upgrade is not None and planned.upgrade.operator in CHANGES_NODES:
        waivers = load(tuple[Waiver, ...], options["waivers"] or [], "rdma_waivers")
        effect = read_upgrade_effect(connect(module), planned.upgrade, list_nodes(module), intent, waivers)
        planned = add_effect(planned, wanted, effect)
    answer = dict(to_data(planned))
    return {key: answer[key] for key in ("values", "needed", "summary", "wait_seconds", "other_chart")}


def main() -> None:
    module = AnsibleModule(
        argument_spec=make_cluster_spec(
            operator={"type": "str", "required": True},
            release={"type": "str", "required": True},
            namespace={"type": "str", "required": True},
            version={"type": "str", "required": True},
            values={"type": "dict", "default": {}},
            drains={"type": "bool", "default": False},
            serves={"type": "bool", "default": True},
            pinned={"type": "bool", "default": False},
            chosen={"type": "bool", "default": False},
            status={"type": "dict", "default": {}},
            cluster={"type": "raw"},
            waivers={"type": "raw"},
            nodes={"type": "list", "elements": "str"},
            facts_dir={"type": "path"},
            run={"type": "str"},
            timeout={"type": "int", "default": 300},
            may_wait={"type": "bool", "default": False},
            waited_for={"type": "dict", "default": {}},
        ),
        supports_check_mode=True,
    )
    run(module, lambda: work(module))


if __name__ == "__main__":
    main()
