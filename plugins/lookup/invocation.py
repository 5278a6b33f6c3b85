# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: invocation
short_description: Refuse an invocation of ansible-playbook that would run no stage
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Part of the playbook C(linerate.rdma.site). Checks the options C(--tags), C(--skip-tags) and C(--start-at-task) of
    C(ansible-playbook).
  - Fails if a tag is not the name of a stage, if no stage remains, or with C(--start-at-task). The message lists the
    stages. Ansible itself would run nothing and exit with 0.
  - Fails if the inventory plugin gave no nodes and C(--limit) leaves out localhost, where the cause would be reported.
  - Use it in C(hosts) of a play, because Ansible evaluates C(hosts) regardless of the tags.
options:
  _terms:
    description: Terms to return if the invocation is valid.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: Refuse an invocation that runs no stage
  hosts: "{{ lookup('linerate.rdma.invocation', 'localhost') }}"
  gather_facts: false
"""

RETURN = r"""
_raw:
  description: The unchanged terms.
  type: list
  elements: str
"""

import typing

import ansible.context
from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

from ansible_collections.linerate.rdma.plugins.plugin_utils._first_cause import first
from ansible_collections.linerate.rdma.plugins.plugin_utils._invocation import (
    ONLY_LISTS,
    explain_limit,
    explain_refusal,
)
from ansible_collections.linerate.rdma.plugins.plugin_utils._unforeseen import guard_lookup


class LookupModule(LookupBase):
    """Reads the command line."""

    @guard_lookup
    def run(self, terms: list[str], variables: typing.Any = None, **kwargs: typing.Any) -> list[str]:
        # tags may come out of the configuration as well; the command line has what counts
        given = ansible.context.CLIARGS
        if any(given.get(name) for name in ONLY_LISTS):
            return terms
        wrong = explain_refusal(given.get("tags") or (), given.get("skip_tags") or (), given.get("start_at_task"))
        wrong = wrong or explain_limit(given.get("subset"), first())
        if wrong:
            raise AnsibleLookupError(wrong)
        return terms
