#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nodes_info
short_description: Look at many nodes at once through their observers
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Reads HCAs, platform, firmware, clock, tuning and subnet managers of all nodes that have an observer, and stores them as facts. Each node is asked
    with one command in its pod.
  - The kind V(drop_in) is whether the drop-in that the role P(linerate.rdma.host#role) writes for containerd's unit is on the node.
  - The kind V(firmware) takes C(devlink) and C(mstconfig) from the image of the observers. Reading all settings of an HCA takes a second or more.
  - Asks many nodes at the same time from one process. This costs a fraction of what a task for each node costs.
  - Needs the fact of M(linerate.rdma.observers) from the same run. A node without an observer gets the reason in place of its facts.
options:
  kinds:
    description: Which facts to read.
    type: list
    elements: str
    choices: [hcas, platform, firmware, clock, tuning, subnets, drop_in, neighbours]
    default: [hcas, platform, firmware, clock, tuning, subnets]
  sysfs:
    description: Root folders of sysfs, as the observer sees them.
    type: list
    elements: path
    default: [/sys]
  netdevs:
    description: Names of network interfaces to report although they belong to no HCA.
    type: list
    elements: str
    default: []
  kernel_arguments:
    description:
      - Kernel arguments to look for. Those of them that the kernel runs with are reported beside those about IOMMU and PCI. All others stay on the node,
        because a command line can have secrets.
    type: list
    elements: str
    default: []
  host_files:
    description: Folder in which the observer has the files of its node.
    type: path
    default: /host
  python:
    description: Path of Python 3.9 or later in the image of the observers.
    type: str
    default: /usr/bin/python3
  parallel:
    description: How many nodes to ask at the same time.
    type: int
    default: 64
  seconds:
    description: Limit for the answer of one node.
    type: int
    default: 120
extends_documentation_fragment:
  - linerate.rdma._options.folder
  - kubernetes.core.k8s_auth_options
requirements:
  - kubernetes >= 24.2.0
attributes:
  check_mode:
    support: full
    description: Only reads.
  diff_mode:
    support: N/A
    description: Changes nothing.
  idempotent:
    support: full
    description: Only reads.
"""

EXAMPLES = r"""
- name: Read the HCAs of all nodes that have an observer
  linerate.rdma.nodes_info:
    facts_dir: build/report
    run: "{{ stage_result.run }}"
    kinds: [hcas]
"""

RETURN = r"""
asked:
  description: Number of nodes.
  returned: success
  type: int
  sample: 1000
unanswered:
  description: Number of nodes that lack at least one of the facts. The facts hold the reasons.
  returned: success
  type: int
  sample: 0
seconds:
  description: How long it took.
  returned: success
  type: float
  sample: 7.4
"""

import dataclasses
import time
import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._ansible import run
from ansible_collections.linerate.rdma.plugins.module_utils._cluster import cluster_spec, connect
from ansible_collections.linerate.rdma.plugins.module_utils._model.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._model.observers import HOST, ObserversFacts
from ansible_collections.linerate.rdma.plugins.module_utils._observe.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.module_utils._observe.look import DROP_IN, KINDS, NEIGHBOURS
from ansible_collections.linerate.rdma.plugins.module_utils._run.look_by_observers import PYTHON, Asked, look


def work(module: AnsibleModule) -> typing.Dict[str, typing.Any]:
    options, start = module.params, time.monotonic()
    folder = FactFolder(options["facts_dir"], options["run"])
    fact = folder.value("observers")
    if fact is None:
        raise RdmaError("this run has no observers", "Start them in the same run with the module linerate.rdma.observers")
    # the fact is the module's whole answer, and says besides what it changed
    known = {field.name for field in dataclasses.fields(ObserversFacts)}
    observers = load(ObserversFacts, {name: value for name, value in fact.items() if name in known}, "observers")
    kinds, roots, netdevs, arguments = (tuple(options[name]) for name in ("kinds", "sysfs", "netdevs", "kernel_arguments"))
    asked = Asked(kinds, roots, netdevs, options["python"], options["seconds"], options["host_files"], arguments)
    unanswered = 0
    for node, shown in look(connect(module), observers.namespace, observers.nodes, asked, options["parallel"]):
        unanswered += any(one.error is not None for one in shown.values())
        for kind, one in shown.items():
            folder.write(kind, node, one.value, one.error)
    return {"asked": len(observers.nodes), "unanswered": unanswered, "seconds": round(time.monotonic() - start, 1)}


def main() -> None:
    module = AnsibleModule(
        argument_spec=cluster_spec(
            facts_dir={"type": "path", "required": True},
            run={"type": "str", "required": True},
            kinds={"type": "list", "elements": "str", "choices": [*KINDS, DROP_IN, NEIGHBOURS], "default": list(KINDS)},
            sysfs={"type": "list", "elements": "path", "default": ["/sys"]},
            netdevs={"type": "list", "elements": "str", "default": []},
            kernel_arguments={"type": "list", "elements": "str", "default": []},
            host_files={"type": "path", "default": HOST},
            python={"type": "str", "default": PYTHON},
            parallel={"type": "int", "default": 64},
            seconds={"type": "int", "default": 120},
        ),
        supports_check_mode=True,
    )
    run(module, lambda: work(module))


if __name__ == "__main__":
    main()
