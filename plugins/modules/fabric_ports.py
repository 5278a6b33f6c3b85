#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_ports
short_description: Chooses one port of each InfiniBand fabric to look from
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - A discovery walks a whole fabric, so one port of each fabric is enough. A fabric is told by its subnet manager.
  - Reads what M(linerate.rdma.subnet_manager_info) saw on each node. M(linerate.rdma.fabric_info) then asks the ports that were chosen. Runs on the controller.
extends_documentation_fragment:
  - linerate.rdma._options.folder
  - linerate.rdma._attributes.records
seealso:
  - module: linerate.rdma.subnet_manager_info
  - module: linerate.rdma.fabric_info
"""

EXAMPLES = r"""
- name: Choose from where to look
  linerate.rdma.fabric_ports:
    facts_dir: build/report
    run: "{{ stage_result.run }}"
"""

RETURN = r"""
nodes:
  description: Nodes with a port that was chosen.
  type: int
  returned: success
ports:
  description: Ports that were chosen.
  type: int
  returned: success
"""
