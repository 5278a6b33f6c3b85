# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the user's variables as Ansible has loaded them: misspelled names, invalid values, and the file and line of each
variable.
"""

from __future__ import annotations

import getpass
import os
import socket
import typing

from ansible.errors import AnsibleError
from ansible.parsing.dataloader import DataLoader
from ansible.utils.vars import load_extra_vars

from ansible_collections.linerate.rdma.plugins.module_utils._model.run.variables import (
    correct_name,
    is_refused,
    list_own_names,
    type_of,
)

try:
    # ansible-core from 2.19 on knows of each text and mapping where it was read
    from ansible._internal._datatag._tags import Origin
except ImportError:
    Origin = None

Variables = typing.Mapping[str, typing.Any]
#: characters of a value that a message shows
_MOST_OF_A_VALUE = 100
#: places in the intent whose lines are kept, and how deep they lie at most
_MOST_PLACES, _DEEPEST = 10_000, 20


def describe_installer(variables: Variables) -> str:
    """Return who started the run, for the header of the report: the AWX user and job, such as ``admin (AWX job 12)``,
    or otherwise the local user and this machine, such as ``root on host-1``.
    """
    for prefix in ("awx", "tower"):
        user, job = (variables.get(f"{prefix}_{name}") for name in ("user_name", "job_id"))
        if user and job:
            return f"{user} (AWX job {job})"
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):
        # a container that runs as a user whom its passwd doesn't know
        user = f"user {os.getuid()}"
    return f"{user} on {socket.gethostname()}"


def is_extra_variable(name: str, loader: DataLoader) -> bool:
    """Return whether a variable is set on the command line (``-e``), which overrides its value in the inventory.

    :param loader: loader of Ansible, which reads files of variables
    """
    return name in load_extra_vars(loader)


def list_names(variables: Variables) -> tuple[str, ...]:
    """Return the names of those variables that have the prefix of the collection, or are a misspelling of one of its
    variables, sorted.
    """
    return list_own_names(map(str, variables))


def read_as_written(nodes: typing.Iterable[str], variables: Variables) -> dict[str, Variables]:
    """Return the variables of each node as they are written, with templates that are not evaluated, by node. To
    evaluate the templates of a thousand nodes takes long. Call this function only once in a task, because Ansible
    merges the variables of a node at each call.

    :param variables: variables of the task, with ``hostvars``
    """
    hosts = variables.get("hostvars", {})
    raw = getattr(hosts, "raw_get", lambda node: hosts.get(node, {}))
    found = {node: raw(node) for node in map(str, nodes)}
    return {node: of_node for node, of_node in found.items() if isinstance(of_node, typing.Mapping)}


def find_misspelt_of_nodes(of_nodes: typing.Mapping[str, Variables], variables: Variables) -> dict[str, str]:
    """Return the misspelled variable names of nodes that localhost does not have, such as ``rdma_bmc_adress`` in
    ``host_vars``, and by name the file and line in which the variable is written. If Ansible does not know the file,
    the name of the first node with the variable is given instead.

    :param of_nodes: variables of each node, with templates that are not evaluated
    :param variables: variables of localhost
    """
    first: dict[str, tuple[str, typing.Any, typing.Any]] = {}
    for node, of_node in of_nodes.items():
        for name in of_node:
            if str(name) not in first:
                first[str(name)] = (node, name, of_node[name])
    unknown = (name for name in first if name not in variables and correct_name(name))
    return {
        name: _describe_origin(first[name][1])
        or _describe_origin(first[name][2])
        or f"the variables of node {first[name][0]}"
        for name in sorted(unknown)
    }


def find_mistyped(variables: Variables, template: typing.Callable[[typing.Any], typing.Any]) -> dict[str, str]:
    """Return the invalid values of public variables by variable, as texts of at most _MOST_OF_A_VALUE characters. A
    value that cannot be templated yet is left out.

    :param template: function that evaluates a templated value
    """
    found = {}
    for name in filter(type_of, map(str, variables)):
        try:
            value = template(variables[name])
        except AnsibleError:
            # it builds on what is not known yet; the role that reads it says so
            continue
        if is_refused(name, value):
            found[name] = str(value)[:_MOST_OF_A_VALUE]
    return found


def find_origins(variables: Variables, names: typing.Iterable[str]) -> dict[str, str]:
    """Return the file and line in which the user wrote each variable and each part of it, by path:
    ``{"rdma_fabrics[0].name": "group_vars/all.yml, line 3"}``.

    The parts of a templated value are left out, and so are variables that do not exist. The result is empty before
    ansible-core 2.19, which does not know files and lines.

    :param names: names of the variables
    """
    found: dict[str, str] = {}
    for name in names:
        if name in variables:
            _note_origins(found, name, None, variables[name], _DEEPEST)
    return found


def _note_origins(found: dict[str, str], path: str, key: typing.Any, value: typing.Any, depth: int) -> None:
    place = _describe_origin(key) or _describe_origin(value)
    if len(found) >= _MOST_PLACES or not depth:
        return
    if place:
        found[path] = place
    if isinstance(value, dict):
        for name, item in value.items():
            _note_origins(found, f"{path}.{name}", name, item, depth - 1)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _note_origins(found, f"{path}[{index}]", None, item, depth - 1)


def _describe_origin(value: typing.Any) -> str:
    """Return the file and line from which a value was read, such as ``group_vars/all.yml, line 3``. The path is
    relative if the file is below the current folder. For a value without a file, return the description that Ansible
    gives it. Return an empty text if neither is known.
    """
    origin = Origin.get_tag(value) if Origin is not None and value is not None else None
    if origin is None:
        return ""
    path = getattr(origin, "path", None)
    if not path:
        return str(getattr(origin, "description", None) or "").strip("<>")
    near = os.path.relpath(path)
    line = getattr(origin, "line_num", None)
    return f"{path if near.startswith(os.pardir) else near}{f', line {line}' if line else ''}"
