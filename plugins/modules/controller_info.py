#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: controller_info
short_description: Check what the controller provides for stages that use the API server
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Looks for the Python library C(kubernetes), the credentials of the API server and Helm. Asks the API server for its
    version, for the user's rights, and for the free CPU and memory of the nodes.
  - Does not fail if something is missing. The check of the stage C(validate) judges the result. It considers only the
    stages that this invocation of C(ansible-playbook) runs.
options:
  fabrics:
    description: The variable C(rdma_fabrics). If the intent is invalid, the module checks no rights.
    type: raw
  cluster:
    description: The variable C(rdma_cluster).
    type: raw
  in_site:
    description: Whether several stages run one after the other, as in C(linerate.rdma.site).
    type: bool
    default: false
  run_tags:
    description: The variable C(ansible_run_tags).
    type: list
    elements: str
    default: []
  skip_tags:
    description: The variable C(ansible_skip_tags).
    type: list
    elements: str
    default: []
  helm_binary:
    description: Path or name of the Helm binary. If it is not set, the module does not look for Helm.
    type: str
extends_documentation_fragment:
  - linerate.rdma._options.cluster_facts
  - linerate.rdma._attributes.reads
  - linerate.rdma._authentication.options
"""

EXAMPLES = r"""
- name: Check the controller
  linerate.rdma.controller_info:
    fabrics: "{{ rdma_fabrics }}"
    in_site: true
    helm_binary: helm
  register: controller
"""

RETURN = r"""
controller:
  description: What the controller provides.
  returned: success
  type: dict
  contains:
    python:
      description: Python interpreter of modules on the controller.
      type: str
    stages:
      description: Stages of this invocation that use the API server.
      type: list
      elements: str
    library:
      description: Version of the Python library C(kubernetes). Empty if it is not installed.
      type: str
    where:
      description: Where the credentials come from, without secrets.
      type: str
    named:
      description: Whether the options or the environment name an API server.
      type: bool
    server:
      description: Version of the API server. Empty if it did not answer. C(error) and C(remedy) then say why.
      type: str
    rights:
      description:
        - C(asked) is the number of rights that were checked. C(denied) lists the denied rights.
        - V(null) if the rights could not be checked. C(rights_error) then says why.
      type: dict
    helm:
      description: Version of Helm, or the C(error) that says why there is none. V(null) if Helm is not needed.
      type: dict
    room:
      description:
        - Of each node, C(cpu) in thousandths of a CPU and C(memory) in bytes that it offers to pods. How much of both
          pods request that stay on the node is C(cpu_kept) and C(memory_kept), and that of other pods C(cpu_moving) and
          C(memory_moving).
        - V(null) if it could not be read. C(room_error) then says why.
      type: list
      elements: dict
counts:
  description: Number of items in each list or mapping of the result. The result itself is then a fact in O(facts_dir).
  returned: if O(facts_dir) and O(run) are set
  type: dict
"""

import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._ansible.cluster import make_facts_spec
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.controller import inspect_controller
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.fact_modules import run_with_fact
from ansible_collections.linerate.rdma.plugins.module_utils._check.validate.controller import list_asking_stages
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import Intent
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import IntentError, parse_intent


def load_intent(options: typing.Mapping[str, typing.Any]) -> typing.Optional[Intent]:
    try:
        return parse_intent(options["fabrics"], None, options["cluster"])
    except IntentError:
        # the frame names what is wrong in it, with its path
        return None


def work(module: AnsibleModule) -> dict[str, typing.Any]:
    options = module.params
    stages = list_asking_stages(options["in_site"], options["run_tags"], options["skip_tags"])
    return {"controller": to_data(inspect_controller(module, load_intent(options), options["helm_binary"], stages))}


def main() -> None:
    module = AnsibleModule(
        argument_spec=make_facts_spec(
            fabrics={"type": "raw"},
            cluster={"type": "raw"},
            in_site={"type": "bool", "default": False},
            run_tags={"type": "list", "elements": "str", "default": []},
            skip_tags={"type": "list", "elements": "str", "default": []},
            helm_binary={"type": "str"},
        ),
        supports_check_mode=True,
    )
    run_with_fact(module, lambda: work(module), "controller")


if __name__ == "__main__":
    main()
