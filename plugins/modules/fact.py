#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fact
short_description: Store the result of another module as a fact
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Writes a fact about the current host to the report folder on the controller. It does not contact the host.
  - Use it for results of other modules. The observers of this collection store their facts themselves.
options:
  kind:
    description: Kind of the fact. Use lower-case letters, digits and underscores only.
    type: str
    required: true
  node:
    description: Node that the fact is about. V(cluster) stands for the whole cluster. The default is the current host.
    type: str
  value:
    description: Value of the fact. Set either O(value) or O(error).
    type: raw
  error:
    description: Why there is no value. Set either O(value) or O(error).
    type: str
extends_documentation_fragment:
  - linerate.rdma._options.folder
  - linerate.rdma._attributes.records
seealso:
  - module: linerate.rdma.stage_gate
"""

EXAMPLES = r"""
- name: Begin a run
  linerate.rdma.run_begin:
    report_dir: build/report
  register: begun
  run_once: true

- name: Read the memlock limit of containerd
  ansible.builtin.command: systemctl show containerd --property LimitMEMLOCK --value
  register: memlock_limit
  changed_when: false

- name: Store the limit
  linerate.rdma.fact:
    facts_dir: build/report
    run: "{{ begun.run }}"
    kind: containerd_limit
    value:
      limit: "{{ memlock_limit.stdout }}"
"""

RETURN = r"""
path:
  description: Path of the written file.
  type: str
  returned: success
"""
