#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the subnet managers that the ports of a node see."""

from __future__ import annotations

DOCUMENTATION = r"""
module: subnet_manager_info
short_description: Show the subnet manager that each InfiniBand port of a node sees
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Queries the subnet manager through each port (C(sminfo)). M(linerate.rdma.fabric_info) shows all subnet managers of
    a fabric.
  - If no subnet manager answers, queries the port at the LID of the last one (C(smpquery)). The answer shows whether
    the manager hangs, has ended or is unreachable.
  - Does not fail if a subnet has no manager. Each port without an answer has the error message of the tool.
requirements:
  - C(sminfo) and C(smpquery) of infiniband-diags on the node
  - root, or access to /dev/infiniband/umad*
options:
  ports:
    description:
      - Ports to query.
      - The default is all InfiniBand ports of the physical functions. Ports without a link are listed but not queried.
    type: list
    elements: dict
    suboptions:
      device:
        description: RDMA device, such as C(mlx5_0).
        type: str
        required: true
      port:
        description: Port number, starting at 1.
        type: int
        default: 1
  sysfs:
    description:
      - Mount point of sysfs, used to find the ports if O(ports) is not set. If you give several, the module uses the
        devices of all of them.
    type: list
    elements: path
    default:
      - /sys
extends_documentation_fragment:
  - linerate.rdma._options.facts
  - linerate.rdma._attributes.reads
"""

EXAMPLES = r"""
- name: Show the subnet manager of each port
  linerate.rdma.subnet_manager_info:
  register: subnets

- name: Query only one port
  linerate.rdma.subnet_manager_info:
    ports:
      - device: mlx5_4
"""

RETURN = r"""
subnets:
  description: One entry per port.
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
      description: Port number.
      returned: success
      type: int
      sample: 1
    master:
      description: The subnet manager that answered, in any state. V(null) if none answered.
      returned: success
      type: dict
      sample:
        lid: 1
        guid: "0xe89e491ff5d50000"
        state: MASTER
        priority: 15
        activity: 6306612
    error:
      description: Why the subnet manager of this port is not known.
      returned: success
      type: str
      sample: "sminfo -C mlx5_0 -P 1 ended with 255: sminfo: iberror: failed: query"
    silent:
      description: Whether the query was sent and nobody answered. V(false) with an error means that the query could not
        be sent.
      returned: success
      type: bool
      sample: false
    lost:
      description:
        - If RV(subnets[].silent), the last LID of the manager, and the description of the port with this LID.
          C(is_manager) is the IsSM bit of the port.
        - If the description is V(null), the port does not answer.
      returned: success
      type: dict
      sample:
        lid: 7
        description: sm-1 mlx5_0
        is_manager: true
    linked:
      description: Whether the port has a link. A port without a link is not queried.
      returned: success
      type: bool
      sample: true
    barrier:
      description:
        - Why the port could not be queried. V(null) if nothing prevents it.
        - V(module) means that C(ib_umad) is not loaded. V(port) means that C(ib_umad) does not know the port. V(device)
          means that the port has no C(/dev/infiniband/umad*). V(right) means that the user may not open it.
      returned: success
      type: str
      sample: module
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
from ansible_collections.linerate.rdma.plugins.module_utils._observe.node import sysfs


def read(params: dict[str, typing.Any]) -> dict[str, typing.Any]:
    if params["ports"] is None:
        ports = subnet.list_infiniband_ports(sysfs.read_node(params["sysfs"]))
    else:
        ports = tuple(subnet.PortQuery(PortName(item["device"], item["port"])) for item in params["ports"])
    return {"subnets": to_data(subnet.read_subnets(ports, params["sysfs"]))}


def main() -> None:
    port = {"device": {"type": "str", "required": True}, "port": {"type": "int", "default": 1}}
    module = AnsibleModule(
        argument_spec={
            "ports": {"type": "list", "elements": "dict", "options": port},
            "sysfs": {"type": "list", "elements": "path", "default": ["/sys"]},
            **OBSERVER_SPEC,
        },
        supports_check_mode=True,
    )
    run(module, lambda: read(module.params))


if __name__ == "__main__":
    main()
