# SPDX-License-Identifier: GPL-3.0-or-later

"""Find the nodes that ``--limit`` excludes. Ansible applies it to the hosts of a play, and the plays that reset nodes
have localhost as their only host.
"""

from __future__ import annotations

import typing

from ansible import context
from ansible.inventory.manager import InventoryManager


def list_left_out(
    loader: typing.Any, groups: typing.Mapping[str, typing.Sequence[str]], names: typing.Iterable[str]
) -> tuple[str, ...]:
    """Return those of the hosts that ``--limit`` excludes, in their order.

    :param loader: data loader of the task
    :param groups: magic variable ``groups`` of Ansible, which ignores ``--limit``
    :param names: names of hosts of the inventory
    """
    subset = context.CLIARGS.get("subset")
    if not subset:
        return ()
    # in the same way as the lookup plugin inventory_hostnames of ansible-core
    manager = InventoryManager(loader, parse=False)
    for group, hosts in groups.items():
        manager.add_group(group)
        for host in hosts:
            manager.add_host(host, group=group)
    manager.subset(subset)
    left = {host.name for host in manager.get_hosts("all")}
    return tuple(name for name in names if name not in left)
