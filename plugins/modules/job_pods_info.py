#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: job_pods_info
short_description: Show which secondary networks the pods of a job got
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Reads the pods of a namespace, and the annotations of multus and the device plugins about their interfaces.
  - The stage C(training) compares the result with the HCAs in the NCCL log.
options:
  namespace:
    description: Namespace of the pods.
    type: str
    required: true
  label_selectors:
    description: Labels of the pods, such as C(training.kubeflow.org/job-name=llama). If the list is empty, the module
      reads all pods of the namespace.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - linerate.rdma._options.cluster_facts
  - linerate.rdma._authentication.options
  - linerate.rdma._attributes.reads
seealso:
  - module: linerate.rdma.nccl_log_info
"""

EXAMPLES = r"""
- name: Show the networks of the job's pods
  linerate.rdma.job_pods_info:
    namespace: training
    label_selectors: [training.kubeflow.org/job-name=llama]
  register: job
"""

RETURN = r"""
pods:
  description: For each pod its name, host name, node, job and PCI functions, or the reason why these are not known. The
    job is empty with O(label_selectors).
  returned: success
  type: list
  elements: dict
counts:
  description: Number of items in each list or mapping of the result. The result itself is then a fact in O(facts_dir).
  returned: if O(facts_dir) and O(run) are set
  type: dict
"""

import dataclasses
import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._ansible.cluster import connect, make_facts_spec
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.fact_modules import run_with_fact
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.networks.multus import training_pods


def work(module: AnsibleModule) -> dict[str, typing.Any]:
    found = connect(module).pages("Pod", module.params["namespace"], ",".join(module.params["label_selectors"]))
    pods = training_pods(found)
    if module.params["label_selectors"]:
        # the user says which pods the job has
        pods = [dataclasses.replace(pod, job="") for pod in pods]
    return {"pods": to_data(pods)}


def main() -> None:
    module = AnsibleModule(
        argument_spec=make_facts_spec(
            namespace={"type": "str", "required": True},
            label_selectors={"type": "list", "elements": "str", "default": []},
        ),
        supports_check_mode=True,
    )
    run_with_fact(module, lambda: work(module), "job_pods")


if __name__ == "__main__":
    main()
