# SPDX-License-Identifier: GPL-3.0-or-later

"""By what the collection knows its own objects in a cluster. Renderers write it, parsers read it, and a teardown takes
back what carries it."""

from __future__ import annotations

import typing

#: of server-side apply, and the value of the label
MANAGER = "linerate.rdma"
LABEL = "app.kubernetes.io/managed-by"
#: of pods: the run that made them
RUN_LABEL = "linerate.rdma/run"
#: on every object of the collection
MANAGED_BY = {LABEL: MANAGER}


def is_ours(labels: typing.Mapping[str, typing.Any]) -> bool:
    """Return whether an object with these labels is the collection's."""
    return labels.get(LABEL) == MANAGER
