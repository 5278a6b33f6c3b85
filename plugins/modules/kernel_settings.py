#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kernel_settings
short_description: Set sysctls and files of sysfs on a node, now and at each boot
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Sets sysctls and files below C(/sys) of the running kernel. Has systemd set them again at each boot, by
    C(/etc/sysctl.d/90-linerate-rdma.conf) and C(/etc/tmpfiles.d/linerate-rdma.conf).
  - Replaces what these two files had before. It changes no other file.
  - Each file has the name of its intent in a comment. A file of another intent stays. If it has other values than the
    options, nothing is set, and RV(refusal) names the file and its intent.
  - Reads each value again after it was set. If the kernel has another value then, the module fails.
  - What the kernel of the node does not have is left out, and RV(absent) names it.
  - On nodes of OpenShift, use M(linerate.rdma.node_tuning).
options:
  sysctl:
    description:
      - Values by key, such as C(vm.swappiness).
      - A number behind V(>) or V(<) is a bound. A sysctl whose value is within the bound is left as it is.
    type: dict
    default: {}
  sysfs:
    description: Values by path below C(/sys). A path may have V(*).
    type: dict
    default: {}
  state:
    description: V(absent) removes the files of the intent. The running kernel keeps its values until the next boot.
    type: str
    choices: [present, absent]
    default: present
  intent:
    description:
      - Name by which the intent marks its files. The filter P(linerate.rdma.tuning_settings#filter) returns the name.
      - A file without a name belongs to each intent.
    type: str
    default: default
extends_documentation_fragment:
  - linerate.rdma._attributes.changes
seealso:
  - module: linerate.rdma.node_tuning
    description: Sets the nodes of OpenShift, by its Node Tuning Operator.
"""

EXAMPLES = r"""
- name: Keep memory for the network, and the CPUs at their full clock
  linerate.rdma.kernel_settings:
    sysctl:
      vm.min_free_kbytes: ">65536"
    sysfs:
      /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor: performance

- name: Leave the next boot as it was
  linerate.rdma.kernel_settings:
    state: absent
"""

RETURN = r"""
changes:
  description: A line for each change, or for each change that check mode would make.
  returned: success
  type: list
  elements: str
  sample: ["sysctl vm.min_free_kbytes: 45056 -> 65536"]
absent:
  description: Keys and paths that the kernel of the node does not have.
  returned: success
  type: list
  elements: str
  sample: []
refusal:
  description: Why nothing was set, because a file of another intent has other values. Otherwise empty.
  returned: success
  type: str
  sample: ""
stays:
  description: Files of other intents, which were left.
  returned: success
  type: list
  elements: str
  sample: ["/etc/sysctl.d/90-linerate-rdma.conf of the intent 'storage'"]
"""

import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._ansible.module import run
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.set_kernel_settings import (
    set_kernel_settings,
)

ROOT = "/"


def work(module: AnsibleModule) -> dict[str, typing.Any]:
    present = module.params["state"] == "present"
    wanted = [
        {str(key): str(value) for key, value in module.params[name].items()} if present else {}
        for name in ("sysctl", "sysfs")
    ]
    done = set_kernel_settings(wanted[0], wanted[1], ROOT, module.check_mode, module.params["intent"])
    answer = {
        "changed": bool(done.changes),
        "changes": list(done.changes),
        "absent": list(done.absent),
        "refusal": done.refusal,
        "stays": list(done.stays),
    }
    return {**answer, **({"diff": {"before": done.before, "after": done.after}} if module._diff else {})}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "sysctl": {"type": "dict", "default": {}},
            "sysfs": {"type": "dict", "default": {}},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "intent": {"type": "str", "default": "default"},
        },
        supports_check_mode=True,
    )
    run(module, lambda: work(module))


if __name__ == "__main__":
    main()
