# SPDX-License-Identifier: GPL-3.0-or-later

"""Replaces the chart and the images of a Helm release by their copies on the mirror of the site."""

from __future__ import annotations

import dataclasses

from ..._model.intent.mirror import Mirror
from ..._model.operators.operators import OperatorChart
from ..._observe.operators.helm import default_values
from ..._plan import operators as plan
from ..._plan.mirror import collect_values_on_mirror, merge, place_chart_on_mirror


def on_mirror(release: plan.Release, mirror: Mirror, helm: str) -> plan.Release:
    """Return a Helm release with its chart and its images replaced by their copies on the mirror.

    :param release: the release as planned from the public registries
    :param helm: name or path of helm
    :raises RdmaError: the chart is not on the mirror, or Helm is not installed
    """
    chart = place_chart_on_mirror(
        OperatorChart(release.chart, release.version, release.namespace, release.release, release.repository), mirror
    )
    images = collect_values_on_mirror(default_values(helm, chart), mirror)
    return dataclasses.replace(
        release, chart=chart.reference, repository=chart.repository, values=merge(images, release.values)
    )
