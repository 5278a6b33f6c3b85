# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Shows how many nodes have an observer, and why the others have none, while the module observers waits. The module
itself is an ordinary one."""

from __future__ import annotations

from ansible_collections.linerate.rdma.plugins.plugin_utils._progress import ProgressAction


class ActionModule(ProgressAction):
    """Shows each line as it comes."""

    MODULE = "linerate.rdma.observers"
