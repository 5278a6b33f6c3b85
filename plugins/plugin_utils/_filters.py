# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""The seam between filters and Ansible, as _ansible.py is that of modules."""

from __future__ import annotations

import typing

from ansible_collections.linerate.rdma.plugins.plugin_utils._unforeseen import guarded_filter

Filter = typing.TypeVar("Filter", bound=typing.Callable[..., typing.Any])


def filter_of(work: Filter) -> Filter:
    """The filter named as ``work`` is: whatever is raised in it becomes Ansible's error, with the filter's name before
    it."""
    return guarded_filter(work)
