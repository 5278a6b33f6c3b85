#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: machine_config_roll
short_description: Roll out all MachineConfigs and KubeletConfigs with one reboot per node
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - O(state=prepared) pauses each C(MachineConfigPool) that one of O(objects) changes. It then applies O(objects) and
    waits until the machine config operator has rendered them for the pools.
  - O(state=prepared) pauses nothing if nothing would change, or if the API server refuses an object.
    If the operator does not accept a C(KubeletConfig), RV(error) contains its message.
  - O(state=removed) does the same, but deletes O(objects).
  - O(state=released) needs no facts to unpause pools. If the facts of the run cannot be read, it fails after that.
  - O(state=released) unpauses O(pools) and all pools that an interrupted run left paused, with O(own_pools) only those
    of the intent. It waits until all of their
    nodes have the new configuration. It counts how often the configuration of the nodes changed. It also reports the
    state of the C(KubeletConfigs) in O(objects), even if nothing changed.
  - No pool rolls while the cluster does not bear it. The rules are those of M(linerate.rdma.node_roll) for resets, by
    O(cluster). Nodes that are away count against C(node_pool.max_unavailable). Control-plane nodes go one at a time,
    and only while etcd is whole. A health check that would remediate a node is paused with C(pause_health_checks), and
    keeps the pool otherwise.
  - The same holds while a C(PodDisruptionBudget) holds a pod of a node that would be drained, or while a pod would be
    lost that C(drain) of O(cluster) protects. Before a removal, running pods of jobs of other users count too.
  - If a pool may not roll, O(state=prepared) and O(state=removed) fail before they change anything. With
    O(state=released) the pool stays paused, RV(rolls) says why, and the next run unpauses it.
  - Between O(state=prepared) and O(state=released) you can apply other objects that reboot nodes.
  - The module does not unpause a pool that somebody else has paused. M(linerate.rdma.sriov_plan) finds such pools.
  - The module ignores all objects other than MachineConfigs and KubeletConfigs.
  - With O(state=removed) the module deletes only objects with the label C(app.kubernetes.io/managed-by=linerate.rdma).
    It deletes none of another intent, by the label C(linerate.rdma/intent). RV(stays) has the others, and no pool
    rolls for them.
  - On a cluster without the machine config operator, O(state=removed) with O(labelled) and O(state=released) without
    O(objects) do nothing.
options:
  state:
    description: Step of the rollout.
    type: str
    choices: [prepared, removed, released]
    required: true
  pools:
    description: With O(state=released), the pools to unpause.
    type: list
    elements: str
    default: []
  own_pools:
    description:
      - With O(state=released), whether pools stay paused that an interrupted run of another intent left paused. The
        annotation C(linerate.rdma/paused) of a pool names the intent.
      - If it names none or the default, the pool belongs to each intent that selects a node of it.
    type: bool
    default: false
  cluster:
    description: The variable C(rdma_cluster).
    type: raw
  labelled:
    description:
      - With O(state=removed), whether the module also deletes all other MachineConfigs and KubeletConfigs with the
        label of the collection, such as those that this intent asked for earlier.
      - A user who may not list MachineConfigs needs the right to list MachineConfigPools. The module then finds the
        MachineConfigs that a pool uses.
    type: bool
    default: false
  refusal:
    description: With O(state=released), why the nodes must not go down. No pool is then unpaused, and RV(rolls) has the
      reason for each of O(pools). The next run unpauses them. Empty if they may go down.
    type: str
  wait_seconds:
    description:
      - With O(state=released), the maximum time in seconds to wait for the nodes.
      - Each request waits as long for an API server that is away, and for at most 10 minutes with the other states.
    type: int
    default: 1800
extends_documentation_fragment:
  - linerate.rdma._options.cluster_facts
  - linerate.rdma._options.lease
  - linerate.rdma._options.objects
  - linerate.rdma._options.progress
  - linerate.rdma._attributes.changes
  - linerate.rdma._authentication.options
requirements:
  - kubernetes >= 24.2.0
