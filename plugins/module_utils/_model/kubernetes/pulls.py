# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run would have pulled: images by the nodes, charts by Helm, packages by OLM. Made by _plan/pulls.py, written
to files by _render/cluster/pulls.py."""

from __future__ import annotations

import dataclasses

#: images of the catalogs that OpenShift has by itself, by the name of their CatalogSource; their tag is the version of
#: OpenShift
#: [openshift/operator-marketplace defaults/*.yaml]
CATALOGS: dict[str, str] = {
    "redhat-operators": "registry.redhat.io/redhat/redhat-operator-index",
    "certified-operators": "registry.redhat.io/redhat/certified-operator-index",
    "community-operators": "registry.redhat.io/redhat/community-operator-index",
}


@dataclasses.dataclass(frozen=True)
class ImageSeen:
    """An image that an object names.

    :ivar by_system: an operator adds the system of the node to the tag, and perhaps its kernel: ``580.95.05`` becomes
        ``580.95.05-ubuntu24.04``
    """

    name: str
    by_system: bool = False


@dataclasses.dataclass(frozen=True)
class ImagePull:
    """An image that nodes pull.

    :ivar name: in full, ``registry/path:tag`` or ``registry/path@digest``
    :ivar needed_by: what starts it: an operator, a fabric's pods, a variable
    :ivar by_system: as in ImageSeen
    """

    name: str
    needed_by: tuple[str, ...]
    by_system: bool = False


@dataclasses.dataclass(frozen=True)
class ChartPull:
    """A chart that Helm pulls.

    :ivar reference: OCI reference; with ``repository`` its name there
    """

    reference: str
    version: str
    needed_by: tuple[str, ...]
    repository: str = ""

    @property
    def image(self) -> str:
        """Return the name of an OCI chart as registries have it, which take no + in a tag; empty for one of a
        repository.

        [helm pkg/registry/client.go]
        """
        return "" if self.repository else f"{self.reference[len('oci://') :]}:{self.version.replace('+', '_')}"


@dataclasses.dataclass(frozen=True)
class PackagePull:
    """A package of OLM, whose images its catalog names.

    :ivar catalog: image of its catalog
    :ivar channel: empty is the catalog's default
    :ivar version: the one that is asked for; empty is the newest of the channel
    """

    package: str
    catalog: str
    needed_by: tuple[str, ...]
    channel: str = ""
    version: str = ""


@dataclasses.dataclass(frozen=True)
class ChartSeen:
    """The objects that ``helm template`` made of a chart.

    :ivar images: that its objects name
    :ivar error: why nothing is known
    """

    images: tuple[ImageSeen, ...] = ()
    error: str = ""


@dataclasses.dataclass(frozen=True)
class Pulls:
    """All of it.

    :ivar notes: what is needed and is not for a run to pull, each with who brings it
    :ivar unlisted: what a run would pull and is not in the list, each with the cause and the next step: the list is not
        complete
    """

    images: tuple[ImagePull, ...] = ()
    charts: tuple[ChartPull, ...] = ()
    packages: tuple[PackagePull, ...] = ()
    notes: tuple[str, ...] = ()
    unlisted: tuple[str, ...] = ()
