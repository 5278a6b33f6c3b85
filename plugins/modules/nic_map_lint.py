#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nic_map_lint
short_description: Tells what is wrong with a NIC map
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Reads a NIC map, lines of C(<node>:<host netdev>:<pod interface>:<ip>), from a C(ConfigMap) or as text, and holds it against the nodes and the fabric.
  - Finds lines whose interface their node does not have, interfaces without a line, addresses twice or outside of the fabric's network, and interfaces
    that some nodes lack.
  - Fails unless all is well. The checks are in docs/job.md.
options:
  text:
    description: The map.
    type: str
  name:
    description: Name of the C(ConfigMap) with the map.
    type: str
  namespace:
    description: Namespace of the C(ConfigMap).
    type: str
    default: default
  hcas:
    description: The answers of M(linerate.rdma.node_info), by node, as P(linerate.rdma.collect#filter) returns them.
    type: dict
    required: true
  subnets:
    description: The answers of M(linerate.rdma.subnet_manager_info), by node; needed to know the members of an InfiniBand fabric.
    type: dict
    default: {}
  fabrics:
    description: The variable C(rdma_fabrics), as the user wrote it.
    type: raw
  fabric:
    description: Name of the fabric that the map is for. Without it the fabric's interfaces and addresses are not compared.
    type: str
  waivers:
    description: The variable C(rdma_waivers), as the user wrote it.
    type: raw
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
requirements:
  - kubernetes >= 24.2.0
attributes:
  check_mode:
    support: full
    description: Only reads.
  diff_mode:
    support: N/A
    description: Changes nothing.
  idempotent:
    support: full
    description: Only reads.
"""

EXAMPLES = r"""
- name: See whether the NIC map is right
  linerate.rdma.nic_map_lint:
    name: multi-nic
    namespace: training
    hcas: "{{ hostvars | linerate.rdma.collect(groups['rdma_nodes'], 'node', 'hcas') }}"
    fabrics: "{{ rdma_fabrics }}"
    fabric: roce
"""

RETURN = r"""
gate:
  description: Whether all is well, V(open), or not, V(closed). The module fails where it is closed.
  returned: always
  type: str
lines:
  description: The judgement as text for a terminal; counts first, then each finding that is not a pass.
  returned: always
  type: list
  elements: str
findings:
  description: Findings with the waivers that cover them.
  returned: always
  type: list
  elements: dict
"""

import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._ansible import run
from ansible_collections.linerate.rdma.plugins.module_utils._check.job.nic_map import ground_of, lint
from ansible_collections.linerate.rdma.plugins.module_utils._cluster import cluster_spec, connect
from ansible_collections.linerate.rdma.plugins.module_utils._frame import verdict
from ansible_collections.linerate.rdma.plugins.module_utils._model.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.fabric import ObservedSubnets
from ansible_collections.linerate.rdma.plugins.module_utils._model.findings import Waiver
from ansible_collections.linerate.rdma.plugins.module_utils._model.hca import ObservedHcas
from ansible_collections.linerate.rdma.plugins.module_utils._model.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.nic_map import nic_map, text_of


def work(module: AnsibleModule) -> typing.Dict[str, typing.Any]:
    options = module.params
    waivers = load(typing.Tuple[Waiver, ...], options["waivers"] or [], "rdma_waivers")
    hcas = load(typing.Dict[str, ObservedHcas], options["hcas"], "hcas")
    subnets = load(typing.Dict[str, ObservedSubnets], options["subnets"], "subnets")
    fabric = None
    if options["fabric"]:
        fabrics = parse_intent(options["fabrics"]).fabrics
        fabric = next((item for item in fabrics if item.name == options["fabric"]), None)
        if fabric is None:
            raise RdmaError(f"fabric: '{options['fabric']}' is none of {', '.join(item.name for item in fabrics)}")
    text = options["text"]
    if text is None:
        text = text_of(connect(module).get("ConfigMap", options["namespace"], options["name"]))
    return verdict(module, "nic_map", lint(options["name"] or "NIC map", nic_map(text), ground_of(fabric, hcas, subnets)), waivers)


def main() -> None:
    module = AnsibleModule(
        argument_spec=cluster_spec(
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
