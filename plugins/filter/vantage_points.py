# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filter ``linerate.rdma.vantage_points``: from which ports to look at the fabrics."""

from __future__ import annotations

DOCUMENTATION = r"""
name: vantage_points
short_description: Chooses one port of each InfiniBand fabric to look from
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - A discovery walks a whole fabric, so one port of each fabric is enough. A fabric is told by its subnet manager.
options:
  _input:
    description: What M(linerate.rdma.subnet_manager_info) returned on each node, as P(linerate.rdma.collect#filter) gathers it.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Choose from where to look
  ansible.builtin.set_fact:
    ports: "{{ hostvars | linerate.rdma.collect(groups['rdma_nodes'], 'subnets', 'subnets') | linerate.rdma.vantage_points }}"
"""

RETURN = r"""
_value:
  description:
    - For each node the ports to look from, as M(linerate.rdma.fabric_info) takes them. Most nodes have none.
  type: dict
  sample: {worker-1: [{device: mlx5_0, port: 1}, {device: mlx5_2, port: 1}], worker-2: []}
"""

import typing

from ansible_collections.linerate.rdma.plugins.module_utils._model.fabric import ObservedSubnets
from ansible_collections.linerate.rdma.plugins.module_utils._model.load import load, to_data
from ansible_collections.linerate.rdma.plugins.module_utils._schedule.vantage import vantage_points as choose
from ansible_collections.linerate.rdma.plugins.plugin_utils._filters import filter_of


@filter_of
def vantage_points(subnets: typing.Any) -> typing.Any:
    """See DOCUMENTATION."""
    observed = load(typing.Dict[str, ObservedSubnets], subnets, "subnets")
    return to_data(choose({name: answer.value or () for name, answer in observed.items()}))


class FilterModule:
    """Filters of the collection."""

    def filters(self) -> typing.Dict[str, typing.Any]:
        return {"vantage_points": vantage_points}
