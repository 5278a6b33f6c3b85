#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_ports
short_description: Choose one port of each InfiniBand fabric for the discovery
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - A discovery reads a whole fabric, so one port per fabric is enough. The subnet manager that a port sees identifies
    its fabric.
  - Reads the facts of M(linerate.rdma.subnet_manager_info) on each node. M(linerate.rdma.fabric_info) then queries the
    chosen ports.
  - Runs on the controller.
extends_documentation_fragment:
  - linerate.rdma._options.folder
  - linerate.rdma._attributes.records
seealso:
  - module: linerate.rdma.subnet_manager_info
  - module: linerate.rdma.fabric_info
"""

EXAMPLES = r"""
- name: Begin a run
  linerate.rdma.run_begin:
    report_dir: build/report
    fabrics: "{{ rdma_fabrics }}"
  register: begun
  run_once: true

- name: Read the subnet managers
  linerate.rdma.subnet_manager_info:
    facts_dir: build/report
    run: "{{ begun.run }}"

- name: Choose the ports
  linerate.rdma.fabric_ports:
    facts_dir: build/report
    run: "{{ begun.run }}"
  run_once: true
"""

RETURN = r"""
nodes:
  description: Number of nodes with a chosen port.
  type: int
  returned: success
ports:
  description: Number of chosen ports.
  type: int
  returned: success
"""
