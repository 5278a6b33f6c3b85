# SPDX-License-Identifier: GPL-3.0-or-later

"""Node feature discovery's workers: where they run, and of what they make labels."""

from __future__ import annotations

import dataclasses
import typing

from ..kubernetes.objects import Workload


@dataclasses.dataclass(frozen=True)
class WorkerConfig:
    """The configuration of node feature discovery's worker; the defaults are its own. [node-feature-discovery
    source/pci, pkg/nfd-worker]

    :ivar classes: PCI classes, or how they begin, of which it makes labels (sources.pci.deviceClassWhitelist)
    :ivar fields: of a PCI device in the name of its label (sources.pci.deviceLabelFields)
    :ivar sources: that make labels (core.labelSources)
    """

    classes: tuple[str, ...] = ("03", "0b40", "12")
    fields: tuple[str, ...] = ("class", "vendor")
    sources: tuple[str, ...] = ("all",)


@dataclasses.dataclass(frozen=True)
class FeatureDiscovery:
    """A DaemonSet of node feature discovery's worker.

    :ivar worker: with the nodes on which it is ready
    :ivar pods: node to what its pod waits for, where it is not ready
    :ivar config: None when it could not be read; ``unread`` says why
    """

    worker: Workload
    pods: dict[str, str] = dataclasses.field(default_factory=dict)
    config: typing.Optional[WorkerConfig] = None
    unread: str = ""
