# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the identity of a cluster. The URL of an API server does not identify it: pods use the same URL in many
clusters, tunnels use the same port, and a new installation can have the URL of the old one.
"""

from __future__ import annotations

from ..._model.base.errors import ParseError
from ..._parse.kubernetes.resource import mapping_at
from .client import Cluster
from .errors import ApiError

#: namespace that each cluster has from its installation to its end
NAMESPACE = "kube-system"
#: characters of a uid that are kept; it has 36
_MOST = 100


def read_cluster_uid(cluster: Cluster) -> str:
    """Return the ``uid`` of the namespace kube-system, which identifies a cluster. Return an empty text if the
    namespace cannot be read, for example without the right to read it.

    :param cluster: client of the API server
    """
    try:
        uid = mapping_at(cluster.get("Namespace", "", NAMESPACE), "metadata").get("uid")
    except (ApiError, ParseError):
        return ""
    return uid[:_MOST] if isinstance(uid, str) else ""
