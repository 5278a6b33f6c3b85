#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: on_node
short_description: Run a module on a node that may be hostile
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Runs another module. A node that is under the control of an attacker answers what it likes in place of the module.
    An answer with C(ansible_facts) sets variables of the host, which then take the place of those of the inventory,
    also in tasks on the controller. This module takes C(ansible_facts), C(add_host), C(add_group) and C(ansible_stats)
    out of the answer.
  - If the connection is lost, the message of the result holds words of the node, such as the banner of its ssh server.
  - ansible-core before 2.19 takes this message for a template if a task with C(ignore_unreachable) registers it. A node
    could run commands on the controller in this way. This module marks the message as unsafe.
  - With O(writes), the module runs only if the run holds the C(Lease) of the cluster and nobody else can take it for
    the next 720 seconds. This is checked on the controller right before, for each node. No API server would refuse what
    is written on a node.
  - Use it for each task on nodes whose module is not of this collection, unless the task needs the facts that the
    module returns.
options:
  module:
    description: Full name of the module.
    type: str
    required: true
  options:
    description: Options of the module.
    type: dict
    default: {}
  writes:
    description: Whether O(module) writes on the node. Set O(facts_dir) and O(run) as well.
    type: bool
    default: false
  in_turn:
    description:
      - Name of a sequence. After O(module) failed on a node, or the node was lost, the tasks of the sequence fail on
        all later nodes of this C(ansible-playbook) without running O(module).
      - Set C(throttle) of the task to 1, so that one node follows the other.
    type: str
  restarts_containerd:
    description:
      - Whether O(module) restarts containerd. Set O(in_turn) as well.
      - The module runs only if the unit of containerd has C(KillMode=process), so that running containers continue, if
        none of them loses its GPUs (see O(reloads_systemd)), and if containerd can read its configuration (C(containerd
        config dump)).
      - The module counts as failed until C(ctr plugins ls) reports the CRI plugin of containerd as C(ok), the unit
        C(kubelet) is active if it was active before, and the C(Node) of the host is Ready, if the cluster has one. If
        C(ctr) reports no plugins, only a status that the kubelet reports 45 s or more after the restart counts.
    type: bool
    default: false
  reloads_systemd:
    description:
      - Whether O(module) makes systemd read the files of its units again (C(systemctl daemon-reload)).
      - The module runs only if no running container of the node loses its GPUs by that. Containers that got their GPUs
        in the mode C(legacy) of NVIDIA's container runtime would lose them.
    type: bool
    default: false
  facts_dir:
    description: Report folder on the controller.
    type: path
  run:
    description: ID of the run, as returned by M(linerate.rdma.stage_begin) or M(linerate.rdma.run_begin).
    type: str
extends_documentation_fragment:
  - linerate.rdma._options.lease
  - linerate.rdma._authentication.options
  - linerate.rdma._attributes.changes
"""

EXAMPLES = r"""
- name: Make a folder
  linerate.rdma.on_node:
    module: ansible.builtin.file
    options:
      path: /etc/example
      state: directory
      mode: "0755"
  register: folder
"""

RETURN = r"""
msg:
  description: Why the node could not be reached. All other values are those of O(module).
  type: str
  returned: unreachable
"""
