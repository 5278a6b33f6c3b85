#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: query
short_description: Asks the facts of a run a question, in JMESPath
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Evaluates a JMESPath expression over the facts of each node of a run, and says the node beside each answer.
  - The root object is a mapping of the kinds of facts of one node to their values, with keys such as C(hcas), C(platform) and C(subnets).
    A value is what lies in C(facts/<kind>/<node>.json) under C(value). Only facts of the run count.
  - Facts about the whole cluster are asked once, under the name V(cluster).
  - Runs on the controller, without an inventory, a node or a cluster.
requirements:
  - jmespath (on the controller)
options:
  report_dir:
    description: Folder of the run, on the controller.
    type: path
    required: true
  query:
    description: The expression. See U(https://jmespath.org).
    type: str
    required: true
  nodes:
    description: Nodes to ask, and V(cluster) for what is of the whole cluster. The default is all of the run.
    type: list
    elements: str
extends_documentation_fragment:
  - linerate.rdma._attributes.reads
seealso:
  - module: linerate.rdma.judge
"""

EXAMPLES = r"""
- name: Ask which ports are slower than 400 Gb/s
  linerate.rdma.query:
    report_dir: build/report
    query: "hcas.hcas[].ports[?rate_gbps < `400`][]"
  register: query_slow

- name: Ask for the firmware of each HCA
  linerate.rdma.query:
    report_dir: build/report
    query: "hcas.hcas[?firmware].[name, firmware]"
"""

RETURN = r"""
run:
  description: Identity of the run.
  type: str
  returned: success
answers:
  description: The nodes with an answer, and it. An answer of nothing, an empty list or an empty mapping is none.
  type: list
  elements: dict
  returned: success
  sample: [{node: worker-1, answer: [{number: 1, rate_gbps: 200.0}]}]
unread:
  description: Facts that hold an error in place of a value, so that nobody could ask them.
  type: list
  elements: dict
  returned: success
  sample: [{node: worker-2, kind: hcas, error: unreachable}]
count:
  description: How many nodes have an answer.
  type: int
  returned: success
lines:
  description: The answers as text for a terminal, each with its node; or that there is none.
  type: list
  elements: str
  returned: success
"""
