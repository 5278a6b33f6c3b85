#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: memlock_proof
short_description: Proves how much memory a pod that is not root may lock and register
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Starts one pod a node and RDMA fabric in the fabric's namespace, which is not root, has no C(IPC_LOCK), and has one virtual function.
  - The pod reads C(ulimit -l), and C(ibv_rc_pingpong) registers a buffer of the size that C(rdma_cluster.host.memlock.proof_mib) names.
  - Without C(host.memlock) in O(cluster) nothing is started.
  - The pods are removed in any case. A proof that failed is no failure of the module; it is in the result for the check of the stage to judge.
extends_documentation_fragment:
  - linerate.rdma._options.intent
  - linerate.rdma._options.pods
  - linerate.rdma._options.cluster_facts
  - linerate.rdma._options.lease
  - kubernetes.core.k8s_auth_options
requirements:
  - kubernetes >= 24.2.0
attributes:
  check_mode:
    support: full
    description: Starts no pod.
  diff_mode:
    support: N/A
    description: Leaves nothing behind.
  idempotent:
    support: full
    description: Leaves nothing behind.
"""

EXAMPLES = r"""
- name: Prove how much memory a job may lock
  linerate.rdma.memlock_proof:
    fabrics: "{{ rdma_fabrics }}"
    cluster: {host: {memlock: {by: containerd, limit_gib: 64}}}
    nodes: [worker-1, worker-2]
  register: host_memlock
"""

RETURN = r"""
proofs:
  description: For each RDMA fabric and node; none in check mode, and where the intent asks for no limit.
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
      description: Namespace and name of the pod; empty where none was made.
      type: str
    user:
      description: Numeric id that it ran as.
      type: int
    soft:
      description: Soft limit of locked memory in bytes; -1 is no limit.
      type: int
    hard:
      description: Hard limit likewise.
      type: int
    device:
      description: RDMA device.
      type: str
    asked:
      description: Bytes to register.
      type: int
    registered:
      description: Bytes that were registered; 0 when that failed, V(null) when it was not tried.
      type: int
    evidence:
      description: The line that decided.
      type: str
    error:
      description: Why there is no answer; empty otherwise.
      type: str
"""

import time
import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._check.host.check import proven
from ansible_collections.linerate.rdma.plugins.module_utils._cluster import connect, end_by_interrupt, pods_spec
from ansible_collections.linerate.rdma.plugins.module_utils._fact_modules import nodes_of, run_with_fact
from ansible_collections.linerate.rdma.plugins.module_utils._lease import LEASE_SPEC, working
from ansible_collections.linerate.rdma.plugins.module_utils._model.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._run.memlock import Prover, Task


def work(module: AnsibleModule) -> typing.Dict[str, typing.Any]:
    options = module.params
    intent = parse_intent(options["fabrics"], None, options["cluster"])
    memlock = intent.cluster.host.memlock
    if memlock is None or module.check_mode:
        return {"proofs": []}
    with working(module, connect(module)) as held:
        task = Task(proven(intent), intent.cluster, memlock, nodes_of(module), options["pod_seconds"], held.run)
        return {"proofs": to_data(Prover(held.cluster, task, time.monotonic, time.sleep).run())}


def main() -> None:
    end_by_interrupt()
    module = AnsibleModule(argument_spec=pods_spec(**LEASE_SPEC), supports_check_mode=True)
    run_with_fact(module, lambda: work(module), "memlock")


if __name__ == "__main__":
    main()
