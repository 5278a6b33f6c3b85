#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: machine_config_roll
short_description: Brings all MachineConfigs and KubeletConfigs to the nodes of their pools in one roll
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - With O(state=prepared) it pauses each C(MachineConfigPool) that takes one of O(objects) which is not there yet, applies all of O(objects), and waits
    until the pools have rendered them. Nothing is paused where nothing would change, or where the API server refuses one of them.
    A C(KubeletConfig) that the machine config operator does not accept is an RV(error), in its words.
  - With O(state=removed) it does the same to take O(objects) back.
  - With O(state=released) it lets O(pools) go, and those that a stopped run left paused; waits until all of their nodes have the new configuration; and
    counts how often they were given another one. Then it tells how the C(KubeletConfigs) of O(objects) stand, also when nothing was new.
  - Between the two, other objects that reboot nodes can be applied. A pool that somebody else has paused is for M(linerate.rdma.sriov_plan) to find.
options:
  state:
    description: Which half of it.
    type: str
    choices: [prepared, removed, released]
    required: true
  objects:
    description: MachineConfigs and KubeletConfigs; other objects are passed over. The filter P(linerate.rdma.render_host#filter) makes them.
    type: list
    elements: dict
    default: []
    suboptions:
      fabric:
        description: Empty, since fabrics share it.
        type: str
        default: ""
      object:
        description: The object.
        type: dict
        required: true
  objects_from:
    description: Take the objects from this fact of the run, which M(linerate.rdma.network_objects) has written.
    type: str
  pools:
    description: For O(state=released), the pools that were paused.
    type: list
    elements: str
    default: []
  wait_seconds:
    description: For O(state=released), how long to wait for the nodes.
    type: int
    default: 1800
  progress_file:
    description: File to which progress is written, one line each. The action plugin of this name makes one and shows the lines.
    type: path
extends_documentation_fragment:
  - linerate.rdma._options.cluster_facts
  - linerate.rdma._options.lease
  - kubernetes.core.k8s_auth_options
requirements:
  - kubernetes >= 24.2.0
attributes:
  check_mode:
    support: full
    description: Asks the API server by its dry run, and pauses nothing.
  diff_mode:
    support: none
    description: Shows no difference.
    details:
      - M(linerate.rdma.custom_resources) shows it in check mode.
  idempotent:
    support: full
    description: Without an object that would change, nothing is paused and nothing rolls.
"""

EXAMPLES = r"""
- name: Pause the pools and apply the objects
  linerate.rdma.machine_config_roll:
    state: prepared
    objects: "{{ rdma_cluster | linerate.rdma.render_host }}"
  register: host_prepared

- name: Let the pools go, once
  linerate.rdma.machine_config_roll:
    state: released
    objects: "{{ rdma_cluster | linerate.rdma.render_host }}"
    pools: "{{ host_prepared.paused }}"
"""

RETURN = r"""
changes:
  description: One line for each object that was written or deleted, or would be.
  returned: success
  type: list
  elements: str
  sample: [created MachineConfig 99-worker-linerate-memlock]
paused:
  description: Names of the pools that wait to be let go.
  returned: success
  type: list
  elements: str
error:
  description: Why the new configuration did not get ready; empty otherwise. The pools are to be let go all the same.
  returned: success
  type: str
rolls:
  description:
    - For each pool that was let go C(rolls), C(config), C(machines), C(updated), C(seconds), and C(error), which is empty when all went well.
    - C(others) are nodes that are not of the run and have not got it, where all that are have. For one of them that is NotReady nobody waits.
  returned: success
  type: list
  elements: dict
kubelet:
  description:
    - For O(state=released), how the C(KubeletConfigs) stand. C(wanted) are those of O(objects) with what the operator says of them, C(others) those of
      somebody else, C(pools) all C(MachineConfigPools), and C(error) why they could not be read.
  returned: success
  type: dict
"""

import time
import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._cluster import connect, facts_spec, progress
from ansible_collections.linerate.rdma.plugins.module_utils._fact_modules import OBJECT_SPEC, folder_of, objects_of, run_with_fact
from ansible_collections.linerate.rdma.plugins.module_utils._lease import LEASE_SPEC, working
from ansible_collections.linerate.rdma.plugins.module_utils._model.host import HOST_KINDS, KubeletStand
from ansible_collections.linerate.rdma.plugins.module_utils._model.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._run.machine_config_roll import Roller


def work(module: AnsibleModule) -> typing.Dict[str, typing.Any]:
    options = module.params
    configs = [item["object"] for item in objects_of(module, "hosts") if item["object"].get("kind") in HOST_KINDS]
    answer = {"changed": False, "paused": [], "error": "", "rolls": [], "changes": [], "kubelet": to_data(KubeletStand())}
    if options["state"] != "released" and not configs:
        return answer
    with working(module, connect(module)) as held, progress(options["progress_file"]) as say:
        nodes = folder.start().nodes if (folder := folder_of(module)) else ()
        roller = Roller(held.cluster, time.monotonic, time.sleep, say)
        if options["state"] == "released":
            rolls = () if module.check_mode else roller.release(options["pools"], options["wait_seconds"], nodes)
            return {**answer, "changed": bool(rolls), "rolls": to_data(rolls), "kubelet": to_data(roller.kubelet(configs, nodes))}
        prepared = (roller.prepare if options["state"] == "prepared" else roller.remove)(configs, module.check_mode)
        changes = [f"{item.applied.action} {item.applied.kind} {item.applied.name}" for item in prepared.outcomes if item.changed]
        return {**answer, "changed": bool(changes), "paused": list(prepared.paused), "error": prepared.error, "changes": changes}


def main() -> None:
    module = AnsibleModule(
        argument_spec=facts_spec(
            **LEASE_SPEC,
            state={"type": "str", "choices": ["prepared", "removed", "released"], "required": True},
            objects={"type": "list", "elements": "dict", "default": [], "options": OBJECT_SPEC},
            objects_from={"type": "str"},
            pools={"type": "list", "elements": "str", "default": []},
            wait_seconds={"type": "int", "default": 1800},
            progress_file={"type": "path"},
        ),
        supports_check_mode=True,
    )
    run_with_fact(module, lambda: work(module), "rolls" if module.params["state"] == "released" else "roll_prepared", keep=("paused",))


if __name__ == "__main__":
    main()
