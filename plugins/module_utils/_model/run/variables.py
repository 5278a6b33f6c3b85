# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of variables that a user may set: misspelled names, and values of the wrong type. Ansible reports neither."""

from __future__ import annotations

import typing

from ..base.load_error import suggest_nearest
from .public_names import ROLE_VARIABLES

#: variables that the collection reads from the inventory, beside the options of its roles, with the types of those that
#: are no text and no mapping
RDMA_VARIABLES: dict[str, str] = {
    "rdma_fabrics": "",
    "rdma_waivers": "",
    "rdma_cluster": "",
    "rdma_job": "",
    "rdma_kubeconfig": "",
    "rdma_sysfs": "",
    "rdma_observers": "",
    "rdma_observers_image": "",
    "rdma_observers_namespace": "",
    "rdma_listed_by_cluster": "bool",
    "rdma_strict_images": "bool",
    "rdma_disruption": "",
    "rdma_disruption_of_job": "",
    "rdma_report_dir": "",
    "rdma_report_keep": "int",
    "rdma_report_archive": "",
    "rdma_report_archive_ca": "",
    "rdma_report_archive_keep": "int",
    "rdma_report_pages": "",
    "rdma_judged_dir": "",
    "rdma_intent_applied": "bool",
    "rdma_evidence": "",
    "rdma_evidence_sha256": "",
    "rdma_signature": "",
    "rdma_before_dir": "",
    "rdma_query": "",
    "rdma_proposal": "",
    "rdma_proposal_namespace": "",
    "rdma_from": "",
    "rdma_facts_max_age": "int",
    "rdma_bmc_address": "",
    "rdma_bmc_port": "",
    "rdma_bmc_user": "",
    "rdma_bmc_password": "",
    "rdma_bmc_token": "",
    "rdma_bmc_fingerprint": "",
    "rdma_bmc_system": "",
    "rdma_bmc_identity": "",
}
PREFIX = "rdma_"
#: names that a user would expect beside rdma_kubeconfig, and the variable of the environment that has their effect
OF_ENVIRONMENT = {
    f"{PREFIX}{name}": "K8S_AUTH_CONTEXT" for name in ("context", "kubecontext", "kube_context", "kubeconfig_context")
}
#: names of others that are one letter from one of ours: the SR-IOV network operator is installed by many a role
_OF_OTHERS = ("operator_namespace",)
#: characters behind the first word of a name from which two of them may be wrong
_LONG = 8
#: ends of a name that is a time: the unit behind it is what is forgotten
_TIMES = ("_limit", "_timeout", "_wait")
#: what Ansible takes for a truth value, in small letters
_TRUTHS = ("yes", "on", "1", "true", "t", "1.0", "y", "no", "off", "0", "false", "f", "0.0", "n")
#: by the type of an option: what it can be, in words
EXPECTED = {"bool": "true or false", "int": "a whole number"}


def correct_name(name: str) -> str:
    """Return the correct public name for a misspelled name of a variable. Return an empty text if the name is correct,
    or is not similar to any public name.

    The prefix ``rdma_`` belongs to the collection, so a name with this prefix is matched loosely. For names of role
    variables, one letter may be wrong, missing, surplus or swapped with its neighbor. Two such errors are allowed after
    a correct first word, and the unit of a time may be missing. For a name in ``OF_ENVIRONMENT``, the result is the
    environment variable that must be set instead.
    """
    if name in OF_ENVIRONMENT:
        return OF_ENVIRONMENT[name]
    if name in RDMA_VARIABLES or name in ROLE_VARIABLES or name in _OF_OTHERS:
        return ""
    if name.startswith(PREFIX):
        # without the prefix that all of them share, or any two would look alike
        hint = suggest_nearest(name[len(PREFIX) :], [known[len(PREFIX) :] for known in RDMA_VARIABLES])
        return f"{PREFIX}{hint.split(chr(39))[1]}" if hint else ""
    for known in (*RDMA_VARIABLES, *ROLE_VARIABLES):
        if _is_misspelling(name, known):
            return known
    return ""


