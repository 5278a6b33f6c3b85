#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The subnet managers that the ports of a node see."""

from __future__ import annotations

DOCUMENTATION = r"""
module: subnet_manager_info
short_description: Show the subnet managers that each InfiniBand port sees
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Asks through each port for its subnet manager (C(sminfo)), and once for each manager that answers for all managers that the subnet
    administration knows (C(saquery SMIR)).
  - Looks at the records again until the manager's activity count has risen and its record of another manager has changed, at most for
    O(interval) seconds. A manager that answers but no longer sweeps keeps the records that it has.
  - That nobody manages a subnet is an answer and no failure of the module. Each port without an answer carries the tool's own words.
requirements:
  - C(sminfo) and C(saquery) of infiniband-diags on the node
  - root, or access to /dev/infiniband/umad*
options:
  ports:
    description:
      - The ports to ask. Without it, all InfiniBand ports of the physical functions; those without a link are listed and not asked.
    type: list
    elements: dict
    suboptions:
      device:
        description: RDMA device, C(mlx5_0).
        type: str
        required: true
      port:
        description: Number of the port, from 1.
        type: int
        default: 1
  interval:
    description:
      - Most seconds to wait for a sign of a sweep. opensm sweeps every 10 seconds unless it is told otherwise.
    type: int
    default: 40
  sysfs:
    description:
      - Where sysfs is mounted, to find the ports when O(ports) is not given. With several folders their devices are taken as one list.
    type: list
    elements: path
    default:
      - /sys
extends_documentation_fragment:
  - linerate.rdma._attributes.reads
"""

EXAMPLES = r"""
- name: See which subnet manager each port has
  linerate.rdma.subnet_manager_info:
  register: subnets

- name: Ask through one port only
  linerate.rdma.subnet_manager_info:
    ports:
      - device: mlx5_4
"""

RETURN = r"""
subnets:
  description: One entry a port.
  returned: success
  type: list
  elements: dict
  contains:
    rdma_device:
      description: RDMA device.
      returned: success
      type: str
      sample: mlx5_0
    port:
      description: Number of the port.
      returned: success
      type: int
      sample: 1
    master:
      description: The manager that answered, whatever its state. V(null) when none did.
      returned: success
      type: dict
      sample:
        lid: 1
        guid: "0xe89e491ff5d50000"
        state: MASTER
        priority: 15
        activity: 6306612
    others:
      description: Further managers that the subnet administration knows, standby or not.
      returned: success
      type: list
      elements: dict
      sample: []
    activity_first:
      description: Activity count of the manager by its SMInfo record.
      returned: success
      type: int
      sample: 6306612
    activity_later:
      description: The same at the last look.
      returned: success
      type: int
      sample: 6306701
    activity_seconds:
      description: Seconds from the first query to the last look.
      returned: success
      type: float
      sample: 10.1
    others_refreshed:
      description: Whether a record of another manager changed meanwhile, which only a sweep does. V(null) when there is no other.
      returned: success
      type: bool
      sample: true
    error:
      description: Why no manager is known for this port.
      returned: success
      type: str
      sample: "sminfo -C mlx5_0 -P 1 ended with 255: sminfo: iberror: failed: query"
    records_error:
      description: Why there are no SMInfo records.
      returned: success
      type: str
      sample: "saquery -C mlx5_0 -P 1 SMIR ended with 110: Query SA failed: Connection timed out"
    silent:
      description: The question went out and nobody answered. V(false) beside an error means that it could not be asked.
      returned: success
      type: bool
      sample: false
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils import _ansible
from ansible_collections.linerate.rdma.plugins.module_utils._model.facts import PortName
from ansible_collections.linerate.rdma.plugins.module_utils._model.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._observe import subnet, sysfs


def read(params):
    if params["ports"] is None:
        ports = subnet.infiniband_ports(sysfs.read_node(params["sysfs"]))
    else:
        ports = [(PortName(item["device"], item["port"]), "") for item in params["ports"]]
    return {"subnets": to_data(subnet.read_subnets(ports, params["interval"]))}


def main() -> None:
    port = {"device": {"type": "str", "required": True}, "port": {"type": "int", "default": 1}}
    module = AnsibleModule(
        argument_spec={
            "ports": {"type": "list", "elements": "dict", "options": port},
            "interval": {"type": "int", "default": 40},
            "sysfs": {"type": "list", "elements": "path", "default": ["/sys"]},
        },
        supports_check_mode=True,
    )
    _ansible.run(module, lambda: read(module.params))


if __name__ == "__main__":
    main()
