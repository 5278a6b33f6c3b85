#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the topology, the subnet managers and the link errors of InfiniBand fabrics."""

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_info
short_description: Show topology, subnet managers and link errors of an InfiniBand fabric
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Reads the switches, the HCAs and their links (C(ibnetdiscover)), as seen from the given ports. One port per fabric
    is enough.
  - Reports links that run below the maximum that both ends support (C(iblinkinfo)). It discovers the fabric only once.
  - Reads the forwarding tables of all switches (C(dump_fts)).
  - Reads the error counters of all ports twice (C(ibqueryerrors)).
  - Queries every port that runs a subnet manager (C(saquery -s), C(sminfo)).
  - Waits for a sign that the subnet managers still sweep, up to O(activity) seconds. The sign is that the activity
    count of the manager rises and that its record of another manager changes (C(saquery SMIR)). A manager that answers
    but no longer sweeps does not update its records.
  - A fabric of thousands of nodes gives a large result. Run the module on one node of each fabric, not on all nodes.
requirements:
  - infiniband-diags on the node
  - root, or access to /dev/infiniband/umad*
options:
  ports:
    description:
      - Ports from which to query. An empty list gives an empty result.
    type: list
    elements: dict
    required: true
    suboptions:
      device:
        description: RDMA device, such as C(mlx5_0).
        type: str
        required: true
      port:
        description: Port number, starting at 1.
        type: int
        default: 1
  timeout:
    description: Maximum time in seconds for one discovery of the whole fabric.
    type: int
    default: 120
  activity:
    description: Maximum time in seconds to wait for a sweep of the subnet manager. By default, opensm sweeps every 10
      seconds.
    type: int
    default: 40
  errors:
    description: Minimum time in seconds between the two readings of the error counters. It includes the wait for a
      sweep.
    type: int
    default: 10
extends_documentation_fragment:
  - linerate.rdma._options.facts
  - linerate.rdma._attributes.reads
"""

EXAMPLES = r"""
- name: Read the fabric behind one port
  linerate.rdma.fabric_info:
    ports:
      - device: mlx5_0
  register: fabric
"""

RETURN = r"""
topology:
  description: One entry per port, in the order of O(ports).
  returned: success
  type: list
  elements: dict
  contains:
    rdma_device:
      description: RDMA device from which the fabric was read.
      returned: success
      type: str
      sample: mlx5_0
    port:
      description: Port number.
      returned: success
      type: int
      sample: 1
    topology:
      description: The topology. V(null) if it could not be read. RV(topology[].error) then says why.
      returned: success
      type: dict
      contains:
        nodes:
          description: Switches, HCAs and routers. RV(topology[].topology.nodes[].aggregation) marks SHARP aggregation
            nodes, which are not HCAs.
          returned: success
          type: list
          elements: dict
          contains:
            aggregation:
              description: Whether the node is a SHARP aggregation node.
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
          description: The links, each listed once. The width is in lanes.
          returned: success
          type: list
          elements: dict
          sample:
            - a: {kind: Switch, guid: "0xb83fd20300000000", port: 1, lid: 1, port_guid: null}
              b: {kind: Ca, guid: "0xb83fd20300e00000", port: 1, lid: 4, port_guid: "0xb83fd20300e00001"}
              width: 4
              speed: NDR
    error:
      description: Why the topology could not be read.
      returned: success
      type: str
      sample: "ibnetdiscover -C mlx5_0 -P 1 did not end within 120 s: it said nothing"
    managers:
      description:
        - The ports with the IsSM bit, each with the answer of its subnet manager.
        - C(activity_first) and C(activity_later) are two readings of the activity count of the port's own manager, from
          its SMInfo record.
        - C(others_refreshed) says whether the record of another manager changed between the readings. Only a sweep
          changes it. V(null) if there is no other manager.
      returned: success
      type: dict
      sample:
        ports:
          - {lid: 1, manager: {lid: 1, guid: "0xe89e491ff5d50000", state: MASTER, priority: 15, activity: 6306612},
            error: null}
        error: null
        master: "0xe89e491ff5d50000"
        activity_first: 6306612
        activity_later: 6306701
        activity_seconds: 10.1
        others_refreshed: null
    capabilities:
      description: Links that run below the maximum that both ends support. C(links) is the number of link ends that
        were compared.
      returned: success
      type: dict
      sample:
        slow: [{guid: "0xb83fd20300000000", port: 5, could_be: 106.25 Gbps}]
        links: 56
        unread: []
        error: null
    errors:
      description:
        - Ports with error counts, in two readings. C(seconds) is the time between the readings.
        - C(unread) lists the ports that did not answer.
      returned: success
      type: dict
      sample:
        first: {ports: [{guid: "0xb83fd20300e00011", port: 1, counters: {SymbolErrorCounter: 123}, wide: false}],
          checked: 65, failures: 0, unread: []}
        later:
          ports: [{guid: "0xb83fd20300e00011", port: 1, counters: {SymbolErrorCounter: 140}, wide: false}]
          checked: 65
          failures: 1
          unread: [{lid: 12, port: 1}]
        seconds: 10.0
        error: null
    forwarding:
      description:
        - The forwarding table of each switch. C(ports) has one byte for each LID from 0, in base64. It is the number of
          the port, or 255 if that is unknown.
        - C(unread) lists the blocks of 64 LIDs that the switch did not give.
      returned: success
      type: dict
      sample:
        tables: [{guid: "0xb83fd20300000000", ports: "/wABAg==", unread: []}]
        error: null
counts:
  description: Number of items in each fact. The facts themselves are then in O(facts_dir).
  returned: if O(facts_dir) and O(run) are set
  type: dict
"""

import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._ansible.module import OBSERVER_SPEC, run
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.reachability import PortName
from ansible_collections.linerate.rdma.plugins.module_utils._observe.infiniband import subnet


def read(params: dict[str, typing.Any]) -> dict[str, typing.Any]:
    names = [PortName(item["device"], item["port"]) for item in params["ports"]]
    return {
        "topology": to_data(
            subnet.read_fabrics(names, subnet.SubnetLimits(params["timeout"], params["activity"], params["errors"]))
        )
    }


def main() -> None:
    port = {"device": {"type": "str", "required": True}, "port": {"type": "int", "default": 1}}
    module = AnsibleModule(
        argument_spec={
            "ports": {"type": "list", "elements": "dict", "required": True, "options": port},
            "timeout": {"type": "int", "default": 120},
            "activity": {"type": "int", "default": 40},
            "errors": {"type": "int", "default": 10},
            **OBSERVER_SPEC,
        },
        supports_check_mode=True,
    )
    run(module, lambda: read(module.params))


if __name__ == "__main__":
    main()
