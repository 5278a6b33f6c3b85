# SPDX-License-Identifier: GPL-3.0-or-later

"""The meaning of the intent, across its fields; it needs no host and no cluster. And what the controller has for the
stages (controller.py).

Its shape (types, unknown keys) was checked when it was loaded, see _parse/intent.py. Check ids: ``validate.*``.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import re
import typing

from ..._model.archive import VARIABLE, ArchiveFacts
from ..._model.boundary.fabric import GBPS
from ..._model.controller import ControllerFacts
from ..._model.findings import FAIL, MOST_PATTERN, PASS, WARN, Finding, Waiver, matches, never_waived, ok
from ..._model.host_intent import HostNeeds, Kubelet, Memlock
from ..._model.intent import ClusterIntent, Fabric, Intent, LineRate
from ..._model.load import Hints, LoadError, nearest
from ..._model.measuring import NAMESPACE as MEASURING
from ..._model.mirror import EVERYTHING
from ..._model.profiles import pods_on_a_node, traits
from ..._model.public_names import ROLE_VARIABLES
from ..._model.told import told, told_by
from ..._model.variables import RDMA_VARIABLES, meant
from ..._model.variables import expected as expected_of
from ..addresses import arithmetic as ranges
from ..collectives.wanted import find_mistakes
from ..compare import check as compare
from ..ids import CHECKS
from . import conflicts, controller, images, operators, pod_security, powers, profile_keys, tuning
from .shape import cause_of

#: variables that the collection reads from the inventory, beside the options of its roles
VARIABLES = tuple(RDMA_VARIABLES)

#: of line_rate: what a floor is made of at least, and below which a reason is needed. No HCA has a port of less than 10
#: Gb/s; software RDMA may
_LEAST_FRACTION, _LOW_FRACTION = 0.05, 0.8
_LEAST_RATE, _LOW_RATE = 1.0, 10.0

# the operator's webhook up to v1.6 takes letters, digits and underscores; later ones want a letter or digit at both
# ends
_RESOURCE = re.compile(r"[a-zA-Z0-9]([a-zA-Z0-9_]*[a-zA-Z0-9])?")
# RFC 1123 label: what Kubernetes takes as the name of an object and of a namespace
_RELEASE = re.compile(r"v\d+\.\d+\.\d+(-[a-z]+\.\d+)?", re.ASCII)
# a host with a dot, a port, or localhost, as in the name of an image; and what is below it
_PLACE = re.compile(
    r"(localhost|[a-z0-9-]+(\.[a-z0-9-]+)+|[a-z0-9.-]+(?=:))(:\d{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*", re.ASCII
)
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_PCI = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_GUID = re.compile(r"0x[0-9a-f]{16}")
_CPUS = re.compile(r"\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*", re.ASCII)
# a step of a path: a key, or an index
_STEP = re.compile(r"([^.\[\]]+)|\[(\d{1,9})\]", re.ASCII)
_PCI_ID = re.compile(r"[0-9a-f]{4}")

#: ports of a switch of InfiniBand are numbered in 8 bits
_MOST_UPLINKS = 254
# the Mellanox plugin of the operator raises NUM_OF_VFS up to this; no other NIC that it knows has more
_MOST_VIRTUAL_FUNCTIONS = 128


@dataclasses.dataclass(frozen=True)
class Facts:
    """What the check needs besides the intent.

    :ivar nodes: names of the inventory's group ``rdma_nodes``
    :ivar variables: names of all variables that start with ``rdma_``, and of those that look like a misspelt one of a
        role
    :ivar mistyped: values of public variables that these can't have, by variable
    :ivar origins: file and line in which the user wrote a variable or a part of it, by its path
    :ivar inventory_error: why the inventory gave no nodes, in its own words; empty where nobody knows
    :ivar controller: answer of controller_info; None where a stage that runs alone judges the intent
    :ivar archive: whether the archive of the report can go where it shall; None where it goes nowhere, or a stage that
        runs alone judges the intent
    :ivar images: that variables name beside those of the intent, by variable
    :ivar strict_images: whether an image may be named by its digest alone
    """

    nodes: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    controller: typing.Optional[ControllerFacts] = None
    archive: typing.Optional[ArchiveFacts] = None
    images: dict[str, str] = dataclasses.field(default_factory=dict)
    strict_images: bool = False
    mistyped: dict[str, str] = dataclasses.field(default_factory=dict)
    origins: dict[str, str] = dataclasses.field(default_factory=dict)
    inventory_error: str = ""


def check(intent: Intent, facts: Facts) -> tuple[Finding, ...]:
    """Judge the meaning of the intent. One finding at least for each fabric, waiver and for the inventory, unless a
    part of it could not be read."""
    findings = told(_read, intent)
    findings += _check_nodes(facts.nodes, facts.inventory_error)
    findings += _check_variables(facts.variables, facts.mistyped)
    findings += told(_check_fabrics, intent)
    findings += conflicts.check(intent)
    findings += told(ranges.check, intent, facts.nodes)
    findings += told(_check_cluster, intent)
    findings += told(_check_host, intent)
    findings += told(tuning.check, intent)
    findings += told(pod_security.check, intent)
    findings += told(_check_measures, intent)
    findings += told(_check_collectives, intent)
    findings += told(_check_waivers, intent)
    findings += told(operators.check, intent)
    findings += told(powers.check, intent)
    findings += told(images.check, intent, facts.images, facts.strict_images)
    return (*findings, *controller.check(intent, facts.controller), *_check_archive(facts.archive))


def mistakes(problems: typing.Sequence[LoadError], intent: Intent, facts: Facts) -> tuple[Finding, ...]:
    """Findings for an intent that could not be loaded: what is wrong in its shape, and what is wrong all the same in
    the rest of it.

    :param intent: the part that could be read
    """
    # which rights are needed is not known, so none of them was asked for
    rest = [
        finding for finding in check(intent, facts) if finding.status != PASS and finding.check != "validate.rights"
    ]
    places = {problem.path for problem in problems}
    return (*refuse(problems), *(finding for finding in rest if finding.subject not in places))


def in_order(
    findings: typing.Iterable[Finding],
    variables: typing.Mapping[str, typing.Any],
    origins: typing.Optional[typing.Mapping[str, str]] = None,
) -> tuple[Finding, ...]:
    """Findings in the order in which the user wrote what they are about; a key that is not there stands behind its
    mapping's others.

    The remedy of one that is no pass ends with the file and the line in which that was written, where they are known.

    What is about no place in the variables keeps its order: the intent and the inventory first, what several fabrics
    share and the controller last.

    :param variables: the user's variables by name, as they came
    :param origins: file and line of a variable or a part of it, by its path
    """
    return tuple(
        sorted((_placed(finding, origins or {}) for finding in findings), key=functools.partial(_position, variables))
    )


def _placed(finding: Finding, origins: typing.Mapping[str, str]) -> Finding:
    """The finding with the place of its subject, or of the next greater part that was written."""
    path = finding.subject if finding.status != PASS and origins else ""
    while path and path not in origins:
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    if not path:
        return finding
    what = "It" if path == finding.subject else path
    return dataclasses.replace(finding, remedy=f"{finding.remedy} {what} is in {origins[path]}.")


def _position(variables: typing.Mapping[str, typing.Any], finding: Finding) -> tuple[int, ...]:
    """Where the finding's subject is in the variables: the number of each step in what it is a step of."""
    if finding.subject in ("intent", "inventory") or finding.check == "validate.variables":
        return (-1,)
    position: list[int] = []
    place: typing.Any = variables
    for key, index in _STEP.findall(finding.subject):
        if index:
            position.append(int(index))
            place = place[int(index)] if isinstance(place, (list, tuple)) and int(index) < len(place) else None
        elif isinstance(place, typing.Mapping):
            keys = list(map(str, place))
            position.append(keys.index(key) if key in keys else len(keys))
            place = place.get(key)
        else:
            position.append(0)
    return tuple(position)


