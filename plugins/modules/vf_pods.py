#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: vf_pods
short_description: Start or remove pods that hold virtual functions
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - The CNI plugin sets VLAN, trust, spoof check and rates of a virtual function (VF) when a pod gets the VF. It resets
    them when the pod ends. M(linerate.rdma.node_info) can therefore read them on the node only while a pod has the VF.
  - O(state=present) starts one pod per node and rail of each fabric whose network sets one of these values. It first
    removes pods that an earlier run left. The pods are in the namespace C(linerate-measure), which the module creates.
  - O(state=absent) removes these pods and all other pods that measure, and the namespace.
options:
  state:
    description: Whether to start or to remove the pods.
    type: str
    choices: [present, absent]
    default: present
  rails:
    description: Rail of each HCA, by fabric, node and PCI address. The default comes from the facts of the run, if
      O(facts_dir) and O(run) are set.
    type: dict
    default: {}
extends_documentation_fragment:
  - linerate.rdma._options.intent
  - linerate.rdma._options.pods
  - linerate.rdma._options.cluster_facts
  - linerate.rdma._options.lease
  - linerate.rdma._attributes.changes
  - linerate.rdma._authentication.options
requirements:
  - kubernetes >= 24.2.0
attributes:
  check_mode:
    details:
      - The module starts no pod. Each pod in the result has an error that says so.
  diff_mode:
    support: N/A
    details:
      - The pods are temporary.
  idempotent:
    support: partial
    details:
      - With O(state=present), the module replaces existing pods, because they may show an older state.
"""

EXAMPLES = r"""
- name: Read the settings of a virtual function in use
  block:
    - name: Start a pod on each node
      linerate.rdma.vf_pods:
        fabrics: "{{ rdma_fabrics }}"
        nodes: [worker-1, worker-2]
      register: virtual_functions_pods

    - name: Read the settings
      linerate.rdma.node_info:
      delegate_to: worker-1

  always:
    - name: Remove the pods
      linerate.rdma.vf_pods:
        state: absent
        fabrics: "{{ rdma_fabrics }}"
        nodes: [worker-1, worker-2]
"""

RETURN = r"""
changes:
  description: One line for each removed pod of an earlier run.
  returned: success
  type: list
  elements: str
pods:
  description:
    - For each fabric, node and rail, the C(name) of the pod and the C(pci) address of its VF. C(error) is empty if the
      pod has a VF.
  returned: success
  type: list
  elements: dict
removed:
  description: Namespace and name of each removed pod.
  returned: success
  type: list
  elements: str
counts:
  description: Number of items in each list or mapping of the result. The result itself is then a fact in O(facts_dir).
  returned: if O(facts_dir) and O(run) are set
  type: dict
"""

import dataclasses
import time
import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._ansible.cluster import (
    connect,
    end_by_interrupt,
    make_pods_spec,
)
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.fact_modules import (
    find_rails,
    list_excluded_nodes,
    list_nodes,
    run_with_fact,
)
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.lease import LEASE_SPEC, hold_lease
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.hold_vfs import hold
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.measuring import (
    MeasuringNamespace,
    prepare_measurement,
)
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.measuring_plan import (
    NOT_CHECKED,
    Plan,
    list_all_unstarted,
    list_excluded,
)
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.pods.measuring_pods import (
    MeasuringPods,
)


def work(module: AnsibleModule) -> dict[str, typing.Any]:
    options = module.params
    intent = parse_intent(options["fabrics"], None, options["cluster"])
    fabrics = tuple(fabric for fabric in intent.fabrics if fabric.network.vf_settings)
    plan = Plan(
        fabrics, intent.cluster, list_nodes(module), find_rails(module, intent), pod_seconds=options["pod_seconds"]
    )
    present = options["state"] == "present"
    excluded = list_excluded(plan, list_excluded_nodes(module)) if present else ()
    if not fabrics or module.check_mode or (excluded and not plan.nodes):
        return {
            "changed": False,
            "pods": to_data((*list_all_unstarted(plan, NOT_CHECKED), *excluded)) if present else [],
            "removed": [],
            "changes": [],
        }
    with hold_lease(module, connect(module)) as held:
        plan = dataclasses.replace(plan, run=held.run)
        pods = MeasuringPods(held.cluster, plan, time.monotonic, time.sleep, lambda line: None)
        removed = pods.remove()
        place = MeasuringNamespace(held.cluster, held.run, plan.pod_seconds, time.monotonic, time.sleep)
        if not present:
            place.leave()
            return {"changed": bool(removed), "pods": [], "removed": removed, "changes": []}
        with prepare_measurement(place, held.cluster, plan.fabrics, plan.cluster, held.run, stays=True) as seats:
            there = dataclasses.replace(plan, fabrics=seats.fabrics, refused=seats.refused)
            held_pods = hold(MeasuringPods(held.cluster, there, time.monotonic, time.sleep, lambda line: None), there)
        return {
            "changed": True,
            "pods": to_data((*held_pods, *excluded)),
            "removed": removed,
            "changes": [f"removed leftover pod {name}" for name in removed],
        }


def main() -> None:
    end_by_interrupt()
    module = AnsibleModule(
        argument_spec=make_pods_spec(
            **LEASE_SPEC,
            state={"type": "str", "choices": ["present", "absent"], "default": "present"},
            rails={"type": "dict", "default": {}},
        ),
        supports_check_mode=True,
    )
    run_with_fact(module, lambda: work(module), "vf_pods" if module.params["state"] == "present" else "")


if __name__ == "__main__":
    main()
