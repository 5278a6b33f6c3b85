#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fact
short_description: Keeps what another module saw as a fact
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Writes a fact of the host that the task runs for to the folder of the report, on the controller. The host itself is not touched.
  - For what an ordinary module saw on a node. The observers of this collection keep their facts themselves.
options:
  kind:
    description: Kind of the fact; lower-case letters, digits and underscores.
    type: str
    required: true
  node:
    description: Whom the fact is about; V(cluster) for all of them together. The default is the host that the task runs for.
    type: str
  value:
    description: What was seen.
    type: raw
  error:
    description: Why nothing was seen.
    type: str
extends_documentation_fragment:
  - linerate.rdma._options.folder
  - linerate.rdma._attributes.records
seealso:
  - module: linerate.rdma.stage_gate
"""

EXAMPLES = r"""
- name: Keep the limit that systemd shows
  linerate.rdma.fact:
    facts_dir: build/report
    run: "{{ hostvars['localhost'].stage_result.run }}"
    kind: containerd
    value:
      limit: "{{ shown.stdout }}"
"""

RETURN = r"""
path:
  description: The file that was written.
  type: str
  returned: success
"""
