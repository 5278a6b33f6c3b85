# SPDX-License-Identifier: GPL-3.0-or-later

"""The labels that mark Kubernetes objects as created by the collection. Renderers write them, parsers read them, and a
teardown deletes the objects that carry them.
"""

from __future__ import annotations

import typing

#: of server-side apply, and the value of the label
MANAGER = "linerate.rdma"
LABEL = "app.kubernetes.io/managed-by"
#: selects the objects of the collection
SELECTOR = f"{LABEL}={MANAGER}"
#: of pods: the run that made them
RUN_LABEL = "linerate.rdma/run"
#: on every object of the collection
MANAGED_BY = {LABEL: MANAGER}


def is_ours(labels: typing.Mapping[str, typing.Any]) -> bool:
    """Return whether the labels mark an object as managed by the collection."""
    return labels.get(LABEL) == MANAGER
