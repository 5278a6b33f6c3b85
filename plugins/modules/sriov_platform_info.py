#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Evidence of IOMMU and SR-IOV on a node."""

from __future__ import annotations

DOCUMENTATION = r"""
module: sriov_platform_info
short_description: Show what a node gives as evidence for IOMMU and SR-IOV
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Shows whether the firmware hands over an IOMMU, whether the kernel uses it, and which network functions can make VFs.
  - Reads sysfs and the kernel's command line. It does not ask the BIOS or the HCA's firmware for their settings.
options:
  sysfs:
    description:
      - Where sysfs is mounted. With several folders their entries are taken together.
    type: list
    elements: path
    default:
      - /sys
extends_documentation_fragment:
  - linerate.rdma._attributes.reads
"""

EXAMPLES = r"""
- name: See whether the node can make VFs
  linerate.rdma.sriov_platform_info:
  register: platform
"""

RETURN = r"""
platform:
  description: The evidence. V(null) means that it could not be read, an empty list that it was read and there is none.
  returned: success
  type: dict
  contains:
    kernel:
      description: Release of the kernel.
      returned: success
      type: str
      sample: 6.12.95+deb12-amd64
    machine:
      description: Machine type.
      returned: success
      type: str
      sample: x86_64
    kernel_arguments:
      description: Those arguments of the kernel's command line that concern IOMMU and PCI.
      returned: success
      type: list
      elements: str
      sample: [intel_iommu=on, iommu=pt]
    iommu_devices:
      description: IOMMUs that translate.
      returned: success
      type: list
      elements: str
      sample: [dmar0]
    iommu_groups:
      description: Number of IOMMU groups.
      returned: success
      type: int
      sample: 42
    acpi_tables:
      description: Those of the tables DMAR (Intel), IVRS (AMD) and IORT (Arm) that the BIOS hands over.
      returned: success
      type: list
      elements: str
      sample: [DMAR]
    functions:
      description: Network functions, as M(linerate.rdma.hca_info) selects them.
      returned: success
      type: list
      elements: dict
      sample:
        - address: "0000:3c:00.0"
          driver: mlx5_core
          sriov_total: 16
          sriov_current: 8
          iommu_group: 31
          physical_function: null
          unread: []
    gpu:
      description: NVIDIA's driver, as far as it decides how NICs reach the memory of GPUs; V(null) where it is not loaded.
      returned: success
      type: dict
      sample:
        version: 570.86.15
        open: true
        peermem: false
        peer_clients: []
        ofed: null
    errors:
      description: What could not be read, and why.
      returned: success
      type: list
      elements: str
      sample: []
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils import _ansible
from ansible_collections.linerate.rdma.plugins.module_utils._model.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._observe import platform


def main() -> None:
    module = AnsibleModule(
        argument_spec={"sysfs": {"type": "list", "elements": "path", "default": ["/sys"]}},
        supports_check_mode=True,
    )
    _ansible.run(module, lambda: {"platform": to_data(platform.read_platform(module.params["sysfs"]))})


if __name__ == "__main__":
    main()
