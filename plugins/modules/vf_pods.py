#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: vf_pods
short_description: Has pods take virtual functions for as long as somebody looks at them
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - VLAN, trust, spoof check and rates of a virtual function are set by the CNI plugin when a pod takes it, and taken back when the pod goes. Only while a
    pod has it can they be read back, by M(linerate.rdma.node_info) on the node.
  - With O(state=present) it starts one pod a node and rail of each fabric whose network asks for such a setting. Pods that an earlier run has left are
    removed first.
  - With O(state=absent) it removes them, with all pods that measure.
options:
  state:
    description: Whether the pods are there.
    type: str
    choices: [present, absent]
    default: present
  rails:
    description:
      - Which HCA is on which rail, by fabric, node and PCI address. The default is what the facts of the run show, with O(facts_dir).
    type: dict
    default: {}
extends_documentation_fragment:
  - linerate.rdma._options.intent
  - linerate.rdma._options.pods
  - linerate.rdma._options.cluster_facts
  - linerate.rdma._options.lease
  - kubernetes.core.k8s_auth_options
requirements:
  - kubernetes >= 24.2.0
attributes:
  check_mode:
    support: full
    description: Starts no pod, and says so for each.
  diff_mode:
    support: N/A
    description: The pods are gone when the stage is judged.
  idempotent:
    support: partial
    description: Pods that are there are replaced.
    details:
      - What an earlier pod has seen is of another time.
"""

EXAMPLES = r"""
- name: Read back what the network has set for a virtual function
  block:
    - name: Have a pod take one on each node
      linerate.rdma.vf_pods:
        fabrics: "{{ rdma_fabrics }}"
        nodes: [worker-1, worker-2]
      register: virtual_functions_pods

    - name: Read what is set for it
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
  description: One line for each pod of an earlier run that was removed.
  returned: success
  type: list
  elements: str
pods:
  description:
    - For each fabric, node and rail the C(name) of the pod, the C(pci) address of its virtual function, and C(error), which is empty when it has one.
  returned: success
  type: list
  elements: dict
removed:
  description: Namespace and name of each pod that was removed.
  returned: success
  type: list
  elements: str
"""

import dataclasses
import time
import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._cluster import connect, end_by_interrupt, pods_spec
from ansible_collections.linerate.rdma.plugins.module_utils._fact_modules import nodes_of, rails_of, run_with_fact
from ansible_collections.linerate.rdma.plugins.module_utils._lease import LEASE_SPEC, working
from ansible_collections.linerate.rdma.plugins.module_utils._model.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._run.hold_vfs import hold
from ansible_collections.linerate.rdma.plugins.module_utils._run.pods import NOT_CHECKED, Plan, Pods, unstarted


def work(module: AnsibleModule) -> typing.Dict[str, typing.Any]:
    options = module.params
    intent = parse_intent(options["fabrics"], None, options["cluster"])
    fabrics = tuple(fabric for fabric in intent.fabrics if fabric.network.vf_settings)
    plan = Plan(fabrics, intent.cluster, nodes_of(module), rails_of(module, intent), pod_seconds=options["pod_seconds"])
    if not fabrics or module.check_mode:
        return {"changed": False, "pods": to_data(unstarted(plan, NOT_CHECKED)) if options["state"] == "present" else [], "removed": [], "changes": []}
    with working(module, connect(module)) as held:
        plan = dataclasses.replace(plan, run=held.run)
        pods = Pods(held.cluster, plan, time.monotonic, time.sleep, lambda line: None)
        removed = pods.remove()
        if options["state"] == "absent":
            return {"changed": bool(removed), "pods": [], "removed": removed, "changes": []}
        return {"changed": True, "pods": to_data(hold(pods, plan)), "removed": removed, "changes": [f"removed leftover pod {name}" for name in removed]}


def main() -> None:
    end_by_interrupt()
    module = AnsibleModule(
        argument_spec=pods_spec(
            **LEASE_SPEC,
            state={"type": "str", "choices": ["present", "absent"], "default": "present"},
            rails={"type": "dict", "default": {}},
        ),
        supports_check_mode=True,
    )
    run_with_fact(module, lambda: work(module), "vf_pods" if module.params["state"] == "present" else "")


if __name__ == "__main__":
    main()
