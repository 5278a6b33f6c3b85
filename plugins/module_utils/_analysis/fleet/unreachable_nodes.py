# SPDX-License-Identifier: GPL-3.0-or-later

"""The remedy for a node that gave no answer. It depends on whether the node is reached by ssh or by an observer pod."""

from __future__ import annotations

import typing

from ..._model.kubernetes.observers import DAEMON_SET

#: reason for a node without data
NOT_QUERIED = "the node was not queried"
#: the same, with a possible cause
NOT_QUERIED_BY_LIMIT = f"{NOT_QUERIED}, for example because --limit excluded it"


def get_remedy(name: str, by_pods: typing.Container[str], needs: str = "", module: str = "") -> str:
    """Return the remedy for a node that gave no answer. The report combines equal remedies of several nodes and stages.
    The text therefore contains no name of a stage, and the name of the node only if the node is reached by a pod.

    :param name: name of the node
    :param by_pods: names of the nodes that are reached by observer pods
    :param needs: programs that the node, or the image of the observer pods, must provide; empty for none
    :param module: module of linerate.rdma that failed on the node and needs no options; empty for none
    """
    again = (
        "Then run ansible-playbook linerate.rdma.site again. To continue without this node, remove it from the group"
        " rdma_nodes."
    )
    if name in by_pods:
        look = (
            f"kubectl get pods -A -o wide -l app.kubernetes.io/name={DAEMON_SET} --field-selector spec.nodeName={name}"
        )
        provides = f" The image of the pod must provide {needs}." if needs else ""
        return (
            f"Run {look} to find the pod that inspects the node. If the pod does not run, correct the cause that"
            f" kubectl describe pod shows. If it runs, correct the error under 'why'.{provides} {again}"
        )
    what = f" The node must also provide {needs}." if needs else ""
    passes = (
        f" If the ping passes, run the same command with -m linerate.rdma.{module}, and correct the error that it"
        " prints for this node."
        if module
        else ""
    )
    return (
        "Run ansible rdma_nodes --become -m ansible.builtin.ping, and correct the error that it shows for this node:"
        f" Ansible must reach the node by ssh and become root there.{what}{passes} {again}"
    )
