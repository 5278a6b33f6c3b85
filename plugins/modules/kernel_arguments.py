#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: kernel_arguments
short_description: Set kernel arguments for the next boot of a node
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Sets kernel arguments for the next boot, and shows which of them the running kernel lacks. It never reboots the
    node.
  - Uses the tool of the distribution. On Debian and Ubuntu it writes C(/etc/default/grub.d/99-linerate.cfg) and runs
    C(update-grub). On RHEL and similar systems it runs C(grubby), and notes what it added in
    C(/etc/linerate-rdma/kernel-arguments).
  - Removes only arguments that it added. An argument that all boot entries already have is left to whoever set it.
  - Does not fail if it cannot set the boot loader. RV(refusal) says why, and nothing is changed. Reasons are a node
    without one of these tools, a node whose system is an image (ostree), which a C(MachineConfig) sets, and boot
    entries of C(grubby) that have another value of the same name.
  - The role C(bootloader) of the linux-system-roles covers RHEL and similar systems only, and keeps no list of what it
    added. For those systems alone, it is a good choice too.
options:
  arguments:
    description:
      - The arguments, each without spaces and quotes. Arguments that this module added before, and that are not listed
        any more, are removed, unless another intent has them.
      - Required if O(state=present).
    type: list
    elements: str
  state:
    description: V(absent) removes all arguments that this module added, unless another intent has them.
    type: str
    choices: [present, absent]
    default: present
  intent:
    description:
      - Name of the intent. The arguments of each intent are recorded on the node under this name. The roles pass the
        key C(intent_name) of C(rdma_cluster), and for the default name a digest of C(node_selector) in addition, as
        P(linerate.rdma.containerd_drop_in#filter) returns it.
      - If another intent has another value of an argument, nothing is changed, and RV(refusal) names that intent.
    type: str
    default: default
extends_documentation_fragment:
  - linerate.rdma._attributes.changes
seealso:
  - module: linerate.rdma.node_roll
    description: Reboots the nodes that lack arguments, once for all that waits for it.
"""

EXAMPLES = r"""
- name: Boot with the IOMMU in passthrough mode
  linerate.rdma.kernel_arguments:
    arguments: [intel_iommu=on, iommu=pt]
  register: kernel

- name: Say what waits for a reboot
  ansible.builtin.debug:
    msg: "{{ kernel.missing }}"
  when: kernel.missing | length > 0
"""

RETURN = r"""
arguments:
  description: Arguments of the intent that this module has added for the next boot, or would add in check mode.
  returned: success
  type: list
  elements: str
  sample: [iommu=pt]
missing:
  description: Wanted arguments that the running kernel does not have. They stay here until a reboot.
  returned: success
  type: list
  elements: str
  sample: [iommu=pt]
refusal:
  description: Why the next boot cannot be set, with what to do. Empty if it can be set.
  returned: success
  type: str
  sample: ""
boot:
  description: ID of the running boot.
  returned: success
  type: str
  sample: 1f1c2ad1-3b0e-4b4e-a86e-6f8f7f7f0c55
boot_loader:
  description: Tool that sets the next boot. Empty if there is none.
  returned: success
  type: str
  sample: update-grub
"""

import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._ansible.module import run
from ansible_collections.linerate.rdma.plugins.module_utils._run.node_changes.set_kernel_arguments import (
    set_kernel_arguments,
)

ROOT = "/"


def work(module: AnsibleModule) -> dict[str, typing.Any]:
    wanted = module.params["arguments"] if module.params["state"] == "present" else []
    done = set_kernel_arguments(wanted, ROOT, module.check_mode, module.params["intent"])
    answer = {
        "arguments": [argument for argument in done.after if argument not in done.others],
        "missing": done.missing,
        "refusal": done.refusal,
        "boot": done.boot,
        "boot_loader": done.loader,
    }
    before, after = ("".join(f"{argument}\n" for argument in side) for side in (done.before, done.after))
    return {"changed": done.changed, **answer, **({"diff": {"before": before, "after": after}} if module._diff else {})}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "arguments": {"type": "list", "elements": "str"},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "intent": {"type": "str", "default": "default"},
        },
        required_if=[("state", "present", ["arguments"])],
        supports_check_mode=True,
    )
    run(module, lambda: work(module))


if __name__ == "__main__":
    main()
