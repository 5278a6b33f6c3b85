#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nic_map_lint
short_description: Check a NIC map against the nodes and the fabric
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Reads a NIC map from a C(ConfigMap) or as text. Each line has the form C(<node>:<host netdev>:<pod interface>:<ip>).
  - Finds lines whose interface does not exist on their node, and interfaces without a line.
  - Finds duplicate addresses, addresses outside the network of the fabric, and interfaces that only some of the nodes
    have.
  - Fails unless every finding is a pass, a warning or waived. See C(docs/job.md) for the checks.
options:
  text:
    description: Text of the map.
    type: str
  name:
    description: Name of the C(ConfigMap) with the map.
    type: str
  namespace:
    description: Namespace of the C(ConfigMap).
    type: str
    default: default
  hcas:
    description: Results of M(linerate.rdma.node_info) by node, as P(linerate.rdma.collect#filter) returns them.
    type: dict
    required: true
  subnets:
    description: Results of M(linerate.rdma.subnet_manager_info) by node. Needed to find the HCAs of an InfiniBand
      fabric.
    type: dict
    default: {}
  fabrics:
    description: The variable C(rdma_fabrics). Required with O(fabric).
    type: raw
  fabric:
    description: Name of the fabric of the map. If it is not set, the module does not compare the map with the
      interfaces and addresses of a fabric.
    type: str
  waivers:
    description: The variable C(rdma_waivers).
    type: raw
extends_documentation_fragment:
  - linerate.rdma._attributes.reads
  - linerate.rdma._authentication.options
requirements:
  - kubernetes >= 24.2.0
"""

EXAMPLES = r"""
- name: Read the HCAs
  linerate.rdma.node_info:
  register: node

- name: Check the NIC map
  linerate.rdma.nic_map_lint:
    name: multi-nic
    namespace: training
    hcas: "{{ hostvars | linerate.rdma.collect(groups['rdma_nodes'], 'node', 'hcas') }}"
    fabrics: "{{ rdma_fabrics }}"
    fabric: roce
  run_once: true
  delegate_to: localhost
"""

RETURN = r"""
gate:
  description: V(open) if every finding is a pass, a warning or waived, otherwise V(closed). The module then fails.
  returned: always
  type: str
lines:
  description: The result as text for a terminal. The counts come first, then each finding that did not pass.
  returned: always
  type: list
  elements: str
findings:
  description: All findings, each with the waiver that covers it, if any.
  returned: always
  type: list
  elements: dict
"""

import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._ansible.cluster import connect, make_cluster_spec
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.module import run
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.verdict import conclude_module_findings
from ansible_collections.linerate.rdma.plugins.module_utils._check.job.nic_map import collect_inputs, lint
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.fabric import ObservedSubnets
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import ObservedHcas
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import Waiver
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.nic_map import parse_nic_map, text_of


def work(module: AnsibleModule) -> dict[str, typing.Any]:
    options = module.params
    waivers = load(tuple[Waiver, ...], options["waivers"] or [], "rdma_waivers")
    hcas = load(dict[str, ObservedHcas], options["hcas"], "hcas")
    subnets = load(dict[str, ObservedSubnets], options["subnets"], "subnets")
    fabric = None
    if options["fabric"]:
        fabrics = parse_intent(options["fabrics"]).fabrics
        fabric = next((item for item in fabrics if item.name == options["fabric"]), None)
        if fabric is None:
            raise RdmaError(f"fabric: '{options['fabric']}' is not one of {', '.join(item.name for item in fabrics)}")
    text = options["text"]
    if text is None:
        text = text_of(connect(module).get("ConfigMap", options["namespace"], options["name"]))
    return conclude_module_findings(
        module,
        "nic_map",
        lint(options["name"] or "NIC map", parse_nic_map(text), collect_inputs(fabric, hcas, subnets)),
        waivers,
    )


def main() -> None:
    module = AnsibleModule(
        argument_spec=make_cluster_spec(
            text={"type": "str"},
            name={"type": "str"},
            namespace={"type": "str", "default": "default"},
            hcas={"type": "dict", "required": True},
            subnets={"type": "dict", "default": {}},
            fabrics={"type": "raw"},
            fabric={"type": "str"},
            waivers={"type": "raw"},
        ),
        required_one_of=[("text", "name")],
        required_by={"fabric": "fabrics"},
        supports_check_mode=True,
    )
    run(module, lambda: work(module))


if __name__ == "__main__":
    main()
