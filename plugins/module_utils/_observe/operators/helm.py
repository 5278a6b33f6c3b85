# SPDX-License-Identifier: GPL-3.0-or-later

"""Render Helm charts with the program helm. It reads the chart and its values. It neither contacts the cluster nor
installs anything. No part of a chart can be read as an option of helm.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import threading
import typing

from ..._model.base.errors import RdmaError
from ..._model.base.operand import require_operand
from ..._model.base.redact import redact_text
from ..._model.base.text import cut_plain
from ..._model.kubernetes.images.pulls import ChartSeen
from ..._model.operators.operators import OperatorChart
from ..._parse.kubernetes.pulled_images import pulled_images
from ..._parse.kubernetes.resource import mapping_at
from ..._parse.operators.charts import definitions_text
from ..._store.files import read_bytes
from ..kubernetes.kinds import Resource
from ..kubernetes.yaml_documents import MOST_CHART, MOST_FILE, read_documents
from ..process.command import Bounds, Finished, call_each, run, search_path

#: seconds for one chart; a registry that is far away may take its time
LIMIT = 120.0
#: charts that are asked for at the same time
_AT_ONCE = 4
#: helm reads the index of a repository and a chart as a whole, in memory and in its cache. The largest index in use
#: has 20 MB, and a chart is smaller
_BOUNDS = Bounds(memory=1 << 30, file=128 << 20)
#: words of helm, and of the runtime of Go, about these limits
_BEYOND = re.compile(r"out of memory|cannot allocate memory|file too large", re.IGNORECASE)
#: variables that name the caches of Helm 3 and 4 [helm.sh/docs/helm/helm, Environment variables]
_CACHES = ("HELM_CACHE_HOME", "HELM_REPOSITORY_CACHE", "HELM_CONTENT_CACHE")
#: reading takes memory: one of them does so at a time
_READING = threading.Lock()
#: what to do about a Chart.yaml
_CORRECT = "Correct it, or set the version in operators_charts"
#: whose secrets Helm may need: it logs in to OCI registries by Docker's configuration, and the helpers that this names
#: take the credentials of a cloud
#: [helm.sh/docs/topics/registries, docs.docker.com/reference/cli/docker/login, credential helpers]
_KEPT = ("AWS_", "AZURE_", "DOCKER_", "GOOGLE_")
#: end of the names of definitions that multus brings, which is no operator of ours
_OF_MULTUS = ".k8s.cni.cncf.io"
#: version of a chart: SemVer 2, as Helm asks for it [helm.sh/docs/topics/charts, The Chart.yaml File]
_VERSION = re.compile(r"v?[0-9]+(\.[0-9]+){0,2}([-+][0-9A-Za-z.+-]{1,100})?")


class HelmError(RdmaError):
    """Raised if helm fails, or if its output cannot be used."""


def render_chart(
    binary: str, chart: OperatorChart, values: typing.Mapping[str, typing.Any], kubernetes: str = ""
) -> tuple[Resource, ...]:
    """Return the objects of a chart, including its hooks. Its folder ``crds`` is left out.

    :param binary: name or path of helm
    :param values: values of the chart that differ from its defaults
    :param kubernetes: version of the cluster, such as v1.33.2, for charts that depend on it. If empty, the default of
        helm applies
    :raises HelmError: helm is missing, fails, exceeds a limit, or prints invalid YAML
    """
    return tuple(_render_chart(binary, chart, values, kubernetes))


def read_definitions(
    binary: str, chart: OperatorChart, values: typing.Mapping[str, typing.Any], kubernetes: str = ""
) -> tuple[Resource, ...]:
    """Return the custom resource definitions in the folders ``crds`` of a chart and its subcharts, except those of
    multus.

    Helm installs these definitions once and never upgrades them. Definitions among the templates are left out, because
    Helm upgrades them.

    :param binary: name or path of helm
    :param values: values of the chart that differ from its defaults
    :param kubernetes: version of the cluster, such as v1.33.2; empty for the default of helm
    :raises HelmError: helm is missing, fails, exceeds a limit, or prints invalid YAML
    :raises ResourceError: a definition has malformed metadata
    """
    found = _render_chart(binary, chart, values, kubernetes, True, definitions_text)
    defined = (item for item in found if item.get("kind") == "CustomResourceDefinition")
    return tuple(item for item in defined if not str(mapping_at(item, "metadata").get("name", "")).endswith(_OF_MULTUS))


def _render_chart(
    binary: str,
    chart: OperatorChart,
    values: typing.Mapping[str, typing.Any],
    kubernetes: str,
    with_definitions: bool = False,
    part: typing.Callable[[str], str] = str,
) -> list[Resource]:
    """Run ``helm template`` and return the rendered objects.

    :param binary: name or path of helm
    :param values: values of the chart that differ from its defaults
    :param kubernetes: version of the cluster; empty for the default of helm
    :param with_definitions: whether helm prints the folders ``crds`` too
    :param part: function that gets the whole output and returns the part of it to parse
    :raises HelmError: helm is missing, fails, exceeds a limit, or prints invalid YAML
    """
    with tempfile.TemporaryDirectory(prefix="linerate-") as folder:
        # for whoever owns the folder alone: values may have secrets, which no argument has
        file = os.path.join(folder, "values.json")
        with open(file, "w", encoding="utf-8") as stream:
            json.dump(dict(values), stream)
        argv = ["template", chart.release, chart.reference, "--namespace", chart.namespace, "--values", file]
        argv += ["--include-crds"] if with_definitions else []
        argv += ["--kube-version", require_operand(kubernetes, "the version of Kubernetes")] if kubernetes else []
        return _read_helm_documents(binary, argv, chart, part)


def default_values(binary: str, chart: OperatorChart) -> dict[str, typing.Any]:
    """Return the default values of a chart, by key.

    :param binary: name or path of helm
    :raises HelmError: helm is missing, fails, exceeds a limit, or prints invalid YAML
    """
    found = _read_helm_documents(binary, ["show", "values", chart.reference], chart)
    return dict(found[0]) if found else {}


def version_in(path: str) -> str:
    """Return the version of a chart that is a folder, from its Chart.yaml.

    :param path: path of the folder
    :raises RdmaError: the file cannot be read, is larger than MOST_FILE bytes, is not valid YAML, or has no valid
        version
    """
    text = read_bytes(path, most=MOST_FILE).decode("utf-8", "replace")
    try:
        found = read_documents(text, MOST_FILE)
    except RdmaError as error:
        raise HelmError(_redact_message(f"{path}: {error.seen}"), _CORRECT) from None
    version = found[0].get("version") if len(found) == 1 else None
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        seen = "no text" if not isinstance(version, str) else f"{version[:100]!r}"
        raise HelmError(_redact_message(f"{path}: version is {seen}; expected a version such as '26.4.1'"), _CORRECT)
    return version


def _read_helm_documents(
    binary: str, argv: typing.Sequence[str], chart: OperatorChart, part: typing.Callable[[str], str] = str
) -> list[Resource]:
    path = binary if os.sep in binary else shutil.which(binary, path=search_path())
    if path is None:
        raise HelmError(
            f"the program {binary} does not exist in the PATH",
            "Install Helm (https://helm.sh/docs/intro/install), or set its path in operators_helm_binary",
        )
    of_chart = [
        *(["--version", chart.version] if chart.version else []),
        *(["--repo", chart.repository] if chart.repository else []),
    ]
    done = _run_helm([path, *argv, *of_chart], chart)
    if done.overflowed:
        raise HelmError(
            _redact_message(done.failure),
            _redact_message(
                f"Check the output of the chart {chart.reference}, or set another chart or version in operators_charts"
            ),
        )
    if done.failure:
        raise HelmError(_redact_message(done.failure), _redact_message(_describe_remedy(done.failure, chart)))
    try:
        with _READING:
            return read_documents(part(done.stdout))
    except RdmaError as error:
        raise HelmError(
            _redact_message(f"the output of helm {argv[0]} for {chart.reference} is not valid: {error.seen}"),
            "Run the same command manually and examine its output",
        ) from error


def _redact_message(words: str) -> str:
    """Return a message without unprintable characters, and without the password in the URL of a repository.

    :param words: message of helm
    """
    return cut_plain(redact_text(words))


def read_charts(
    binary: str,
    charts: typing.Mapping[str, tuple[OperatorChart, typing.Mapping[str, typing.Any]]],
    kubernetes: str = "",
) -> dict[str, ChartSeen]:
    """Render several charts in parallel, and return the images in each of them, by operator. If a chart cannot be
    rendered, its entry has the error, and the other charts are not affected.

    :param binary: name or path of helm
    :param charts: chart, and its values that differ from the defaults, by operator
    :param kubernetes: version of the cluster; empty for the default of helm
    """

    def read_chart(name: str) -> ChartSeen:
        chart, values = charts[name]
        try:
            objects = render_chart(binary, chart, values, kubernetes)
        except RdmaError as error:
            return ChartSeen(error=str(error))
        return ChartSeen(tuple(dict.fromkeys(image for item in objects for image in pulled_images(item))))

    return dict(zip(charts, call_each(read_chart, list(charts), _AT_ONCE)))


def _describe_remedy(words: str, chart: OperatorChart) -> str:
    if "kubeVersion" in words:
        return "Set the version of the cluster: -e operators_kubernetes_version=v1.33.2"
    if _BEYOND.search(words):
        return (
            f"Examine the chart that {chart.repository or chart.reference} provides: Helm may use at most"
            f" {_BOUNDS.memory >> 20} MiB of memory and write files of at most {_BOUNDS.file >> 20} MiB. Or set"
            " another chart or version in operators_charts"
        )
    if chart.repository or "://" in chart.reference:
        return (
            f"Make {chart.repository or chart.reference} reachable from this machine, or set another chart or version"
            " in operators_charts"
        )
    return f"Correct the error that Helm reports for chart {chart.reference}, or set another one in operators_charts"


def _run_helm(argv: typing.Sequence[str], chart: OperatorChart) -> Finished:
    """Run helm with limits of its time, output, memory and files, and return the result. Downloaded files are removed
    afterwards. Only if the chart is in a repository that the user added to Helm, helm uses the user's cache.

    :param argv: command line of helm
    :param chart: chart that the command line names
    :raises HelmError: helm could not be started
    """
    try:
        with tempfile.TemporaryDirectory(prefix="linerate-") as folder:
            is_fetched = bool(chart.repository) or "://" in chart.reference
            caches = {name: os.path.join(folder, name) for name in _CACHES} if is_fetched else {}
            return run(argv, LIMIT, _KEPT, MOST_CHART, caches, _BOUNDS)
    except OSError as error:
        raise HelmError(
            f"{argv[0]} could not be started: {error.strerror}", "Set the path of Helm in operators_helm_binary"
        ) from error
