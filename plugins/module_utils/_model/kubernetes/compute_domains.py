# SPDX-License-Identifier: GPL-3.0-or-later

"""ComputeDomains of NVIDIA's driver for Dynamic Resource Allocation: nodes whose GPUs share memory over NVLink between
machines (IMEX), and the pods that use their channels.

[kubernetes-sigs/dra-driver-nvidia-gpu: api/nvidia.com/resource/v1beta1/computedomain.go]
"""

from __future__ import annotations

import dataclasses
import re

from ..boundary.kubernetes import Namespaced, Subdomain
from ..boundary.words import Word

#: the status of a ComputeDomain, or of one of its nodes, that is ready
READY = "Ready"
#: label of a node: NVLink domain and clique of its GPUs, in the form ClusterUUID.CliqueId
CLIQUE_LABEL = "nvidia.com/gpu.clique"
#: a clique whose NVLink domain joins no other machine, as of GPUs with NVLink switches of their own machine
_ALONE = re.compile(r"[0-]*(\.[0-9]*)?", re.ASCII)


@dataclasses.dataclass(frozen=True)
class ComputeDomainNode:
    """A node in the status of a ComputeDomain.

    :ivar name: name of the node
    :ivar clique: NVLink domain and clique of its GPUs; empty for a node without NVLink to other machines
    :ivar ready: whether its IMEX daemon is ready
    """

    name: Subdomain
    clique: Word = ""
    ready: bool = False


@dataclasses.dataclass(frozen=True)
class ComputeDomain:
    """A ComputeDomain.

    :ivar name: namespace/name
    :ivar template: name of the ResourceClaimTemplate by which pods get a channel
    :ivar wanted: number of nodes that it waits for (numNodes); 0 for any number
    :ivar status: Ready or NotReady; empty if it is not set
    :ivar nodes: nodes on which it has an IMEX daemon
    """

    name: Namespaced
    template: Subdomain
    wanted: int = 0
    status: Word = ""
    nodes: tuple[ComputeDomainNode, ...] = ()


@dataclasses.dataclass(frozen=True)
class ClaimingPod:
    """A running pod with device claims.

    :ivar name: name of the pod
    :ivar node: node on which it runs
    :ivar templates: names of the ResourceClaimTemplates from which its claims were created
    """

    name: Subdomain
    node: Subdomain
    templates: tuple[Subdomain, ...]


def joins_machines(clique: str) -> bool:
    """Return whether a clique belongs to an NVLink domain that spans several machines.

    :param clique: domain and clique as the node label writes them, ``<domain>.<clique>``. In the domain of a single
        machine the number is missing or consists of zeros
    """
    return not _ALONE.fullmatch(clique)