def refuse(problems: typing.Iterable[LoadError], stage: str = "validate") -> tuple[Finding, ...]:
    """Findings for an intent that could not be loaded."""
    return tuple(
        Finding(f"{stage}.intent", problem.path or "intent", FAIL, problem.seen, problem.expected, *cause_of(problem))
        for problem in problems
    )


def _bad(check_id: str, subject: str, measured: str, expected: str, why: str, remedy: str) -> Finding:
    return Finding(f"validate.{check_id}", subject, FAIL, measured, expected, why, remedy)


def _check_nodes(nodes: tuple[str, ...], error: str) -> list[Finding]:
    """:param error: why the inventory gave none"""
    expected = "at least 1 host in group rdma_nodes"
    if nodes:
        return [ok("validate.nodes", "inventory", f"{len(nodes)} hosts", expected)]
    why = (
        "The group rdma_nodes is empty or not there, so nothing would be looked at, and a run that looks at nothing"
        " must not pass."
    )
    if error:
        # with what to do, as the plugin says it
        why = f"The inventory gave no nodes: {error.rstrip('. ')}."
        return [_bad("nodes", "inventory", "no host", expected, why, "Correct what is named, and run it again.")]
    return [
        _bad(
            "nodes",
            "inventory",
            "no host",
            expected,
            why,
            "Put the nodes into the inventory's group rdma_nodes, by their Kubernetes node names.",
        )
    ]


def misnamed(facts: Facts) -> bool:
    """Whether a variable is misspelt, or has a value that it can't have: a wish that Ansible drops in silence, so
    nothing begins."""
    return any(finding.status == FAIL for finding in _check_variables(facts.variables, facts.mistyped))


def _check_variables(variables: tuple[str, ...], mistyped: typing.Mapping[str, str]) -> list[Finding]:
    """A misspelt ``rdma_waiver`` would otherwise be dropped in silence: Ansible knows no unknown variable."""
    findings = [_misnamed(name) for name in sorted(set(variables) - set(VARIABLES) - set(ROLE_VARIABLES))]
    for name, value in sorted(mistyped.items()):
        why = "Its type is another one, so the role that reads it would refuse it, or take it for something else."
        findings.append(
            _bad("variables", name, f"'{value}'", expected_of(name) or "another value", why, f"Correct {name}.")
        )
    return findings or [
        ok(
            "validate.variables",
            "inventory",
            "no unknown variable",
            "no variable that looks like a misspelt one of the collection",
        )
    ]


