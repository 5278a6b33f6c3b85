# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""Read the firmware facts of a run from its folder, for the plan of the settings and for the resets of nodes."""

from __future__ import annotations

import typing

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.hcas_of_fabric import (
    Membership,
    resolve_members,
)
from ansible_collections.linerate.rdma.plugins.module_utils._app.folder import read_answers
from ansible_collections.linerate.rdma.plugins.module_utils._check.platform.firmware_fleet import Fleet, collect_fleet
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load import load
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.profiles import find_traits
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.firmware import NicDevices, ObservedFirmware
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.platform import ObservedPlatform
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import parse_intent
from ansible_collections.linerate.rdma.plugins.module_utils._store.facts import FactFolder


class Known(typing.NamedTuple):
    """The facts of a run from which firmware changes are planned.

    :ivar memberships: for each fabric with VFs, the HCAs that belong to it
    :ivar platforms: observed platform of each node, by node name
    :ivar fleet: firmware settings of all nodes, with the intent
    :ivar nics: NicDevices of NVIDIA's NIC configuration operator
    """

    memberships: tuple[Membership, ...]
    platforms: dict[str, ObservedPlatform]
    fleet: Fleet
    nics: NicDevices


def read_firmware_facts(
    folder: FactFolder, nodes: typing.Iterable[str], fabrics: typing.Any, cluster: typing.Any
) -> Known:
    """Return the firmware facts of the run: the HCAs of each fabric with virtual functions, their platform, their
    firmware settings, and the NicDevices.

    :param nodes: names of the nodes whose facts are read
    :param fabrics: the variable rdma_fabrics
    :param cluster: the variable rdma_cluster
    :raises RdmaError: the intent is invalid, or no node was observed
    """
    named = tuple(nodes)
    intent, answers = parse_intent(fabrics, None, cluster), read_answers(folder)
    memberships = tuple(
        resolve_members(fabric, answers.hcas, answers.subnets)
        for fabric in intent.fabrics
        if find_traits(fabric).functions
    )
    firmware = load(dict[str, ObservedFirmware], folder.of_nodes("firmware", named), "firmware")
    platforms = load(dict[str, ObservedPlatform], folder.of_nodes("platform", named), "platform")
    nics: NicDevices = load(NicDevices, (folder.value("nic_devices") or {}).get("nics") or {}, "nic_devices")
    return Known(memberships, platforms, collect_fleet(intent, memberships, firmware, nics), nics)
