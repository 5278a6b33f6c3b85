# SPDX-License-Identifier: GPL-3.0-or-later

"""The check of stage validate. It checks the meaning of the intent across its fields, without any host or cluster, and
whether the controller meets the requirements of the stages (controller.py).

The shape of the intent (types, unknown keys) was already checked when _parse/intent.py loaded it. Check ids:
``validate.*``.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import typing

from ..._analysis.addresses import arithmetic as ranges
from ..._model.base.load_error import LoadError
from ..._model.base.phrases import count_of, format_clause
from ..._model.base.rules import run_rule
from ..._model.boundary.numbers import Count
from ..._model.intent.intent import Intent
from ..._model.kubernetes.controller import ControllerFacts
from ..._model.run.archive import VARIABLE, ArchiveFacts
from ..._model.run.findings import FAIL, PASS, SKIPPED, WARN, Finding, add_rerun, build_pass
from ..._model.run.public_names import ROLE_VARIABLES
from ..._model.run.variables import OF_ENVIRONMENT, RDMA_VARIABLES, correct_name
from ..._model.run.variables import describe_allowed as expected_of
from ..collectives.wanted import find_mistakes
from ..compare import mistakes
from . import conflicts, controller, images, operators, pod_security, powers, room, tuning
from .cluster import check_cluster
from .fabrics import check_fabrics
from .host import check_host
from .refusal import refuse_value
from .shape import explain_cause
from .waivers import check_waivers

#: variables that the collection reads from the inventory, beside the options of its roles
VARIABLES = tuple(RDMA_VARIABLES)
# a step of a path: a key, or an index
_STEP = re.compile(r"([^.\[\]]+)|\[(\d{1,9})\]", re.ASCII)


@dataclasses.dataclass(frozen=True)
class Facts:
    """The input of the check besides the intent.

    :ivar nodes: names of the inventory's group ``rdma_nodes``
    :ivar variables: names of all variables that start with ``rdma_``, and of probable misspellings of role variables
    :ivar controller: answer of controller_info; None if a stage that runs alone judges the intent
    :ivar archive: result of the check whether the archive of the report can be stored; None if it is not stored, or if
        a stage that runs alone judges the intent
    :ivar images: images named by variables outside of the intent, by variable
    :ivar strict_images: whether images must be named by digest
    :ivar mistyped: values that public variables cannot have, by variable
    :ivar origins: file and line in which the user wrote a variable or a part of it, by its path
    :ivar inventory_error: error of a source of the inventory; empty if all were read, or if the error is unknown
    :ivar inventory_kind: cause of that error: ``library``, ``api_server``, or empty for any other
    :ivar inventory_where: origin of the API server's address that the inventory used; empty if there is none
    :ivar unchecked_hosts: number of nodes that are reached by ssh without a known check of their host keys
    :ivar by_pods: names of the nodes that are reached by observers
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
    inventory_kind: str = ""
    inventory_where: str = ""
    unchecked_hosts: Count = 0
    by_pods: tuple[str, ...] = ()


def check(intent: Intent, facts: Facts) -> tuple[Finding, ...]:
    """Check the values of an intent that was loaded: selections, addresses, numbers, conflicts between fabrics,
    waivers, host settings, images and rights. Return at least one finding for each fabric, each waiver and the
    inventory, unless a part of the intent could not be read.
    """
    findings = run_rule(_check_schema, intent)
    findings += _check_nodes(facts)
    findings += _check_host_keys(facts)
    findings += _check_variables(facts.variables, facts.mistyped)
    findings += run_rule(check_fabrics, intent)
    findings += conflicts.check(intent)
    findings += run_rule(ranges.check, intent, facts.nodes)
    findings += run_rule(check_cluster, intent)
    findings += run_rule(check_host, intent)
    findings += run_rule(tuning.check, intent)
    findings += run_rule(pod_security.check, intent)
    findings += run_rule(_check_measures, intent)
    findings += run_rule(_check_collectives, intent, facts.nodes)
    findings += run_rule(check_waivers, intent)
    findings += run_rule(operators.check, intent)
    findings += run_rule(powers.check, intent)
    findings += run_rule(images.check, intent, facts.images, facts.strict_images)
    findings += controller.check(intent, facts.controller, facts.inventory_kind, facts.inventory_where)
    findings += run_rule(room.check, intent, facts.controller, facts.nodes, facts.by_pods)
    findings += _check_archive(facts.archive)
    return add_rerun(findings, "validate", "Then run stage validate again.")


