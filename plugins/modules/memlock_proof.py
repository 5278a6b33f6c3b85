#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: memlock_proof
short_description: Verify how much memory a non-root pod can lock and register
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Starts one pod per node and RDMA fabric, in the namespace C(linerate-measure), which the module creates and removes.
    The pod does not run as root, has no C(IPC_LOCK), and has one virtual function.
  - The pod reads C(ulimit -l). Then C(ibv_rc_pingpong) registers a buffer of C(rdma_cluster.host.memlock.proof_mib)
    MiB.
  - If O(cluster) has no C(host.memlock), the module starts no pod.
  - The module always removes the pods. It does not fail if the verification of a pod fails. The check of the stage
    judges the result.
extends_documentation_fragment:
  - linerate.rdma._options.intent
  - linerate.rdma._options.pods
  - linerate.rdma._options.cluster_facts
  - linerate.rdma._options.lease
  - linerate.rdma._attributes.changes
  - linerate.rdma._authentication.options
requirements:
  - kubernetes >= 24.2.0
attributes:
  check_mode:
    details:
      - The module starts no pod in check mode.
  diff_mode:
    support: N/A
    details:
      - The module removes everything that it creates.
"""

EXAMPLES = r"""
- name: Verify how much memory a job can lock
  linerate.rdma.memlock_proof:
    fabrics: "{{ rdma_fabrics }}"
    cluster: {host: {memlock: {by: containerd, limit_gib: 64}}}
    nodes: [worker-1, worker-2]
  register: host_memlock
"""

RETURN = r"""
proofs:
  description: One entry per RDMA fabric and node. Empty in check mode, or if the intent asks for no limit.
  returned: success
  type: list
  elements: dict
  contains:
    fabric:
      description: Name of the fabric.
      type: str
    node:
      description: Name of the node.
      type: str
    pod:
      description: Namespace and name of the pod. Empty if no pod was created.
      type: str
    user:
      description: Numeric user ID of the pod.
      type: int
    soft:
      description: Soft limit of locked memory in bytes. -1 means no limit.
      type: int
    hard:
      description: Hard limit of locked memory in bytes. -1 means no limit.
      type: int
    device:
      description: RDMA device.
      type: str
    asked:
      description: Number of bytes to register.
      type: int
    registered:
      description: Number of bytes that were registered. 0 if the registration failed, V(null) if it was not tried.
      type: int
    evidence:
      description: Output line that decided the result.
      type: str
    error:
      description: Why there is no result. Empty if there is one.
      type: str
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
    end_by_interrupt,
    make_pods_spec,
)
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.fact_modules import list_nodes, run_with_fact
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.lease import LEASE_SPEC, hold_lease
from ansible_collections.linerate.rdma.plugins.module_utils._check.host.memlock import select_provable_fabrics
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.measuring import (
    MeasuringNamespace,
    prepare_measurement,
)
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.memlock import MemlockTask, Prover
from ansible_collections.linerate.rdma.plugins.module_utils._run.measurement.pods.removal import remove_pods


def work(module: AnsibleModule) -> dict[str, typing.Any]:
    options = module.params
    intent = parse_intent(options["fabrics"], None, options["cluster"])
    memlock = intent.cluster.host.memlock
    nodes = list_nodes(module)
    if memlock is None or module.check_mode or not nodes:
        return {"proofs": []}
    with hold_lease(module, connect(module)) as held:
        remove_pods(held.cluster, options["pod_seconds"], time.monotonic, time.sleep)
        place = MeasuringNamespace(held.cluster, held.run, options["pod_seconds"], time.monotonic, time.sleep)
        with prepare_measurement(
            place, held.cluster, select_provable_fabrics(intent), intent.cluster, held.run
        ) as seats:
            task = MemlockTask(
                seats.fabrics,
                intent.cluster,
                memlock,
                nodes,
                options["pod_seconds"],
                held.run,
                seats.refused,
            )
            return {"proofs": to_data(Prover(held.cluster, task, time.monotonic, time.sleep).run())}


def main() -> None:
    end_by_interrupt()
    module = AnsibleModule(argument_spec=make_pods_spec(**LEASE_SPEC), supports_check_mode=True)
    run_with_fact(module, lambda: work(module), "memlock")


if __name__ == "__main__":
    main()
