#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: propose
short_description: Propose an intent for what the nodes and the cluster have
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Writes C(rdma_fabrics) and C(rdma_cluster) as YAML. The comment of each line names its source.
  - Uses the facts of a run. These are the HCAs, the subnet managers and topologies, the IP addresses in use, and the
    SR-IOV network operator.
  - A value that nothing shows starts with C(FILL_IN). The stage C(validate) refuses the file until each of them is
    replaced.
  - Names hardware and nodes that it leaves out, each with the reason.
  - Never overwrites a file. If there is an intent already, the module writes nothing and shows the differences. Runs on
    the controller.
options:
  path:
    description:
      - File to write, on the controller.
      - The default is C(group_vars/all/rdma.yml) in the folder of the inventory.
    type: path
  namespace:
    description: Namespace of the pods that will use the fabrics. Nothing shows it, so that without it the proposal has
      a line to fill in for each fabric.
    type: str
    default: ""
  fabrics:
    description: The variable C(rdma_fabrics), if there is an intent already.
    type: raw
  cluster:
    description: The variable C(rdma_cluster), if there is an intent already.
    type: raw
  cause:
    description: Why the nodes could not be seen. If nothing can be proposed, the module fails with this text.
    type: str
    default: ""
  image:
    description:
      - The variable C(rdma_observers_image), if the nodes were read through observers.
      - If the command sets it (C(-e)), the proposal contains it with the digest that all observers ran, so that later
        commands need not name it. If they ran on fewer than two nodes, or an observer did not report it, the name stays
        as it is, and a note has the command that prints the digest.
      - If the inventory sets it to a tag, a note has the digest.
    type: str
    default: ""
  unclean:
    description: Whether something of the run may be left in the cluster. If nothing can be proposed, the text ends with
      it.
    type: bool
    default: false
extends_documentation_fragment:
  - linerate.rdma._options.folder
  - linerate.rdma._attributes.changes
attributes:
  idempotent:
    support: partial
    details:
      - The module changes nothing if O(fabrics) or O(cluster) is set. Without them it fails if the file exists.
seealso:
  - module: linerate.rdma.run_begin
"""

EXAMPLES = r"""
- name: Propose an intent
  linerate.rdma.propose:
    facts_dir: build/report/propose
    run: "{{ stage_result.run }}"
    path: group_vars/all/rdma.yml
  register: propose_result
"""

RETURN = r"""
blanks:
  description: Paths of the values that the user has to fill in.
  type: list
  elements: str
  returned: success
  sample: ["rdma_fabrics[0].network.namespace"]
lines:
  description: What was left out, and what has to be filled in, as text for a terminal. If there is an intent already,
    the differences.
  type: list
  elements: str
  returned: success
path:
  description: Absolute path of the file. Empty if there is an intent already and O(path) is not set.
  type: str
  returned: success
text:
  description: The proposal as YAML.
  type: str
  returned: success
written:
  description: Whether the file was written.
  type: bool
  returned: success
"""
