# SPDX-License-Identifier: GPL-3.0-or-later

"""Check each fabric of the intent: its names, how it selects HCAs, and its numbers. Check ids: ``validate.names``,
``validate.select``, ``validate.numbers``."""

from __future__ import annotations

import operator
import re
import typing

from ..._model.base.phrases import count_of
from ..._model.base.rules import run_rule, run_rules
from ..._model.intent.intent import Fabric, Intent
from ..._model.intent.profiles import count_pods_on_a_node, find_traits
from ..._model.kubernetes.measuring import NAMESPACE as MEASURING
from ..._model.run.findings import Finding, build_pass
from . import profile_keys
from .cluster import _LABEL
from .line_rate import check_line_rate
from .measuring_pods import check_pods
from .refusal import check_range, refuse_value

# the operator's webhook up to v1.6 takes letters, digits and underscores; later ones want a letter or digit at both
# ends
_RESOURCE = re.compile(r"[a-zA-Z0-9]([a-zA-Z0-9_]*[a-zA-Z0-9])?")
_PCI = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_GUID = re.compile(r"0x[0-9a-f]{16}")
_PCI_ID = re.compile(r"[0-9a-f]{4}")

#: ports of a switch of InfiniBand are numbered in 8 bits
_MOST_UPLINKS = 254
# the Mellanox plugin of the operator raises NUM_OF_VFS up to this; no other NIC that it knows has more
_MOST_VIRTUAL_FUNCTIONS = 128


def check_fabrics(intent: Intent) -> typing.Iterator[Finding]:
    """Check each fabric of the intent: its names, its selection of HCAs, its numbers, its line rate, and its measuring
    pods (pods that measure the bandwidth).
    """
    rules = (profile_keys.check, _check_names, _check_select, _check_numbers, check_line_rate, check_pods)
    for index, fabric in enumerate(intent.fabrics):
        yield from run_rules(rules, fabric, f"rdma_fabrics[{index}]")


def _check_names(fabric: Fabric, path: str) -> list[Finding]:
    findings = run_rule(_check_resource, fabric, path)
    for what in ("name", "network.namespace", "network.name", "pool.name", "pool.namespace"):
        findings += run_rule(_check_object_name, fabric, path, what)
    return findings or [
        build_pass("validate.names", path, "all valid", "names that the API server and the operator's webhook accept")
    ]


def _check_resource(fabric: Fabric, path: str) -> typing.Iterator[Finding]:
    if fabric.resource_name and (not _RESOURCE.fullmatch(fabric.resource_name) or len(fabric.resource_name) > 63):
        why = (
            "The webhook of the SR-IOV operator and the device plugins reject this name. Operator releases up to 1.6"
            " and the operator of OpenShift reject a hyphen."
        )
        expected = "up to 63 letters, digits and underscores, with a letter or digit at both ends"
        yield refuse_value(
            "names",
            f"{path}.resource_name",
            f"'{fabric.resource_name}'",
            expected,
            why,
            f"Set {path}.resource_name to a name of this form, for example mlx_compute instead of mlx-compute.",
        )


def _check_object_name(fabric: Fabric, path: str, what: str) -> typing.Iterator[Finding]:
    of_pool = what.startswith("pool.")
    if of_pool and fabric.pool is None:
        return
    name = operator.attrgetter(what)(fabric)
    if what == "network.name" and not name:
        # whether the profile does without is validate.profile's to say
        return
    if what == "network.namespace" and name == MEASURING:
        why = (
            "This namespace is reserved for the measuring pods. A run deletes the namespace with all objects in it, and"
            " tenants must have no rights in it."
        )
        yield refuse_value(
            "names",
            f"{path}.{what}",
            f"'{name}'",
            f"a namespace other than '{MEASURING}'",
            why,
            f"Set {path}.{what} to a different namespace.",
        )
    if not _LABEL.fullmatch(name) or len(name) > 63:
        expected = "up to 63 lower-case letters, digits and hyphens, with a letter or digit at both ends"
        why = "This value becomes the name of a Kubernetes object, and the API server would reject this name."
        yield refuse_value(
            "names",
            f"{path}.ipam.{what}" if of_pool else f"{path}.{what}",
            f"'{name}'",
            expected,
            why,
            f"Set {path}.{'ipam.' if of_pool else ''}{what} to a name of this form.",
        )


def _check_select(fabric: Fabric, path: str) -> list[Finding]:
    if not find_traits(fabric).members:
        return []
    path = f"{path}.select"
    findings = run_rules(
        (
            _check_subnet_manager,
            _check_selector,
            _check_pci_addresses,
            _check_vendor,
            _check_device,
            _check_enough_addresses,
            _check_enough_names,
        ),
        fabric,
        path,
    )
    return findings or [
        build_pass("validate.select", path, "usable", f"a selection of HCAs that profile {fabric.profile} supports")
    ]


def _check_subnet_manager(fabric: Fabric, path: str) -> typing.Iterator[Finding]:
    managers = fabric.select.subnet_manager
    if managers and find_traits(fabric).link == "Ethernet":
        why = f"The profile {fabric.profile} uses Ethernet, and Ethernet has no subnet manager."
        remedy = f"Remove {path}.subnet_manager, and select the NICs by pci, by netdev, or by vendor and device."
        yield refuse_value("select", f"{path}.subnet_manager", ", ".join(managers), "no subnet_manager", why, remedy)
    elif managers != ("any",):
        for index, guid in enumerate(managers):
            if not _GUID.fullmatch(guid):
                why = (
                    "The run identifies a subnet manager by the GUID of its port, in the form that sminfo"
                    " prints, and finds none with this value."
                )
                expected = "only 'any', or 0x and 16 lower-case hex digits"
                remedy = "Run sminfo on a node, and copy the value of 'sm guid' with its leading zeros."
                place = f"{path}.subnet_manager" + (f"[{index}]" if len(managers) > 1 else "")
                yield refuse_value("select", place, f"'{guid}'", expected, why, remedy)


