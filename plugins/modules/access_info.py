#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: access_info
short_description: List the rights that the stages need and the user lacks
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Asks the API server about each right that the stages and the teardown need for O(fabrics). It uses
    C(SelfSubjectAccessReview).
  - It does not check the rights that Helm needs to install an operator.
  - Also reads the C(uid) of the namespace C(kube-system), which identifies the cluster. A run that resumes compares it,
    see M(linerate.rdma.stage_begin).
options:
  install:
    description:
      - How operators are to be installed. If M(linerate.rdma.olm) is to do it, the module also checks the rights for
        that.
      - V(auto) is OLM on OpenShift, and Helm elsewhere.
    type: str
    choices: [none, auto, helm, olm]
    default: none
extends_documentation_fragment:
  - linerate.rdma._options.intent
  - linerate.rdma._options.cluster_facts
  - linerate.rdma._attributes.reads
  - linerate.rdma._authentication.options
requirements:
  - kubernetes >= 24.2.0
"""

EXAMPLES = r"""
- name: List the missing rights
  linerate.rdma.access_info:
    fabrics: "{{ rdma_fabrics }}"
  register: access_info
"""

RETURN = r"""
rights:
  description: Answers of the API server.
  returned: success
  type: dict
  contains:
    asked:
      description: Number of rights that were checked.
      type: int
    denied:
      description:
        - Denied rights. C(need) is the stage that needs the right, C(text) is the right in RBAC terms.
        - C(power) is the file of C(docs/rbac) that has the right.
      type: list
      elements: dict
      sample: [{need: network, text: "patch sriovnetworks.sriovnetwork.openshift.io in sriov-network-operator", power:
        network-sriov}]
cluster_uid:
  description: C(uid) of the namespace C(kube-system). It is empty if it cannot be read.
  returned: success
  type: str
counts:
  description: Number of items in each list or mapping of the result. The result itself is then a fact in O(facts_dir).
  returned: if O(facts_dir) and O(run) are set
  type: dict
"""

import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._ansible.cluster import connect, make_facts_spec
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.fact_modules import run_with_fact
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.module import INTENT_SPEC
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.rights_needed import list_needed_rights
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.identity import read_cluster_uid
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.rights import observe
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators.operators import by_olm
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators.sriov_operator import (
    namespace_of_operator,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent


def work(module: AnsibleModule) -> dict[str, typing.Any]:
    intent = parse_intent(module.params["fabrics"], None, module.params["cluster"])
    cluster = connect(module)
    namespace = namespace_of_operator(cluster, intent.cluster.operator_namespace)
    install = module.params["install"]
    olm = install == "olm" or (install == "auto" and by_olm(cluster))
    rights = to_data(observe(cluster, list_needed_rights(intent, namespace, olm)))
    return {"rights": rights, "cluster_uid": read_cluster_uid(cluster)}


def main() -> None:
    install = {"type": "str", "choices": ["none", "auto", "helm", "olm"], "default": "none"}
    module = AnsibleModule(argument_spec=make_facts_spec(**INTENT_SPEC, install=install), supports_check_mode=True)
    run_with_fact(module, lambda: work(module), "access")


if __name__ == "__main__":
    main()
