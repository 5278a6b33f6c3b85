# SPDX-License-Identifier: GPL-3.0-or-later

"""Variables that a user may set: which name is a misspelt one, and which value none that its variable can have. Ansible
itself says neither."""

from __future__ import annotations

import typing

from ..base.load_error import nearest
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
#: what Ansible takes for a truth value, in small letters
_TRUTHS = ("yes", "on", "1", "true", "t", "1.0", "y", "no", "off", "0", "false", "f", "0.0", "n")
#: by the type of an option: what it can be, in words
EXPECTED = {"bool": "true or false", "int": "a whole number"}


def meant(name: str) -> str:
    """Return the public name of which ``name`` is a misspelling; empty for a public name, and for one that is nobody's
    or somebody else's.

    A name with the prefix ``rdma_`` belongs to the collection, and one that looks remotely like one of its variables is
    taken for it. Of the names of roles one letter may be wrong, missing, too many or in its neighbour's place; two of
    them behind a right first word. For a name of ``OF_ENVIRONMENT`` it is the variable of the environment.
    """
    if name in OF_ENVIRONMENT:
        return OF_ENVIRONMENT[name]
    if name in RDMA_VARIABLES or name in ROLE_VARIABLES or name in _OF_OTHERS:
        return ""
    if name.startswith(PREFIX):
        # without the prefix that all of them share, or any two would look alike
        hint = nearest(name[len(PREFIX) :], [known[len(PREFIX) :] for known in RDMA_VARIABLES])
        return f"{PREFIX}{hint.split(chr(39))[1]}" if hint else ""
    for known in (*RDMA_VARIABLES, *ROLE_VARIABLES):
        if _is_misspelling(name, known):
            return known
    return ""


def ours(names: typing.Iterable[str]) -> tuple[str, ...]:
    """Return those names, sorted, that belong to the collection by their prefix, or are a misspelling of one that
    does."""
    return tuple(sorted(name for name in names if name.startswith(PREFIX) or meant(name)))


def suggest(name: str) -> str:
    """Return the question whether the user means another name, for a misspelt one; empty for any other."""
    if name in OF_ENVIRONMENT:
        return f"did you mean '{meant(name)}', a variable of the environment?"
    return f"did you mean '{meant(name)}'?" if meant(name) else ""


def expected(name: str) -> str:
    """Return what a variable can be, in words; empty where any value is taken here."""
    return EXPECTED.get(type_of(name), "")


def mistakes(
    names: typing.Iterable[str], values: typing.Mapping[str, str], places: typing.Mapping[str, str]
) -> list[str]:
    """Return a text for each name that is misspelt, and for each value that its variable can't have.

    :param values: that were refused, by variable
    :param places: file and line in which a variable was written, where they are known
    """

    def shown(name: str) -> str:
        return f"{name} ({places[name]})" if places.get(name) else name

    found = [f"{shown(name)} is no variable of the collection ({suggest(name)})" for name in names if suggest(name)]
    return found + [f"{shown(name)} is '{value}'; expected {expected(name)}" for name, value in sorted(values.items())]


def is_refused(name: str, value: typing.Any) -> bool:
    """Return whether the variable can't have this value, by its type. One that is not known to have a type can have
    any."""
    kind = type_of(name)
    if value is None or value == "" or isinstance(value, (dict, list, tuple)):
        # whatever is to be said of these, the role says it
        return False
    text = str(value).strip().lower()
    if kind == "bool":
        return text not in _TRUTHS
    return kind == "int" and not text.lstrip("+-").isdecimal() and not isinstance(value, float)


def type_of(name: str) -> str:
    """Return the type of a variable, as Ansible calls it; empty where it has none that is checked here."""
    kind = RDMA_VARIABLES.get(name) or ROLE_VARIABLES.get(name, "")
    return kind if kind in EXPECTED else ""


def _is_misspelling(name: str, known: str) -> bool:
    # one mistake leaves both letters of one end as they are; and an inventory may have thousands of variables
    if (name[:2] != known[:2] and name[-2:] != known[-2:]) or abs(len(name) - len(known)) > 2:
        return False
    first, mark, rest = known.partition("_")
    many = len(rest) > _LONG and name.startswith(first + mark)
    return _count_edits(name, known) <= (2 if many else 1)


def _count_edits(one: str, other: str) -> int:
    """Count the letters that must be changed, put in, taken out or exchanged with their neighbour; more than 2 are not
    counted to their end."""
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
