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
  - Asks through each port for its subnet manager (C(sminfo)). What all managers of a fabric say is shown by M(linerate.rdma.fabric_info).
  - Where nobody answers, the port at the LID of the last manager is asked whether a manager still runs there (C(smpquery)).
    So a manager that hangs is told from one that has ended, and from one that can't be reached.
  - That nobody manages a subnet is an answer and no failure of the module. Each port without an answer carries the tool's own words.
requirements:
  - C(sminfo) and C(smpquery) of infiniband-diags on the node
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
  sysfs:
    description:
      - Where sysfs is mounted, to find the ports when O(ports) is not given. With several folders their devices are taken as one list.
    type: list
    elements: path
    default:
      - /sys
extends_documentation_fragment:
  - linerate.rdma._options.facts
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
    error:
      description: Why no manager is known for this port.
      returned: success
      type: str
      sample: "sminfo -C mlx5_0 -P 1 ended with 255: sminfo: iberror: failed: query"
    silent:
      description: The question went out and nobody answered. V(false) beside an error means that it could not be asked.
      returned: success
      type: bool
      sample: false
    lost:
      description:
        - Of a silent subnet, the LID where its manager was, and what that port says of itself. C(is_manager) is the IsSM bit.
        - V(null) for the description means that the port does not answer.
      returned: success
      type: dict
      sample:
        lid: 7
        description: sm-1 mlx5_0
        is_manager: true
    linked:
      description: V(false) when the port had no link, so that nobody asked.
      returned: success
      type: bool
      sample: true
    barrier:
      description:
        - Why a port could not be asked. V(module) - ib_umad is not loaded; V(port) - it does not know the port; V(device) - the port has no
          C(/dev/infiniband/umad*); V(right) - the user may not open that. V(null) when nothing stands in the way.
      returned: success
      type: str
      sample: module
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
from ansible_collections.linerate.rdma.plugins.module_utils._observe import subnet, sysfs


def read(params: typing.Dict[str, typing.Any]) -> typing.Dict[str, typing.Any]:
    if params["ports"] is None:
        ports = subnet.infiniband_ports(sysfs.read_node(params["sysfs"]))
    else:
        ports = tuple(subnet.Question(PortName(item["device"], item["port"])) for item in params["ports"])
    return {"subnets": to_data(subnet.read_subnets(ports, params["sysfs"]))}


def main() -> None:
    port = {"device": {"type": "str", "required": True}, "port": {"type": "int", "default": 1}}
    module = AnsibleModule(
        argument_spec={
            "ports": {"type": "list", "elements": "dict", "options": port},
            "sysfs": {"type": "list", "elements": "path", "default": ["/sys"]},
            **_ansible.OBSERVER_SPEC,
        },
        supports_check_mode=True,
    )
    _ansible.run(module, lambda: read(module.params))


if __name__ == "__main__":
    main()