def _misnamed(name: str) -> Finding:
    known = meant(name)
    if known:
        why = "No part of the collection reads this variable, and it looks like a misspelt one."
        return _bad(
            "variables", name, "unknown variable", f"{known} (did you mean '{known}'?)", why, f"Rename it to {known}."
        )
    why = "No part of the collection reads this variable."
    remedy = (
        "Rename it, or remove it; names that start with rdma_ belong to this collection, and docs/intent.md lists them."
    )
    return Finding(
        "validate.variables", name, WARN, "unknown variable", "a variable that the collection reads", why, remedy
    )


def _check_archive(seen: typing.Optional[ArchiveFacts]) -> list[Finding]:
    """Told before the first stage: a report that can't be kept is known hours later otherwise, when the job's container
    goes with it."""
    if seen is None:
        return []
    expected = "a folder that can be written, or an address that answers"
    if not seen.error:
        return [ok("validate.archive", VARIABLE, seen.place, expected)]
    why = (
        "The archive of the report could not go there when the run ends, and what only the job's container has is gone"
        " with it."
    )
    return [_bad("archive", VARIABLE, seen.error, expected, why, f"{seen.remedy}.")]


def _read(intent: Intent) -> typing.Iterator[Finding]:
    yield ok(
        "validate.intent",
        "intent",
        f"{len(intent.fabrics)} fabrics, {len(intent.waivers)} waivers",
        "types and keys of the schema",
    )


def _check_fabrics(intent: Intent) -> typing.Iterator[Finding]:
    rules = (profile_keys.check, _check_names, _check_select, _check_numbers, _check_line_rate, _check_pods)
    for index, fabric in enumerate(intent.fabrics):
        yield from told_by(rules, fabric, f"rdma_fabrics[{index}]")


def _check_names(fabric: Fabric, path: str) -> list[Finding]:
    findings = told(_resource, fabric, path)
    for what in ("name", "network.namespace", "network.name", "pool.name", "pool.namespace"):
        findings += told(_name, fabric, path, what)
    return findings or [
        ok("validate.names", path, "all valid", "names that the API server and the operator's webhook take")
    ]


def _resource(fabric: Fabric, path: str) -> typing.Iterator[Finding]:
    if fabric.resource_name and (not _RESOURCE.fullmatch(fabric.resource_name) or len(fabric.resource_name) > 63):
        why = (
            "The webhook of the SR-IOV operator and the device plugins refuse it: releases up to 1.6 and OpenShift's"
            " reject a hyphen."
        )
        expected = "up to 63 letters, digits and underscores, with a letter or digit at both ends"
        yield _bad(
            "names",
            f"{path}.resource_name",
            f"'{fabric.resource_name}'",
            expected,
            why,
            "Write mlx_compute instead of mlx-compute.",
        )


def _name(fabric: Fabric, path: str, what: str) -> typing.Iterator[Finding]:
    of_pool = what.startswith("pool.")
    if of_pool and fabric.pool is None:
        return
    name = operator.attrgetter(what)(fabric)
    if what == "network.name" and not name:
        # whether the profile does without is validate.profile's to say
        return
    if what == "network.namespace" and name == MEASURING:
        why = "Pods measure in it: a run deletes it with all that is in it, and tenants must have no rights in it."
        yield _bad("names", f"{path}.{what}", f"'{name}'", "the namespace of the jobs", why, "Name another namespace.")
    if not _LABEL.fullmatch(name) or len(name) > 63:
        expected = "up to 63 lower-case letters, digits and hyphens, with a letter or digit at both ends"
        why = "It becomes the name of a Kubernetes object, and the API server refuses this one."
        yield _bad(
            "names", f"{path}.ipam.{what}" if of_pool else f"{path}.{what}", f"'{name}'", expected, why, "Rename it."
        )


def _check_select(fabric: Fabric, path: str) -> list[Finding]:
    if not traits(fabric).members:
        return []
    path = f"{path}.select"
    findings = told_by(
        (_subnet_manager, _selector, _pci_addresses, _vendor, _device, _enough_addresses, _enough_names), fabric, path
    )
    return findings or [
        ok("validate.select", path, "usable", f"names HCAs in a way that profile {fabric.profile} can follow")
    ]


def _subnet_manager(fabric: Fabric, path: str) -> typing.Iterator[Finding]:
    managers = fabric.select.subnet_manager
    if managers and traits(fabric).link == "Ethernet":
        why = f"The profile {fabric.profile} is Ethernet, and Ethernet has no subnet manager."
        remedy = "Remove subnet_manager and name the NICs by pci, netdev, or vendor and device."
        yield _bad("select", f"{path}.subnet_manager", ", ".join(managers), "no subnet_manager", why, remedy)
    elif managers != ("any",):
        for index, guid in enumerate(managers):
            if not _GUID.fullmatch(guid):
                why = "A subnet manager is known by the GUID of its port, as sminfo prints it."
                expected = "'any' alone, or 0x and 16 lower-case hex digits"
                remedy = "Copy the sm guid out of sminfo, with its leading zeros."
                place = f"{path}.subnet_manager" + (f"[{index}]" if len(managers) > 1 else "")
                yield _bad("select", place, f"'{guid}'", expected, why, remedy)