def report_mistakes(problems: typing.Sequence[LoadError], intent: Intent, facts: Facts) -> tuple[Finding, ...]:
    """Return the findings on an intent that could not be loaded completely: the errors in its structure, and the
    failures, warnings and unknown results of those keys that could be loaded.

    :param problems: keys with a wrong name, type or value
    :param intent: intent with the keys that could be loaded
    """
    # which rights are needed is not known, so none of them was asked for
    rest = [
        finding for finding in check(intent, facts) if finding.status != PASS and finding.check != "validate.rights"
    ]
    places = {problem.path for problem in problems}
    return (*refuse(problems), *(finding for finding in rest if finding.subject not in places))


def sort_findings(
    findings: typing.Iterable[Finding],
    variables: typing.Mapping[str, typing.Any],
    origins: typing.Optional[typing.Mapping[str, str]] = None,
) -> tuple[Finding, ...]:
    """Return findings in the order in which the user wrote their subjects.

    A missing key sorts after the other keys of its mapping.

    If the status of a finding is not pass, the file and line of its subject are appended to its remedy, if they are
    known. Findings whose subject is not a path in the variables keep their order: the intent and the inventory first,
    conflicts between fabrics and the controller last.

    :param variables: values of the public variables as the user wrote them, by name
    :param origins: file and line of a variable or a part of it, by its path; None if they are not known
    """
    return tuple(
        sorted(
            (_add_origin(finding, origins or {}) for finding in findings),
            key=functools.partial(_find_position, variables),
        )
    )


def _add_origin(finding: Finding, origins: typing.Mapping[str, str]) -> Finding:
    """Return the finding with the file and line of its subject, or of the nearest enclosing part that the user wrote,
    added to its remedy.

    :param origins: file and line of a variable or a part of it, by its path
    """
    path = finding.subject if finding.status != PASS and origins else ""
    while path and path not in origins:
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    if not path:
        return finding
    what = "The value" if path == finding.subject else path
    step, again, end = finding.remedy.rpartition(" Then run stage validate again.")
    origin = f" {what} is defined in {origins[path]}."
    return dataclasses.replace(
        finding, remedy=f"{step}{origin}{again}" if again and not end else f"{finding.remedy}{origin}"
    )


def _find_position(variables: typing.Mapping[str, typing.Any], finding: Finding) -> tuple[int, ...]:
    """Return the sort key of a finding: the position of its subject in the user's variables, as one index for each step
    of the path. Findings on the intent as a whole come first, skipped findings last.

    :param variables: the user's variables by name, as they were given
    """
    if finding.status == SKIPPED:
        # it only refers to another one, which the verdict shall name
        return (len(variables) + 1,)
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
    """Return a failed finding for each key of the intent with a wrong name, type or value.

    :param problems: errors that the loader found
    :param stage: stage whose check ids the findings have
    """
    again = f"Then run stage {stage} again."
    causes = ((problem, *explain_cause(problem)) for problem in problems)
    return tuple(
        Finding(
            f"{stage}.intent", problem.path or "intent", FAIL, problem.seen, problem.expected, why, f"{remedy} {again}"
        )
        for problem, why, remedy in causes
    )


