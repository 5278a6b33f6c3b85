#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: bmcs_info
short_description: Read the BIOS of all nodes of a run through the BMCs that the inventory names
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Asks the BMCs of all nodes of a run over Redfish at the same time, as M(linerate.rdma.bios_info) does. Runs on the
    controller, and only sends GET.
  - Takes address and credentials of each BMC from the variables of its node. They are no options, so that no log and no
    result ever has them.
  - The variables of a node are C(rdma_bmc_address), C(rdma_bmc_port), C(rdma_bmc_user), C(rdma_bmc_password),
    C(rdma_bmc_token), C(rdma_bmc_fingerprint), C(rdma_bmc_system) and C(rdma_bmc_identity).
  - User, password and token default to the environment variables E(RDMA_BMC_USER), E(RDMA_BMC_PASSWORD) and
    E(RDMA_BMC_TOKEN).
  - The answer holds UUID and serial number of the system. Stage C(platform) compares them with the DMI of the node, so
    that the BIOS of another machine proves nothing. If a BMC has several systems with a BIOS, the one with the identity
    of the node is read.
  - If nothing can be compared, C(rdma_bmc_identity=asserted) says that you have checked by hand that the BMC is that of
    the node.
  - A node without C(rdma_bmc_address) is not asked. If no node has one, nothing is asked at all.
  - Writes the fact C(bios) of each node that was asked, with the answer or with the reason why there is none, and their
    names as the fact C(bmcs).
options:
  validate_certs:
    description: Check the certificate of each BMC. A fingerprint is always checked.
    type: bool
    default: true
  ca_path:
    description: File with the authorities of the certificates, or folder with such files. The default is the
      authorities of the controller.
    type: path
  seconds:
    description: Limit for all answers of one BMC together. A BMC that answers nothing at all is given up after 10
      seconds.
    type: float
    default: 60
  parallel:
    description: How many BMCs to ask at the same time. 512 take about 120 MiB of memory, and as many open files.
    type: int
    default: 512
extends_documentation_fragment:
  - linerate.rdma._options.folder
  - linerate.rdma._attributes.records
seealso:
  - module: linerate.rdma.bios_info
    description: Asks BMCs that are options of a task.
"""

EXAMPLES = r"""
# group_vars/rdma_nodes/bmc.yml has rdma_bmc_address: "{{ inventory_hostname }}-bmc.example.com", rdma_bmc_user,
# and rdma_bmc_password in a vault
- name: Begin a run
  linerate.rdma.run_begin:
    report_dir: build/report
  register: begun
  run_once: true

- name: Read the BIOS of all nodes
  linerate.rdma.bmcs_info:
    facts_dir: build/report
    run: "{{ begun.run }}"
    ca_path: /etc/pki/bmc-ca.pem
  run_once: true
"""

RETURN = r"""
asked:
  description: Number of nodes with a BMC.
  returned: success
  type: int
  sample: 1000
unanswered:
  description: Number of those whose BMC gave no answer. The facts hold the reasons.
  returned: success
  type: int
  sample: 0
seconds:
  description: How long it took.
  returned: success
  type: float
  sample: 14.2
"""
