# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: invocation
short_description: Refuses an invocation of ansible-playbook that would run no stage
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Part of C(linerate.rdma.site). Looks at C(--tags), C(--skip-tags) and C(--start-at-task) of this ansible-playbook.
  - Fails, and names the stages, when a tag is none of theirs, when no stage is left, or with C(--start-at-task). Ansible itself would end with 0.
  - It stands in C(hosts) of a play, since that is read whatever the tags are.
options:
  _terms:
    description: What it returns when a run can begin.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: Make sure that there is a stage to run
  hosts: "{{ lookup('linerate.rdma.invocation', 'localhost') }}"
  gather_facts: false
"""

RETURN = r"""
_raw:
  description: The terms as they were given.
  type: list
  elements: str
"""

import typing

import ansible.context
from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

from ansible_collections.linerate.rdma.plugins.plugin_utils._invocation import refusal


class LookupModule(LookupBase):
    """Reads the command line."""

    def run(self, terms: typing.List[str], variables: typing.Any = None, **kwargs: typing.Any) -> typing.List[str]:
        # tags may come out of the configuration as well; the command line has what counts
        given = ansible.context.CLIARGS
        wrong = refusal(given.get("tags") or (), given.get("skip_tags") or (), given.get("start_at_task"))
        if wrong:
            raise AnsibleLookupError(wrong)
        return terms
