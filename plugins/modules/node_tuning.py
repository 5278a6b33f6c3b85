#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_tuning
short_description: Set the tuning of the nodes by the Node Tuning Operator of OpenShift
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - If C(rdma_cluster.tuning.set) is V(true), applies one C(Tuned) for the nodes of the intent. It contains each row of
    stage C(tuning) that has a rule and can be set without a reboot. The filter P(linerate.rdma.tuning_settings#filter)
    returns the same settings.
  - Then waits until the C(Profile) of each node shows that TuneD has applied them. The wait ends early for a node that
    cannot get them, for example if another C(Tuned) has a higher priority or TuneD reports an error.
  - Applies nothing if a C(PerformanceProfile) selects one of the nodes, or if another C(Tuned) than those of OpenShift
    tunes one of them, because a node gets only one profile. This applies to all nodes that the C(Tuned) would match,
    whether they are in O(nodes) or not.
  - Never changes a C(Tuned) without the label of the collection.
  - If the cluster does not have the Node Tuning Operator, the module changes nothing and returns in RV(plain) the nodes
    to set by the module M(linerate.rdma.kernel_settings).
  - The module does not fail if nothing can be set. The result says why, and the check of the stage judges it.
options:
  fabrics:
    description: The variable C(rdma_fabrics).
    type: raw
    required: true
  cluster:
    description: The variable C(rdma_cluster).
    type: raw
  nodes:
    description: Names of the nodes. The default is the nodes of O(run).
    type: list
    elements: str
  wait_seconds:
    description: Maximum time in seconds to wait until all nodes have the settings.
    type: int
    default: 300
  refusal:
    description:
      - Why the module must not write the C(Tuned), if it would change it. RV(set) then has it as C(refusal).
      - The action plugin of this name sets it if C(--limit) of C(ansible-playbook) excludes nodes of the run, because
        the C(Tuned) selects nodes by label. Check mode permits any limit.
    type: dict
    suboptions:
      seen:
        description: Cause of the refusal.
        type: str
        required: true
      remedy:
        description: What to do.
        type: str
        default: ""
extends_documentation_fragment:
  - linerate.rdma._options.cluster_facts
  - linerate.rdma._options.lease
  - linerate.rdma._options.progress
  - linerate.rdma._attributes.changes
  - linerate.rdma._authentication.options
requirements:
  - kubernetes >= 24.2.0
attributes:
  check_mode:
    details:
      - The module uses the dry run of the API server.
"""

EXAMPLES = r"""
- name: Set what training jobs need
  linerate.rdma.node_tuning:
    fabrics: "{{ rdma_fabrics }}"
    cluster:
      tuning: {profile: training, set: true}
    nodes: [worker-1, worker-2]
"""

RETURN = r"""
set:
  description:
    - C(way) is V(tuned), V(kernel_settings) or V(nothing).
    - For V(tuned), C(nodes) contains the C(state) of each node, and C(why) and C(remedy) if the node does not have the
      settings.
    - C(refusal) says why nothing was set, and C(remedy) what to do.
  returned: success
  type: dict
changes:
  description: One line if the C(Tuned) was written, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: [created Tuned linerate-rdma]
plain:
  description: Names of the nodes to set by M(linerate.rdma.kernel_settings).
  returned: success
  type: list
  elements: str
look:
  description: Names of the nodes whose settings may have changed since the last look at them.
  returned: success
  type: list
  elements: str
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
    open_progress,
)
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.fact_modules import (
    find_folder,
    list_nodes,
    run_with_fact,
)
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.lease import LEASE_SPEC, hold_lease
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.node_tuning import TuningSet
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.outcome import Outcome
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._plan.tuning_settings import (
    collect_kernel_settings,
    collect_settings,
)
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.set_tuning import TuningSetter


def work(module: AnsibleModule) -> dict[str, typing.Any]:
    options = module.params
    intent = parse_intent(options["fabrics"], None, options["cluster"])
    wanted, outcomes, look = (
        collect_settings(intent),
        typing.cast(tuple[Outcome, ...], ()),
        typing.cast(tuple[str, ...], ()),
    )
    found, plain = TuningSet("nothing"), typing.cast(list[str], [])
    folder = find_folder(module)
    if wanted.rows:
        nodes, cluster = list_nodes(module), connect(module)
        try:
            with hold_lease(module, cluster) as held, open_progress(options["progress_file"]) as say:
                refusal = (options["refusal"] or {}).get("seen") or "", (options["refusal"] or {}).get("remedy") or ""
                setter = TuningSetter(held.cluster, intent, nodes, time.monotonic, time.sleep, say, refusal)
                found, outcomes, look = setter.run(wanted, module.check_mode, options["wait_seconds"])
        except RdmaError as error:
            found = TuningSet("tuned", refusal=error.seen, remedy=error.remedy)
        if found.way == "kernel_settings" and collect_kernel_settings(wanted):
            by_pods = folder.start().by_pods if folder else ()
            plain = [name for name in nodes if name not in by_pods]
    if folder:
        folder.write("kernel_settings_nodes", value=plain)
    changes = [f"{item.applied.action} {item.applied.kind} {item.applied.name}" for item in outcomes if item.changed]
    answer = {"changed": bool(changes), "set": to_data(found), "changes": changes, "plain": plain, "look": list(look)}
    return {**answer, "diff": format_difference(outcomes)} if module._diff else answer


def main() -> None:
    module = AnsibleModule(
        argument_spec=make_facts_spec(
            **LEASE_SPEC,
            fabrics={"type": "raw", "required": True},
            cluster={"type": "raw"},
            nodes={"type": "list", "elements": "str"},
            wait_seconds={"type": "int", "default": 300},
            refusal={
                "type": "dict",
                "options": {"seen": {"type": "str", "required": True}, "remedy": {"type": "str", "default": ""}},
            },
            progress_file={"type": "path"},
        ),
        supports_check_mode=True,
    )
    run_with_fact(module, lambda: work(module), "node_tuning", keep=("plain", "look"))


if __name__ == "__main__":
    main()