def list_own_names(names: typing.Iterable[str]) -> tuple[str, ...]:
    """Return, sorted, the names that start with the prefix of the collection or are misspellings of its public
    names.
    """
    return tuple(sorted(name for name in names if name.startswith(PREFIX) or correct_name(name)))


def list_unread_names(names: typing.Iterable[str]) -> tuple[str, ...]:
    """Return those names that start with the prefix of the collection, but are neither public names of the collection
    nor misspellings of them.
    """
    return tuple(
        name
        for name in names
        if name.startswith(PREFIX)
        and name not in RDMA_VARIABLES
        and name not in ROLE_VARIABLES
        and not correct_name(name)
    )


def suggest_variable_name(name: str) -> str:
    """Return a hint with the correct name, such as ``did you mean 'rdma_waivers'?``. Return an empty text if the name
    is not a misspelling.

    :param name: name of a variable
    """
    if name in OF_ENVIRONMENT:
        return f"did you mean '{correct_name(name)}', which is an environment variable?"
    return f"did you mean '{correct_name(name)}'?" if correct_name(name) else ""


def describe_allowed(name: str) -> str:
    """Return the allowed values of a variable in words. Return an empty text if its values are not checked here.

    :param name: public name of a variable
    """
    return EXPECTED.get(type_of(name), "")


def describe_mistakes(
    names: typing.Iterable[str], values: typing.Mapping[str, str], places: typing.Mapping[str, str]
) -> list[str]:
    """Return one error message for each misspelled name, and one for each invalid value.

    :param names: names of variables to check; a correct name gets no message
    :param values: invalid values, by name of the variable
    :param places: file and line in which each variable was set, if known
    """

    def shown(name: str) -> str:
        return f"{name} ({places[name]})" if places.get(name) else name

    found = [
        f"{shown(name)} is not a variable of this collection ({suggest_variable_name(name)})"
        for name in names
        if suggest_variable_name(name)
    ]
    return found + [
        f"{shown(name)} is '{value}'; expected {describe_allowed(name)}" for name, value in sorted(values.items())
    ]


def is_refused(name: str, value: typing.Any) -> bool:
    """Return whether a value has the wrong type for a variable. A variable without a known type accepts any value.
    Empty values, lists and mappings are not checked here, because the argument specification of the role checks them.

    :param name: public name of a variable
    :param value: value that the user set
    """
    kind = type_of(name)
    if value is None or value == "" or isinstance(value, (dict, list, tuple)):
        # whatever is to be said of these, the role says it
        return False
    text = str(value).strip().lower()
    if kind == "bool":
        return text not in _TRUTHS
    return kind == "int" and not text.lstrip("+-").isdecimal() and not isinstance(value, float)


def type_of(name: str) -> str:
    """Return the Ansible type of a variable, or an empty text if its type is not checked here.

    :param name: public name of a variable
    """
    kind = RDMA_VARIABLES.get(name) or ROLE_VARIABLES.get(name, "")
    return kind if kind in EXPECTED else ""


def _is_misspelling(name: str, known: str) -> bool:
    if name.endswith(_TIMES) and known in (f"{name}_seconds", f"{name}_ms"):
        return True
    # one mistake leaves both letters of one end as they are; and an inventory may have thousands of variables
    if (name[:2] != known[:2] and name[-2:] != known[-2:]) or abs(len(name) - len(known)) > 2:
        return False
    first, mark, rest = known.partition("_")
    many = len(rest) > _LONG and name.startswith(first + mark)
    return _count_edits(name, known) <= (2 if many else 1)


def _count_edits(one: str, other: str) -> int:
    """Return how many letters must be changed, inserted, deleted or swapped with their neighbor to turn one name into
    the other. The count stops early if it exceeds 2.
    """
    rows: list[list[int]] = [list(range(len(other) + 1))]
    for i, letter in enumerate(one, 1):
        row = [i]
        for j, their in enumerate(other, 1):
            cost = min(rows[i - 1][j] + 1, row[j - 1] + 1, rows[i - 1][j - 1] + (letter != their))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == their:
                cost = min(cost, rows[i - 2][j - 2] + 1)
            row.append(cost)
        if min(row) > 2:
            return min(row)
        rows.append(row)
    return rows[-1][-1]
