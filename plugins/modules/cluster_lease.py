#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_lease
short_description: Take or release the right to change a cluster
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Two runs that change one cluster at the same time would undo each other's work. A run therefore holds the C(Lease)
    C(linerate-rdma) in the namespace C(default), from its first change to its end. To see it, run C(kubectl get lease
    linerate-rdma -n default -o yaml).
  - Every module that changes the cluster takes the Lease by itself and renews it while it works.
  - O(state=held) takes the Lease before a stage reads the state of the cluster. If another run holds it, the module
    waits up to 90 seconds. Then it fails and names that run, its host and the time since when it holds the Lease.
  - A holder counts as dead when its C(ansible-playbook) process no longer runs on this machine, or when its Lease has
    expired. A Lease expires after 60 seconds without renewal while a module works, and after 900 seconds between two
    modules. Because the clocks of API servers may differ, the module watches an expired Lease for that time, and takes
    it over only if it does not change.
  - The next run takes over the Lease of a dead holder. A module that has lost the Lease stops before its next change.
  - O(state=confirmed) fails unless the run holds the Lease and nobody else can take it for the next O(seconds). It
    belongs right before a task of another collection that writes, such as one that runs Helm, because that does not ask
    for the Lease. It only reads, unless the Lease has to be renewed for that time. A single task is better given to
    M(linerate.rdma.on_node) with O(linerate.rdma.on_node#module:writes). That looks right before each write.
  - O(state=released) releases the Lease. If the run does not hold it, the module does not contact the API server. If
    the release fails, the module only warns, and the Lease expires.
options:
  state:
    description: Whether to hold, to confirm or to release the Lease.
    type: str
    choices: [held, confirmed, released]
    default: held
  seconds:
    description: How long the Lease has to last with O(state=confirmed).
    type: int
    default: 600
extends_documentation_fragment:
  - linerate.rdma._options.folder
  - linerate.rdma._options.lease
  - linerate.rdma._options.progress
  - linerate.rdma._attributes.changes
  - linerate.rdma._authentication.options
requirements:
  - kubernetes >= 24.2.0
attributes:
  check_mode:
    details:
      - The module does not take the Lease, because nothing changes in check mode.
  diff_mode:
    support: N/A
    details:
      - The Lease is internal to the run.
  idempotent:
    details:
      - A run that already holds the Lease renews it.
"""

EXAMPLES = r"""
- name: Begin a run
  linerate.rdma.run_begin:
    report_dir: build/report
    fabrics: "{{ rdma_fabrics }}"
  register: begun

- name: Take the Lease
  linerate.rdma.cluster_lease:
    facts_dir: build/report
    run: "{{ begun.run }}"
    holder: "{{ begun.holder }}"

- name: Release the Lease
  linerate.rdma.cluster_lease:
    state: released
    facts_dir: build/report
    run: "{{ begun.run }}"
    holder: "{{ begun.holder }}"
"""

RETURN = r"""
held:
  description: Whether the run holds the Lease now.
  returned: success
  type: bool
taken:
  description: Whether the run had taken the Lease. A run that has not has written nothing in the cluster.
  returned: success, and O(state) is V(released)
  type: bool
"""

import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._ansible.cluster import connect, make_cluster_spec
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.lease import (
    LEASE_SPEC,
    has_taken,
    hold_lease,
    release_lease,
    verify_lease,
)
from ansible_collections.linerate.rdma.plugins.module_utils._ansible.module import run
from ansible_collections.linerate.rdma.plugins.module_utils._app.same_cluster import OtherClusterError
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.lease import BETWEEN
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError


def work(module: AnsibleModule) -> dict[str, typing.Any]:
    # never 'changed': the Lease is no more what the user asked for than a record is
    if module.check_mode:
        return {"held": False}
    if module.params["state"] == "released":
        taken = has_taken(module)
        try:
            release_lease(module, connect)
        except (ApiError, OtherClusterError) as error:
            module.warn(f"The Lease was not released, and expires {BETWEEN} s after its last renewal: {error}")
        return {"held": False, "taken": taken}
    if module.params["state"] == "confirmed":
        verify_lease(module, connect(module), module.params["seconds"])
        return {"held": True}
    with hold_lease(module, connect(module)):
        return {"held": True}


def main() -> None:
    module = AnsibleModule(
        argument_spec=make_cluster_spec(
            state={"type": "str", "choices": ["held", "confirmed", "released"], "default": "held"},
            seconds={"type": "int", "default": 600},
            facts_dir={"type": "path", "required": True},
            run={"type": "str", "required": True},
            progress_file={"type": "path"},
            **LEASE_SPEC,
        ),
        supports_check_mode=True,
    )
    run(module, lambda: work(module))


if __name__ == "__main__":
    main()
