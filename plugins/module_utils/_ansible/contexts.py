# SPDX-License-Identifier: GPL-3.0-or-later

"""Verify that a kubeconfig has the context that the user selected, before the client of kubernetes.core reads it: the
client names neither the contexts of the file nor the source of the name.
"""

from __future__ import annotations

import os
import shlex
import typing

from .._model.base.text import cut_text, join_first
from .._observe.kubernetes.errors import CONFIGURATION, ApiError
from .credentials import Credentials

try:
    import yaml
except ImportError:
    # the caller reports the missing library
    yaml = None  # type: ignore[assignment]

#: variable that selects a context
VARIABLE = "K8S_AUTH_CONTEXT"
#: characters of the name of a context in a message
_MOST_OF_A_NAME = 100


def refuse_missing_context(found: Credentials, environment: typing.Mapping[str, str]) -> None:
    """Verify that the kubeconfig has the selected context. A kubeconfig that cannot be read is not judged.

    :param found: credentials that kubernetes.core uses
    :param environment: environment variables of the module by name
    :raises ApiError: the kubeconfig has no context of this name. The error names its contexts, and the source of the
        name
    """
    if found.source != "kubeconfig":
        return
    configs = list(_read_configs(found.kubeconfig))
    names = [name for config in configs for name in _list_contexts(config)]
    wanted, by = found.given.get("context"), "the option context"
    remedy = "Correct the option context in the inventory file or in the task"
    if wanted and wanted == environment.get(VARIABLE):
        by = VARIABLE
        remedy = f"Run unset {VARIABLE}, or name a context of the kubeconfig"
        if names:
            remedy = f"{remedy}: export {VARIABLE}={shlex.quote(_shorten(found, names[0]))}"
    elif not wanted and len(configs) == 1:
        # which of several files names the current context depends on the release of the client
        wanted, by = configs[0].get("current-context"), "its current-context"
        remedy = "Select a context of the kubeconfig: kubectl config use-context NAME"
    if not configs or not isinstance(wanted, str) or not wanted or wanted in names:
        return
    there = f"its contexts are {join_first([_shorten(found, name) for name in names])}" if names else "it has none"
    seen = f"the kubeconfig has no context '{_shorten(found, wanted)}', which {by} names; {there}"
    raise ApiError(0, CONFIGURATION, seen, found.where, remedy)


def _shorten(found: Credentials, name: str) -> str:
    return found.redact_credentials(cut_text(name, _MOST_OF_A_NAME))


def _read_configs(kubeconfig: typing.Any) -> typing.Iterator[typing.Mapping[str, typing.Any]]:
    """Yield the content of each file of a kubeconfig that exists. Yield nothing for a file that cannot be read.

    :param kubeconfig: path, several paths as in the variable KUBECONFIG, or the content
    """
    if isinstance(kubeconfig, dict):
        yield kubeconfig
    for part in map(os.path.expanduser, kubeconfig.split(os.pathsep)) if isinstance(kubeconfig, str) else ():
        if not os.path.isfile(part):
            continue
        try:
            with open(part, encoding="utf-8") as file:
                config = yaml.safe_load(file)
        except (OSError, UnicodeDecodeError, yaml.YAMLError):
            continue
        if isinstance(config, dict):
            yield config


def _list_contexts(config: typing.Mapping[str, typing.Any]) -> list[str]:
    entries = config.get("contexts")
    names = [entry.get("name") for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    return [name for name in names if isinstance(name, str)]
