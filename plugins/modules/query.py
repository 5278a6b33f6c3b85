#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: query
short_description: Query the facts of a run with JMESPath
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Evaluates a JMESPath expression over the facts of each node of a run. Returns each result with its node.
  - The root object maps the kinds of facts of one node to their values, with keys such as C(hcas), C(platform) and
    C(subnets). A value is the key C(value) of the file C(facts/<kind>/<node>.json). The module uses only facts of this
    run.
  - Facts about the whole cluster have the node name V(cluster).
  - Runs on the controller. It needs no inventory, no nodes and no cluster.
requirements:
  - jmespath (on the controller)
options:
  report_dir:
    description: Report folder of the run, on the controller.
    type: path
    required: true
  query:
    description: The JMESPath expression. See U(https://jmespath.org).
    type: str
    required: true
  nodes:
    description: Nodes to query. V(cluster) stands for the facts about the whole cluster. The default is all nodes and
      V(cluster).
    type: list
    elements: str
extends_documentation_fragment:
  - linerate.rdma._attributes.reads
seealso:
  - module: linerate.rdma.judge
"""

EXAMPLES = r"""
- name: List the ports that are slower than 400 Gb/s
  linerate.rdma.query:
    report_dir: build/report
    query: "hcas.hcas[].ports[?rate_gbps < `400`][]"
  register: query_slow

- name: List the firmware of each HCA
  linerate.rdma.query:
    report_dir: build/report
    query: "hcas.hcas[?firmware].[name, firmware]"
"""

RETURN = r"""
run:
  description: ID of the run.
  type: str
  returned: success
answers:
  description: Nodes with a result, each with its result. Nodes whose result is null, an empty list or an empty mapping
    are left out.
  type: list
  elements: dict
  returned: success
  sample: [{node: worker-1, answer: [{number: 1, rate_gbps: 200.0}]}]
unread:
  description: Facts with an error instead of a value. The query could not use them.
  type: list
  elements: dict
  returned: success
  sample: [{node: worker-2, kind: hcas, error: unreachable}]
count:
  description: Number of nodes with a result.
  type: int
  returned: success
lines:
  description: The results as text for a terminal, each with its node. If there is none, a line says so.
  type: list
  elements: str
  returned: success
"""