def _selector(fabric: Fabric, path: str) -> typing.Iterator[Finding]:
    select = fabric.select
    if not (select.subnet_manager or select.pci or select.netdev or select.vendor or select.device):
        why = "Nothing says which HCAs of a node belong to this fabric."
        ethernet = traits(fabric).link == "Ethernet"
        expected = (
            "pci, netdev, or vendor and device" if ethernet else "subnet_manager, pci, netdev, or vendor and device"
        )
        yield _bad(
            "select",
            path,
            "only hcas_per_node",
            expected,
            why,
            "Add one of them; for InfiniBand 'subnet_manager: any' is the simplest.",
        )


def _pci_addresses(fabric: Fabric, path: str) -> typing.Iterator[Finding]:
    for index, address in enumerate(fabric.select.pci):
        if not _PCI.fullmatch(address):
            why = "sysfs and the operator compare PCI addresses as text, in the kernel's form."
            remedy = "Copy the address out of 'lspci -D', in lower case."
            yield _bad(
                "select", f"{path}.pci[{index}]", f"'{address}'", "dddd:bb:dd.f, such as 0000:3c:00.0", why, remedy
            )


def _vendor(fabric: Fabric, path: str) -> typing.Iterator[Finding]:
    yield from _pci_id(f"{path}.vendor", fabric.select.vendor)


def _device(fabric: Fabric, path: str) -> typing.Iterator[Finding]:
    yield from _pci_id(f"{path}.device", fabric.select.device)


def _pci_id(place: str, value: typing.Optional[str]) -> typing.Iterator[Finding]:
    if value is not None and not _PCI_ID.fullmatch(value):
        expected = "four lower-case hex digits in quotes, such as '15b3'"
        yield _bad(
            "select", place, f"'{value}'", expected, "PCI ids are compared as text.", "Copy it out of 'lspci -nn'."
        )


def _enough_addresses(fabric: Fabric, path: str) -> typing.Iterator[Finding]:
    yield from _enough(fabric, f"{path}.pci", fabric.select.pci)


def _enough_names(fabric: Fabric, path: str) -> typing.Iterator[Finding]:
    yield from _enough(fabric, f"{path}.netdev", fabric.select.netdev)


def _enough(fabric: Fabric, place: str, items: tuple[str, ...]) -> typing.Iterator[Finding]:
    # a list of PCI addresses may be longer than one node's share, since nodes may differ; a shorter one can never be
    # enough
    if items and len(set(items)) < fabric.select.hcas_per_node:
        why = "A node can't have more HCAs on this fabric than the list names."
        remedy = "List all of them, or lower hcas_per_node."
        yield _bad(
            "select", place, f"{len(set(items))} named", f"{fabric.select.hcas_per_node} (hcas_per_node)", why, remedy
        )


def _check_numbers(fabric: Fabric, path: str) -> list[Finding]:
    findings = told_by((_hcas, _functions, _mtu, _uplinks), fabric, path)
    return findings or [
        ok(
            "validate.numbers",
            path,
            f"{fabric.select.hcas_per_node} HCAs, {pods_on_a_node(fabric)} pods a node",
            "numbers that an HCA can do",
        )
    ]


def _hcas(fabric: Fabric, path: str) -> typing.Iterator[Finding]:
    if traits(fabric).members:
        yield from _within(f"{path}.select.hcas_per_node", fabric.select.hcas_per_node, 1, 64, "HCAs")


def _functions(fabric: Fabric, path: str) -> typing.Iterator[Finding]:
    # that there must be some is validate.profile's to say
    if traits(fabric).functions and fabric.virtual_functions:
        yield from _within(
            f"{path}.virtual_functions", fabric.virtual_functions, 1, _MOST_VIRTUAL_FUNCTIONS, "VFs a physical function"
        )


def _mtu(fabric: Fabric, path: str) -> typing.Iterator[Finding]:
    if fabric.mtu is not None:
        yield from _within(f"{path}.mtu", fabric.mtu, 576, 65520, "bytes")


def _uplinks(fabric: Fabric, path: str) -> typing.Iterator[Finding]:
    if fabric.uplinks is not None and not 1 <= fabric.uplinks <= _MOST_UPLINKS:
        why = "No switch has so many ports for it, and a leaf without any leads nowhere."
        remedy = "Correct the number, or leave it out where one switch has all nodes."
        yield _bad("numbers", f"{path}.uplinks", f"{fabric.uplinks} links", f"1 to {_MOST_UPLINKS} links", why, remedy)


def _within(place: str, value: int, low: int, high: int, unit: str) -> typing.Iterator[Finding]:
    if not low <= value <= high:
        why = "Out of what any HCA and its driver can do; the operator would refuse it, or fail on the node."
        yield _bad("numbers", place, f"{value} {unit}", f"{low} to {high} {unit}", why, "Correct the number.")


