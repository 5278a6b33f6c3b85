# SPDX-License-Identifier: GPL-3.0-or-later

"""The preflight check of a disconnected site: it verifies that the mirror contains everything that a run would pull.
Charts are read from the mirror, and the images that they name are verified too.
"""

from __future__ import annotations

import typing

from ..._model.base.errors import RdmaError
from ..._model.intent.mirror import Mirror, MirrorAnswer, MirrorFacts, on_mirror
from ..._model.kubernetes.images.pulls import ChartPull, ChartSeen, Pulls
from ..._model.kubernetes.images.registry import Logins
from ..._observe.kubernetes.images.registry import RegistryQuery, ask
from ..._observe.operators.helm import default_values, read_charts
from ..._plan.mirror import collect_values_on_mirror, merge, place_chart_on_mirror
from ..._plan.pulls import ChartWithValues
from ..._render.cluster import pulls as render

Charts = typing.Mapping[str, ChartWithValues]


def on_the_mirror(charts: Charts, mirror: Mirror) -> dict[str, ChartWithValues]:
    """Return the charts with their location on the mirror, each with its values, by operator. The image names in the
    values are not changed.

    :param charts: chart, and its values that differ from the defaults, by operator
    """
    return {name: (place_chart_on_mirror(chart, mirror), values) for name, (chart, values) in charts.items()}


def list_foreign_images(
    helm: str, charts: Charts, seen: typing.Mapping[str, ChartSeen], mirror: Mirror, kubernetes: str
) -> tuple[str, ...]:
    """Return a line for each image that a chart pulls from a registry other than the mirror, although the values of the
    chart name the mirror: the name of the image is fixed in a template. A chart that cannot be rendered gets a line
    with its error.

    :param helm: path of the program helm
    :param charts: chart on the mirror, and its values, by operator
    :param seen: images of each chart with its default registries, by operator; a chart with an error is skipped
    :param mirror: registries of the mirror
    :param kubernetes: version of Kubernetes for which the charts are rendered; empty for the default of helm
    """
    renamed: dict[str, ChartWithValues] = {}
    problems = []
    for name, (chart, values) in charts.items():
        if seen[name].error:
            continue
        try:
            renamed[name] = (chart, merge(collect_values_on_mirror(default_values(helm, chart), mirror), values))
        except RdmaError as error:
            problems.append(f"operator {name}: {error}")
    for name, found in read_charts(helm, renamed, kubernetes).items():
        problems += [f"operator {name}: {found.error}"] if found.error else []
        problems += [
            f"operator {name}: {image.name}" for image in found.images if on_mirror(image.name, mirror) != image.name
        ]
    return tuple(problems)


def ask_mirror(
    pulls: Pulls, mirror: Mirror, logins: Logins, authority: str, limit: float, unchanged: tuple[str, ...]
) -> MirrorFacts:
    """Query the registries of the mirror for each image, and for each chart in an OCI registry. Return the answer for
    each of them, with the commands that copy what is missing.

    :param pulls: images and charts with their original names
    :param mirror: registries of the mirror
    :param logins: credentials, by registry or repository
    :param authority: file with certificates that replace those of the system; empty for those of the system
    :param limit: time limit in seconds for all requests
    :param unchanged: images that charts pull from another registry than the mirror, which are copied into the result
    :raises RdmaError: the file with certificates cannot be read
    """
    wanted = [
        MirrorAnswer(
            image.name,
            on_mirror(image.name, mirror),
            image.needed_by,
            _render_copy_command(image.name, image.by_system, mirror),
            "silent",
            "",
            image.by_system,
        )
        for image in pulls.images
    ]
    for chart in pulls.charts:
        place = on_mirror(_format_image_name(chart), mirror)
        # a repository that has no mirror is no registry; Helm has told whether it has the chart
        if not chart.repository or place != _format_image_name(chart):
            put = (
                render.render_chart_commands(chart, mirror)
                if chart.repository
                else (render.render_copy(chart.image, mirror),)
            )
            wanted.append(MirrorAnswer(_format_image_name(chart), place, chart.needed_by, put, "silent"))
    said = ask([RegistryQuery(item.place, item.by_system) for item in wanted], logins, authority, limit)
    answers = []
    for item in wanted:
        found = said[RegistryQuery(item.place, item.by_system)]
        answers.append(
            MirrorAnswer(item.source, item.place, item.needed_by, item.put, found.state, found.words, item.by_system)
        )
    return MirrorFacts(tuple(answers), pulls.unlisted, unchanged)


def _format_image_name(chart: ChartPull) -> str:
    """Return the name of a chart in the form of an image name: registry, path and tag.

    :param chart: chart in an OCI registry, or in a repository
    """
    return (
        chart.image
        or f"{chart.repository.partition('://')[2].strip('/')}/{chart.reference}:{chart.version.replace('+', '_')}"
    )


def _render_copy_command(name: str, by_system: bool, mirror: Mirror) -> tuple[str, ...]:
    return (render.render_copy(f"{name}-SYSTEM", mirror),) if by_system else (render.render_copy(name, mirror),)
