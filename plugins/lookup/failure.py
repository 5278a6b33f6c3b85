# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: failure
short_description: Return the message of the task that failed, for a rescue
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Returns the message of C(ansible_failed_result) as text that Ansible never takes for a template.
  - ansible-core before 2.19 evaluates the whole result as a template as soon as a template names a part of it. The
    result can hold text of a node, of the cluster or of a chart in its traceback.
  - Characters that do not print are escaped. The message is cut at 8192 characters.
options:
  _terms:
    description:
      - A name for the failed task if Ansible gives none. The text then begins with the name of the task and a colon.
      - Without a term, the text is the message.
    type: list
    elements: str
  unsaid:
    description: Text if the result has no message.
    type: str
    default: no message, see the output above
"""

EXAMPLES = r"""
- name: Measure, and keep why it failed
  block:
    - name: Measure
      linerate.rdma.rdma_bandwidth:
        fabrics: "{{ rdma_fabrics }}"
  rescue:
    - name: Show what failed
      ansible.builtin.debug:
        msg: "{{ lookup('linerate.rdma.failure', 'a task') }}"
"""

RETURN = r"""
_raw:
  description: One text.
  type: list
  elements: str
"""

import typing
from collections.abc import Mapping

from ansible.plugins.lookup import LookupBase

from ansible_collections.linerate.rdma.plugins.module_utils._model.base import escape
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.text import cut_text
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import MOST_WORDS
from ansible_collections.linerate.rdma.plugins.plugin_utils._outside import format_said, mark_outside
from ansible_collections.linerate.rdma.plugins.plugin_utils._unforeseen import guard_lookup

#: characters of the name of a task
_MOST_NAME = 200
#: what ansible.builtin.command says of a program that failed; its own words say more
_CODE_ONLY = "non-zero return code"


class LookupModule(LookupBase):
    """A lookup plugin that returns the message of the task that failed. It reads the variables without evaluating
    templates.
    """

    @guard_lookup
    def run(self, terms: list[str], variables: typing.Any = None, **kwargs: typing.Any) -> list[str]:
        self.set_options(direct=kwargs)
        message = message_of(_read_variable_mapping(variables, "ansible_failed_result")) or self.get_option("unsaid")
        if not terms:
            return [mark_outside(_format_visible_text(message, MOST_WORDS))]
        name = _read_variable_mapping(variables, "ansible_failed_task").get("name") or terms[0]
        return [mark_outside(_format_visible_text(f"{cut_text(str(name), _MOST_NAME)}: {message}", MOST_WORDS))]


def message_of(result: typing.Mapping[str, typing.Any]) -> str:
    """Return the message of a failed result, or the stderr of a program that has no message of its own. Return an empty
    text if the result contains neither.
    """
    message = result.get("msg") or result.get("reason") or ""
    stderr = result.get("stderr")
    if isinstance(stderr, str) and stderr.strip() and message in ("", _CODE_ONLY):
        return stderr.strip()
    return format_said(message)


def _read_variable_mapping(variables: typing.Any, name: str) -> typing.Mapping[str, typing.Any]:
    found = variables.get(name) if isinstance(variables, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _format_visible_text(text: str, most: int) -> str:
    return escape.escape_nonprinting(cut_text(text, most), "\n\t")
