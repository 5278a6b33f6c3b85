#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: network_objects
short_description: Render and lint the Kubernetes objects of the fabrics
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Renders the namespaces of the pods and the objects that the profile of each fabric needs, such as
    C(SriovNetworkNodePolicy) and C(SriovNetwork), C(MacvlanNetwork) or C(NetworkAttachmentDefinition). One
    C(NicClusterPolicy) contains what all fabrics need from it.
  - If C(rdma_cluster.node_pool) is set, renders a C(SriovNetworkPoolConfig) for the nodes that take part.
  - If C(rdma_cluster.host) asks for it, renders C(MachineConfigs) and a C(KubeletConfig).
  - If the PCI addresses of the physical functions differ between nodes, each node gets its own policy.
  - Renders no objects for a fabric whose addresses are already in use, or that fails the linter, unless O(waivers)
    cover the finding.
  - Fails if C(--limit) of C(ansible-playbook) excludes nodes of the run, because the objects are for all of them. In
    check mode it does not.
  - Reads the facts of the nodes, of M(linerate.rdma.address_info) (C(addresses)) and of
    M(linerate.rdma.sriov_operator_info) (C(operators_before_network)).
  - Writes the fact C(network_objects) for M(linerate.rdma.sriov_plan) and M(linerate.rdma.custom_resources).
  - Runs on the controller and applies nothing.
options:
  fabrics:
    description: The variable C(rdma_fabrics).
    type: raw
    required: true
  waivers:
    description: The variable C(rdma_waivers).
    type: raw
  cluster:
    description: The variable C(rdma_cluster).
    type: raw
extends_documentation_fragment:
  - linerate.rdma._options.folder
  - linerate.rdma._attributes.records
seealso:
  - module: linerate.rdma.sriov_plan
  - module: linerate.rdma.custom_resources
"""

EXAMPLES = r"""
- name: Render the objects
  linerate.rdma.network_objects:
    facts_dir: build/report
    run: "{{ stage_result.run }}"
    fabrics: "{{ rdma_fabrics }}"
  register: rendered
"""

RETURN = r"""
objects:
  description: Number of objects of the fabrics that may be applied.
  type: int
  returned: success
hosts:
  description: Number of C(MachineConfigs) and C(KubeletConfigs).
  type: int
  returned: success
held:
  description: Fabrics whose objects are held back because of the linter.
  type: list
  elements: str
  returned: success
unmade:
  description: Fabrics whose objects could not be rendered.
  type: list
  elements: str
  returned: success
"""
