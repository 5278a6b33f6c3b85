# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: invocation
short_description: Refuse an invocation of ansible-playbook that would run nothing
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Part of each playbook of the collection. Checks the options C(--tags), C(--skip-tags), C(--start-at-task) and
    C(--limit) of C(ansible-playbook).
  - Ends C(ansible-playbook) with exit code 5 and one line of text if nothing would run, because Ansible itself would
    exit with 0. These are a tag that the playbook does not have, no tag that remains, and C(--start-at-task).
  - Also ends it if C(--limit) leaves out localhost, where each playbook begins and ends with its verdict.
  - Makes relative paths in C(KUBECONFIG), C(K8S_AUTH_KUBECONFIG), C(K8S_AUTH_SSL_CA_CERT), C(K8S_AUTH_CERT_FILE) and
    C(K8S_AUTH_KEY_FILE) absolute, because Ansible runs modules on localhost in the folder of the playbook.
  - Tags of other playbooks are not checked. If a playbook of your own imports C(linerate.rdma.site), its tags are those
    of the stages.
  - Use it in C(hosts) of a play, because Ansible evaluates C(hosts) regardless of the tags.
options:
  _terms:
    description: Terms to return if the invocation is valid.
    type: list
    elements: str
    required: true
  site:
    description: The play runs the stages, so that their names are the tags, whichever playbook imports it.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Refuse an invocation that runs no stage
  hosts: "{{ lookup('linerate.rdma.invocation', 'localhost', site=true) }}"
  gather_facts: false
"""

RETURN = r"""
_raw:
  description: The unchanged terms.
  type: list
  elements: str
"""

import os
import typing

import ansible.context
from ansible.inventory.manager import split_host_pattern
from ansible.plugins.lookup import LookupBase
from ansible.utils.display import Display

from ansible_collections.linerate.rdma.plugins.plugin_utils._first_cause import find_cause
from ansible_collections.linerate.rdma.plugins.plugin_utils._invocation import (
    ONLY_LISTS,
    SITE,
    complete_paths,
    explain_limit,
    explain_refusal,
    list_playbooks,
)
from ansible_collections.linerate.rdma.plugins.plugin_utils._unforeseen import guard_lookup

#: of this collection
_ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
#: with which Ansible itself ends for wrong options
_WRONG_OPTIONS = 5


class LookupModule(LookupBase):
    """A lookup plugin that checks the command line of ansible-playbook, and returns its terms if at least one stage
    would run. Otherwise it shows the reason and ends ansible-playbook. It also makes relative paths in the environment
    absolute, because modules run in another folder.
    """

    @guard_lookup
    def run(self, terms: list[str], variables: typing.Any = None, **kwargs: typing.Any) -> list[str]:
        self.set_options(direct=kwargs)
        # tags may come out of the configuration as well; the command line has what counts
        given = ansible.context.CLIARGS
        if any(given.get(name) for name in ONLY_LISTS):
            return terms
        os.environ.update(complete_paths(os.environ, os.getcwd()))
        wrong = ""
        playbooks = list_playbooks(
            map(_without_links, given.get("args") or ()), (_ROOT, os.path.join(_ROOT, "playbooks"))
        )
        # where it is one of several, site refuses for all
        if self.get_option("site") or (playbooks and SITE not in playbooks):
            wrong = explain_refusal(
                given.get("tags") or (),
                given.get("skip_tags") or (),
                given.get("start_at_task"),
                playbooks or (SITE,),
            )
        by_inventory = "localhost" in ((variables or {}).get("ansible_play_hosts_all") or ())
        its = variables or {}
        nodes = (its.get("groups") or {}).get("rdma_nodes")
        cause = find_cause(its.get("ansible_inventory_sources"))
        wrong = wrong or explain_limit(_read_limit(given.get("subset")), by_inventory, cause.text, bool(nodes))
        if wrong:
            # an error of a lookup in hosts comes out as one of the keyword, with a line of the playbook as its last
            Display().error(f"linerate.rdma: nothing was run - {wrong}", wrap_text=False)
            raise SystemExit(_WRONG_OPTIONS)
        return terms


def _without_links(playbook: str) -> str:
    """Return the path of a playbook with symbolic links resolved. The full name of a playbook in a collection is
    returned unchanged.
    """
    return os.path.realpath(playbook) if os.path.exists(playbook) else playbook


def _read_limit(subset: typing.Optional[str]) -> list[str]:
    """Return the patterns of ``--limit``. A pattern that begins with @ is the path of a file, and is replaced by the
    lines of the file. The result is empty without ``--limit``.

    :param subset: value of ``--limit``; None if it is not set
    """
    patterns: list[str] = []
    for pattern in split_host_pattern(subset or ""):
        if not pattern.startswith("@"):
            patterns.append(pattern)
            continue
        # Ansible has read it before, and ends where it can't
        with open(pattern[1:], encoding="utf-8") as lines:
            patterns += [line.strip() for line in lines if line.strip()]
    return patterns
