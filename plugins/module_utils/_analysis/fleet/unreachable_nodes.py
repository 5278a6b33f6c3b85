# SPDX-License-Identifier: GPL-3.0-or-later

"""The remedy for a node that gave no answer. It depends on whether the node is reached by ssh or by an observer pod."""

from __future__ import annotations

import typing

from ..._model.kubernetes.observers import DAEMON_SET

#: reason for a node without data
NOT_QUERIED = "the node was not queried"
#: the same, with a possible cause
NOT_QUERIED_BY_LIMIT = f"{NOT_QUERIED}, for example because --limit excluded it"


def get_remedy(name: str, by_pods: typing.Container[str], needs: str = "") -> str:
    """Return the remedy for a node that gave no answer.

    :param name: name of the node
    :param by_pods: names of the nodes that are reached by observer pods
    :param needs: programs that the node, or the image of the observer pods, must provide
    """
    again = "Then run the stage again. Without this node: remove it from the group rdma_nodes."
    what = f" and {needs}" if needs else ""
    if name in by_pods:
        look = (
            f"kubectl get pods -A -o wide -l app.kubernetes.io/name={DAEMON_SET} --field-selector spec.nodeName={name}"
        )
        provides = f" The image of the pod must provide {needs}." if needs else ""
        return f"Correct the error of the pod that inspects the node: {look}.{provides} {again}"
    return (
        "Run ansible rdma_nodes --become -m ansible.builtin.ping, and correct the error of this node: it must provide"
        f" ssh as root{what}. {again}"
    )
