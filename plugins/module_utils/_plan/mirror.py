# SPDX-License-Identifier: GPL-3.0-or-later

"""Helm charts on the mirror of a disconnected site, and the chart values that replace image names with their names on
the mirror.
"""

from __future__ import annotations

import re
import typing

from .._model.intent.mirror import Mirror, on_mirror
from .._model.operators.operators import OperatorChart

Values = typing.Mapping[str, typing.Any]
#: keys whose text is the name of an image, or of a folder of images
_KEY = re.compile(r"image|repository", re.IGNORECASE)
_NAME = re.compile(r"[a-z0-9.-]+(:\d{1,5})?(/[A-Za-z0-9._-]+)+(:[\w.-]+)?(@sha256:[0-9a-f]{64})?", re.ASCII)
_OCI = "oci://"


def place_chart_on_mirror(chart: OperatorChart, mirror: Mirror) -> OperatorChart:
    """Return the chart with its location on the mirror, which is an OCI registry. There, the path of a chart that comes
    from a chart repository begins with the host and path of that repository. The chart is returned unchanged if it is a
    folder or an archive, or if the mirror has no rule for it.
    """
    if chart.repository:
        name = f"{chart.repository.partition('://')[2].strip('/')}/{chart.reference}"
        found = on_mirror(name, mirror)
        return (
            chart if found == name else OperatorChart(f"{_OCI}{found}", chart.version, chart.namespace, chart.release)
        )
    if not chart.reference.startswith(_OCI):
        return chart
    found = on_mirror(chart.reference[len(_OCI) :], mirror)
    return OperatorChart(f"{_OCI}{found}", chart.version, chart.namespace, chart.release)


def collect_values_on_mirror(defaults: Values, mirror: Mirror) -> dict[str, typing.Any]:
    """Return chart values that replace each image name in a chart's default values (``helm show values``) with its name
    on the mirror. Values that stay unchanged are left out.

    Charts write image names in three forms. A pair of ``registry`` and ``repository`` is one image name (Kubeflow). In
    NVIDIA's charts ``repository`` is the folder of an ``image``. Any other text below a key that contains ``image`` or
    ``repository`` is an image name.

    :param defaults: default values of the chart
    :param mirror: address on the mirror by source registry
    """
    return _of_mapping(defaults, mirror, False)


def merge(below: Values, above: Values) -> dict[str, typing.Any]:
    """Return the combination of two trees of Helm values as Helm builds it: a value of ``above`` overrides the value of
    ``below`` at the same key.
    """
    joined = dict(below)
    for key, value in above.items():
        under = joined.get(key)
        joined[key] = merge(under, value) if isinstance(under, dict) and isinstance(value, dict) else value
    return joined


def _of_mapping(values: Values, mirror: Mirror, images: bool) -> dict[str, typing.Any]:
    registry, repository = values.get("registry"), values.get("repository")
    if isinstance(registry, str) and isinstance(repository, str) and registry and repository:
        found = on_mirror(f"{registry}/{repository}", mirror)
        if found == f"{registry}/{repository}":
            return {}
        host, _slash, path = found.partition("/")
        return {"registry": host, "repository": path}
    changed = {}
    for key, value in values.items():
        new = _of_value(value, mirror, images or _KEY.search(str(key)) is not None)
        if new is not None:
            changed[str(key)] = new
    return changed


def _of_value(value: typing.Any, mirror: Mirror, images: bool) -> typing.Any:
    """Return the value with each image name in it replaced by its name on the mirror. Of a mapping, only changed keys
    are returned. Return None if the value has no image name to replace.

    :param images: whether texts in the value are names of images
    """
    if isinstance(value, dict):
        return _of_mapping(value, mirror, images) or None
    if isinstance(value, list):
        parts = [_of_value(item, mirror, images) for item in value]
        # Helm replaces a list as a whole
        whole = [
            merge(old, new) if isinstance(old, dict) and isinstance(new, dict) else old if new is None else new
            for old, new in zip(value, parts)
        ]
        return whole if any(part is not None for part in parts) else None
    if images and isinstance(value, str) and _NAME.fullmatch(value):
        found = on_mirror(value, mirror)
        return found if found != value else None
    return None
