#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run ibping between nodes: servers with a limited lifetime, and clients that ping many destinations."""

from __future__ import annotations

DOCUMENTATION = r"""
module: ibping
short_description: Verify with ibping that InfiniBand ports reach each other
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - O(mode=serve) starts an ibping server on each port of O(servers). It first stops servers that an interrupted run
    left. It returns when all servers accept requests. Each server ends by itself after O(lifetime) seconds.
  - O(mode=ping) pings the LIDs of O(clients), each from its port.
  - O(mode=stop) stops all servers that this module started on the node, and no others.
  - Run O(mode=serve) on all nodes first, then O(mode=ping), then O(mode=stop). One call of each mode covers any number
    of ports and destinations.
  - The module ignores the exit code and the times of C(ibping). C(ibping) exits with 0 even if every packet is lost,
    and its times are wrong.
  - C(changed) is always false, because the servers are part of the measurement and do not remain on the node.
requirements:
  - C(ibping) of infiniband-diags on the node
  - C(timeout) of coreutils on the node
  - root, or access to /dev/infiniband/umad*
options:
  mode:
    description: Whether to start servers, to ping or to stop servers.
    type: str
    required: true
    choices:
      - serve
      - ping
      - stop
  servers:
    description: Ports on which to start servers. Used with O(mode=serve).
    type: list
    elements: dict
    default: []
    suboptions:
      device:
        description: RDMA device, such as C(mlx5_0).
        type: str
        required: true
      port:
        description: Port number, starting at 1.
        type: int
        default: 1
  lifetime:
    description: Time in seconds after which a server ends by itself. Used with O(mode=serve).
    type: int
    default: 300
  clients:
    description: Ports from which to ping, each with its destinations. Used with O(mode=ping).
    type: list
    elements: dict
    default: []
    suboptions:
      device:
        description: RDMA device, such as C(mlx5_0).
        type: str
        required: true
      port:
        description: Port number, starting at 1.
        type: int
        default: 1
      lids:
        description: LIDs of the ports to ping.
        type: list
        elements: int
        required: true
  count:
    description:
      - Number of packets to each destination, sent one right after the other. Used with O(mode=ping).
      - The module sends a few packets first, then more. After a lost packet it sends no more to this destination.
    type: int
    default: 500
  timeout_ms:
    description: Time in milliseconds after which a packet is sent again. A packet is sent three times before it counts
      as lost. Used with O(mode=ping).
    type: int
    default: 200
  parallel:
    description: Number of destinations to ping at the same time. Used with O(mode=ping).
    type: int
    default: 8
  limit:
    description: Maximum time in seconds for one destination. Used with O(mode=ping).
    type: int
    default: 10
extends_documentation_fragment:
  - linerate.rdma._options.facts
  - linerate.rdma._attributes.changes
attributes:
  check_mode:
    details:
      - The module also measures in check mode, because a measurement makes no lasting change.
  diff_mode:
    support: N/A
    details:
      - The module makes no lasting change.
"""

EXAMPLES = r"""
- name: Start a server on one port for a minute
  linerate.rdma.ibping:
    mode: serve
    servers:
      - device: mlx5_4
    lifetime: 60

- name: Ping two ports from another port
  linerate.rdma.ibping:
    mode: ping
    clients:
      - device: mlx5_2
        lids: [81, 82]
  register: result

- name: Stop the servers
  linerate.rdma.ibping:
    mode: stop
"""

RETURN = r"""
servers:
  description:
    - With O(mode=serve), the servers that were requested. A server with an error does not run.
    - With O(mode=stop), the servers that were still running.
  returned: mode is serve or stop
  type: list
  elements: dict
  sample:
    - rdma_device: mlx5_4
      port: 1
      error: null
pings:
  description:
    - One entry per port and destination. An entry with an error has no measurement.
    - C(resent) counts the packets that were sent again after a timeout. C(received) does not show such losses.
    - C(late) counts the packets of an earlier run that were sent again, where a run of ten times as many packets, which
      followed for that reason, lost none.
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
      late: 0
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
from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement.reachability import PingTask, PortName
from ansible_collections.linerate.rdma.plugins.module_utils._observe.infiniband import ibping


def work(params: dict[str, typing.Any]) -> dict[str, typing.Any]:
    if params["mode"] == "serve":
        return {
            "servers": to_data(
                ibping.start_servers(
                    [PortName(item["device"], item["port"]) for item in params["servers"]], params["lifetime"]
                )
            )
        }
    if params["mode"] == "stop":
        return {"servers": to_data(ibping.stop_servers())}
    tasks = [PingTask(item["device"], item["port"], tuple(item["lids"])) for item in params["clients"]]
    return {
        "pings": to_data(
            ibping.ping_lids(tasks, params["count"], params["timeout_ms"], params["parallel"], params["limit"])
        )
    }


def main() -> None:
    port = {"device": {"type": "str", "required": True}, "port": {"type": "int", "default": 1}}
    module = AnsibleModule(
        argument_spec={
            "mode": {"type": "str", "required": True, "choices": ["serve", "ping", "stop"]},
            "servers": {"type": "list", "elements": "dict", "default": [], "options": port},
            "lifetime": {"type": "int", "default": 300},
            "clients": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {**port, "lids": {"type": "list", "elements": "int", "required": True}},
            },
            "count": {"type": "int", "default": 500},
            "timeout_ms": {"type": "int", "default": 200},
            "parallel": {"type": "int", "default": 8},
            "limit": {"type": "int", "default": 10},
            **OBSERVER_SPEC,
        },
        supports_check_mode=True,
    )
    run(module, lambda: work(module.params))


if __name__ == "__main__":
    main()
