#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: controller_info
short_description: Tells what the controller has for the stages that ask the API server
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Looks for the Python library C(kubernetes), for what leads to the API server, for its answer, for the user's rights, and for Helm.
  - What is not there is an answer. The check of stage C(validate) judges it, by the stages that this invocation of C(ansible-playbook) runs.
  - Writes nothing.
options:
  fabrics:
    description: The intent, as in the variable C(rdma_fabrics). No rights are asked about where it is wrong.
    type: raw
  cluster:
    description: What all fabrics share, as in the variable C(rdma_cluster).
    type: raw
  in_site:
    description: Whether the stages run one after the other, as in C(linerate.rdma.site).
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
    description: Path or name of Helm. Nobody looks for it where this is left out.
    type: str
extends_documentation_fragment:
  - linerate.rdma._options.cluster_facts
  - kubernetes.core.k8s_auth_options
attributes:
  check_mode:
    support: full
    description: Only asks.
  diff_mode:
    support: N/A
    description: Changes nothing.
  idempotent:
    support: full
    description: Only asks.
"""

EXAMPLES = r"""
- name: See what the controller has
  linerate.rdma.controller_info:
    fabrics: "{{ rdma_fabrics }}"
    in_site: true
    helm_binary: helm
  register: controller
"""

RETURN = r"""
controller:
  description: What it has.
  returned: success
  type: dict
  contains:
    python:
      description: The Python that modules run with.
      type: str
    stages:
      description: Stages of this invocation that ask the API server.
      type: list
      elements: str
    library:
      description: Version of the Python library C(kubernetes), empty where it is not there.
      type: str
    where:
      description: What leads to the API server, without a secret.
      type: str
    named:
      description: Whether anything names an API server.
      type: bool
    server:
      description: Version of the API server, empty where it gave no answer; C(error) and C(remedy) say why.
      type: str
    rights:
      description: How many rights were asked about (C(asked)), and which of them are denied (C(denied)); null where nobody could ask, see C(rights_error).
      type: dict
    helm:
      description: Version of Helm, or why there is none (C(error)); null where it is not needed.
      type: dict
"""

import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._check.operators.rbac import needed
from ansible_collections.linerate.rdma.plugins.module_utils._check.validate.controller import asking
from ansible_collections.linerate.rdma.plugins.module_utils._cluster import facts_spec
from ansible_collections.linerate.rdma.plugins.module_utils._controller import look
from ansible_collections.linerate.rdma.plugins.module_utils._fact_modules import run_with_fact
from ansible_collections.linerate.rdma.plugins.module_utils._model.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.rights import Right
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import IntentError, parse_intent


def rights_of(options: typing.Mapping[str, typing.Any]) -> typing.Tuple[Right, ...]:
    try:
        return needed(parse_intent(options["fabrics"], None, options["cluster"]))
    except IntentError:
        # the frame names what is wrong in it, with its path
        return ()


def work(module: AnsibleModule) -> typing.Dict[str, typing.Any]:
    options = module.params
    stages = asking(options["in_site"], options["run_tags"], options["skip_tags"])
    return {"controller": to_data(look(module, rights_of(options), options["helm_binary"], stages))}


def main() -> None:
    module = AnsibleModule(
        argument_spec=facts_spec(
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
