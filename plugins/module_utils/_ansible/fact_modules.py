# SPDX-License-Identifier: GPL-3.0-or-later

"""Shared code of the modules on the controller that read and write facts. The result of such a module is stored as a
fact, and Ansible gets only the parts that do not grow with the number of nodes.
"""

from __future__ import annotations

import os
import typing

from ansible.module_utils.basic import AnsibleModule

from .._app.folder import read_answers, read_value
from .._model.base.errors import RdmaError, wrap_unforeseen
from .._model.base.load import load
from .._model.intent.intent import Intent
from .._model.kubernetes.observers import ObserversFacts, load_observers
from .._plan.node_answers import Rails, list_rails
from .._store.facts import FactFolder
from .._store.files import FileError
from .._store.history import find_folder as find_run_folder
from .._store.history import list_kept
from .._store.run_start import read_start
from .module import run

#: options of such a module; the doc fragment is linerate.rdma._options.cluster_facts
FACT_SPEC: dict[str, typing.Any] = {"facts_dir": {"type": "path"}, "run": {"type": "str"}, "fact": {"type": "str"}}
#: items of an option with objects to apply
OBJECT_SPEC: dict[str, typing.Any] = {
    "fabric": {"type": "str", "default": ""},
    "object": {"type": "dict", "required": True},
}

Result = dict[str, typing.Any]


def find_folder(module: AnsibleModule) -> typing.Optional[FactFolder]:
    """Return the folder in which the module stores its fact. Return None if the option facts_dir or run is not set."""
    options = module.params
    return FactFolder(options["facts_dir"], options["run"]) if options.get("facts_dir") and options.get("run") else None


def run_with_fact(
    module: AnsibleModule,
    work: typing.Callable[[], Result],
    fact: str,
    keep: typing.Container[str] = (),
    stores: typing.Callable[[Result], bool] = lambda _answer: True,
) -> None:
    """Run the work of a module, and end the module with its result. If the module options name a folder, the result or
    the error is stored there as a fact, and Ansible gets only the length of each list and mapping.

    :param work: function without arguments that returns the result of the module
    :param fact: kind of the fact, which the option ``fact`` overrides. If empty, no fact is stored
    :param keep: names of lists and mappings in the result that Ansible gets too
    :param stores: function that returns whether the result replaces the fact. An error always does
    """

    def kept() -> Result:
        folder = find_folder(module)
        if folder is None:
            return work()
        try:
            answer = work()
        except RdmaError as error:
            if fact:
                folder.write(module.params["fact"] or fact, error=str(error))
            raise
        except Exception as error:
            # a defect, or an answer that nobody foresaw: Ansible shows where it was met, and the stage has an error in
            # place of the fact
            if fact:
                folder.write(module.params["fact"] or fact, error=str(wrap_unforeseen(error, module._name)))
            raise
        shown = {"changed", *(["diff"] if module._diff else [])}
        if fact and stores(answer):
            folder.write(
                module.params["fact"] or fact,
                value={name: value for name, value in answer.items() if name not in ("changed", "diff")},
            )
        counts = {
            name: len(value)
            for name, value in answer.items()
            if isinstance(value, (list, tuple, dict)) and name != "diff"
        }
        small = {
            name: value
            for name, value in answer.items()
            if name in shown or name in keep or not isinstance(value, (list, tuple, dict))
        }
        return {**small, "counts": counts}

    run(module, kept)


def list_nodes(module: AnsibleModule) -> tuple[str, ...]:
    """Return the nodes on which the module works: the nodes of the option ``nodes``, or all nodes of the run, without
    those of the option ``excluded``.

    :raises RdmaError: the option is empty and there is no run
    """
    excluded = set(module.params.get("excluded") or ())
    return tuple(node for node in _list_all_nodes(module) if node not in excluded)


def list_excluded_nodes(module: AnsibleModule) -> tuple[str, ...]:
    """Return the nodes of the option ``excluded``, on which the module would work otherwise.

    :raises RdmaError: the option ``nodes`` is empty and there is no run
    """
    excluded = set(module.params.get("excluded") or ())
    return tuple(node for node in _list_all_nodes(module) if node in excluded)


def _list_all_nodes(module: AnsibleModule) -> tuple[str, ...]:
    if module.params["nodes"]:
        return tuple(module.params["nodes"])
    folder = find_folder(module)
    if folder is None:
        raise RdmaError("nodes is empty, and facts_dir and run are not set", "List the nodes in the option nodes")
    return folder.start().nodes


