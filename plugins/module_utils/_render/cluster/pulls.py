# SPDX-License-Identifier: GPL-3.0-or-later

"""The list of images, charts and packages to mirror, in the formats of the two mirroring tools, and as commands for
items that neither tool supports.

ImageSetConfiguration of oc-mirror v2 (mirror.openshift.io/v2alpha1; OpenShift 4.20, disconnected environments,
"ImageSet configuration parameters for oc-mirror plugin v2"), and the file of ``skopeo sync --src yaml`` (skopeo
docs/skopeo-sync.1.md).
"""

from __future__ import annotations

import dataclasses
import re
import shlex
import typing

from ..._model.base.escape import escape_line
from ..._model.intent.mirror import EVERYTHING, Mirror, on_mirror
from ..._model.kubernetes.images.pulls import ChartPull, ImagePull, PackagePull, Pulls
from .names import Object

OC_MIRROR, SKOPEO = "imageset-config.yml", "skopeo-sync.yml"


def to_copy(pulls: Pulls, mirror: Mirror) -> Pulls:
    """Return the list of images, charts and packages without those images whose names already point to the mirror.

    :param pulls: the whole list
    :param mirror: mirror by registry
    """
    images = tuple(image for image in pulls.images if place_on_mirror(image.name, mirror) != image.name)
    return dataclasses.replace(pulls, images=images)


def render_image_set(pulls: Pulls) -> Object:
    """Render the ImageSetConfiguration for ``oc mirror --v2``: catalogs with their packages, charts of repositories,
    and images by name.
    """
    by_catalog: dict[str, list[Object]] = {}
    for package in pulls.packages:
        by_catalog.setdefault(package.catalog, []).append(_render_package(package))
    repositories: dict[str, list[Object]] = {}
    for chart in pulls.charts:
        if chart.repository:
            repositories.setdefault(chart.repository, []).append(
                {"name": chart.reference, **({"version": chart.version} if chart.version else {})}
            )
    mirror: dict[str, typing.Any] = {}
    if by_catalog:
        mirror["operators"] = [{"catalog": catalog, "packages": packages} for catalog, packages in by_catalog.items()]
    if repositories:
        listed = (
            {"name": f"charts-{number}", "url": url, "charts": charts}
            for number, (url, charts) in enumerate(repositories.items(), 1)
        )
        mirror["helm"] = {"repositories": list(listed)}
    names = [image.name for image in pulls.images if not image.by_system]
    if names:
        mirror["additionalImages"] = [{"name": name} for name in names]
    return {"apiVersion": "mirror.openshift.io/v2alpha1", "kind": "ImageSetConfiguration", "mirror": mirror}


def _render_package(package: PackagePull) -> Object:
    versions = {"minVersion": package.version, "maxVersion": package.version} if package.version else {}
    if not package.channel:
        return {"name": package.package, **versions}
    # a package whose default channel is left out of the mirror has to name another one
    return {
        "name": package.package,
        "defaultChannel": package.channel,
        "channels": [{"name": package.channel, **versions}],
    }


def render_sync(pulls: Pulls) -> Object:
    """Render the input file of ``skopeo sync --all --scoped --src yaml``, grouped by registry and repository. Charts in
    OCI registries are included as images. Images whose tag depends on the operating system of the nodes are selected
    by a regular expression.
    """
    found: dict[str, dict[str, dict[str, typing.Any]]] = {}
    for name in (
        *(image.name for image in pulls.images if not image.by_system),
        *(chart.image for chart in pulls.charts if chart.image),
    ):
        host, path, version = _find_parts(name)
        found.setdefault(host, {}).setdefault("images", {}).setdefault(path, []).append(version)
    for image in pulls.images:
        if image.by_system:
            host, path, version = _find_parts(image.name)
            expressions = found.setdefault(host, {}).setdefault("images-by-tag-regex", {})
            one = f"^{re.escape(version)}-"
            expressions[path] = f"{expressions[path]}|{one}" if path in expressions else one
    return found


def _find_parts(name: str) -> tuple[str, str, str]:
    """Return three texts: the registry, the path, and the tag or digest of an image name that has all three. If the
    name has both a tag and a digest, the digest is returned.
    """
    host, _slash, rest = name.partition("/")
    path, at, digest = rest.partition("@")
    if at:
        return host, path.rpartition(":")[0] or path, digest
    path, _colon, tag = rest.rpartition(":")
    return host, path, tag