def _check_nodes(facts: Facts) -> list[Finding]:
    expected = "at least 1 host in group rdma_nodes"
    if facts.nodes and facts.inventory_error:
        why = (
            "The run would leave out the nodes of a source of the inventory, because this source could not be read:"
            f" {facts.inventory_error.rstrip('. ')}."
        )
        remedy = (
            "Correct the error under 'why', or leave this source out of the command line of the playbook"
            " (option -i). Then run stage validate again."
        )
        hosts = f"{count_of(len(facts.nodes), 'host')}, without the hosts of a source that was not read"
        return [refuse_value("nodes", "inventory", hosts, "the hosts of all sources of the inventory", why, remedy)]
    if facts.nodes:
        return [build_pass("validate.nodes", "inventory", count_of(len(facts.nodes), "host"), expected)]
    if blamed := controller.find_cause(facts.controller, facts.inventory_kind, facts.inventory_where):
        why = (
            "The inventory plugin reads the nodes from the API server. It failed for the reason in the finding"
            f" {blamed}."
        )
        remedy = f"Follow the remedy of the finding {blamed}, then run stage validate again."
        return [Finding("validate.nodes", "inventory", SKIPPED, "0 hosts", expected, why, remedy)]
    why = "The group rdma_nodes of the inventory is empty or does not exist, so the run would check no node."
    remedy = (
        "Add the nodes to the group rdma_nodes of the inventory, under their Kubernetes node names. To read the nodes"
        " from the cluster instead, create a file with echo 'plugin: linerate.rdma.nodes' > linerate.rdma.yml and use"
        " it as the inventory (-i linerate.rdma.yml)."
    )
    if facts.inventory_error:
        # with what to do, as the plugin says it
        why = f"The inventory plugin could not read the nodes: {facts.inventory_error.rstrip('. ')}."
        remedy = "Correct this error, then run stage validate again."
    return [refuse_value("nodes", "inventory", "0 hosts", expected, why, remedy)]


def has_invalid_variables(facts: Facts) -> bool:
    """Return whether the name of a variable is misspelled or its value is invalid.

    The run must not start with such a variable, because Ansible ignores unknown variables without a message.
    """
    return any(finding.status == FAIL for finding in _check_variables(facts.variables, facts.mistyped))


def _check_host_keys(facts: Facts) -> typing.Iterator[Finding]:
    """Warn about nodes whose host keys ssh does not check. There is no finding if it checks all of them."""
    if facts.unchecked_hosts:
        why = (
            "Ansible connects to these nodes by ssh, and its settings for them either turn off the check of the host"
            " keys or contain a template whose value is not known before a task runs. Without the check, a machine that"
            " takes over the address of a node receives the data that the run sends, and the run accepts its answers as"
            " those of the node."
        )
        remedy = (
            "Run ansible-config dump --only-changed -t all, and ansible-inventory --host NODE for each node, to find"
            " these settings. Set host_key_checking to true: in AWX with ANSIBLE_HOST_KEY_CHECKING in 'Settings, Job"
            " settings, Extra"
            " Environment Variables', otherwise in ansible.cfg. Remove StrictHostKeyChecking=no, and accept-new with"
            " UserKnownHostsFile=/dev/null, from the arguments and files of ssh. Put the keys of the nodes into"
            " known_hosts, see docs/awx.md. Then run stage validate again."
        )
        nodes = count_of(len(facts.nodes), "node")
        measured = f"check of the host key off or unknown for {facts.unchecked_hosts} of {nodes}"
        expected = "check of the host key on for all nodes"
        yield Finding("validate.host_keys", "nodes by ssh", WARN, measured, expected, why, remedy)


def _check_variables(variables: tuple[str, ...], mistyped: typing.Mapping[str, str]) -> list[Finding]:
    """Report misspelled variables and invalid values. Without this check a misspelled ``rdma_waiver`` would be ignored
    without a message, since Ansible does not report unknown variables.

    :param variables: names of variables
    :param mistyped: invalid values, by variable
    """
    findings = [_report_misnamed(name) for name in sorted(set(variables) - set(VARIABLES) - set(ROLE_VARIABLES))]
    for name, value in sorted(mistyped.items()):
        why = (
            "The role that reads this variable needs a value of another type: it would stop with an error, or"
            " interpret the value differently."
        )
        findings.append(
            refuse_value(
                "variables",
                name,
                f"'{value}'",
                expected_of(name) or "a value of the type that the README of its role lists",
                why,
                f"Set {name} to a value of this type.",
            )
        )
    return findings or [
        build_pass(
            "validate.variables",
            "inventory",
            "no unknown variable",
            "no misspelled variable of linerate.rdma",
        )
    ]


