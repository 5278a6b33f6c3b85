# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: chart_version
short_description: Return the version of a Helm chart in a folder
version_added: "1.0.0"
author:
  - The linerate.rdma authors (@linerate)
description:
  - Reads C(Chart.yaml) in the folder of a chart. Nothing of its text is taken for a template, and tags of YAML in it
    are refused.
  - Fails if the file is larger than 1 MiB, is not YAML or has no valid version.
options:
  _terms:
    description: Folders of charts. A relative path is searched like those of P(ansible.builtin.file#lookup).
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: Show the version of a chart
  ansible.builtin.debug:
    msg: "{{ lookup('linerate.rdma.chart_version', '/srv/charts/network-operator') }}"
"""

RETURN = r"""
_raw:
  description: For each folder, the version of its chart.
  type: list
  elements: str
"""

import os
import typing

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators.helm import version_in
from ansible_collections.linerate.rdma.plugins.plugin_utils._unforeseen import guard_lookup


class LookupModule(LookupBase):
    """A lookup plugin that returns the version in the Chart.yaml of each Helm chart. The file is searched in the same
    folders as the files of ansible.builtin.file, and read with limits on its size.
    """

    @guard_lookup
    def run(self, terms: list[str], variables: typing.Any = None, **kwargs: typing.Any) -> list[str]:
        return [self._read_chart_version(str(term), variables) for term in terms]

    def _read_chart_version(self, chart: str, variables: typing.Any) -> str:
        path = self.find_file_in_search_path(variables, "files", os.path.join(chart, "Chart.yaml"), ignore_missing=True)
        if not path:
            raise AnsibleLookupError(
                f"linerate.rdma.chart_version: {chart} has no Chart.yaml. Set the folder of a chart, or set its"
                " version in operators_charts"
            )
        return version_in(path)
