# SPDX-License-Identifier: GPL-3.0-or-later

"""Read how the kubelet places pods, from its files and from the command line of its process. The API is not used,
because it would require a right that allows a shell on the node.

The kubelet loads the file of --config, then each drop-in of --config-dir in lexical order, and then its flags. A later
value overrides an earlier one [kubernetes cmd/kubelet/app/server.go NewKubeletCommand, mergeKubeletConfigurations].
"""

from __future__ import annotations

import os
import typing

from ...._model.base.errors import ParseError
from ...._parse.node import tuning as parse
from ..sysfs_reader import SysfsReader
from .processes import list_processes, read_process_file
from .rows import Rows

_STATES = {"cpu_manager": "var/lib/kubelet/cpu_manager_state", "memory_manager": "var/lib/kubelet/memory_manager_state"}
#: OpenShift's, kubeadm's
_CONFIGURATIONS = ("etc/kubernetes/kubelet.conf", "var/lib/kubelet/config.yaml")
#: OpenShift's, that of the documentation, RKE2's, K3s'
_DROP_INS = (
    "etc/openshift/kubelet.conf.d",
    "etc/kubernetes/kubelet.conf.d",
    "var/lib/rancher/rke2/agent/etc/kubelet.conf.d",
    "var/lib/rancher/k3s/agent/etc/kubelet.conf.d",
)
_SUFFIX = ".conf"
#: distributions whose configuration has kubelet-arg, by their folder in /etc/rancher. RKE2 gives it to a process of the
#: kubelet as flags. The process of K3s contains the kubelet, and replaces its own command line [k3s
#: pkg/cli/agent/agent.go Run, pkg/daemons/agent/agent.go startKubelet, pkg/configfilearg/parser.go]
_RANCHER = {"k3s": "K3s", "rke2": "RKE2"}
_K3S = ("k3s", "k3s-server", "k3s-agent")
#: files of a folder of drop-ins, which has a few
_MOST_FILES = 1000
#: files that a message names
_MOST_NAMED = 4
#: key of the configuration: row, and what the kubelet does where the key is not there
_SETTINGS = {
    "topologyManagerPolicy": ("topology_manager", "none"),
    "topologyManagerScope": ("topology_scope", "container"),
    "reservedSystemCPUs": ("reserved_cpus", "none"),
}
_ROWS = tuple(row for row, _default in _SETTINGS.values())


class _Unread(Exception):
    """The configuration of the kubelet cannot be read, with the reason."""


def read(rows: Rows, host: SysfsReader, proc: SysfsReader) -> None:
    """Add the tuning rows of the kubelet to ``rows``.

    :param rows: collector of the tuning rows of the node
    :param host: reader of the files of the node
    :param proc: reader of the procfs of the node
    """
    for row, name in _STATES.items():
        rows.file(row, host, name, parse.manager_policy)
    try:
        arguments = _read_arguments(proc)
        found = _read_without_process(host, proc) if arguments is None else _read_as_kubelet(host, arguments)
    except _Unread as error:
        rows.unread(str(error), *_ROWS)
        return
    if found is None:
        rows.absent(*_ROWS)
        return
    for key, (row, default) in _SETTINGS.items():
        rows.add(row, found.get(key) or default)


def _read_arguments(proc: SysfsReader) -> typing.Optional[parse.KubeletArguments]:
    """Return the arguments of the kubelet. Return None if no process of the kubelet is found.

    :param proc: reader of the procfs of the node
    :raises _Unread: the command line cannot be parsed, or several kubelets have different ones
    """
    lines = {read_process_file(proc, pid, "cmdline") for pid, _name in list_processes(proc, ("kubelet",))} - {""}
    try:
        found = [parse.parse_kubelet_arguments(line) for line in sorted(lines)]
    except ParseError as error:
        raise _Unread(str(error)) from None
    if any(arguments != found[0] for arguments in found):
        raise _Unread("several processes of the kubelet run on the node, with different arguments")
    return found[0] if found else None


