# SPDX-License-Identifier: GPL-3.0-or-later

"""All images, charts and packages that a run would pull for an intent. Images that are on some nodes already are
included, since a new node has none of them.
"""

from __future__ import annotations

import typing

from .._model.intent.intent import Intent
from .._model.kubernetes.images.pulls import CATALOGS, ChartPull, ChartSeen, ImagePull, ImageSeen, PackagePull, Pulls
from .._model.operators.operators import JobNeeds, Needed, OperatorChart, list_needed_operators
from .._parse.kubernetes.images import parse_reference
from .._parse.kubernetes.pulled_images import pulled_images
from .._parse.kubernetes.resource import ResourceError
from .._render.network.nvidia import render_nic_policy
from .operator_requests import OperatorRequests
from .operators import collect_values, find_chart, find_package

OCI = "oci://"
ChartWithValues = tuple[OperatorChart, dict[str, typing.Any]]


def list_wanted(
    intent: Intent, job: typing.Optional[JobNeeds], olm: bool, wishes: OperatorRequests
) -> tuple[Needed, ...]:
    """Return the operators that a run would install if the cluster had none of them.

    :param job: needs of a training job; None if there is no job
    :param olm: whether OLM installs the operators
    :param wishes: the user's changes, including the operators to leave out
    """
    return tuple(row for row in list_needed_operators(intent, job, olm) if row.operator.name not in wishes.leave)


def collect_charts(
    intent: Intent, job: typing.Optional[JobNeeds], wishes: OperatorRequests
) -> dict[str, ChartWithValues]:
    """Return the charts that Helm installs, each with its values, by operator.

    :param job: needs of a training job; None if there is no job
    :param wishes: settings with which the user changes the installation of the operators
    """
    found = {}
    for row in list_wanted(intent, job, False, wishes):
        chart = find_chart(row.operator, wishes)
        if chart is not None:
            found[row.operator.name] = (chart, collect_values(row.operator, intent, wishes))
    return found


def collect_pulls(
    intent: Intent,
    job: typing.Optional[JobNeeds],
    olm: bool,
    wishes: OperatorRequests,
    seen: typing.Mapping[str, ChartSeen],
    named: typing.Mapping[str, str],
    openshift: str = "",
) -> Pulls:
    """Return all images, charts and packages that a run would pull.

    :param job: needs of a training job; None if there is no job
    :param olm: whether OLM installs the operators
    :param wishes: settings with which the user changes the installation of the operators
    :param seen: images in the rendered chart of each operator, by operator
    :param named: additional images, by the variable that sets them. An empty name is left out, since the cluster
        provides that image
    :param openshift: version of OpenShift such as 4.20, which is the tag of the catalogs; required with ``olm``
    """
    made = _Made()
    for fabric in intent.fabrics:
        if fabric.pods.image_pull_policy != "Never":
            made.image(ImageSeen(fabric.pods.image), f"pods of fabric {fabric.name}")
    if intent.cluster.collectives is not None:
        made.image(ImageSeen(intent.cluster.collectives.image), "pods of stage collectives")
    for variable, image in named.items():
        if image:
            made.image(ImageSeen(image), variable)
    for policy in render_nic_policy(intent.fabrics, intent.cluster):
        for seen_image in pulled_images(policy):
            made.image(seen_image, "NicClusterPolicy")
    for row in list_wanted(intent, job, olm, wishes):
        name = row.operator.name
        chart = find_chart(row.operator, wishes)
        if olm:
            _add_package(made, row, wishes, openshift)
        elif chart is None:
            made.notes.append(
                f"operator {name} must be installed manually: {row.operator.by_hand or 'it has no chart'}"
            )
        else:
            _add_chart(made, name, chart, seen.get(name, ChartSeen(error="its chart was not rendered")))
    return made.done()


def is_remote(chart: OperatorChart) -> bool:
    """Return whether Helm pulls the chart. A chart in a folder or an archive is local."""
    return bool(chart.repository) or chart.reference.startswith(OCI)


def _add_chart(made: _Made, name: str, chart: OperatorChart, seen: ChartSeen) -> None:
    who = f"operator {name}"
    if is_remote(chart):
        made.charts.append(ChartPull(chart.reference, chart.version, (who,), chart.repository))
    if seen.error:
        made.unlisted.append(f"images of {who}: {seen.error}")
    for image in seen.images:
        made.image(image, who)


def _add_package(made: _Made, row: Needed, wishes: OperatorRequests, openshift: str) -> None:
    name, found = row.operator.name, find_package(row.operator, wishes)
    if found is None or row.operator.package is None:
        made.notes.append(f"operator {name} must be installed manually: {row.operator.by_hand or 'no catalog has it'}")
        return
    catalog = CATALOGS.get(found["source"])
    if catalog is None:
        made.unlisted.append(
            f"package {found['package']} of operator {name}: catalog {found['source']} is specific to the cluster, so"
            " its image is unknown. Mirror the package from the image of that catalog, or remove source from"
            " operators_packages for this listing."
        )
        return
    version = str(found["version"] or "")
    # the name of a ClusterServiceVersion: gpu-operator-certified.v26.3.0
    prefixes = (row.operator.package.csv, f"{found['package']}.")
    version = next((version[len(head) :].lstrip("v") for head in prefixes if version.startswith(head)), version)
    made.packages.append(
        PackagePull(
            found["package"],
            f"{catalog}:v{openshift.lstrip('v')}",
            (f"operator {name}",),
            found["channel"] or "",
            version,
        )
    )


class _Made:
    """A collector of images, charts and packages. It lists each image once, with all of its users.

    :ivar images: names of the users of each image
    :ivar charts: Helm charts that a run pulls
    :ivar packages: packages of OLM catalogs that a run installs
    :ivar notes: sentences on what the user must mirror or install manually
    :ivar unlisted: sentences on images that could not be determined, with the reason
    """

    def __init__(self) -> None:
        self.images: dict[ImageSeen, list[str]] = {}
        self.charts: list[ChartPull] = []
        self.packages: list[PackagePull] = []
        self.notes: list[str] = []
        self.unlisted: list[str] = []

    def image(self, seen: ImageSeen, who: str) -> None:
        try:
            name = parse_reference(seen.name)
        except ResourceError as error:
            self.unlisted.append(f"an image of {who}: {error}. Specify the image as registry/path:tag.")
            return
        if not name.host:
            self.unlisted.append(
                f"image {seen.name} of {who}: the name has no registry, and each node may use a different registry"
                " for such names. Specify the image with its registry."
            )
            return
        users = self.images.setdefault(ImageSeen(name.identity, seen.by_system), [])
        if who not in users:
            users.append(who)

    def done(self) -> Pulls:
        images = tuple(
            ImagePull(seen.name, tuple(users), seen.by_system)
            for seen, users in sorted(self.images.items(), key=lambda item: item[0].name)
        )
        return Pulls(images, tuple(self.charts), tuple(self.packages), tuple(self.notes), tuple(self.unlisted))
