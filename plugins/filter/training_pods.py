# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filter ``linerate.rdma.training_pods``: what the pods of a job got of their networks."""

from __future__ import annotations

DOCUMENTATION = r"""
name: training_pods
short_description: Shows what pods got of their secondary networks
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Turns pods, as M(kubernetes.core.k8s_info) returns them, into what the stage C(training) compares with NCCL's log.
options:
  _input:
    description: Pods.
    type: list
    elements: dict
    required: true
"""

EXAMPLES = r"""
- name: Gather what the pods got
  ansible.builtin.set_fact:
    pods: "{{ found.resources | linerate.rdma.training_pods }}"
"""

RETURN = r"""
_value:
  description: For each pod its name, host name, node, and functions, or why they are not known.
  type: list
  elements: dict
"""

import typing

from ansible_collections.linerate.rdma.plugins.module_utils._model.load import to_data
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.multus import training_pod
from ansible_collections.linerate.rdma.plugins.plugin_utils._filters import filter_of


@filter_of
def training_pods(pods: typing.Any) -> typing.List[typing.Dict[str, typing.Any]]:
    """What each pod got."""
    return [to_data(training_pod(pod)) for pod in pods]


class FilterModule:
    """Filter of the collection."""

    def filters(self) -> typing.Dict[str, typing.Any]:
        return {"training_pods": training_pods}
