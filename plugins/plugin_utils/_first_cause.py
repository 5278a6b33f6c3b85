# SPDX-License-Identifier: GPL-3.0-or-later

"""Stores the reasons why a source of the inventory gave no nodes. Ansible only warns about them and continues.
Tasks can read the reasons, since their processes are forked from the process that read the inventory.
"""

from __future__ import annotations

import os
import typing

#: inventory of Ansible if the user gives none
_UNASKED = "/etc/ansible/hosts"


class FirstCause(typing.NamedTuple):
    """The reason why a source of the inventory has no nodes.

    :ivar text: the reason, as a sentence; empty if no reason is known
    :ivar kind: ``library`` if the Kubernetes client is not installed, ``api_server`` if the API server gave no usable
        answer; otherwise empty
    :ivar where: source of the credentials and address of the API server, without secrets; empty unless ``kind`` is
        ``api_server``
    """

    text: str = ""
    kind: str = ""
    where: str = ""


#: in the order in which they came
_causes: list[FirstCause] = []


def note_cause(cause: FirstCause) -> None:
    """Store a reason why a source of the inventory has no nodes."""
    _causes.append(cause)


def get_first() -> FirstCause:
    """Return the first stored reason why a source of the inventory has no nodes. Return a reason with an empty text if
    none is stored.
    """
    return _causes[0] if _causes else FirstCause()


def find_cause(sources: typing.Any) -> FirstCause:
    """Return the reason why a source of the inventory has no nodes: the first stored reason, or else the inventory
    files that do not exist. Ansible only warns about a missing file, and continues with the nodes of the other sources,
    or with an implicit localhost. Return a reason with an empty text if neither is known.

    :param sources: value of ``ansible_inventory_sources``: files, folders, and lists of hosts, which contain a comma
    """
    stored = get_first()
    if stored.text or not isinstance(sources, (list, tuple)):
        return stored
    given = [str(source) for source in sources if source != _UNASKED and "," not in str(source)]
    missing = [source for source in given if not os.path.exists(source)]
    if not missing:
        return stored
    files = " and ".join(missing)
    return FirstCause(
        f"the inventory {'files' if len(missing) > 1 else 'file'} {files} {'do' if len(missing) > 1 else 'does'} not"
        " exist. Give the file that contains the group rdma_nodes (-i FILE)"
    )
