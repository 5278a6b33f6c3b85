#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The topology of InfiniBand fabrics."""

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_info
short_description: Show the topology of an InfiniBand fabric
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Runs C(ibnetdiscover) from the given ports, one for each fabric is enough, and shows the switches, the HCAs and the links between them.
  - A fabric of thousands of nodes gives a large answer. Run it on one node of each fabric, not on all.
requirements:
  - C(ibnetdiscover) of infiniband-diags on the node
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
      - Seconds that one discovery may take.
    type: int
    default: 120
extends_documentation_fragment:
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
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils import _ansible
from ansible_collections.linerate.rdma.plugins.module_utils._model.facts import PortName
from ansible_collections.linerate.rdma.plugins.module_utils._model.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._observe import subnet


def read(params):
    names = [PortName(item["device"], item["port"]) for item in params["ports"]]
    return {"topology": to_data([subnet.read_topology(name, params["timeout"]) for name in names])}


def main() -> None:
    port = {"device": {"type": "str", "required": True}, "port": {"type": "int", "default": 1}}
    module = AnsibleModule(
        argument_spec={
            "ports": {"type": "list", "elements": "dict", "required": True, "options": port},
            "timeout": {"type": "int", "default": 120},
        },
        supports_check_mode=True,
    )
    _ansible.run(module, lambda: read(module.params))


if __name__ == "__main__":
    main()
