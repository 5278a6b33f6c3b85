#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""ibping between nodes: bounded servers and many-destination clients."""

from __future__ import annotations

DOCUMENTATION = r"""
module: ibping
short_description: Prove that InfiniBand ports reach each other
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - With O(mode=serve) starts a server on each of the given ports. It returns when the servers wait for requests. Each server ends by itself
    after O(lifetime) seconds, also when nobody stops it. Servers that an interrupted run left are stopped first.
  - With O(mode=ping) pings each LID of O(clients) from its port.
  - With O(mode=stop) ends all servers that this module started on the node, and no other.
  - Serve on all nodes first, then ping, then stop. One call of each is enough for any number of ports and destinations.
  - Neither the exit code nor the times of C(ibping) are used. It exits with 0 even when every packet is lost, and its times are wrong.
  - The servers are part of a measurement and leave nothing behind, so C(changed) is always false.
requirements:
  - C(ibping) of infiniband-diags on the node
  - C(timeout) of coreutils on the node
  - root, or access to /dev/infiniband/umad*
options:
  mode:
    description:
      - What to do.
    type: str
    required: true
    choices:
      - serve
      - ping
      - stop
  servers:
    description:
      - The ports to serve on. For O(mode=serve).
    type: list
    elements: dict
    default: []
    suboptions:
      device:
        description: RDMA device, C(mlx5_0).
        type: str
        required: true
      port:
        description: Number of the port, from 1.
        type: int
        default: 1
  lifetime:
    description:
      - Seconds after which a server ends by itself. For O(mode=serve).
    type: int
    default: 300
  clients:
    description:
      - From which port to ping whom. For O(mode=ping).
    type: list
    elements: dict
    default: []
    suboptions:
      device:
        description: RDMA device, C(mlx5_0).
        type: str
        required: true
      port:
        description: Number of the port, from 1.
        type: int
        default: 1
      lids:
        description: LIDs of the ports to ping.
        type: list
        elements: int
        required: true
  count:
    description:
      - Packets to each destination, one right after the other. For O(mode=ping).
      - A few go first, then more and more. When one is lost, no more are sent to this destination.
    type: int
    default: 500
  timeout_ms:
    description:
      - Milliseconds after which a packet is sent again; it is sent three times before it counts as lost. For O(mode=ping).
    type: int
    default: 200
  parallel:
    description:
      - Destinations that are pinged at the same time. For O(mode=ping).
    type: int
    default: 8
  limit:
    description:
      - Most seconds for one destination. For O(mode=ping).
    type: int
    default: 10
extends_documentation_fragment:
  - linerate.rdma._options.facts
attributes:
  check_mode:
    description: Can run in check mode and tell what it would do.
    support: full
    details:
      - It measures in check mode too, since a measurement changes nothing that lasts.
  diff_mode:
    description: Shows what it would change.
    support: none
    details:
      - It changes nothing that lasts.
  idempotent:
    description: A second run changes nothing.
    support: full
"""

EXAMPLES = r"""
- name: Serve on one port for a minute
  linerate.rdma.ibping:
    mode: serve
    servers:
      - device: mlx5_4
    lifetime: 60

- name: Ping two ports from one
  linerate.rdma.ibping:
    mode: ping
    clients:
      - device: mlx5_2
        lids: [81, 82]
  register: result

- name: End the servers
  linerate.rdma.ibping:
    mode: stop
"""

RETURN = r"""
servers:
  description:
    - With O(mode=serve) the servers that were asked for. One with an error does not serve.
    - With O(mode=stop) those that were still there.
  returned: mode is serve or stop
  type: list
  elements: dict
  sample:
    - rdma_device: mlx5_4
      port: 1
      error: null
pings:
  description:
    - One entry for each port and destination. With an error, nothing was measured.
    - C(resent) counts the packets that were sent again since nothing came back in time. C(received) hides such a loss.
  returned: mode is ping
  type: list
  elements: dict
  sample:
    - rdma_device: mlx5_2
      port: 1
      destination_lid: 81
      transmitted: 500
      received: 500
      resent: 0
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
from ansible_collections.linerate.rdma.plugins.module_utils._model.reachability import PingTask, PortName
from ansible_collections.linerate.rdma.plugins.module_utils._observe import ibping


def work(params: typing.Dict[str, typing.Any]) -> typing.Dict[str, typing.Any]:
    if params["mode"] == "serve":
        return {"servers": to_data(ibping.start([PortName(item["device"], item["port"]) for item in params["servers"]], params["lifetime"]))}
    if params["mode"] == "stop":
        return {"servers": to_data(ibping.stop())}
    tasks = [PingTask(item["device"], item["port"], tuple(item["lids"])) for item in params["clients"]]
    return {"pings": to_data(ibping.ping(tasks, params["count"], params["timeout_ms"], params["parallel"], params["limit"]))}


def main() -> None:
    port = {"device": {"type": "str", "required": True}, "port": {"type": "int", "default": 1}}
    module = AnsibleModule(
        argument_spec={
            "mode": {"type": "str", "required": True, "choices": ["serve", "ping", "stop"]},
            "servers": {"type": "list", "elements": "dict", "default": [], "options": port},
            "lifetime": {"type": "int", "default": 300},
            "clients": {"type": "list", "elements": "dict", "default": [], "options": {**port, "lids": {"type": "list", "elements": "int", "required": True}}},
            "count": {"type": "int", "default": 500},
            "timeout_ms": {"type": "int", "default": 200},
            "parallel": {"type": "int", "default": 8},
            "limit": {"type": "int", "default": 10},
            **_ansible.OBSERVER_SPEC,
        },
        supports_check_mode=True,
    )
    _ansible.run(module, lambda: work(module.params))


if __name__ == "__main__":
    main()
