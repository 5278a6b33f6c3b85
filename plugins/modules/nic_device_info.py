#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nic_device_info
short_description: Show what the NIC configuration operator of NVIDIA reports of the HCAs
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Reads the objects C(NicDevice) of the NIC configuration operator, one for each card of each node.
  - A cluster without this operator has none, and the result is an empty list.
  - Does not fail if the API server cannot be asked. RV(nics.errors) then says why.
  - With O(wanted), waits first until the operator has brought cards to what they must have. The operator drains and
    reboots their nodes meanwhile.
options:
  wanted:
    description:
      - C(spec.template) of a C(NicConfigurationTemplate), by the name of each C(NicDevice) that must have it.
      - The wait ends when each of them has it, or when the operator has failed with it for two minutes. RV(left) names
        the cards that do not have it.
    type: dict
    default: {}
  planned:
    description: Take O(wanted) from what M(linerate.rdma.nic_firmware_plan) has planned in this run. Needs O(facts_dir)
      and O(run).
    type: bool
    default: false
  wait_seconds:
    description: Limit in seconds for this wait.
    type: int
    default: 3600
extends_documentation_fragment:
  - linerate.rdma._options.cluster_facts
  - linerate.rdma._attributes.reads
  - linerate.rdma._authentication.options
requirements:
  - kubernetes >= 24.2.0
"""

EXAMPLES = r"""
- name: Show the firmware of all cards that the operator knows
  linerate.rdma.nic_device_info:
  register: cards
"""

RETURN = r"""
nics:
  description: The cards, and what could not be read.
  returned: success
  type: dict
  contains:
    devices:
      description:
        - One entry for each C(NicDevice), with its node and the PCI addresses of its functions.
        - C(firmware) is the version that is stored on the card.
        - C(configured) is whether a C(NicConfigurationTemplate) decides on its settings, C(updated) whether a
          C(NicFirmwareTemplate) decides on its version.
        - C(waits) is the reason why a change is not in force yet. It is empty if no change waits.
      type: list
      elements: dict
      sample:
        - name: worker-1-1021-mt2232t13210
          node: worker-1
          ports: ["0000:3c:00.0"]
          psid: MT_0000000838
          firmware: 28.41.1000
          dpu: false
          configured: true
          updated: false
          waits: PendingReboot
          message: ""
    errors:
      description: Objects that could not be read, each with the reason.
      type: list
      elements: str
    unread:
      description: Objects of a node that could not be read. They say nothing of other nodes.
      type: list
      elements: dict
      contains:
        node:
          description: Name of the node.
          type: str
        why:
          description: The reason.
          type: str
left:
  description: Why a card does not have what O(wanted) says, by the name of its C(NicDevice). Empty if all cards have
    it.
  returned: success
  type: dict
  sample:
    worker-1-1021-mt2232t13210: "IncorrectSpec (...): the card does not take what the template asks for. ..."
counts:
  description: Number of items in each list or mapping of the result. The result itself is then a fact in O(facts_dir).
  returned: if O(facts_dir) and O(run) are set
  type: dict
"""

import time
import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._ansible.cluster import connect, make_facts_spec
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.fact_modules import find_folder, run_with_fact
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.firmware import FIRMWARE_PLAN, NicDevices
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators.nic_configuration_operator import observe
from ansible_collections.linerate.rdma.plugins.module_utils._run.operators.wait_for_nics import wait_for_nics


def work(module: AnsibleModule) -> dict[str, typing.Any]:
    folder = find_folder(module) if module.params["planned"] else None
    given = (folder.value(FIRMWARE_PLAN) or {}).get("wanted") or {} if folder is not None else module.params["wanted"]
    wanted = load(dict[str, dict[str, typing.Any]], given, "wanted")
    try:
        cluster = connect(module)
        left = wait_for_nics(
            cluster, {} if module.check_mode else wanted, module.params["wait_seconds"], time.monotonic, time.sleep
        )
        return {"nics": to_data(observe(cluster)), "left": left}
    except RdmaError as error:
        # nodes prove by themselves what a stage needs of them
        return {
            "nics": to_data(NicDevices(errors=(error.seen,))),
            "left": dict.fromkeys(wanted, f"it could not be queried: {error.seen}"),
        }


def main() -> None:
    spec = make_facts_spec(
        wanted={"type": "dict", "default": {}},
        planned={"type": "bool", "default": False},
        wait_seconds={"type": "int", "default": 3600},
    )
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    run_with_fact(module, lambda: work(module), "nic_devices")


if __name__ == "__main__":
    main()
