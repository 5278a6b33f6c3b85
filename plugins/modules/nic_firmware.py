#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nic_firmware
short_description: Set the firmware of the HCAs of a node
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Sets settings of the firmware of NVIDIA HCAs by C(mstconfig) (mstflint 4.21 or later) or C(mlxconfig) (MFT).
  - Compares with the values after the next reset. If they are as wanted, it sets nothing.
  - Refuses unknown and read-only settings, and a BlueField in DPU mode. It then sets nothing on any HCA.
  - Never resets an HCA. RV(resets) says how the settings come into force.
  - With O(facts_dir) and O(run), and without O(settings) and O(by_device), sets what M(linerate.rdma.nic_firmware_plan)
    has planned for the node.
  - With O(facts_dir) and O(run), the result is the fact C(nic_firmware) of the node.
  - What the plan says is set only if the run holds the C(Lease) of the cluster and nobody else can take it for the next
    720 seconds. This is checked on the controller right before, for each node. With O(settings) or O(by_device), no
    Lease is asked for.
  - Begins no write that may not end within 600 seconds after the start of the module. It then fails and names what is
    set.
  - Do not use it where the NIC configuration operator of NVIDIA decides on the settings. Use
    P(linerate.rdma.render_nic_configuration#filter) there.
options:
  settings:
    description:
      - Settings by their names in the firmware.
      - A value is the number or the word that C(mstconfig) shows, or a boolean.
      - Set either this or O(by_device), unless O(facts_dir) and O(run) are set.
    type: dict
  devices:
    description: PCI addresses of the physical functions (PFs). By default, all NVIDIA HCAs of the node.
    type: list
    elements: str
    default: []
  by_device:
    description: Settings of single PFs, by PCI address, where they are not the same for all.
    type: dict
  managed_by_operator:
    description:
      - Whether the NIC configuration operator of NVIDIA decides on the settings of this node. The module then refuses
        to set anything.
      - M(linerate.rdma.nic_device_info) shows it as C(configured).
    type: bool
    default: false
  sysfs:
    description: Mount point of sysfs. If you give several, all of them are searched for devices.
    type: list
    elements: path
    default:
      - /sys
extends_documentation_fragment:
  - linerate.rdma._options.facts
  - linerate.rdma._options.lease
  - linerate.rdma._attributes.changes
  - linerate.rdma._authentication.options
"""

EXAMPLES = r"""
- name: Switch on SR-IOV with 16 VFs
  linerate.rdma.nic_firmware:
    settings: {SRIOV_EN: true, NUM_OF_VFS: 16}
  register: nics

- name: Say what to do
  ansible.builtin.debug:
    msg: "{{ nics.resets }}"
  when: nics.reset_required

- name: Use InfiniBand on the first port of one HCA
  linerate.rdma.nic_firmware:
    devices: ["0000:3c:00.0"]
    settings: {LINK_TYPE_P1: IB}

- name: Use InfiniBand on one HCA, and Ethernet on another
  linerate.rdma.nic_firmware:
    by_device:
      "0000:3c:00.0": {LINK_TYPE_P1: IB}
      "0000:9a:00.0": {LINK_TYPE_P1: ETH}
"""

RETURN = r"""
hcas:
  description: For each PF what was set, or would be set in check mode. C(before) and C(after) are the values after the
    next reset.
  returned: success
  type: list
  elements: dict
  sample:
    - address: "0000:3c:00.0"
      device: "1021"
      before: {NUM_OF_VFS: "8"}
      after: {NUM_OF_VFS: "16"}
reset_required:
  description: Whether at least one HCA must be reset before the settings are in force. It stays V(true) until the
    reset.
  returned: success
  type: bool
resets:
  description: For each PF that must be reset, how to do it. A BlueField must not be reset by C(mstfwreset), because it
    may fall back to DPU mode.
  returned: success
  type: dict
  sample: {"0000:3c:00.0": "Drain the node, then mstfwreset -d 0000:3c:00.0 -y reset, or power-cycle it: a warm reboot
    does not always do."}
counts:
  description: Number of HCAs in the fact C(nic_firmware). The result itself is then that fact, in O(facts_dir).
  returned: if O(facts_dir) and O(run) are set
  type: dict
"""

import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kubernetes.core.plugins.module_utils.args_common import AUTH_ARG_SPEC
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.module import OBSERVER_SPEC, run
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._observe.node.sysfs import read_node
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.set_firmware import (
    FirmwareOutcome,
    set_firmware,
)

Result = dict[str, typing.Any]


def work(module: AnsibleModule) -> Result:
    options = module.params
    if options["managed_by_operator"]:
        why = (
            "NVIDIA's NIC configuration operator manages the settings of this node, and reverts changes by other"
            " programs"
        )
        raise RdmaError(why, "Change its NicConfigurationTemplate instead: see the filter render_nic_configuration")
    own = load(dict[str, dict[str, typing.Any]], options["by_device"] or {}, "by_device")
    wishes = {address.lower(): _convert_to_texts(settings) for address, settings in own.items()}
    for_all = _convert_to_texts(options["settings"] or {})
    chosen = [*wishes, *(address.lower() for address in options["devices"])]
    outcome = set_firmware(
        read_node(options["sysfs"]),
        options["sysfs"][0],
        chosen,
        lambda address: wishes.get(address, for_all),
        module.check_mode,
    )
    changed = any(change.after for change in outcome.changes)
    result = {
        "changed": changed,
        "hcas": to_data(outcome.changes),
        "reset_required": bool(outcome.resets),
        "resets": outcome.resets,
    }
    return {**result, "diff": _render_diff(outcome)} if module._diff else result


def _convert_to_texts(settings: typing.Mapping[str, typing.Any]) -> dict[str, str]:
    return {str(name): str(value) for name, value in settings.items()}


def _render_diff(outcome: FirmwareOutcome) -> Result:
    """Return the changed firmware settings for the diff mode of Ansible: under ``before`` and ``after`` a text with a
    line ``PCI-ADDRESS NAME=VALUE`` for each setting.
    """
    sides = {"before": "", "after": ""}
    for change in outcome.changes:
        for side in sides:
            sides[side] += "".join(
                f"{change.address} {name}={value}\n" for name, value in getattr(change, side).items()
            )
    return sides


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "settings": {"type": "dict"},
            "by_device": {"type": "dict"},
            "devices": {"type": "list", "elements": "str", "default": []},
            "managed_by_operator": {"type": "bool", "default": False},
            "sysfs": {"type": "list", "elements": "path", "default": ["/sys"]},
            **OBSERVER_SPEC,
            # the action plugin takes these, asks for the Lease by them on the controller, and hands none of them on to
            # the node
            **AUTH_ARG_SPEC,
            "holder": {"type": "str"},
        },
        mutually_exclusive=[("settings", "by_device"), ("devices", "by_device")],
        required_one_of=[("settings", "by_device")],
        supports_check_mode=True,
    )
    run(module, lambda: work(module))


if __name__ == "__main__":
    main()
