# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tell the module vf_pods, which does the actual work, which nodes ``--limit`` excludes. It starts no pod on them."""

from __future__ import annotations

from ansible_collections.linerate.rdma.plugins.plugin_utils._limit import LimitedAction


class ActionModule(LimitedAction):
    """An action plugin that runs the module vf_pods, and passes the nodes that ``--limit`` excludes to it as the option
    ``excluded``.
    """

    MODULE = "linerate.rdma.vf_pods"
