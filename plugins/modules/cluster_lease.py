#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_lease
short_description: Takes, or gives back, the right to change a cluster
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Two runs in one cluster would undo each other's work. So a run holds the C(Lease) C(linerate-rdma) in the namespace C(default) from its first change
    to its end. Every module that changes the cluster takes it by itself and renews it while it works.
    See C(kubectl get lease linerate-rdma -n default -o yaml).
  - With O(state=held) it is taken before a stage reads what it will build on. While another run is alive, it waits for 90 seconds and then fails with
    that run's name, its host, and since when.
  - A run is dead when its C(ansible-playbook) no longer runs on this machine, or when it was silent for too long, which is 60 seconds while a module
    worked, and 900 seconds between two modules. Then the next run takes over, and a module that still lives stops before it makes or deletes anything.
  - With O(state=released) it is given back. A run that does not hold it asks no API server. One that can't be given back runs out, and is only warned of.
options:
  state:
    description: Whether the run holds it.
    type: str
    choices: [held, released]
    default: held
  progress_file:
    description: File to which progress is written, one line each. The action plugin of this name makes one and shows the lines.
    type: path
extends_documentation_fragment:
  - linerate.rdma._options.folder
  - linerate.rdma._options.lease
  - kubernetes.core.k8s_auth_options
requirements:
  - kubernetes >= 24.2.0
attributes:
  check_mode:
    support: full
    description: Takes nothing, since nothing will be changed.
  diff_mode:
    support: N/A
    description: The object is the run's own.
  idempotent:
    support: full
    description: A run that holds it renews it.
"""

EXAMPLES = r"""
- name: Hold the cluster
  linerate.rdma.cluster_lease:
    facts_dir: build/report
    run: "{{ stage_result.run }}"
    holder: "{{ stage_result.holder }}"

- name: Let go of the cluster
  linerate.rdma.cluster_lease:
    state: released
    facts_dir: build/report
    run: "{{ stage_result.run }}"
    holder: "{{ stage_result.holder }}"
"""

RETURN = r"""
held:
  description: Whether the run holds it now.
  returned: success
  type: bool
"""

import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._ansible import run
from ansible_collections.linerate.rdma.plugins.module_utils._cluster import cluster_spec, connect
from ansible_collections.linerate.rdma.plugins.module_utils._lease import LEASE_SPEC, release, working
from ansible_collections.linerate.rdma.plugins.module_utils._model.lease import BETWEEN
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes import ApiError


def work(module: AnsibleModule) -> typing.Dict[str, typing.Any]:
    # never 'changed': the Lease is no more what the user asked for than a record is
    if module.check_mode:
        return {"held": False}
    if module.params["state"] == "released":
        try:
            release(module, connect)
        except ApiError as error:
            module.warn(f"The Lease was not given back, and runs out {BETWEEN} s after its last renewal: {error}")
        return {"held": False}
    with working(module, connect(module)):
        return {"held": True}


def main() -> None:
    module = AnsibleModule(
        argument_spec=cluster_spec(
            state={"type": "str", "choices": ["held", "released"], "default": "held"},
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
