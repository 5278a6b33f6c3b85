#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_policy
short_description: Has the GPU operator load nvidia-peermem, by the ClusterPolicy that is there
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - With C(rdma_cluster.host.gpudirect) of V(peermem) it sets C(spec.driver.rdma.enabled) in the one C(ClusterPolicy) that there is.
  - It never makes one, since the GPU operator takes only one, and takes no field away from another manager such as Helm.
  - The operator then renews the driver's pods, which evicts pods with GPUs; with C(rdma_cluster.disruption) of V(none) nothing is changed.
  - What cannot be done is no failure of the module; it is in the result for the check of the stage to judge.
options:
  cluster:
    description: The variable C(rdma_cluster), as the user wrote it.
    type: raw
extends_documentation_fragment:
  - linerate.rdma._options.cluster_facts
  - linerate.rdma._options.lease
  - kubernetes.core.k8s_auth_options
requirements:
  - kubernetes >= 24.2.0
attributes:
  check_mode:
    support: full
    description: Asks the API server by its dry run.
  diff_mode:
    support: none
    description: Shows no difference.
    details:
      - It is one field, and RV(changes) names it.
  idempotent:
    support: full
    description: A field that is set is not written.
"""

EXAMPLES = r"""
- name: Have nvidia-peermem loaded
  linerate.rdma.cluster_policy:
    cluster: {host: {gpudirect: peermem}}
  register: host_policy
"""

RETURN = r"""
policies:
  description: C(names) of all ClusterPolicies; of the one that there is its C(state), C(rdma), whether it was C(changed), and C(error).
  returned: success
  type: dict
changes:
  description: One line when the field was set, or would be.
  returned: success
  type: list
  elements: str
  sample: [ClusterPolicy gpu-cluster-policy driver.rdma.enabled]
"""

import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._cluster import connect, facts_spec
from ansible_collections.linerate.rdma.plugins.module_utils._fact_modules import run_with_fact
from ansible_collections.linerate.rdma.plugins.module_utils._lease import LEASE_SPEC, working
from ansible_collections.linerate.rdma.plugins.module_utils._model.host import ClusterPolicies
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent import ClusterIntent
from ansible_collections.linerate.rdma.plugins.module_utils._model.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._observe.gpu_operator import enable_rdma
from ansible_collections.linerate.rdma.plugins.module_utils._render.host import cluster_policy


def work(module: AnsibleModule) -> typing.Dict[str, typing.Any]:
    intent = load(ClusterIntent, module.params["cluster"] or {}, "rdma_cluster")
    if intent.host.gpudirect != "peermem":
        return {"changed": False, "policies": to_data(ClusterPolicies()), "changes": []}
    held = intent.disruption == "none"
    with working(module, connect(module)) as lease:
        seen = enable_rdma(lease.cluster, cluster_policy, module.check_mode or held)
    if seen.changed and held:
        seen = ClusterPolicies(seen.names, seen.state, error="the driver's pods would be renewed, and rdma_cluster.disruption is none; set it to drain")
    changes = [f"ClusterPolicy {seen.names[0]} driver.rdma.enabled"] if seen.changed else []
    return {"changed": seen.changed, "policies": to_data(seen), "changes": changes}


def main() -> None:
    module = AnsibleModule(argument_spec=facts_spec(**LEASE_SPEC, cluster={"type": "raw"}), supports_check_mode=True)
    run_with_fact(module, lambda: work(module), "cluster_policy")


if __name__ == "__main__":
    main()
