# SPDX-License-Identifier: GPL-3.0-or-later

"""Charts of operators, rendered by the lab's own helm."""

from __future__ import annotations

import json
import pathlib
import typing

from . import objects
from .build import gotools
from .run import run


def render(
    chart: pathlib.Path, release: str, namespace: str, values: typing.Mapping[str, typing.Any]
) -> list[objects.Object]:
    """The objects of a chart, its custom resource definitions among them, its hooks left out.

    :raises StepError: helm refuses
    """
    options = (
        "--namespace",
        namespace,
        "--kube-version",
        gotools.KUBERNETES,
        "--include-crds",
        "--no-hooks",
        "--values",
        "-",
    )
    return objects.parse(run([gotools.binary("helm"), "template", release, chart, *options], stdin=json.dumps(values)))