attributes:
  check_mode:
    details:
      - The module uses the dry run of the API server and pauses no pool.
  diff_mode:
    support: none
    details:
      - Use M(linerate.rdma.custom_resources) in check mode to see the differences.
  idempotent:
    details:
      - If no object would change, the module pauses no pool and no node reboots.
"""

EXAMPLES = r"""
- name: Pause the pools and apply the objects
  linerate.rdma.machine_config_roll:
    state: prepared
    objects: "{{ rdma_cluster | linerate.rdma.render_host }}"
    cluster: "{{ rdma_cluster }}"
  register: host_prepared

- name: Unpause the pools and wait for their nodes
  linerate.rdma.machine_config_roll:
    state: released
    objects: "{{ rdma_cluster | linerate.rdma.render_host }}"
    pools: "{{ host_prepared.paused }}"
    cluster: "{{ rdma_cluster }}"
"""

RETURN = r"""
changes:
  description: One line for each object that was written or deleted, or would be in check mode.
  returned: success
  type: list
  elements: str
  sample: [created MachineConfig 99-worker-linerate-memlock]
paused:
  description: Names of the pools that are paused and wait for O(state=released).
  returned: success
  type: list
  elements: str
error:
  description: Why the new configuration was not rendered. Empty if it was. Release the pools in both cases.
  returned: success
  type: str
stays:
  description: With O(state=removed), objects that the module did not delete, because they do not have the label of the
    collection, or may belong to another intent. Pools that runs of other intents left paused are in the list too. Each
    has its C(subject), C(why) and C(remedy). Empty with another O(state).
  returned: success
  type: list
  elements: dict
unread:
  description: With O(labelled), why objects with the label may exist that the module did not find. Empty otherwise.
  returned: success
  type: list
  elements: str
rolls:
  description:
    - For each released pool C(rolls), C(config), C(machines), C(updated), C(seconds) and C(error). C(error) is empty on
      success.
    - C(others) are nodes outside the run that do not have the configuration, although all nodes of the run have it. The
      module does not wait for those of them that are C(NotReady).
  returned: success
  type: list
  elements: dict
kubelet:
  description:
    - With O(state=released), the state of the C(KubeletConfigs).
    - C(wanted) are those of O(objects), with the status that the operator reports. C(others) are all other
      C(KubeletConfigs).
    - C(pools) are all C(MachineConfigPools). C(error) says why they could not be read.
  returned: success
  type: dict
counts:
  description: Number of items in each list or mapping of the result. The result itself is then a fact in O(facts_dir).
  returned: if O(facts_dir) and O(run) are set
  type: dict