def _check_line_rate(fabric: Fabric, path: str) -> list[Finding]:
    rate, path = fabric.line_rate, f"{path}.line_rate"
    findings = told(_fraction, f"{path}.fraction", operator.attrgetter("fraction"), rate, 0.92)
    findings += told(_fraction, f"{path}.fleet_fraction", operator.attrgetter("fleet_fraction"), rate, 0.93)
    findings += told_by((_expected_rate, _floor, _reason, _reason_of_low), rate, path)
    if findings:
        return findings
    if rate.floor_gbps is not None:
        return [
            ok(
                "validate.line_rate",
                path,
                f"{rate.floor_gbps:g} Gb/s, because: {rate.reason}",
                "an absolute floor has a reason",
            )
        ]
    of = f"{rate.expected_gbps:g} Gb/s or PCIe" if rate.expected_gbps is not None else "what link and PCIe can do"
    because = f", because: {rate.reason}" if rate.reason else ""
    return [
        ok(
            "validate.line_rate",
            path,
            f"{rate.fraction:.0%} of the slower of {of}{because}",
            "a floor that means something",
        )
    ]


def _fraction(
    place: str, read: typing.Callable[[LineRate], float], rate: LineRate, usual: float
) -> typing.Iterator[Finding]:
    fraction = read(rate)
    if not _LEAST_FRACTION <= fraction <= 1:
        why = "No link carries more than its rate, and a floor of next to nothing proves nothing."
        yield _bad(
            "line_rate",
            place,
            f"{fraction}",
            f"{_LEAST_FRACTION:g} to 1",
            why,
            f"Use {usual}, or a figure that you can defend.",
        )


def _expected_rate(rate: LineRate, path: str) -> typing.Iterator[Finding]:
    if rate.expected_gbps is not None and not _LEAST_RATE <= rate.expected_gbps <= GBPS.most:
        why = "No link of an HCA has this rate."
        remedy = (
            "Write the rate of the links, such as 400; or leave it out, and what both ends of each link can do counts."
        )
        yield _bad(
            "line_rate",
            f"{path}.expected_gbps",
            f"{rate.expected_gbps} Gb/s",
            f"{_LEAST_RATE:g} to {GBPS.most:g} Gb/s",
            why,
            remedy,
        )


def _floor(rate: LineRate, path: str) -> typing.Iterator[Finding]:
    if rate.floor_gbps is not None and not 0 < rate.floor_gbps < float("inf"):
        why = "A floor that any figure reaches, or none can, proves nothing."
        yield _bad(
            "line_rate",
            f"{path}.floor_gbps",
            f"{rate.floor_gbps} Gb/s",
            "more than 0 Gb/s",
            why,
            "Correct it, or use the fraction.",
        )


def _reason(rate: LineRate, path: str) -> typing.Iterator[Finding]:
    if rate.floor_gbps is not None and not (rate.reason or "").strip():
        why = "An absolute floor hides how fast the link could be, so the report must say why it was chosen."
        yield _bad(
            "line_rate",
            f"{path}.reason",
            "no reason",
            "a reason beside floor_gbps",
            why,
            "Add reason, or remove floor_gbps and use the fraction.",
        )


def _reason_of_low(rate: LineRate, path: str) -> typing.Iterator[Finding]:
    """A floor can be made as low by what it is a part of."""
    if (rate.reason or "").strip():
        return
    limits = (
        ("fraction", _LEAST_FRACTION, _LOW_FRACTION),
        ("fleet_fraction", _LEAST_FRACTION, _LOW_FRACTION),
        ("expected_gbps", _LEAST_RATE, _LOW_RATE),
    )
    for name, least, low in limits:
        value = getattr(rate, name)
        if value is not None and least <= value < low:
            why = (
                f"{name} is {value:g}. A floor this low hides how fast the link could be, so the report must say why it"
                " was chosen."
            )
            yield _bad(
                "line_rate",
                f"{path}.reason",
                "no reason",
                f"a reason beside {name} below {low:g}",
                why,
                f"Add reason, or remove {name}.",
            )


def _check_pods(fabric: Fabric, path: str) -> list[Finding]:
    findings: list[Finding] = []
    for what in ("pods.message_bytes", "pods.queue_pairs", "pods.iterations", "pods.seconds", "bandwidth.rounds"):
        findings += told(_at_least_one, fabric, path, what)
    findings += told(_limit, fabric, path)
    findings += told(_rounds, fabric, path)
    return findings or [
        ok(
            "validate.pods",
            f"{path}.pods",
            f"{fabric.pods.seconds} s, at most {fabric.pods.limit_seconds} s",
            "a measurement that fits its limit",
        )
    ]


def _at_least_one(fabric: Fabric, path: str, what: str) -> typing.Iterator[Finding]:
    value = operator.attrgetter(what)(fabric)
    if isinstance(value, int) and value < 1:
        yield _bad(
            "pods",
            f"{path}.{what}",
            str(value),
            "1 at least",
            "ib_write_bw would refuse it or measure nothing.",
            "Correct the number.",
        )


