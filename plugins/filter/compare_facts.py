# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The door of stage compare to what stage bandwidth measured. No decision is made here. Documented in compare_facts.yml."""

from __future__ import annotations

import typing

from ansible_collections.linerate.rdma.plugins.module_utils._check.compare.check import Facts, bandwidths
from ansible_collections.linerate.rdma.plugins.module_utils._model.bandwidth import BandwidthFacts
from ansible_collections.linerate.rdma.plugins.module_utils._model.load import load, to_data
from ansible_collections.linerate.rdma.plugins.plugin_utils._filters import filter_of


@filter_of
def compare_facts(measured: typing.Any) -> typing.Dict[str, typing.Any]:
    """The facts of stage compare."""
    seen = load(BandwidthFacts, measured, "bandwidth") if measured else None
    return typing.cast(typing.Dict[str, typing.Any], to_data(Facts(None if seen is None else bandwidths(seen))))


class FilterModule:
    """Filters of the collection."""

    def filters(self) -> typing.Dict[str, typing.Any]:
        return {"compare_facts": compare_facts}
