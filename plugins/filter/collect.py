# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter ``linerate.rdma.collect``, which converts the registered results of a module on all nodes into facts that
a check can load.
"""

from __future__ import annotations

DOCUMENTATION = r"""
name: collect
short_description: Collect the results of a module from all nodes
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Turns the registered results of one task on many hosts into one mapping. Filters and modules of this collection
    accept this mapping.
  - Use it in your own plays. The stages store results as facts instead.
  - The result contains every host of O(hosts). If a host was unreachable, failed, was skipped or did not run the task,
    C(error) says so.
positional: hosts, register, key
options:
  _input:
    description: The variable C(hostvars).
    type: dict
    required: true
  hosts:
    description: Names of the hosts in the result, such as C(groups['rdma_nodes']).
    type: list
    elements: str
    required: true
  register:
    description: Name of the registered variable.
    type: str
    required: true
  key:
    description: Key in the result of the module.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Read the HCAs of each node
  linerate.rdma.node_info:
  register: node

- name: Collect the HCAs of all nodes
  ansible.builtin.set_fact:
    hcas: "{{ hostvars | linerate.rdma.collect(groups['rdma_nodes'], 'node', 'hcas') }}"
"""

RETURN = r"""
_value:
  description:
    - For each host a mapping with C(value) and C(error). One of the two is null.
  type: dict
  sample: {worker-1: {value: {hcas: []}, error: null}, worker-2: {value: null, error: "unreachable: No route to host"}}
"""

import typing
from collections.abc import Mapping

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.text import kind_of
from ansible_collections.linerate.rdma.plugins.plugin_utils._unforeseen import guard_filter


@guard_filter
def collect(hostvars: typing.Any, hosts: typing.Any, register: str, key: str) -> dict[str, dict[str, typing.Any]]:
    """Return for each host a mapping with ``value`` and ``error``, of which one is None, from the result that a task
    has registered on the host. The error says that the host is unknown, was not asked, was unreachable, failed or was
    skipped, or that the result has no such key.

    :param hostvars: Ansible's variable ``hostvars``
    :param hosts: names of the hosts
    :param register: name of the registered variable
    :param key: key of the registered result, whose value becomes ``value``
    :returns: the mappings by host name
    :raises AnsibleFilterError: ``hostvars`` or ``hosts`` has the wrong type
    """
    if not isinstance(hostvars, Mapping):
        raise RdmaError(f"the input is {kind_of(hostvars)}; expected the variable hostvars")
    if isinstance(hosts, str) or not hasattr(hosts, "__iter__"):
        raise RdmaError(f"hosts is {hosts!r}; expected a list of host names, such as groups['rdma_nodes']")
    return {str(host): _read_host_answer(hostvars, host, register, key) for host in hosts}


def _read_host_answer(hostvars: typing.Any, host: str, register: str, key: str) -> dict[str, typing.Any]:
    if host not in hostvars:
        return _make_error_answer("is not in the inventory")
    variables = hostvars[host]
    if register not in variables:
        return _make_error_answer(f"was not asked: no task registered {register} there (left out by --limit?)")
    result = variables[register]
    if not isinstance(result, Mapping):
        return _make_error_answer(f"{register} contains {kind_of(result)}, not the result of a module")
    if result.get("unreachable"):
        return _make_error_answer(f"unreachable: {_format_failure_message(result)}")
    if result.get("failed"):
        return _make_error_answer(f"failed: {_format_failure_message(result)}")
    if result.get("skipped"):
        return _make_error_answer(
            f"was skipped: {result.get('skip_reason') or result.get('false_condition') or 'no reason given'}"
        )
    if key not in result:
        return _make_error_answer(
            f"the response of the module has no '{key}'; it has: {', '.join(sorted(map(str, result)))}"
        )
    return {"value": result[key], "error": None}


def _format_failure_message(result: typing.Any) -> str:
    """Return the message of a failed result, followed by its stderr if there is any. The stderr of the Python
    interpreter contains the cause if the module gave no answer. Return ``no message`` if the result has neither.
    """
    parts = [str(result.get(name) or "").strip() for name in ("msg", "module_stderr", "stderr")]
    return "; ".join(part for part in parts if part) or "no message"


def _make_error_answer(text: str) -> dict[str, typing.Any]:
    return {"value": None, "error": text}


class FilterModule:
    """The plugin class by which Ansible finds the filter ``collect``."""

    def filters(self) -> dict[str, typing.Any]:
        return {"collect": collect}