def _limit(fabric: Fabric, path: str) -> typing.Iterator[Finding]:
    pods = fabric.pods
    if pods.limit_seconds <= pods.seconds:
        why = "Each command would be stopped before its measurement ends."
        remedy = "Leave room for connecting: limit_seconds should be twice seconds at least."
        yield _bad(
            "pods",
            f"{path}.pods.limit_seconds",
            f"{pods.limit_seconds} s",
            f"more than {pods.seconds} s (seconds)",
            why,
            remedy,
        )


def _rounds(fabric: Fabric, path: str) -> typing.Iterator[Finding]:
    if fabric.bandwidth.rounds == "auto" and fabric.bandwidth.directions == "at_once":
        why = (
            "Rounds that use each link tell its two directions apart, and a figure of both at once tells nothing of one"
            " of them."
        )
        remedy = "Leave directions out, or write a number or all into rounds."
        yield _bad(
            "pods",
            f"{path}.bandwidth.rounds",
            "auto with directions at_once",
            "auto with directions one or both",
            why,
            remedy,
        )


def _check_cluster(intent: Intent) -> list[Finding]:
    cluster = intent.cluster
    findings = told_by(
        (_node_selector, _wait_seconds, _node_pool, _firmware, _release, _driver, _operator_namespace, _mirror), cluster
    )
    findings += told_by((_training_fabric, _training_ranks), intent)
    return findings or [
        ok(
            "validate.cluster",
            "rdma_cluster",
            f"operator in {cluster.operator_namespace or 'the namespace that is seen'}",
            "usable values",
        )
    ]


def _node_selector(cluster: ClusterIntent) -> typing.Iterator[Finding]:
    if not cluster.node_selector:
        why = (
            "An empty selector takes every node of the cluster, control plane included, and the operator drains and"
            " reboots what it takes."
        )
        remedy = "Name a label that only RDMA nodes have, or remove the key for the default."
        yield _bad("cluster", "rdma_cluster.node_selector", "no label", "one label at least", why, remedy)


def _wait_seconds(cluster: ClusterIntent) -> typing.Iterator[Finding]:
    if cluster.wait_seconds < 1:
        yield _bad(
            "cluster",
            "rdma_cluster.wait_seconds",
            f"{cluster.wait_seconds} s",
            "1 s at least",
            "Nothing is ready at once.",
            "Correct it.",
        )


def _node_pool(cluster: ClusterIntent) -> typing.Iterator[Finding]:
    if cluster.node_pool is not None and cluster.node_pool.max_unavailable < 1:
        why = "No node would ever get its turn, and the wait would end with its time."
        expected = "1 node at least"
        yield _bad(
            "cluster",
            "rdma_cluster.node_pool.max_unavailable",
            str(cluster.node_pool.max_unavailable),
            expected,
            why,
            "Correct it.",
        )


def _firmware(cluster: ClusterIntent) -> typing.Iterator[Finding]:
    for key, value, least in (
        ("num_of_vfs", cluster.firmware.num_of_vfs, 1),
        ("max_acc_out_read", cluster.firmware.max_acc_out_read, 0),
    ):
        if value is not None and value < least:
            why = "No firmware takes such a number."
            yield _bad(
                "cluster",
                f"rdma_cluster.firmware.{key}",
                str(value),
                f"{least} at least",
                why,
                "Correct it, or remove the key.",
            )


def _release(cluster: ClusterIntent) -> typing.Iterator[Finding]:
    if not _RELEASE.fullmatch(cluster.network_operator.version):
        why = "Images of NVIDIA's network operator are named after its releases, and there would be none of this name."
        seen = f"'{cluster.network_operator.version}'"
        remedy = "Copy it out of the operator's release notes."
        yield _bad("cluster", "rdma_cluster.network_operator.version", seen, "a release, such as v26.4.1", why, remedy)


def _driver(cluster: ClusterIntent) -> typing.Iterator[Finding]:
    if cluster.network_operator.ofed_driver is not None and cluster.disruption == "none":
        why = (
            "A driver that is loaded anew takes the RDMA devices from all pods of the node, so the operator drains it."
        )
        remedy = "Allow drains in rdma_cluster.disruption, or leave the driver to the nodes."
        expected = "no driver with disruption: none"
        yield _bad(
            "cluster",
            "rdma_cluster.network_operator.ofed_driver",
            cluster.network_operator.ofed_driver,
            expected,
            why,
            remedy,
        )


def _operator_namespace(cluster: ClusterIntent) -> typing.Iterator[Finding]:
    if cluster.operator_namespace is not None and not _LABEL.fullmatch(cluster.operator_namespace):
        why = "It is the name of a namespace, and the API server knows no such one."
        expected = "lower-case letters, digits and hyphens"
        yield _bad(
            "cluster",
            "rdma_cluster.operator_namespace",
            f"'{cluster.operator_namespace}'",
            expected,
            why,
            "Correct the name.",
        )


