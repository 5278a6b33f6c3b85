# SPDX-License-Identifier: GPL-3.0-or-later

"""Describe the cluster that a run uses: the source of the kubeconfig, its context, and the API server."""

from __future__ import annotations

import os
import typing

from ansible import constants
from ansible.errors import AnsibleError
from ansible.utils.display import Display

from ansible_collections.linerate.rdma.plugins.module_utils._model.base import escape
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.text import cut_text
from ansible_collections.linerate.rdma.plugins.plugin_utils._outside import mark_outside
from ansible_collections.linerate.rdma.plugins.plugin_utils._variables import find_origins

if typing.TYPE_CHECKING:
    from ansible_collections.linerate.rdma.plugins.module_utils._ansible.credentials import Credentials

VARIABLE = "rdma_kubeconfig"
#: characters of the whole, and of each of context and API server
_MOST, _MOST_OF_A_NAME = 1000, 200
#: bytes of a kubeconfig that is read for the line. Those of a hundred clusters with certificates have some 0.5 MiB
_MOST_BYTES = 1024 * 1024
#: stdout callbacks whose output is data: a line between would spoil it
_DATA = ("json", "jsonl")
_NONE = f"no access is configured by {VARIABLE}, K8S_AUTH_*, KUBECONFIG or ~/.kube/config"


def show(access: str) -> None:
    """Show the cluster of a run, as the first line of its output. Nothing is shown if the stdout callback writes JSON.

    :param access: description of the cluster in one line; empty to show nothing
    """
    if str(getattr(constants, "DEFAULT_STDOUT_CALLBACK", "")).rpartition(".")[2] not in _DATA:
        Display().display(f"cluster: {access or _NONE}")


def access_of(variables: typing.Mapping[str, typing.Any], template: typing.Callable[[typing.Any], typing.Any]) -> str:
    """Return the source of the credentials, the context and the API server as one line for a terminal, without secrets.
    Return an empty text if no source is configured.

    This function never raises an error. The task that uses an invalid kubeconfig reports it. If the library kubernetes
    is missing, the content of the kubeconfig is left out.

    :param variables: variables of localhost
    :param template: function that evaluates a templated value
    """
    try:
        return mark_outside(cut_text(escape.escape_line(_describe_cluster_access(variables, template)), _MOST))
    except Exception:
        # a hostile or broken kubeconfig must not end a run before its stage can say so
        return "a kubeconfig that could not be displayed"


def read_cluster_uid_of(
    variables: typing.Mapping[str, typing.Any], template: typing.Callable[[typing.Any], typing.Any]
) -> str:
    """Return the uid of the namespace kube-system of the cluster that a run uses. Return an empty text if it cannot be
    read. This function never raises an error.

    :param variables: variables of localhost
    :param template: function that evaluates a templated value
    """
    try:
        return _ask_for_uid(_read_module_options(variables, template))
    except Exception:
        # as above, and the collection kubernetes.core may be missing
        return ""


def read_boots_of(
    variables: typing.Mapping[str, typing.Any], template: typing.Callable[[typing.Any], typing.Any]
) -> dict[str, str]:
    """Return the ID of the present boot of each node of the cluster that a run uses, as its kubelet reports it. Return
    an empty mapping if the nodes cannot be read. This function never raises an error.

    :param variables: variables of localhost
    :param template: function that evaluates a templated value
    """
    try:
        from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.core import parse_node

        nodes = map(parse_node, _connect(_read_module_options(variables, template)).list("Node").items)
        return {node.name: node.boot_id for node in nodes if node.boot_id}
    except Exception:
        # as above
        return {}


def _connect(options: typing.Mapping[str, typing.Any]) -> typing.Any:
    """Return a client of the API server, which is selected by the given connection options of a module.

    :raises RdmaError: there are no credentials, or the API server cannot be reached
    """
    from ansible_collections.linerate.rdma.plugins.module_utils._ansible.cluster import connect, make_cluster_spec
    from ansible_collections.linerate.rdma.plugins.plugin_utils._controller import Caller

    return connect(
        typing.cast(typing.Any, Caller("stage_begin", {**dict.fromkeys(make_cluster_spec()), **options}, False))
    )


def _ask_for_uid(options: typing.Mapping[str, typing.Any]) -> str:
    from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.identity import read_cluster_uid

    return read_cluster_uid(_connect(options))


def context_of(kubeconfig: typing.Any) -> tuple[str, str]:
    """Return two texts: the context of the kubeconfig that the playbooks use, and the name of the environment variable
    that is used instead of any kubeconfig. The context is empty if the playbooks use none, or if it cannot be read. The
    name is empty if there is no such variable.

    :param kubeconfig: kubeconfig that the inventory sets; None if it sets none
    """
    from ansible_collections.linerate.rdma.plugins.module_utils._ansible.credentials import find_credentials

    found = find_credentials({"kubeconfig": kubeconfig} if kubeconfig else {}, os.environ)
    if found.source == "options":
        return "", "K8S_AUTH_HOST"
    return (_in_kubeconfig(found)[0], "") if found.source == "kubeconfig" else ("", "")


