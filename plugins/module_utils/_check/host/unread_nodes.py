# SPDX-License-Identifier: GPL-3.0-or-later

"""The remedy for a node whose data stage host needs and does not have."""

from __future__ import annotations

import typing

from ..._analysis.fleet import unreachable_nodes


def choose_remedy(error: typing.Optional[str], name: str, by_pods: typing.Container[str], needs: str) -> str:
    """Return the remedy for a node without data.

    If ``--limit`` excluded the node, the remedy is to run the stages with it.

    :param error: reason that the reader of the node reports; None if it reports none
    :param name: name of the node
    :param by_pods: names of the nodes that are read by pods instead of ssh
    :param needs: programs that the node, or the image of the observers, must provide
    """
    if error == unreachable_nodes.NOT_QUERIED_BY_LIMIT:
        return (
            f"Run stages platform and host again, with {name} in --limit or without --limit. To continue without"
            " this node, remove it from the group rdma_nodes."
        )
    return unreachable_nodes.get_remedy(name, by_pods, needs)
