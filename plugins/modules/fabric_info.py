#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Topology, subnet managers and link errors of InfiniBand fabrics."""

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_info
short_description: Show topology, subnet managers and link errors of an InfiniBand fabric
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - From the given ports, one for each fabric is enough, shows the switches, the HCAs and the links between them (C(ibnetdiscover)).
  - Shows the links below what both of their ends support (C(iblinkinfo)), and two readings of the error counters of all ports (C(ibqueryerrors)).
    The fabric is walked once.
  - Asks every port on which a subnet manager runs (C(saquery -s), C(sminfo)), and looks at the records of the subnet administration
    (C(saquery SMIR)) until the manager's activity count has risen and its record of another manager has changed, at most for O(activity)
    seconds. A manager that answers but no longer sweeps keeps the records that it has.
  - A fabric of thousands of nodes gives a large answer. Run it on one node of each fabric, not on all.
requirements:
  - infiniband-diags on the node
  - root, or access to /dev/infiniband/umad*
options:
  ports:
    description:
      - The ports to look from. An empty list is allowed and gives an empty answer.
    type: list
    elements: dict
    required: true
    suboptions:
      device:
        description: RDMA device, C(mlx5_0).
        type: str
        required: true
      port:
        description: Number of the port, from 1.
        type: int
        default: 1
  timeout:
    description:
      - Seconds that one walk of the whole fabric may take.
    type: int
    default: 120
  activity:
    description:
      - Most seconds to wait for a sign of a sweep. opensm sweeps every 10 seconds unless it is told otherwise.
    type: int
    default: 40
  errors:
    description:
      - Least seconds between the two readings of the error counters. The wait for a sweep is part of it.
    type: int
    default: 10
extends_documentation_fragment:
  - linerate.rdma._options.facts
  - linerate.rdma._attributes.reads
"""

EXAMPLES = r"""
- name: See the fabric behind one port
  linerate.rdma.fabric_info:
    ports:
      - device: mlx5_0
  register: fabric
"""

RETURN = r"""
topology:
  description: One entry a port, in the order of O(ports).
  returned: success
  type: list
  elements: dict
  contains:
    rdma_device:
      description: RDMA device that was looked from.
      returned: success
      type: str
      sample: mlx5_0
    port:
      description: Number of the port.
      returned: success
      type: int
      sample: 1
    topology:
      description: What was seen. V(null) when nothing was, see RV(topology[].error).
      returned: success
      type: dict
      contains:
        nodes:
          description: Switches, HCAs and routers. RV(topology[].topology.nodes[].aggregation) marks SHARP aggregation nodes, which are no HCAs.
          returned: success
          type: list
          elements: dict
          contains:
            aggregation:
              description: Whether it is a SHARP aggregation node.
              returned: success
              type: bool
          sample:
            - kind: Switch
              guid: "0xb83fd20300000000"
              description: MF0;leaf00:MQM9700/U1
              ports: 17
              lid: 1
              aggregation: false
        links:
          description: Each link once. Width in lanes.
          returned: success
          type: list
          elements: dict
          sample:
            - a: {kind: Switch, guid: "0xb83fd20300000000", port: 1, lid: 1, port_guid: null}
              b: {kind: Ca, guid: "0xb83fd20300e00000", port: 1, lid: 4, port_guid: "0xb83fd20300e00001"}
              width: 4
              speed: NDR
    error:
      description: Why there is no topology.
      returned: success
      type: str
      sample: "ibnetdiscover -C mlx5_0 -P 1 did not end within 120 s: it said nothing"
    managers:
      description:
        - Each port with the IsSM bit and what the manager there answers, and the activity count of this port's own manager by its SMInfo record, read twice.
        - C(others_refreshed) tells whether the record of another manager changed meanwhile, which only a sweep does;
          V(null) when there is no other.
      returned: success
      type: dict
      sample:
        ports:
          - {lid: 1, manager: {lid: 1, guid: "0xe89e491ff5d50000", state: MASTER, priority: 15, activity: 6306612}, error: null}
        error: null
        master: "0xe89e491ff5d50000"
        activity_first: 6306612
        activity_later: 6306701
        activity_seconds: 10.1
        others_refreshed: null
    capabilities:
      description: The links below what both ends support; C(links) counts the ends that were compared.
      returned: success
      type: dict
      sample:
        slow: [{guid: "0xb83fd20300000000", port: 5, could_be: 106.25 Gbps}]
        links: 56
        unread: []
        error: null
    errors:
      description: The ports with errors counted, in two readings, and the seconds between them; C(unread) names the ports that did not answer.
      returned: success
      type: dict
      sample:
        first: {ports: [{guid: "0xb83fd20300e00011", port: 1, counters: {SymbolErrorCounter: 123}, wide: false}], checked: 65, failures: 0, unread: []}
        later:
          ports: [{guid: "0xb83fd20300e00011", port: 1, counters: {SymbolErrorCounter: 140}, wide: false}]
          checked: 65
          failures: 1
          unread: [{lid: 12, port: 1}]
        seconds: 10.0
        error: null
counts:
  description: With O(facts_dir), how much each fact holds. The facts themselves are in the folder then.
  returned: with O(facts_dir)
  type: dict
"""

import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils import _ansible
from ansible_collections.linerate.rdma.plugins.module_utils._model.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.reachability import PortName
from ansible_collections.linerate.rdma.plugins.module_utils._observe import subnet


def read(params: typing.Dict[str, typing.Any]) -> typing.Dict[str, typing.Any]:
    names = [PortName(item["device"], item["port"]) for item in params["ports"]]
    return {"topology": to_data(subnet.read_fabrics(names, subnet.Limits(params["timeout"], params["activity"], params["errors"])))}


def main() -> None:
    port = {"device": {"type": "str", "required": True}, "port": {"type": "int", "default": 1}}
    module = AnsibleModule(
        argument_spec={
            "ports": {"type": "list", "elements": "dict", "required": True, "options": port},
            "timeout": {"type": "int", "default": 120},
            "activity": {"type": "int", "default": 40},
            "errors": {"type": "int", "default": 10},
            **_ansible.OBSERVER_SPEC,
        },
        supports_check_mode=True,
    )
    _ansible.run(module, lambda: read(module.params))


if __name__ == "__main__":
    main()