def _mirror(cluster: ClusterIntent) -> typing.Iterator[Finding]:
    wrong = [
        place
        for source, place in cluster.mirror.items()
        for place in (source, place)
        if place != EVERYTHING and not _PLACE.fullmatch(place)
    ]
    wrong += [place for place in cluster.mirror.values() if place == EVERYTHING]
    if wrong:
        why = "A name of an image is made of it, and no registry has one of this form."
        remedy = (
            "Write the registry's host, its port, and a path in lower case, without https:// and without a slash at the"
            " end."
        )
        yield _bad(
            "cluster",
            "rdma_cluster.mirror",
            ", ".join(f"'{place}'" for place in wrong[:5]),
            "such as registry.example:5000/mirror",
            why,
            remedy,
        )


def _check_host(intent: Intent) -> list[Finding]:
    host, path, findings = intent.cluster.host, "rdma_cluster.host", []
    findings += told(_check_memlock, host, path)
    findings += told_by((_machine_role, _kernel_arguments), host, path)
    findings += told(_check_kubelet, host, path)
    return findings or [ok("validate.host", path, "usable values", "usable values")]


def _check_memlock(host: HostNeeds, path: str) -> list[Finding]:
    return [] if host.memlock is None else told_by((_memlock, _limit_gib, _proof_mib), host.memlock, f"{path}.memlock")


def _memlock(memlock: Memlock, path: str) -> typing.Iterator[Finding]:
    if (memlock.limit_gib is None) != memlock.unlimited:
        measured = f"limit_gib {memlock.limit_gib}, unlimited {memlock.unlimited}"
        why = "Without a size nobody knows what was meant, and none at all has to be asked for."
        yield _bad(
            "host",
            path,
            measured,
            "limit_gib, or unlimited: true",
            why,
            "Give the size that the jobs register, in GiB.",
        )


def _limit_gib(memlock: Memlock, path: str) -> typing.Iterator[Finding]:
    if memlock.limit_gib is not None and not 1 <= memlock.limit_gib <= 1 << 20:
        yield _bad(
            "host",
            f"{path}.limit_gib",
            str(memlock.limit_gib),
            "1 to 1048576 GiB",
            "No job can work with it.",
            "Correct it.",
        )


def _proof_mib(memlock: Memlock, path: str) -> typing.Iterator[Finding]:
    if not 1 <= memlock.proof_mib <= min(2047, (memlock.limit_gib or 2) << 10):
        why = (
            "The proof registers one buffer, which ibv_rc_pingpong makes at most 2 GiB large, and no larger than the"
            " limit."
        )
        yield _bad(
            "host",
            f"{path}.proof_mib",
            f"{memlock.proof_mib} MiB",
            "1 to 2047 MiB, and within limit_gib",
            why,
            "Lower it.",
        )


def _machine_role(host: HostNeeds, path: str) -> typing.Iterator[Finding]:
    if not _LABEL.fullmatch(host.machine_role):
        why = "It becomes a label, and a part of the name of a MachineConfig."
        yield _bad(
            "host",
            f"{path}.machine_role",
            f"'{host.machine_role}'",
            "worker, or the name of a pool",
            why,
            "Correct it.",
        )


def _kernel_arguments(host: HostNeeds, path: str) -> typing.Iterator[Finding]:
    for index, argument in enumerate(host.kernel_arguments):
        if not argument.strip() or argument.split() != [argument]:
            why = "The MachineConfig would be degraded, and its pool with it."
            yield _bad(
                "host",
                f"{path}.kernel_arguments[{index}]",
                f"'{argument}'",
                "one argument without spaces",
                why,
                "List each one by itself.",
            )


def _check_kubelet(host: HostNeeds, path: str) -> list[Finding]:
    return [] if host.kubelet is None else told_by((_settings, _scope, _reserved_cpus), host.kubelet, f"{path}.kubelet")


def _settings(kubelet: Kubelet, path: str) -> typing.Iterator[Finding]:
    if kubelet == Kubelet(pool_labels=kubelet.pool_labels):
        why = "A KubeletConfig without a setting reboots the nodes for nothing."
        yield _bad(
            "host", path, "no setting", "one setting at least", why, "Say topology_manager_policy, or remove the key."
        )


def _scope(kubelet: Kubelet, path: str) -> typing.Iterator[Finding]:
    if kubelet.topology_manager_scope and kubelet.topology_manager_policy in (None, "none"):
        why = "The scope says of what the policy holds, so without a policy it says nothing."
        expected = "topology_manager_policy beside it"
        yield _bad(
            "host",
            f"{path}.topology_manager_scope",
            kubelet.topology_manager_scope,
            expected,
            why,
            "Name a policy: single-numa-node.",
        )


def _reserved_cpus(kubelet: Kubelet, path: str) -> typing.Iterator[Finding]:
    cpus = kubelet.reserved_system_cpus
    if cpus is not None and not _is_cpu_list(cpus):
        why = "The kubelet would not start with it, and OpenShift hands it on unread: the nodes would not come back."
        expected = "numbers and rising ranges without spaces, such as 0-1,32"
        yield _bad(
            "host",
            f"{path}.reserved_system_cpus",
            f"'{cpus}'",
            expected,
            why,
            "Copy CPUs of each NUMA node out of 'lscpu -e'.",
        )


