# SPDX-License-Identifier: GPL-3.0-or-later

"""What to do about a node that gave no answer: it depends on the way to it."""

from __future__ import annotations

import typing

from ..._model.kubernetes.observers import DAEMON_SET


def remedy(name: str, by_pods: typing.Container[str], needs: str = "") -> str:
    """Return an instruction.

    :param by_pods: names of the nodes that are reached by observers
    :param needs: what must be on the node, or in the image of the observers, beside the way to it
    """
    leave = "or take it out of the group rdma_nodes."
    what = f", with {needs}" if needs else ""
    if name in by_pods:
        look = (
            f"kubectl get pods -A -o wide -l app.kubernetes.io/name={DAEMON_SET} --field-selector spec.nodeName={name}"
        )
        return f"Make its observer answer{what}: {look}; {leave}"
    return f"Make {name} answer (ssh as root){what}, {leave}"
