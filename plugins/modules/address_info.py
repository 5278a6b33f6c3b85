#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: address_info
short_description: List the IP addresses that a cluster already uses
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Reads the networks of pods, services and nodes, and the networks of all C(NetworkAttachmentDefinitions).
  - Reads the allocations of whereabouts and nv-ipam. Finds whereabouts allocations that no pod holds.
  - Reports in C(addresses.errors) what the API server does not let the user read.
options:
  ranges:
    description: IP ranges, in the form of the intent. The result lists pods of the cluster network that have an address
      in one of the ranges.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - linerate.rdma._options.cluster_facts
  - linerate.rdma._attributes.reads
  - linerate.rdma._authentication.options
requirements:
  - kubernetes >= 24.2.0
"""

EXAMPLES = r"""
- name: List the addresses in use
  linerate.rdma.address_info:
    ranges: [100.100.0.0/22]
  register: address_info
"""

RETURN = r"""
addresses:
  description: The addresses in use.
  returned: success
  type: dict
  contains:
    taken:
      description:
        - Networks in use. Each has a kind (V(pods), V(services), V(node) or V(attachment)) and an owner. It has a node
          if its kubelet can write it.
      type: list
      elements: dict
    pods:
      description: Number of pod addresses that were compared with O(ranges).
      type: int
    leaks:
      description: Addresses that whereabouts keeps and that no pod holds.
      type: list
      elements: dict
    pools:
      description: Pools of nv-ipam, each with the nodes that have a block of the pool.
      type: list
      elements: dict
    unclear:
      description: Attachments whose addresses cannot be determined, each with the reason.
      type: list
      elements: str
    unread_pools:
      description: Pools of nv-ipam and of whereabouts whose objects are invalid, each with the reason.
      type: list
      elements: dict
    errors:
      description: What could not be read, and why.
      type: list
      elements: str
counts:
  description: Number of items in each list or mapping of the result. The result itself is then a fact in O(facts_dir).
  returned: if O(facts_dir) and O(run) are set
  type: dict
"""

import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._ansible.cluster import connect, make_facts_spec
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.fact_modules import run_with_fact
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.addresses import observe
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.networks.addresses import (
    RangeError,
    parse_network,
)


def work(module: AnsibleModule) -> dict[str, typing.Any]:
    try:
        # a-b/prefix: the network is that of b
        networks = [parse_network(text.rpartition("-")[2]) for text in module.params["ranges"]]
    except RangeError as error:
        module.fail_json(msg=f"ranges: '{error.seen}' is not a valid range: {error.why}")
    return {"addresses": to_data(observe(connect(module), networks))}


def main() -> None:
    ranges = {"type": "list", "elements": "str", "default": []}
    module = AnsibleModule(argument_spec=make_facts_spec(ranges=ranges), supports_check_mode=True)
    run_with_fact(module, lambda: work(module), "addresses")


if __name__ == "__main__":
    main()
