# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Display the progress of the module observers: the number of nodes that have an observer pod, and why the other nodes
have none. The module does the actual work.
"""

from __future__ import annotations

import typing

from ansible_collections.linerate.rdma.plugins.plugin_utils._limit import add_excluded
from ansible_collections.linerate.rdma.plugins.plugin_utils._progress import ProgressAction


class ActionModule(ProgressAction):
    """An action plugin that runs the module observers, and meanwhile displays each line that the module appends to its
    progress file. The nodes that ``--limit`` excludes get no pod.
    """

    MODULE = "linerate.rdma.observers"

    def make_options(self, variables: typing.Mapping[str, typing.Any]) -> dict[str, typing.Any]:
        return add_excluded(self, variables, super().make_options(variables))
