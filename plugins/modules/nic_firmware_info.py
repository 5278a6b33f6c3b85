#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nic_firmware_info
short_description: Show the firmware of the HCAs of a node, its settings, and what waits for a reset
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Shows PSID, running and stored version, and settings of the firmware of each physical function (PF). Each value has
    its source.
  - Asks C(devlink) (iproute2), C(mstconfig) (mstflint 4.21 or later) or C(mlxconfig) (MFT), and sysfs. A tool that is
    not installed is not an error.
  - C(mstconfig) reads only HCAs of NVIDIA. It takes a second or more for each HCA. The HCAs are asked at the same time.
  - It changes nothing and loads no kernel module.
options:
  devices:
    description: PCI addresses of the PFs. By default, all of them.
    type: list
    elements: str
    default: []
  every:
    description:
      - Return all settings. An HCA has hundreds.
      - By default, return only those that matter for SR-IOV, links and PCI, and all that wait for a reset.
    type: bool
    default: false
  sysfs:
    description: Mount point of sysfs. If you give several, the result lists the devices of all of them.
    type: list
    elements: path
    default:
      - /sys
extends_documentation_fragment:
  - linerate.rdma._attributes.reads
"""

EXAMPLES = r"""
- name: Read the firmware of all HCAs
  linerate.rdma.nic_firmware_info:
  register: nics

- name: Show what waits for a reset
  ansible.builtin.debug:
    msg: "{{ nics.firmware.hcas | selectattr('pending') | list }}"
"""

RETURN = r"""
firmware:
  description: Firmware of the PFs.
  returned: success
  type: dict
  contains:
    hcas:
      description: One entry for each PF.
      type: list
      elements: dict
      contains:
        address:
          description: PCI address.
          type: str
          sample: "0000:3c:00.0"
        device:
          description: PCI device ID.
          type: str
          sample: "1021"
        psid:
          description: PSID of the board, and the source of this value. V(null) if it is not known.
          type: dict
          sample: {value: MT_0000000838, source: devlink}
        running:
          description: Version that runs, and the source of this value. V(null) if it is not known.
          type: dict
          sample: {value: 28.41.1000, source: devlink}
        stored:
          description: Version that the next reset starts, and the source of this value. V(null) if it is not known.
          type: dict
          sample: {value: 28.41.1000, source: devlink}
        settings:
          description: Settings with the value after the next reset, the value in force, and the default. V(null) means
            that the value is not known.
          type: list
          elements: dict
          sample:
            - name: NUM_OF_VFS
              next: "16"
              current: "8"
              default: "0"
              read_only: false
        settings_from:
          description: Source of the settings.
          type: str
          sample: mstconfig 4.21
        pending:
          description: Names of the settings that change with the next reset.
          type: list
          elements: str
          sample: [NUM_OF_VFS]
        dpu_mode:
          description: Whether it is a BlueField in DPU mode. Its Arm cores own its settings.
          type: bool
          sample: false
        not_asked:
          description: Tools that could not be asked, each with the reason.
          type: list
          elements: str
          sample: [no mstconfig]
        errors:
          description: Tools that were asked and failed, each with the reason.
          type: list
          elements: str
          sample: []
"""

import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._ansible.module import run
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._observe.node.firmware import read_firmware
from ansible_collections.linerate.rdma.plugins.module_utils._observe.node.sysfs import read_node


def work(params: dict[str, typing.Any]) -> dict[str, typing.Any]:
    chosen = [address.lower() for address in params["devices"]]
    seen = read_firmware(read_node(params["sysfs"]), params["sysfs"][0], chosen, params["every"])
    missing = sorted({*chosen} - {hca.address for hca in seen.hcas})
    if missing:
        raise RdmaError(
            f"the node has no physical function {', '.join(missing)}", "Use addresses that lspci -D shows on this node"
        )
    pending = ([setting.name for setting in hca.settings if setting.pending] for hca in seen.hcas)
    return {
        "firmware": {
            "hcas": [{**to_data(hca), "pending": names, "dpu_mode": hca.dpu} for hca, names in zip(seen.hcas, pending)]
        }
    }


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "devices": {"type": "list", "elements": "str", "default": []},
            "every": {"type": "bool", "default": False},
            "sysfs": {"type": "list", "elements": "path", "default": ["/sys"]},
        },
        supports_check_mode=True,
    )
    run(module, lambda: work(module.params))


if __name__ == "__main__":
    main()
