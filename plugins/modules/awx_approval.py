#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: awx_approval
short_description: Put the text of a plan into the approval of the workflow
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Sets the description of the approval in the workflow that M(linerate.rdma.awx_objects) made. AWX copies it when the
    workflow comes to the approval, and shows it to whoever approves.
  - The playbook C(linerate.rdma.awx_approval) uses it. Runs on the controller.
options:
  text:
    description: Text for whoever approves.
    type: str
    required: true
extends_documentation_fragment:
  - linerate.rdma._attributes.changes
  - linerate.rdma._options.awx
attributes:
  diff_mode:
    support: none
    details:
      - The module shows no difference.
seealso:
  - module: linerate.rdma.awx_objects
"""

EXAMPLES = r"""
- name: Show the plan to whoever approves
  linerate.rdma.awx_approval:
    organization: Default
    text: "{{ linerate_rdma.plan }}"
"""

RETURN = r"""
text:
  description: What whoever approves sees, which is O(text).
  type: str
  returned: success
"""
