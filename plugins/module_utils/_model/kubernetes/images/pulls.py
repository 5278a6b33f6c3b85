# SPDX-License-Identifier: GPL-3.0-or-later

"""The images that nodes would pull for a run, the charts for Helm and the packages for OLM. Created by _plan/pulls.py,
written to files by _render/cluster/pulls.py.
"""

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
    """An image that a Kubernetes object names.

    :ivar name: name of the image
    :ivar by_system: whether an operator appends the node's operating system, and possibly its kernel, to the tag:
        ``580.95.05`` becomes ``580.95.05-ubuntu24.04``
    """

    name: str
    by_system: bool = False


@dataclasses.dataclass(frozen=True)
class ImagePull:
    """An image that nodes pull.

    :ivar name: full name, ``registry/path:tag`` or ``registry/path@digest``
    :ivar needed_by: components that use it: an operator, a fabric's pods, a variable
    :ivar by_system: whether an operator appends the node's operating system, and possibly its kernel, to the tag
    """

    name: str
    needed_by: tuple[str, ...]
    by_system: bool = False


@dataclasses.dataclass(frozen=True)
class ChartPull:
    """A chart that Helm pulls.

    :ivar reference: OCI reference, or the chart's name in ``repository``
    :ivar version: version of the chart
    :ivar needed_by: components that use it, such as an operator
    :ivar repository: URL of the Helm repository; empty for an OCI reference
    """

    reference: str
    version: str
    needed_by: tuple[str, ...]
    repository: str = ""

    @property
    def image(self) -> str:
        """Return the name of an OCI chart in its registry, with _ for each + in the tag. Return an empty text for a
        chart of a repository.

        [helm pkg/registry/client.go]
        """
        return "" if self.repository else f"{self.reference[len('oci://') :]}:{self.version.replace('+', '_')}"


@dataclasses.dataclass(frozen=True)
class PackagePull:
    """A package of OLM, whose images its catalog names.

    :ivar package: name of the package
    :ivar catalog: image of its catalog
    :ivar needed_by: components that use it, such as an operator
    :ivar channel: channel of the package; empty for the catalog's default
    :ivar version: requested version; empty for the newest of the channel
    """

    package: str
    catalog: str
    needed_by: tuple[str, ...]
    channel: str = ""
    version: str = ""


@dataclasses.dataclass(frozen=True)
class ChartSeen:
    """The images that a chart would run, from the output of ``helm template``.

    :ivar images: images that its objects name
    :ivar error: why the images are not known
    """

    images: tuple[ImageSeen, ...] = ()
    error: str = ""


@dataclasses.dataclass(frozen=True)
class Pulls:
    """All images, charts and packages that a run would pull.

    :ivar images: images that nodes pull
    :ivar charts: charts that Helm pulls
    :ivar packages: packages that OLM installs
    :ivar notes: images, charts and packages that the intent needs and a run does not pull, each with the component that
        provides it
    :ivar unlisted: pulls that are missing from the list, each with cause and next step. If there are any, the list is
        incomplete
    """

    images: tuple[ImagePull, ...] = ()
    charts: tuple[ChartPull, ...] = ()
    packages: tuple[PackagePull, ...] = ()
    notes: tuple[str, ...] = ()
    unlisted: tuple[str, ...] = ()
