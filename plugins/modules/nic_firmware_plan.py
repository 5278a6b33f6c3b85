#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nic_firmware_plan
short_description: Plan which settings of the firmware of HCAs a run sets, and who sets them
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Compares the facts C(firmware), C(platform) and C(nic_devices) of a run with what the fabrics and
    C(rdma_cluster.firmware) want. It sets nothing.
  - Fails if C(--limit) of C(ansible-playbook) excludes nodes of the run, because the plan is for all of them. In check
    mode it does not.
  - The part of a node is its fact C(nic_firmware_settings). Its C(settings) are what M(linerate.rdma.nic_firmware) must
    set on the node, by PCI address. The next value counts, so that a setting that waits for a reset is not in it.
  - C(refusal) of the fact says why the node cannot set them. C(templates) and C(cards) name the templates and the
    C(NicDevices) by which the operator sets the others.
  - What each C(NicDevice) must have is in the fact C(nic_firmware_plan), for
    O(linerate.rdma.nic_device_info#module:planned).
  - A setting that did not take at a reset is not in it either, by the annotation C(linerate.rdma/roll) of the node.
    Remove the annotation to try again.
  - An HCA of which the NIC configuration operator of NVIDIA has a C(NicDevice) is set by a C(NicConfigurationTemplate)
    instead. There is one for each fabric and model, where an HCA is not known to be as wanted, or where the template
    exists already. It selects the HCAs by their PCI addresses.
  - If it is not known which HCAs have a C(NicDevice), nothing is set.
  - There is no template if it would match an HCA of no fabric, or one of a node that is not in the run, or where a
    template of somebody else decides.
  - A BlueField in DPU mode is left alone.
options:
  fabrics:
    description: The variable C(rdma_fabrics).
    type: raw
    required: true
  cluster:
    description: The variable C(rdma_cluster).
    type: raw
extends_documentation_fragment:
  - linerate.rdma._options.folder
  - linerate.rdma._authentication.options
  - linerate.rdma._attributes.records
requirements:
  - kubernetes >= 24.2.0
seealso:
  - module: linerate.rdma.nic_firmware
  - module: linerate.rdma.node_roll
"""

EXAMPLES = r"""
- name: Begin a run
  linerate.rdma.run_begin:
    report_dir: build/report
    fabrics: "{{ rdma_fabrics }}"
  register: begun
  run_once: true

- name: Look at the nodes
  linerate.rdma.node_info:
    facts_dir: build/report
    run: "{{ begun.run }}"

- name: Plan what is set
  linerate.rdma.nic_firmware_plan:
    facts_dir: build/report
    run: "{{ begun.run }}"
    fabrics: "{{ rdma_fabrics }}"
  register: planned
  run_once: true
"""

RETURN = r"""
templates:
  description: The templates, for O(linerate.rdma.custom_resources#module:objects).
  returned: success
  type: list
  elements: dict
templated:
  description: Names of the nodes with an HCA that one of them selects.
  returned: success
  type: list
  elements: str
counts:
  description: Number of nodes that set settings themselves (C(set)), that cannot (C(refused)), and of RV(templated).
  returned: success
  type: dict
  sample: {set: 2, refused: 0, templated: 0}
"""