def _report_misnamed(name: str) -> Finding:
    known = correct_name(name)
    if known:
        why = f"No role of linerate.rdma reads a variable of this name. It is probably {known}, misspelled."
        remedy = f"Rename the variable to {known}."
        if name in OF_ENVIRONMENT:
            why = "No role of linerate.rdma reads this variable. An environment variable selects the context."
            remedy = f"Remove the variable, and run export {known}=NAME before the playbook."
        expected = f"the environment variable {known}" if name in OF_ENVIRONMENT else f"the variable {known}"
        return refuse_value("variables", name, "unknown variable", expected, why, remedy)
    why = "No role of linerate.rdma reads this variable, so it has no effect."
    remedy = (
        "Rename or remove the variable. Names that start with rdma_ are reserved for linerate.rdma; docs/intent.md"
        " lists them."
    )
    return Finding("validate.variables", name, WARN, "unknown variable", "a variable of linerate.rdma", why, remedy)


def _check_archive(seen: typing.Optional[ArchiveFacts]) -> list[Finding]:
    """Check, before the first stage, that the archive of the report can be stored.

    Without this check, the error would appear hours later, and the report would be lost with the container of the job.

    :param seen: result of the check of the destination; None if the archive is not stored, for which the list is empty
    """
    if seen is None:
        return []
    expected = "a writable folder, or an address that responds"
    if not seen.error:
        return [build_pass("validate.archive", VARIABLE, seen.place, expected)]
    why = (
        "The run could not store the archive of the report there when it ends. If Ansible runs in a container, the"
        " report is lost with the container."
    )
    remedy = f"{format_clause(seen.remedy, f'Correct this error, or set {VARIABLE} to another folder or address')}."
    return [refuse_value("archive", VARIABLE, seen.error, expected, why, remedy)]


def _check_schema(intent: Intent) -> typing.Iterator[Finding]:
    yield build_pass(
        "validate.intent",
        "intent",
        f"{count_of(len(intent.fabrics), 'fabric')}, {count_of(len(intent.waivers), 'waiver')}",
        "types and keys of the schema",
    )


def _check_measures(intent: Intent) -> list[Finding]:
    findings = run_rule(_check_compared_measures, intent)
    return findings or [
        build_pass(
            "validate.measures",
            "rdma_cluster.measures",
            count_of(len(intent.cluster.measures), "measure"),
            "comparable figures",
        )
    ]


def _check_compared_measures(intent: Intent) -> typing.Iterator[Finding]:
    why = "Stage compare compares its own results with this measure, and cannot do so with this value."
    for path, seen, expected in mistakes.report_mistakes(intent):
        yield refuse_value(
            "measures", path, seen, expected, why, f"Set {path} in the intent to the value under 'expected'."
        )


def _check_collectives(intent: Intent, nodes: typing.Sequence[str]) -> list[Finding]:
    """Check that the settings in ``rdma_cluster.collectives`` are valid, and that they fit the fabrics and the number
    of nodes. The list is empty if the key is not set.

    :param nodes: names of the nodes of the inventory
    """
    wanted = intent.cluster.collectives
    if wanted is None:
        return []
    findings = [
        refuse_value(
            "collectives", f"rdma_cluster.collectives.{item.key}", item.measured, item.expected, item.why, item.remedy
        )
        for item in find_mistakes(wanted, intent.fabrics, nodes)
    ]
    return findings or [
        build_pass(
            "validate.collectives",
            "rdma_cluster.collectives",
            count_of(len(wanted.tests), "test"),
            "settings that do not contradict each other",
        )
    ]
