#!/usr/bin/python
# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: teardown_gate
short_description: Judges whether a teardown left anything behind
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Turns what the role P(linerate.rdma.teardown#role) gathered into findings, and fails when one of them does not pass.
  - Nothing can be waived here.
options:
  facts:
    description: What the role gathered.
    type: dict
    required: true
extends_documentation_fragment:
  - linerate.rdma._options.intent
attributes:
  check_mode:
    support: full
    description: Only judges.
  diff_mode:
    support: N/A
    description: Changes nothing.
  idempotent:
    support: full
    description: Only judges.
"""

EXAMPLES = r"""
- name: Judge the teardown
  linerate.rdma.teardown_gate:
    fabrics: "{{ rdma_fabrics }}"
    facts: "{{ teardown_facts }}"
"""

RETURN = r"""
findings:
  description: What was looked at, with C(check), C(subject), C(status), C(measured), C(expected), C(why) and C(remedy).
  returned: always
  type: list
  elements: dict
"""

import typing

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.linerate.rdma.plugins.module_utils._ansible import INTENT_SPEC, run
from ansible_collections.linerate.rdma.plugins.module_utils._check.teardown import Facts, check
from ansible_collections.linerate.rdma.plugins.module_utils._model.findings import judge
from ansible_collections.linerate.rdma.plugins.module_utils._model.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent


def work(module: AnsibleModule) -> typing.Dict[str, typing.Any]:
    intent = parse_intent(module.params["fabrics"], None, module.params["cluster"])
    findings = check(intent, load(Facts, module.params["facts"], "facts"))
    closing = judge(findings).closing()
    if closing:
        lines = [f"{item.check} {item.subject}: {item.status}, {item.measured}. {item.why} {item.remedy}" for item in closing]
        module.fail_json(msg="The teardown is not complete.\n" + "\n".join(lines), findings=to_data(findings))
    return {"findings": to_data(findings)}


def main() -> None:
    module = AnsibleModule(argument_spec=dict(INTENT_SPEC, facts={"type": "dict", "required": True}), supports_check_mode=True)
    run(module, lambda: work(module))


if __name__ == "__main__":
    main()
