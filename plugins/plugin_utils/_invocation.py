# SPDX-License-Identifier: GPL-3.0-or-later

"""Validate the command line of ansible-playbook. Pure."""

from __future__ import annotations

import os
import re
import typing

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.load_error import suggest_nearest
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.tags import is_selected
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.findings import STAGES

#: playbook of all stages
SITE = "site"
#: tags of Ansible that cover all others
_COVERING = ("all", "tagged")
#: options of ansible-playbook by which nothing runs. With --list-tags Ansible itself sets a tag of its own
ONLY_LISTS = ("listtags", "listtasks", "listhosts", "syntax")
#: names by which Ansible has a localhost that no inventory has
_LOCALHOST = ("localhost", "127.0.0.1", "::1")
#: variables of the environment that name files of the credentials
_FILES = ("KUBECONFIG", "K8S_AUTH_KUBECONFIG", "K8S_AUTH_SSL_CA_CERT", "K8S_AUTH_CERT_FILE", "K8S_AUTH_KEY_FILE")
_NAME = re.compile(r"linerate\.rdma\.(\w{1,60})", re.ASCII)


def list_playbooks(given: typing.Iterable[str], folders: typing.Collection[str]) -> tuple[str, ...]:
    """Return the short names of the playbooks on the command line, such as ``site``. Return an empty tuple unless all
    of them are playbooks of this collection, since other playbooks have tags of their own.

    :param given: playbooks as they were typed, by full name (``linerate.rdma.site``) or by path; paths without symbolic
        links
    :param folders: folders with the playbooks of this collection
    """
    names = []
    for typed in given:
        folder, name = os.path.split(re.sub(r"\.ya?ml$", "", typed))
        match = _NAME.fullmatch(name)
        if not folder and match:
            names.append(match[1])
        elif folder in folders:
            names.append(name)
        else:
            return ()
    return tuple(names)


def complete_paths(environment: typing.Mapping[str, str], folder: str) -> dict[str, str]:
    """Return those environment variables that name credential files by relative paths, with absolute paths as their
    values. Modules on localhost run in the folder of the playbook, where a relative path would name another file.

    :param environment: environment variables of ansible-playbook by name
    :param folder: current folder of ansible-playbook
    """
    found = {}
    for name in _FILES:
        # several paths, as in KUBECONFIG
        parts = environment.get(name, "").split(os.pathsep)
        if any(map(_is_relative, parts)):
            found[name] = os.pathsep.join(
                os.path.normpath(os.path.join(folder, part)) if _is_relative(part) else part for part in parts
            )
    return found


def _is_relative(path: str) -> bool:
    # whoever reads it expands ~
    return bool(path) and not path.startswith("~") and not os.path.isabs(path)


def explain_refusal(
    tags: typing.Iterable[str],
    skip_tags: typing.Iterable[str],
    start_at_task: typing.Optional[str],
    playbooks: typing.Sequence[str] = (SITE,),
) -> str:
    """Return the reason why playbooks of this collection must not run with these options: an unknown tag, tags that
    exclude everything, or a start in the middle of a stage. Return an empty text if they may run.

    Ansible runs nothing for an unknown tag, and exits with 0. An unknown tag in ``--skip-tags`` is accepted, because
    molecule excludes tags of its own.

    :param tags: values of ``--tags``
    :param skip_tags: values of ``--skip-tags``
    :param start_at_task: value of ``--start-at-task``; None if it is not set
    :param playbooks: short names of the playbooks. A playbook other than site has only one tag, its own name
    """
    tags, skip_tags = list(dict.fromkeys(map(str, tags))), list(dict.fromkeys(map(str, skip_tags)))
    own = [name for name in playbooks if name != SITE]
    names = (*STAGES, "report", *own) if SITE in playbooks else tuple(own)
    what, known = _describe_tags(playbooks)
    if start_at_task:
        return (
            f"--start-at-task '{start_at_task}' was given. {'A stage' if SITE in playbooks else 'A playbook'} that"
            " starts in the middle verifies nothing, and Ansible exits with 0 if no task has that name."
            f" {_name_way_in(playbooks)}"
        )
    unknown = [tag for tag in tags if tag not in (*names, *_COVERING)]
    if unknown:
        return (
            f"--tags contains {', '.join(unknown)}, which is not a {what}{suggest_nearest(unknown[0], names)}; {known}"
        )
    left = [name for name in names if is_selected(name, tags, skip_tags)]
    return (
        ""
        if left
        else f"--tags {','.join(tags) or 'all'} and --skip-tags {','.join(skip_tags)} leave no"
        f" {'stage' if SITE in playbooks else 'task'} to run; {known}"
    )


def _describe_tags(playbooks: typing.Sequence[str]) -> tuple[str, str]:
    """Return two texts for messages: what a tag of these playbooks is, such as ``stage``, and the list of their tags as
    a sentence.
    """
    if SITE in playbooks:
        return "stage", f"the stages are {', '.join(STAGES)}, followed by report"
    called = ", ".join(f"linerate.rdma.{name}" for name in playbooks)
    tags = f"the tag{'' if len(playbooks) == 1 else 's'} {', '.join(playbooks)}"
    return f"tag of {called}", f"{'it has' if len(playbooks) == 1 else 'they have'} only {tags}"


def _name_way_in(playbooks: typing.Sequence[str]) -> str:
    if SITE in playbooks:
        return (
            "Resume at a stage with -e rdma_from=<stage>, or run selected stages with --tags;"
            f" {_describe_tags(playbooks)[1]}"
        )
    return "Run the playbook without this option"


def explain_limit(patterns: typing.Sequence[str], by_inventory: bool, cause: str, has_nodes: bool = False) -> str:
    """Return the reason why a run with ``--limit`` would check nothing: ``--limit`` excludes localhost, on which each
    playbook begins and reports its verdict. Return an empty text if there is no ``--limit``, or if it includes
    localhost.

    :param patterns: parts of the value of ``--limit``
    :param by_inventory: whether localhost is among the hosts of the run
    :param cause: reason why a source of the inventory has no nodes, which is added to the result; empty if all sources
        were read
    :param has_nodes: whether other sources of the inventory have nodes
    """
    if not patterns or by_inventory or _has_implicit_localhost(patterns):
        return ""
    limit = ",".join(patterns)
    remedy = f"ame localhost as well: --limit 'localhost,{limit}'"
    why = f"--limit '{limit}' excludes localhost, where each playbook begins and reports its verdict"
    if cause:
        lack = "a source of the inventory could not be read" if has_nodes else "the inventory contains no nodes"
        return f"{lack}: {cause}. In addition, {why}. Correct the cause, and n{remedy}"
    return f"{why}. N{remedy}"


def _has_implicit_localhost(patterns: typing.Sequence[str]) -> bool:
    """Return whether ``--limit`` selects the implicit localhost, which no inventory contains. Only a pattern with its
    name (or its address) selects it. The pattern ``all`` and wildcards do not.

    :param patterns: parts of the value of ``--limit``; ``!`` excludes, and ``&`` requires
    """
    narrowed = [pattern[1:] for pattern in patterns if pattern.startswith("&")]
    return (
        any(pattern in _LOCALHOST for pattern in patterns)
        and not any(pattern.startswith("!") and pattern[1:] in _LOCALHOST for pattern in patterns)
        and all(pattern in _LOCALHOST for pattern in narrowed)
    )