"""

import time
import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._ansible.cluster import (
    connect,
    make_facts_spec,
    open_progress,
)
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.fact_modules import (
    OBJECT_SPEC,
    find_folder,
    get_objects,
    run_with_fact,
)
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.lease import LEASE_SPEC, hold_lease
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.host import (
    HOST_KINDS,
    KubeletStatus,
    Roll,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.kinds import Resource, group_of
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.machines import (
    LabelledConfigs,
    find_labelled,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.patience import AWAY, PatientCluster
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.whose_scope import learn_scope
from ansible_collections.linerate.rdma.plugins.module_utils._plan.scope import build_scope
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.gate import PoolGate
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.machine_configs.pool_roller import (
    PoolRoller,
)
from ansible_collections.linerate.rdma.plugins.module_utils._store.files import FileError


def work(module: AnsibleModule) -> dict[str, typing.Any]:
    options = module.params
    configs, nodes, unread = _read_folder(module)
    answer = {
        "changed": False,
        "paused": [],
        "error": "",
        "stays": [],
        "unread": [],
        "rolls": [],
        "changes": [],
        "kubelet": to_data(KubeletStatus()),
    }
    if options["state"] != "released" and not configs and not options["labelled"]:
        return answer
    with hold_lease(module, connect(module)) as held, open_progress(options["progress_file"]) as say:
        # the roll reboots nodes that the API server may run on, and that may be its only one
        away = options["wait_seconds"] if options["state"] == "released" else AWAY
        cluster = PatientCluster(held.cluster, away, time.monotonic, time.sleep, say)
        intent = load(ClusterIntent, options["cluster"] or {}, "rdma_cluster")
        scope = learn_scope(cluster, build_scope((), intent))
        removes = options["state"] == "removed" or options["own_pools"]
        gate = PoolGate(cluster, intent, nodes, say, scope if removes else None)
        roller = PoolRoller(cluster, time.monotonic, time.sleep, say, gate, intent, scope)
        if not configs and not options["pools"] and not cluster.serves(group_of(HOST_KINDS[0])):
            if unread is not None:
                raise unread
            return answer
        if options["state"] == "released":
            mine = scope if options["own_pools"] else None
            wait = options["wait_seconds"]
            refusal = options["refusal"]
            if refusal:
                rolls = tuple(Roll(name, error=f"{refusal}. The pool stays paused") for name in options["pools"])
            else:
                rolls = () if module.check_mode else roller.release(options["pools"], wait, nodes, mine)
            if unread is not None:
                # the pools go on all the same: no later task of this run would unpause them
                names = ", ".join(roll.pool for roll in rolls if not roll.error) or "none"
                raise FileError(f"{unread.seen}. Unpaused MachineConfigPools: {names}", unread.remedy)
            return {
                **answer,
                "changed": bool(rolls) and not refusal,
                "rolls": to_data(rolls),
                "kubelet": to_data(roller.kubelet(configs, nodes)),
            }
        beside = LabelledConfigs()
        if options["state"] == "prepared":
            prepared = roller.prepare(configs, module.check_mode)
        else:
            beside = find_labelled(cluster, configs) if options["labelled"] else beside
            prepared = roller.remove(configs, module.check_mode, beside.objects, scope)
        changes = [
            f"{item.applied.action} {item.applied.kind} {item.applied.name}"
            for item in prepared.outcomes
            if item.changed
        ]
        return {
            **answer,
            "changed": bool(changes),
            "paused": list(prepared.paused),
            "error": prepared.error,
            "stays": to_data(prepared.stays),
            "unread": list(beside.unread),
            "changes": changes,
        }


def _read_folder(module: AnsibleModule) -> tuple[list[Resource], tuple[str, ...], typing.Optional[FileError]]:
    """Return three facts about the run: its MachineConfigs and KubeletConfigs, the names of its nodes, and the error if
    the folder of the run cannot be read, otherwise None. With ``state=released`` the error is returned, and the other
    two are empty. With any other state it is raised. The nodes are read only if the module has something to do, and are
    empty otherwise.

    :raises FileError: the folder cannot be read, such as after another run has replaced its files
    """
    folder = find_folder(module)
    try:
        objects = [item["object"] for item in get_objects(module, "hosts")]
        configs = [item for item in objects if item.get("kind") in HOST_KINDS]
        asked = configs or module.params["labelled"] or module.params["state"] == "released"
        nodes = folder.start().nodes if folder is not None and asked else ()
    except FileError as error:
        if module.params["state"] != "released":
            raise
        return [], (), error
    return configs, nodes, None


def main() -> None:
    module = AnsibleModule(
        argument_spec=make_facts_spec(
            **LEASE_SPEC,
            state={"type": "str", "choices": ["prepared", "removed", "released"], "required": True},
            objects={"type": "list", "elements": "dict", "default": [], "options": OBJECT_SPEC},
            objects_from={"type": "str"},
            cluster={"type": "raw"},
            labelled={"type": "bool", "default": False},
            own_pools={"type": "bool", "default": False},
            pools={"type": "list", "elements": "str", "default": []},
            refusal={"type": "str"},
            wait_seconds={"type": "int", "default": 1800},
            progress_file={"type": "path"},
        ),
        supports_check_mode=True,
    )
    run_with_fact(
        module,
        lambda: work(module),
        "rolls" if module.params["state"] == "released" else "roll_prepared",
        keep=("paused",),
    )


if __name__ == "__main__":
    main()
