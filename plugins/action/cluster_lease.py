# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Display the progress of the module cluster_lease, which does the actual work."""

from __future__ import annotations

from ansible_collections.linerate.rdma.plugins.plugin_utils._progress import ProgressAction


class ActionModule(ProgressAction):
    """An action plugin that runs the module cluster_lease, and meanwhile displays each line that the module appends to
    its progress file.
    """

    MODULE = "linerate.rdma.cluster_lease"
