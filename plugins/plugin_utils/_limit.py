# SPDX-License-Identifier: GPL-3.0-or-later

"""Refuse changes of nodes that the option ``--limit`` of ansible-playbook excludes, and start no pod on them. Ansible
applies it to the hosts of a play. The plays that change nodes through a BMC or an operator, or that start pods, have
localhost as their only host.
"""

from __future__ import annotations

import typing

from ansible import context
from ansible.inventory.manager import InventoryManager
from ansible.plugins.action import ActionBase

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.text import join_first
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder
from ansible_collections.linerate.rdma.plugins.plugin_utils._unforeseen import guard_action

#: nodes that are named
_NAMED = 5


class LimitError(RdmaError):
    """The error that ``--limit`` excludes nodes that would change."""


def list_excluded(
    loader: typing.Any, groups: typing.Mapping[str, typing.Sequence[str]], nodes: typing.Iterable[str]
) -> list[str]:
    """Return those of the nodes that ``--limit`` excludes, in the given order. The result is empty without ``--limit``.

    :param loader: data loader of the task
    :param groups: magic variable ``groups`` of Ansible, which ignores ``--limit``
    :param nodes: names of the nodes to examine
    """
    subset = context.CLIARGS.get("subset")
    if not subset:
        return []
    # in the same way as the lookup plugin inventory_hostnames of ansible-core
    manager = InventoryManager(loader, parse=False)
    for group, hosts in groups.items():
        manager.add_group(group)
        for host in hosts:
            manager.add_host(host, group=group)
    manager.subset(subset)
    chosen = {str(host.name) for host in manager.get_hosts("all")}
    return [node for node in nodes if node not in chosen]


def refuse_limit(
    loader: typing.Any, groups: typing.Mapping[str, typing.Sequence[str]], nodes: typing.Iterable[str], part: str
) -> None:
    """Raise an error if ``--limit`` excludes some of the nodes of the run. A stage or a teardown that calls this
    changes all nodes of the run, since it plans together which nodes may be unavailable at the same time, and in which
    order. It must be called before the first write, because the message states that nothing was changed.

    :param loader: data loader of the task
    :param groups: magic variable ``groups`` of Ansible, which ignores ``--limit``
    :param nodes: names of the nodes of the run
    :param part: subject of the message, such as ``stage platform`` or ``the teardown``
    :raises LimitError: at least one of the nodes is excluded
    """
    excluded = list_excluded(loader, groups, nodes)
    if excluded:
        names = join_first(excluded, _NAMED)
        raise LimitError(
            f"--limit excludes {len(excluded)} of the nodes that {part} would change: {names}. Nothing was changed",
            f"Select the nodes in the inventory (group rdma_nodes), then run {part} again without --limit",
        )


def find_limit(action: ActionBase, variables: typing.Mapping[str, typing.Any], part: str) -> typing.Optional[RdmaError]:
    """Return the error that :func:`refuse_limit` would raise for the task of an action plugin with the options
    ``facts_dir`` and ``run``. Return None if ``--limit`` excludes no node of the run, in check mode, and if the task
    names no run.

    :param action: action plugin of the task
    :param variables: variables of the task, with ``groups``
    :param part: subject of the message, such as ``stage platform``
    :raises RdmaError: the start record of the run cannot be read, so its nodes are unknown
    """
    folder, run = action._task.args.get("facts_dir"), action._task.args.get("run")
    if action._task.check_mode or not context.CLIARGS.get("subset") or not folder or not run:
        return None
    nodes = FactFolder(folder, run).start().nodes
    try:
        refuse_limit(action._loader, variables.get("groups", {}), nodes, part)
    except LimitError as error:
        return error
    return None


def find_excluded(action: ActionBase, variables: typing.Mapping[str, typing.Any]) -> list[str]:
    """Return the nodes that ``--limit`` excludes from the nodes of a task. These are the nodes of its option ``nodes``,
    or, if that is empty, all nodes of the run of the options ``facts_dir`` and ``run``.

    :param action: action plugin of the task
    :param variables: variables of the task, with ``groups``
    :raises RdmaError: the run was not begun in this folder
    """
    options = action._task.args
    if not context.CLIARGS.get("subset"):
        return []
    nodes: typing.Sequence[str] = options.get("nodes") or ()
    if not nodes and options.get("facts_dir") and options.get("run"):
        nodes = FactFolder(options["facts_dir"], options["run"]).start().nodes
    return list_excluded(action._loader, variables.get("groups", {}), nodes)


def add_excluded(
    action: ActionBase, variables: typing.Mapping[str, typing.Any], options: typing.Mapping[str, typing.Any]
) -> dict[str, typing.Any]:
    """Return the options of a module with the option ``excluded``: the nodes that the task names there, and the nodes
    that ``--limit`` excludes. If there are no such nodes, the options are returned unchanged.

    :param action: action plugin of the task
    :param variables: variables of the task, with ``groups``
    :param options: options of the module
    :raises RdmaError: the run was not begun in this folder
    """
    excluded = dict.fromkeys((*(options.get("excluded") or ()), *find_excluded(action, variables)))
    return {**options, "excluded": list(excluded)} if excluded else dict(options)


class LimitedAction(ActionBase):
    """The base class of the action plugin of a module with the option ``excluded`` and without a progress file. The
    plugin adds the nodes that ``--limit`` excludes to this option, because a module does not know ``--limit``.
    """

    TRANSFERS_FILES = False
    _supports_async = True
    #: full name of the module
    MODULE = ""

    @guard_action
    def run(
        self, tmp: typing.Optional[str] = None, task_vars: typing.Optional[dict[str, typing.Any]] = None
    ) -> dict[str, typing.Any]:
        result: dict[str, typing.Any] = super().run(tmp, task_vars)
        options = add_excluded(self, task_vars or {}, self._task.args)
        return {**result, **self._execute_module(module_name=self.MODULE, module_args=options, task_vars=task_vars)}