def _describe_cluster_access(
    variables: typing.Mapping[str, typing.Any], template: typing.Callable[[typing.Any], typing.Any]
) -> str:
    # the collection kubernetes.core may be missing as well, which is the first stage's to say
    from ansible_collections.linerate.rdma.plugins.module_utils._ansible.credentials import (
        find_credentials,
        server_of_pod,
    )

    options = _read_module_options(variables, template)
    found = find_credentials(options, os.environ)
    if not found.named:
        return ""
    context, server = "", found.given.get("host")
    by = {name: f" (from K8S_AUTH_{name.upper()})" if found.given.get(name) else "" for name in ("host", "context")}
    if found.source == "options":
        # the line begins with the variable
        by["host"] = ""
    elif found.source == "service account":
        server = server or server_of_pod(os.environ)
    else:
        context, own = _in_kubeconfig(found)
        server = server or own
    parts = [
        _describe_access_source(found, variables, bool(options)),
        f"context {found.redact_credentials(cut_text(context, _MOST_OF_A_NAME))}{by['context']}" if context else "",
        f"API server {_format_server_address(found, server)}{by['host']}" if server else "",
    ]
    return ", ".join(filter(None, parts))


def _read_module_options(
    variables: typing.Mapping[str, typing.Any], template: typing.Callable[[typing.Any], typing.Any]
) -> dict[str, typing.Any]:
    """Return the connection options that the playbooks pass to the modules. Return an empty dictionary if the user's
    variable is not set, or cannot be evaluated.

    :param variables: variables of localhost
    :param template: function that evaluates a templated value
    """
    try:
        value = template(variables[VARIABLE]) if variables.get(VARIABLE) is not None else None
    except AnsibleError:
        value = None
    return {"kubeconfig": value} if value else {}


def _describe_access_source(found: Credentials, variables: typing.Mapping[str, typing.Any], given: bool) -> str:
    """Return one text with the source of the credentials, the variable that sets it, and the configured sources that
    are not used.

    :param found: credentials that the run uses
    :param variables: variables of localhost by name
    :param given: whether the playbooks pass a kubeconfig to the modules
    """
    place = find_origins(variables, (VARIABLE,)).get(VARIABLE)
    variable = f"{VARIABLE}{f' in {place}' if place else ''}"
    named = {variable: given} | {name: bool(os.environ.get(name)) for name in ("K8S_AUTH_KUBECONFIG", "KUBECONFIG")}
    by, source = "", {"options": "K8S_AUTH_HOST", "service account": "service account of this pod"}.get(found.source)
    if source is None:
        by, source = found.by, found.place
        by = f"from {variable}" if by.startswith(f"from {VARIABLE}") else by
    unheard = [name for name, there in named.items() if there and f"from {name}" != by]
    if unheard:
        unused = f"{' and '.join(unheard)} {'is' if len(unheard) == 1 else 'are'} not used"
        by = f"{by}; {unused}" if by else unused
    return f"{source} ({by})" if by else source


def _format_server_address(found: Credentials, server: typing.Any) -> str:
    return cut_text(found.redact_server(server), _MOST_OF_A_NAME)


def _in_kubeconfig(found: Credentials) -> tuple[str, str]:
    """Return the name of the context and the URL of the API server in the kubeconfig, as the client of kubernetes.core
    reads them. A value that cannot be read is empty.

    :param found: credentials that the run uses
    """
    try:
        from kubernetes.config.kube_config import ConfigNode, KubeConfigMerger
    except ImportError:
        return "", ""
    given = found.kubeconfig
    context = found.given.get("context") or ""
    try:
        if isinstance(given, str):
            config = KubeConfigMerger(given).config if _is_readable(given) else None
        else:
            config = ConfigNode(VARIABLE, given)
        if config is None:
            return str(context), ""
        context = context or config["current-context"]
        cluster = config["contexts"].get_with_name(context)["context"]["cluster"]
        server = config["clusters"].get_with_name(cluster)["cluster"]["server"]
        return str(context), server if isinstance(server, str) else ""
    except Exception:
        # the client reads a kubeconfig as if it had the right form, and so raises anything
        return str(context), ""


def _is_readable(paths: str) -> bool:
    """Return whether all existing kubeconfigs of a path list can be read safely before the client reads them: they must
    be regular files of limited size without YAML aliases. A pipe can be read only once. Aliases could expand to more
    than the memory, since the client converts each entry to text.

    :param paths: paths, separated as in the variable KUBECONFIG
    """
    import yaml

    for path in filter(os.path.exists, map(os.path.expanduser, filter(None, paths.split(os.pathsep)))):
        if not os.path.isfile(path) or os.path.getsize(path) > _MOST_BYTES:
            return False
        with open(path, encoding="utf-8") as file:
            if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(file, Loader=yaml.SafeLoader)):
                return False
    return True