def render_commands(pulls: Pulls, mirror: Mirror) -> tuple[str, ...]:
    """Return the shell commands for items that neither oc-mirror nor skopeo sync can mirror: charts of Helm
    repositories, and all images if the mirror does not have the layout of ``skopeo sync``.

    :param pulls: images, charts and packages to mirror
    :param mirror: address on the mirror by source registry; empty without a mirror
    """
    by_name = (
        ()
        if not mirror or EVERYTHING in mirror
        else (render_copy(image.name, mirror) for image in pulls.images if not image.by_system)
    )
    return (
        *by_name,
        *(command for chart in pulls.charts if chart.repository for command in render_chart_commands(chart, mirror)),
    )


def place_on_mirror(name: str, mirror: Mirror) -> str:
    """Return the name that an image or chart has on the mirror. Without a mirror, the name begins with the placeholder
    ``MIRROR``.

    :param name: name of the image or chart at its source
    :param mirror: address on the mirror by source registry; empty without a mirror
    """
    return on_mirror(name, mirror or {EVERYTHING: "MIRROR"})


def render_copy(name: str, mirror: Mirror) -> str:
    """Return the command that copies an image, or a chart of an OCI registry, to the mirror. It copies all
    architectures. For a name that already points to the mirror, the source in the command is the placeholder
    ``SOURCE``.

    :param name: name of the image or chart
    :param mirror: address on the mirror by source registry; empty without a mirror
    """
    target = place_on_mirror(name, mirror)
    # a name that is on the mirror says nothing of where it came from
    return f"skopeo copy --all docker://{name if target != name else 'SOURCE'} docker://{target}"


def render_chart_commands(chart: ChartPull, mirror: Mirror) -> tuple[str, str]:
    """Return the two commands that pull a chart from its repository and push it to the mirror."""
    version = f" --version {shlex.quote(chart.version)}" if chart.version else ""
    folder = place_on_mirror(chart.repository.partition("://")[2].strip("/"), mirror)
    return (
        f"helm pull {shlex.quote(chart.reference)} --repo {shlex.quote(chart.repository)}{version}",
        f"helm push {shlex.quote(f'{chart.reference}-{chart.version}.tgz')} oci://{folder}",
    )


def format_list(pulls: Pulls) -> tuple[str, ...]:
    """Return the list of images, charts and packages for a terminal, one item a line, each with the components that
    need it. Notes, and components whose images are not known, follow.
    """
    told = (
        *(f"image {_describe_image(image)}: {', '.join(image.needed_by)}" for image in pulls.images),
        *(
            f"chart {chart.reference}{f' of {chart.repository}' if chart.repository else ''} {chart.version}:"
            f" {', '.join(chart.needed_by)}"
            for chart in pulls.charts
        ),
        *(f"package {item.package} of {item.catalog}: {', '.join(item.needed_by)}" for item in pulls.packages),
        *(f"note: {note}" for note in pulls.notes),
        *(f"NOT LISTED: {problem}" for problem in pulls.unlisted),
    )
    return tuple(map(escape_line, told))


def _describe_image(image: ImagePull) -> str:
    return (
        f"{image.name}-SYSTEM (every tag with this prefix: the operator appends the operating system of the node)"
        if image.by_system
        else image.name
    )


def render_heads(pulls: Pulls, mirror: Mirror) -> dict[str, tuple[str, ...]]:
    """Return the header comment of each mirroring file, by file name: the command that uses the file, and the items
    that its format cannot express.
    """
    missing = tuple(f"NOT COMPLETE: {problem}" for problem in pulls.unlisted)
    open_tags = tuple(
        f"not in it, since its tag depends on the system of the nodes: {image.name}-..."
        for image in pulls.images
        if image.by_system
    )
    charts = tuple(f"not in it: {render_copy(chart.image, mirror)}" for chart in pulls.charts if chart.image)
    packages = tuple(
        f"not in it, since oc-mirror knows what a package needs: {item.package} of {item.catalog}"
        for item in pulls.packages
    )
    by_helm = tuple(
        f"not in it: {command}"
        for chart in pulls.charts
        if chart.repository
        for command in render_chart_commands(chart, mirror)
    )
    sync_to = f"skopeo sync --all --scoped --src yaml --dest docker {SKOPEO} {mirror.get(EVERYTHING, 'MIRROR')}"
    if mirror and EVERYTHING not in mirror:
        sync_to = (
            "rdma_cluster.mirror replaces sources, as oc mirror does; skopeo sync writes other names. The playbook"
            " shows a skopeo copy for each image."
        )
    told = {
        OC_MIRROR: (
            f"oc mirror --v2 -c {OC_MIRROR} --workspace file://oc-mirror docker://{mirror.get(EVERYTHING, 'MIRROR')}",
            *open_tags,
            *charts,
            *by_helm,
            *missing,
        ),
        SKOPEO: (sync_to, *packages, *by_helm, *missing),
    }
    # a text of a chart with a line end would begin a document of its own behind a comment of YAML
    return {name: tuple(map(escape_line, texts)) for name, texts in told.items()}