def _is_cpu_list(text: str) -> bool:
    """[kubernetes k8s.io/utils/cpuset Parse]"""
    ranges = [[int(end) for end in part.split("-")] for part in text.split(",")] if _CPUS.fullmatch(text) else []
    return bool(ranges) and all(part[0] <= part[-1] for part in ranges)


def _check_measures(intent: Intent) -> list[Finding]:
    findings = told(_measures, intent)
    return findings or [
        ok(
            "validate.measures",
            "rdma_cluster.measures",
            f"{len(intent.cluster.measures)} measures",
            "figures that can be compared",
        )
    ]


def _measures(intent: Intent) -> typing.Iterator[Finding]:
    why = "Stage compare would compare what is not alike, or divide by nothing."
    for path, seen, expected in compare.mistakes(intent):
        yield _bad("measures", path, seen, expected, why, "Correct the figure.")


def _training_fabric(intent: Intent) -> typing.Iterator[Finding]:
    training = intent.cluster.training
    if training is None or training.fabric is None:
        return
    names = [fabric.name for fabric in intent.fabrics]
    if training.fabric not in names:
        expected = f"one of: {', '.join(names)}{nearest(training.fabric, names)}"
        why = "The HCAs of this fabric are those that the job must use."
        yield _bad(
            "cluster",
            "rdma_cluster.training.fabric",
            f"'{training.fabric}'",
            expected,
            why,
            "Name a fabric of rdma_fabrics.",
        )


def _training_ranks(intent: Intent) -> typing.Iterator[Finding]:
    training = intent.cluster.training
    if training is not None and training.ranks is not None and training.ranks < 2:
        why = "A job of one rank uses no network, so its log proves nothing."
        yield _bad(
            "cluster",
            "rdma_cluster.training.ranks",
            str(training.ranks),
            "2 ranks at least",
            why,
            "Correct the number.",
        )


def _check_collectives(intent: Intent) -> list[Finding]:
    """Judge what is wanted of collectives; nothing where nothing is."""
    wanted = intent.cluster.collectives
    if wanted is None:
        return []
    findings = [
        _bad("collectives", f"rdma_cluster.collectives.{item.key}", item.measured, item.expected, item.why, item.remedy)
        for item in find_mistakes(wanted, intent.fabrics)
    ]
    return findings or [
        ok(
            "validate.collectives",
            "rdma_cluster.collectives",
            f"{len(wanted.tests)} tests",
            "wishes that can be meant together",
        )
    ]


def _check_waivers(intent: Intent) -> typing.Iterator[Finding]:
    hints = Hints()
    for index, waiver in enumerate(intent.waivers):
        yield from told(_check_waiver, waiver, f"rdma_waivers[{index}]", hints)


def _check_waiver(waiver: Waiver, path: str, hints: Hints) -> list[Finding]:
    findings = told_by((_waiver_reason, _waiver_length), waiver, path) + told(_waived, waiver, path, hints)
    return findings or [
        ok("validate.waivers", path, f"{waiver.check}, because: {waiver.reason}", "a known check and a reason")
    ]


def _waiver_reason(waiver: Waiver, path: str) -> typing.Iterator[Finding]:
    if len(waiver.reason.split()) < 2:
        why = "The report prints the reason to those who have to trust the run."
        yield _bad(
            "waivers",
            f"{path}.reason",
            f"'{waiver.reason}'",
            "a reason in words",
            why,
            "Say why going on is right all the same.",
        )


def _waiver_length(waiver: Waiver, path: str) -> typing.Iterator[Finding]:
    for name, pattern in (("check", waiver.check), ("subject", waiver.subject)):
        if len(pattern) > MOST_PATTERN:
            why, remedy = "A pattern of this length covers nothing.", "Write * for a part of it."
            yield _bad(
                "waivers", f"{path}.{name}", f"{len(pattern)} characters", f"at most {MOST_PATTERN}", why, remedy
            )


def _waived(waiver: Waiver, path: str, hints: Hints) -> typing.Iterator[Finding]:
    if len(waiver.check) > MOST_PATTERN:
        return
    covered = [check_id for check_id in CHECKS if matches(waiver.check, check_id)]
    stages = {check_id.partition(".")[0] for check_id in covered}
    place, seen, remedy = f"{path}.check", f"'{waiver.check}'", "Copy the id from the report."
    if not covered:
        expected = f"id of a check, such as platform.bios; * stands for any text{hints.nearest(waiver.check, CHECKS)}"
        why = "No check has such an id, so the waiver would cover nothing."
        yield _bad("waivers", place, seen, expected, why, remedy)
    elif len(stages) > 1:
        why = "A waiver that covers several stages at once makes the verdict worthless."
        yield _bad("waivers", place, seen, "checks of one stage", why, remedy)
    elif stages == {"validate"}:
        why = "An intent that contradicts itself can be corrected by who wrote it; there is nothing to waive."
        yield _bad("waivers", place, seen, "a check of another stage", why, "Correct the intent instead.")
    elif all(map(never_waived, covered)):
        why = "It stands for a stage that failed or did not run, and such a stage has proven nothing."
        remedy = "Remove the waiver, and correct what keeps the stage from running."
        yield _bad("waivers", place, seen, "a check of what a stage looks at", why, remedy)
