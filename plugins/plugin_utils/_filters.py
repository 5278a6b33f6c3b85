# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""The seam between filters and Ansible, as _ansible.py is that of modules."""

from __future__ import annotations

import functools
import typing

from ansible.errors import AnsibleFilterError

from ansible_collections.linerate.rdma.plugins.module_utils._model.errors import RdmaError

Filter = typing.TypeVar("Filter", bound=typing.Callable[..., typing.Any])


def filter_of(work: Filter) -> Filter:
    """The filter named as ``work`` is: what the collection raises on purpose becomes Ansible's error, with the filter's
    name before it."""

    @functools.wraps(work)
    def filtered(*arguments: typing.Any, **options: typing.Any) -> typing.Any:
        try:
            return work(*arguments, **options)
        except RdmaError as error:
            raise AnsibleFilterError(f"linerate.rdma.{work.__name__}: {error}") from error

    return typing.cast(Filter, filtered)
