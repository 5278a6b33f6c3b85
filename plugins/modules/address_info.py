#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: address_info
short_description: Tells which IP addresses a cluster uses already
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Reads the networks of pods, services and nodes, and those of all C(NetworkAttachmentDefinitions).
  - Reads what whereabouts and nv-ipam have given out, and finds addresses that whereabouts keeps for pods which are not there.
  - What the API server does not let us read is returned in C(addresses.errors), never taken for absent.
options:
  ranges:
    description: Ranges as the intent writes them; pods of the cluster's own network with an address inside are returned as evidence.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - linerate.rdma._options.cluster_facts
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
- name: See which addresses are in use
  linerate.rdma.address_info:
    ranges: [100.100.0.0/22]
  register: address_info
"""

RETURN = r"""
addresses:
  description: What was found.
  returned: success
  type: dict
  contains:
    taken:
      description: Networks in use, each with its kind (V(pods), V(services), V(node), V(attachment)) and its owner.
      type: list
      elements: dict
    pods:
      description: How many addresses of pods were compared with O(ranges).
      type: int
    leaks:
      description: Addresses that whereabouts keeps for pods which are not there.
      type: list
      elements: dict
    pools:
      description: Pools of nv-ipam, each with the nodes that have a share.
      type: list
      elements: dict
    unclear:
      description: Attachments whose addresses can't be told, each with the reason.
      type: list
      elements: str
    errors:
      description: What could not be read, and why.
      type: list
      elements: str
"""

import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._cluster import connect, facts_spec
from ansible_collections.linerate.rdma.plugins.module_utils._fact_modules import run_with_fact
from ansible_collections.linerate.rdma.plugins.module_utils._model.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._observe.addresses import observe
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.addresses import RangeError, parse_network


def work(module: AnsibleModule) -> typing.Dict[str, typing.Any]:
    try:
        # a-b/prefix: the network is that of b
        networks = [parse_network(text.rpartition("-")[2]) for text in module.params["ranges"]]
    except RangeError as error:
        module.fail_json(msg=f"ranges: '{error.seen}' is no range: {error.why}")
    return {"addresses": to_data(observe(connect(module), networks))}


def main() -> None:
    ranges = {"type": "list", "elements": "str", "default": []}
    module = AnsibleModule(argument_spec=facts_spec(ranges=ranges), supports_check_mode=True)
    run_with_fact(module, lambda: work(module), "addresses")


if __name__ == "__main__":
    main()
