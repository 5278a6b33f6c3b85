# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""Read the BMCs of nodes from the inventory, in the process of ansible-playbook. Addresses and credentials are never
arguments of a module.
"""

from __future__ import annotations

import typing

from ansible.errors import AnsibleError

from ansible_collections.linerate.rdma.plugins.module_utils._ansible.bmc_modules import OF_NODE, read_bmc_of_node
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.identity import Identity
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.platform import ObservedPlatform
from ansible_collections.linerate.rdma.plugins.module_utils._observe.redfish.bmc import Bmc
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder


def list_bmcs_of_nodes(
    nodes: typing.Iterable[str], variables: typing.Mapping[str, typing.Any]
) -> tuple[list[Bmc], dict[str, RdmaError]]:
    """Return two results: the BMCs of the nodes that have a BMC address in the inventory, and by node the error of each
    node whose variables are invalid. Nodes without an address are in neither.

    :param variables: variables of the host for which the task runs, with ``hostvars``
    """
    bmcs: list[Bmc] = []
    errors: dict[str, RdmaError] = {}
    for node in nodes:
        try:
            told = _read_bmc_variables(node, variables.get("hostvars", {}).get(node, {}))
            bmcs += [read_bmc_of_node(node, told)] if told.get("address") else []
        except RdmaError as error:
            errors[node] = error
    return bmcs, errors


def read_identities(folder: FactFolder, nodes: typing.Iterable[str]) -> dict[str, Identity]:
    """Return the identity (UUID and serial numbers) of each node according to its DMI tables, as this run has read them
    on the node. Nodes without such a fact are left out.
    """
    facts = {
        node: load(ObservedPlatform, data, f"platform of {node}")
        for node, data in folder.of_nodes("platform", nodes).items()
    }
    return {node: fact.value.identity for node, fact in facts.items() if fact.value is not None and fact.error is None}


def _read_bmc_variables(node: str, variables: typing.Mapping[str, typing.Any]) -> dict[str, typing.Any]:
    """Return the variables of a node's BMC in the inventory, as texts by name without the prefix ``rdma_bmc_``. A
    variable that is not set is None. Without an address, nothing but the empty address is returned, so that an unneeded
    secret is not decrypted.

    :raises RdmaError: a variable cannot be read, such as a vaulted one without the password of the vault
    """
    found: dict[str, typing.Any] = {}
    for name in OF_NODE:
        variable = f"rdma_bmc_{name}"
        try:
            # text at once: an undefined value says so only when it is used
            value = variables.get(variable)
            found[name] = None if value is None else str(value)
        except AnsibleError as error:
            seen = f"{node}: the variable {variable} could not be read ({type(error).__name__})"
            raise RdmaError(
                seen, f"Examine the variable: ansible-inventory --host {node}; provide the password of its vault"
            ) from None
        if name == "address" and not found["address"]:
            break
    return found
