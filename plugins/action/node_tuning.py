# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Display the progress of the module node_tuning, which does the actual work, and tell it whether ``--limit`` excludes
nodes of the run. A module does not know the option.
"""

from __future__ import annotations

import typing

from ansible_collections.linerate.rdma.plugins.plugin_utils._limit import find_limit
from ansible_collections.linerate.rdma.plugins.plugin_utils._progress import ProgressAction


class ActionModule(ProgressAction):
    """An action plugin that runs the module node_tuning and displays each line that the module appends to its progress
    file. If ``--limit`` excludes nodes of the run, the plugin passes the refusal of ``--limit`` to the module as the
    option ``refusal``.
    """

    MODULE = "linerate.rdma.node_tuning"

    def make_options(self, variables: typing.Mapping[str, typing.Any]) -> dict[str, typing.Any]:
        options, refusal = super().make_options(variables), find_limit(self, variables, "stage tuning")
        return options if refusal is None else {**options, "refusal": {"seen": refusal.seen, "remedy": refusal.remedy}}
