# SPDX-License-Identifier: GPL-3.0-or-later

"""The workers of node feature discovery: the nodes on which they run, and the configuration of the labels that they
create.
"""

from __future__ import annotations

import dataclasses
import typing

from ..kubernetes.objects import Workload


@dataclasses.dataclass(frozen=True)
class WorkerConfig:
    """The configuration of node feature discovery's worker, with its defaults. [node-feature-discovery source/pci,
    pkg/nfd-worker]

    :ivar classes: PCI classes, or prefixes of PCI classes, that get labels (sources.pci.deviceClassWhitelist)
    :ivar fields: fields of a PCI device in the name of its label (sources.pci.deviceLabelFields)
    :ivar sources: sources that create labels (core.labelSources)
    """

    classes: tuple[str, ...] = ("03", "0b40", "12")
    fields: tuple[str, ...] = ("class", "vendor")
    sources: tuple[str, ...] = ("all",)


@dataclasses.dataclass(frozen=True)
class FeatureDiscovery:
    """A DaemonSet of node feature discovery's worker, with the state of its pods and its configuration.

    :ivar worker: workload, with the nodes of its ready pods
    :ivar pods: reason why the pod of a node is not ready, by node
    :ivar config: configuration of the worker; None if it could not be read, with the reason in ``unread``
    """

    worker: Workload
    pods: dict[str, str] = dataclasses.field(default_factory=dict)
    config: typing.Optional[WorkerConfig] = None
    unread: str = ""