def find_rails(module: AnsibleModule, intent: Intent) -> Rails:
    """Return the number of the rail of each HCA, by fabric, node and PCI address, from the option ``rails``. If the
    option is empty, the rails are determined from the facts of the run. Without a run the result is empty.
    """
    folder = find_folder(module)
    if module.params["rails"] or folder is None:
        given: Rails = load(Rails, module.params["rails"], "rails")
        return given
    return list_rails(intent, read_answers(folder))


def get_objects(module: AnsibleModule, *parts: str) -> list[Result]:
    """Return the Kubernetes objects to apply, as mappings with ``object`` and the name of its ``fabric``. They come
    from the option ``objects``, or, if ``objects_from`` is set, from the fact of this kind that network_objects has
    stored.

    :param parts: parts of the fact to read: ``hosts``, ``objects``
    :raises RdmaError: the option objects_from is set without facts_dir and run
    """
    folder, kind = find_folder(module), module.params["objects_from"]
    if not kind:
        return list(module.params["objects"])
    if folder is None:
        raise RdmaError(
            "objects_from is set without facts_dir and run",
            "Set facts_dir and run, or set objects instead of objects_from",
        )
    return [item for part in parts for item in read_value(folder, kind, part)]


class NicUses(typing.NamedTuple):
    """The use of NICs by the nodes themselves, such as for the address of the node.

    :ivar functions: description of the use of physical functions, by node and by interface or PCI address
    :ivar driven: description of the use of NICs whose driver NVIDIA's network operator replaces, by node and by
        interface; None if the use of NICs is unknown
    :ivar uppers: names of the interfaces above the physical functions, by node and by PCI address
    """

    functions: dict[str, dict[str, str]]
    driven: typing.Optional[dict[str, dict[str, str]]]
    uppers: dict[str, dict[str, tuple[str, ...]]]


def read_nics_in_use(module: AnsibleModule) -> NicUses:
    """Return the use of NICs by the nodes themselves, from the fact that network_objects has stored in this run. The
    use is unknown if the option ``objects_from`` does not name this fact.
    """
    folder, kind = find_folder(module), module.params["objects_from"]
    return _parse_nic_uses(folder.value(kind) if kind and folder is not None else None)


def read_last_nics_in_use(report_dir: typing.Optional[str]) -> NicUses:
    """Return the use of NICs by the nodes themselves, from the newest run in a report folder that had stage network.
    The use is unknown if the folder has no such run, or if the fact of that run cannot be read.

    :param report_dir: report folder of the stages; None if there is none
    """
    try:
        for path in _list_run_folders(report_dir) if report_dir else ():
            start = read_start(path)
            folder = FactFolder(path, start.run) if start else None
            # a fact that cannot be read does not make an older one true
            if folder is not None and os.path.lexists(folder.path("network_objects")):
                found = folder.read("network_objects")
                if found is not None:
                    return _parse_nic_uses(found.value)
    except RdmaError:
        return NicUses({}, None, {})
    return NicUses({}, None, {})


def _list_run_folders(report_dir: str) -> typing.Iterator[str]:
    """Yield the folder of the last run and those of the kept runs, the newest first.

    :param report_dir: report folder of the stages
    :raises FileError: the folder of the kept runs cannot be read
    """
    yield report_dir
    yield from (find_run_folder(report_dir, name) for name in reversed(list_kept(report_dir)))


def _parse_nic_uses(fact: typing.Any) -> NicUses:
    if not isinstance(fact, dict):
        return NicUses({}, None, {})
    functions, driven = (
        load(dict[str, dict[str, str]], fact.get(key) or {}, "network_objects") for key in ("in_use", "driven")
    )
    uppers = load(dict[str, dict[str, tuple[str, ...]]], fact.get("uppers") or {}, "network_objects")
    return NicUses(functions, driven, uppers)


def read_observers(folder: typing.Optional[FactFolder]) -> typing.Optional[ObserversFacts]:
    """Return the observers of the run. Return None if the run has none or could not start them, or if there is no run.
    The measurement then runs without observers.

    :param folder: fact folder of the run; None if the module does not belong to a run
    """
    try:
        fact = folder.value("observers") if folder is not None else None
    except FileError:
        return None
    if fact is None:
        return None
    return load_observers(fact)