def _read_as_kubelet(host: SysfsReader, arguments: parse.KubeletArguments) -> dict[str, str]:
    """Return the settings in force, by key of the configuration, as the kubelet merges them.

    :param host: reader of the files of the node
    :param arguments: arguments of the kubelet
    :raises _Unread: a file that the kubelet loads cannot be read
    """
    found: dict[str, str] = {}
    names = [arguments.config.lstrip("/")] if arguments.config else []
    if arguments.config_dir:
        names += _list_drop_ins(host, arguments.config_dir.lstrip("/"))
    for name in names:
        settings = _read_settings(host, name)
        if settings is None:
            raise _Unread(f"{os.path.join(host.folder, name)}: the kubelet loads this file, and it does not exist")
        found.update(settings)
    return {**found, **arguments.settings}


def _read_without_process(host: SysfsReader, proc: SysfsReader) -> typing.Optional[dict[str, str]]:
    """Return the settings of the first configuration file of the kubelet that exists, by key. Return None without such
    a file.

    :param host: reader of the files of the node
    :param proc: reader of the procfs of the node
    :raises _Unread: the file cannot be read, there are drop-ins that may override it, or the kubelet is that of K3s or
        RKE2
    """
    _refuse_rancher(host, any(True for _process in list_processes(proc, _K3S)))
    for folder in _DROP_INS:
        names = _list_drop_ins(host, folder)
        if names:
            raise _Unread(
                f"{os.path.join(host.folder, names[0])}: the command line of the kubelet was not found, so it is"
                " unknown whether this drop-in overrides the configuration of the kubelet"
            )
    for name in _CONFIGURATIONS:
        # kubeadm has a kubeconfig of the first name
        if b"current-context" in (host.raw(name) or b""):
            continue
        settings = _read_settings(host, name)
        if settings is not None:
            return settings
    return None


def _refuse_rancher(host: SysfsReader, runs_k3s: bool) -> None:
    """Refuse to read the settings of a kubelet without a process of its own on a node with K3s or RKE2, whose
    ``kubelet-arg`` are not read.

    :param host: reader of the files of the node
    :param runs_k3s: whether a process of K3s runs on the node
    :raises _Unread: a process of K3s runs, or the node has the configuration of K3s or RKE2; the message names the
        files
    """
    for folder, name in _RANCHER.items():
        path = f"etc/rancher/{folder}/config.yaml"
        inner = [f"{path}.d/{file}" for file in host.names(f"{path}.d") if file.endswith((".yaml", ".yml"))]
        files = [
            os.path.join(host.folder, file)
            for file in (path, *inner)
            if os.path.lexists(os.path.join(host.folder, file))
        ]
        if files or (runs_k3s and folder == "k3s"):
            where = ", ".join(files[:_MOST_NAMED]) or "its command line"
            raise _Unread(
                f"the command line of the kubelet was not found, and the settings kubelet-arg of {name} were not read"
                f" ({where}{', ...' if len(files) > _MOST_NAMED else ''})"
            )


def _read_settings(host: SysfsReader, name: str) -> typing.Optional[dict[str, str]]:
    """Return the settings in a configuration file or drop-in of the kubelet, by key. Return None if it is absent.

    :param host: reader of the files of the node
    :param name: path of the file, relative to the folder of the reader
    :raises _Unread: the file cannot be read or parsed
    """
    before = len(host.errors)
    found = host.value(name, parse.parse_kubelet_settings)
    if len(host.errors) > before:
        raise _Unread(host.errors[-1])
    return found


def _list_drop_ins(host: SysfsReader, folder: str) -> list[str]:
    """Return the paths of the drop-ins in a folder and its subfolders, in the order in which the kubelet loads them:
    the files with the suffix .conf, in lexical order of their names. Links to folders are not followed [Go
    path/filepath WalkDir].

    :param host: reader of the files of the node
    :param folder: path of the folder, relative to the folder of the reader
    :raises _Unread: a folder cannot be read, or has too many files
    """
    found: list[str] = []
    waiting = [folder]
    while waiting:
        name = waiting.pop()
        path = os.path.join(host.folder, name)
        if os.path.isdir(path) and not os.path.islink(path):
            before = len(host.errors)
            names = sorted(host.names(name), key=os.fsencode, reverse=True)
            if len(host.errors) > before:
                raise _Unread(host.errors[-1])
            waiting += (f"{name}/{inner}" for inner in names)
        elif name.endswith(_SUFFIX) and os.path.lexists(path):
            found.append(name)
        if len(waiting) + len(found) > _MOST_FILES:
            raise _Unread(f"{os.path.join(host.folder, folder)}: more than {_MOST_FILES} files")
    return found