def _check_selector(fabric: Fabric, path: str) -> typing.Iterator[Finding]:
    select = fabric.select
    if not (select.subnet_manager or select.pci or select.netdev or select.vendor or select.device):
        why = "The intent does not specify which HCAs of a node belong to this fabric."
        ethernet = find_traits(fabric).link == "Ethernet"
        expected = (
            "pci, netdev, or vendor and device" if ethernet else "subnet_manager, pci, netdev, or vendor and device"
        )
        yield refuse_value(
            "select",
            path,
            "only hcas_per_node",
            expected,
            why,
            (
                f"Add one of these selectors to {path}."
                + ("" if ethernet else " For InfiniBand, 'subnet_manager: any' is the simplest.")
            ),
        )


def _check_pci_addresses(fabric: Fabric, path: str) -> typing.Iterator[Finding]:
    for index, address in enumerate(fabric.select.pci):
        if not _PCI.fullmatch(address):
            why = (
                "The run compares this text with the PCI addresses that the kernel reports, so another form"
                " matches no HCA."
            )
            remedy = "Copy the address from the output of 'lspci -D' on the node, in lower case."
            yield refuse_value(
                "select", f"{path}.pci[{index}]", f"'{address}'", "dddd:bb:dd.f, such as 0000:3c:00.0", why, remedy
            )


def _check_vendor(fabric: Fabric, path: str) -> typing.Iterator[Finding]:
    yield from _check_pci_id(f"{path}.vendor", fabric.select.vendor)


def _check_device(fabric: Fabric, path: str) -> typing.Iterator[Finding]:
    yield from _check_pci_id(f"{path}.device", fabric.select.device)


def _check_pci_id(place: str, value: typing.Optional[str]) -> typing.Iterator[Finding]:
    if value is not None and not _PCI_ID.fullmatch(value):
        expected = "four lower-case hex digits in quotes, such as '15b3'"
        yield refuse_value(
            "select",
            place,
            f"'{value}'",
            expected,
            "The run compares this text with the PCI IDs that the kernel reports, so another form matches no device.",
            f"Set {place} to the ID in the output of 'lspci -nn' on the node.",
        )


def _check_enough_addresses(fabric: Fabric, path: str) -> typing.Iterator[Finding]:
    yield from _check_enough(fabric, f"{path}.pci", fabric.select.pci)


def _check_enough_names(fabric: Fabric, path: str) -> typing.Iterator[Finding]:
    yield from _check_enough(fabric, f"{path}.netdev", fabric.select.netdev)


def _check_enough(fabric: Fabric, place: str, items: tuple[str, ...]) -> typing.Iterator[Finding]:
    # a list of PCI addresses may be longer than one node's share, since nodes may differ; a shorter one can never be
    # enough
    if items and len(set(items)) < fabric.select.hcas_per_node:
        why = "A node cannot have more HCAs on this fabric than the list contains."
        remedy = "Add the missing HCAs to the list, or lower hcas_per_node."
        yield refuse_value(
            "select",
            place,
            f"{count_of(len(set(items)), 'HCA')} listed",
            f"at least {count_of(fabric.select.hcas_per_node, 'HCA')}, as in hcas_per_node",
            why,
            remedy,
        )


def _check_numbers(fabric: Fabric, path: str) -> list[Finding]:
    findings = run_rules((_check_hca_count, _check_functions, _check_mtu, _check_uplinks), fabric, path)
    return findings or [
        build_pass(
            "validate.numbers",
            path,
            f"{count_of(fabric.select.hcas_per_node, 'HCA')}, {count_of(count_pods_on_a_node(fabric), 'pod')} per node",
            "numbers that an HCA supports",
        )
    ]


def _check_hca_count(fabric: Fabric, path: str) -> typing.Iterator[Finding]:
    if find_traits(fabric).members:
        yield from check_range(f"{path}.select.hcas_per_node", fabric.select.hcas_per_node, 1, 64, "HCAs")


def _check_functions(fabric: Fabric, path: str) -> typing.Iterator[Finding]:
    # that there must be some is validate.profile's to say
    if find_traits(fabric).functions and fabric.virtual_functions:
        yield from check_range(
            f"{path}.virtual_functions",
            fabric.virtual_functions,
            1,
            _MOST_VIRTUAL_FUNCTIONS,
            "VFs per physical function",
        )


def _check_mtu(fabric: Fabric, path: str) -> typing.Iterator[Finding]:
    if fabric.mtu is not None:
        yield from check_range(f"{path}.mtu", fabric.mtu, 576, 65520, "bytes")


def _check_uplinks(fabric: Fabric, path: str) -> typing.Iterator[Finding]:
    if fabric.uplinks is not None and not 1 <= fabric.uplinks <= _MOST_UPLINKS:
        why = (
            "No switch has this many ports for uplinks, and a leaf switch without uplinks is connected to no other"
            " switch."
        )
        remedy = (
            f"Set {path}.uplinks to the number of links from each leaf switch to other switches. If one switch"
            " connects all nodes, remove the key."
        )
        yield refuse_value(
            "numbers", f"{path}.uplinks", count_of(fabric.uplinks, "link"), f"1 to {_MOST_UPLINKS} links", why, remedy
        )
