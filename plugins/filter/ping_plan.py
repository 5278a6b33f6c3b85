# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filter ``linerate.rdma.ping_plan``: which node serves and pings what in stage reachability."""

from __future__ import annotations

DOCUMENTATION = r"""
name: ping_plan
short_description: Plans who pings whom over the InfiniBand fabrics of the intent
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Every port of a fabric serves, and pings its partners. They are the ports of the same rail on the other nodes, met in rounds of disjoint pairs.
  - Which port belongs to which fabric comes from the subnet manager that it sees. A fabric that can't be made out is not in the plan; stage
    reachability reports it as not measured.
positional: hcas, subnets, most_rounds, parallel, limit, forks
options:
  _input:
    description: The variable C(rdma_fabrics).
    type: list
    elements: dict
    required: true
  hcas:
    description: What M(linerate.rdma.hca_info) returned on each node, as P(linerate.rdma.collect#filter) gathers it.
    type: dict
    required: true
  subnets:
    description: What M(linerate.rdma.subnet_manager_info) returned on each node, as P(linerate.rdma.collect#filter) gathers it.
    type: dict
    required: true
  most_rounds:
    description: Most partners for each port. Without it every port meets every other one of its rail.
    type: int
  parallel:
    description: Destinations that a node pings at the same time.
    type: int
    default: 8
  limit:
    description: Most seconds for one destination.
    type: int
    default: 10
  forks:
    description: Nodes that Ansible works on at the same time.
    type: int
    default: 5
"""

EXAMPLES = r"""
- name: Plan who pings whom
  ansible.builtin.set_fact:
    plan: "{{ rdma_fabrics | linerate.rdma.ping_plan(hcas, subnets, 31, forks=ansible_forks) }}"
  vars:
    hcas: "{{ hostvars | linerate.rdma.collect(groups['rdma_nodes'], 'discover_hcas', 'hcas') }}"
    subnets: "{{ hostvars | linerate.rdma.collect(groups['rdma_nodes'], 'fabric_subnets', 'subnets') }}"
"""

RETURN = r"""
_value:
  description:
    - C(nodes) has for each node what it serves and whom it pings, as M(linerate.rdma.ibping) takes it. C(pairs) is the number of directions.
    - C(seconds) is how long it takes when nothing is lost, roughly, and C(most_seconds) when everything is. So long the servers must live.
  type: dict
  sample:
    nodes:
      worker-1:
        servers: [{device: mlx5_0, port: 1}]
        clients: [{device: mlx5_0, port: 1, lids: [12]}]
    pairs: 2
    seconds: 1
    most_seconds: 40
"""

import typing

from ansible_collections.linerate.rdma.plugins.module_utils._check.fleet.hcas_of_fabric import resolve
from ansible_collections.linerate.rdma.plugins.module_utils._model.fabric import ObservedSubnets
from ansible_collections.linerate.rdma.plugins.module_utils._model.hca import ObservedHcas
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent import Fabric
from ansible_collections.linerate.rdma.plugins.module_utils._model.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.profiles import is_infiniband
from ansible_collections.linerate.rdma.plugins.module_utils._model.reachability import PingPlan
from ansible_collections.linerate.rdma.plugins.module_utils._schedule.pings import Endpoint, plan, schedule
from ansible_collections.linerate.rdma.plugins.plugin_utils._filters import filter_of


@filter_of
def ping_plan(
    fabrics: typing.Any, hcas: typing.Any, subnets: typing.Any, most_rounds: typing.Optional[int] = None, parallel: int = 8, limit: int = 10, forks: int = 5
) -> typing.Any:
    """See DOCUMENTATION."""
    intent = load(typing.Tuple[Fabric, ...], fabrics, "rdma_fabrics")
    observed_hcas = load(typing.Dict[str, ObservedHcas], hcas, "hcas")
    observed_subnets = load(typing.Dict[str, ObservedSubnets], subnets, "subnets")
    nodes = {name: answer.value for name, answer in observed_hcas.items() if answer.value is not None and answer.error is None}
    seen = {name: answer.value for name, answer in observed_subnets.items() if answer.value is not None and answer.error is None}
    rails: typing.Dict[typing.Tuple[str, int], typing.Dict[str, Endpoint]] = {}
    for fabric in intent:
        if is_infiniband(fabric):
            for node, members in resolve(fabric, nodes, seen).members.items():
                for member in members:
                    if member.hca.rdma_device is not None and member.port is not None and member.port.lid is not None:
                        rails.setdefault((fabric.name, member.rail), {})[node] = Endpoint(member.hca.rdma_device, member.port.number, member.port.lid)
    planned = plan(rails.values(), most_rounds)
    # every node is there, so that a template may look its own name up
    return to_data(schedule({name: planned.get(name, PingPlan()) for name in observed_hcas}, parallel, limit, forks))


class FilterModule:
    """Filters of the collection."""

    def filters(self) -> typing.Dict[str, typing.Any]:
        return {"ping_plan": ping_plan}
