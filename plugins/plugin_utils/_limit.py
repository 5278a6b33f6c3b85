# SPDX-License-Identifier: GPL-3.0-or-later

"""Refuse changes of nodes that the option ``--limit`` of ansible-playbook excludes. Ansible applies it to the hosts of
a play, and the plays that change nodes through a BMC or an operator have localhost as their only host.
"""

from __future__ import annotations

import typing

from ansible import context
from ansible.inventory.manager import InventoryManager
from ansible.plugins.action import ActionBase

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.text import join_first
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder

#: nodes that are named
_NAMED = 5


def refuse_limit(
    loader: typing.Any, groups: typing.Mapping[str, typing.Sequence[str]], nodes: typing.Iterable[str], part: str
) -> None:
    """Raise an error if ``--limit`` excludes some of the nodes that a stage or a teardown changes. These are all nodes
    of the run, because it plans them together: which of them may be away at the same time, and in which order. Call it
    before the first write, because the message states that nothing was changed.

    :param loader: data loader of the task
    :param groups: magic variable ``groups`` of Ansible, which ignores ``--limit``
    :param nodes: names of the nodes of the run
    :param part: subject of the message, such as ``stage platform`` or ``the teardown``
    :raises RdmaError: at least one of the nodes is excluded
    """
    subset = context.CLIARGS.get("subset")
    if not subset:
        return
    # in the same way as the lookup plugin inventory_hostnames of ansible-core
    manager = InventoryManager(loader, parse=False)
    for group, hosts in groups.items():
        manager.add_group(group)
        for host in hosts:
            manager.add_host(host, group=group)
    manager.subset(subset)
    chosen = {str(host.name) for host in manager.get_hosts("all")}
    excluded = [node for node in nodes if node not in chosen]
    if excluded:
        names = join_first(excluded, _NAMED)
        raise RdmaError(
            f"--limit excludes {len(excluded)} of the nodes that {part} would change: {names}. Nothing was changed",
            f"Select the nodes in the inventory (group rdma_nodes), then run {part} again without --limit",
        )


def find_limit(action: ActionBase, variables: typing.Mapping[str, typing.Any], part: str) -> typing.Optional[RdmaError]:
    """Return the error of ``refuse_limit`` for the task of an action plugin with the options ``facts_dir`` and ``run``.
    Return None if ``--limit`` excludes no node of the run, in check mode, and without a run.

    :param action: action plugin of the task
    :param variables: variables of the task, with ``groups``
    :param part: subject of the message, such as ``stage platform``
    """
    folder, run = action._task.args.get("facts_dir"), action._task.args.get("run")
    if action._task.check_mode or not context.CLIARGS.get("subset") or not folder or not run:
        return None
    try:
        refuse_limit(action._loader, variables.get("groups", {}), FactFolder(folder, run).start().nodes, part)
    except RdmaError as error:
        return error
    return None
