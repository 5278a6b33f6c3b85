# SPDX-License-Identifier: GPL-3.0-or-later

"""The owner of a file on a node: the intent that wrote the file names itself in a comment. Two intents may select one
node, and a run changes and removes only the files of its own intent.

A file without the comment, which an earlier release wrote, belongs to an intent that asks for such a file on the node.
"""

from __future__ import annotations

import re
import typing

from ..base.marks import USER_LABEL, build_user_label

#: of the form of a label
_OWNER = re.compile(r"^# intent: ([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)$", re.MULTILINE | re.ASCII)
_REMEDY = (
    "If both intents need the node, set the same {setting} in both, and give each intent its own"
    " rdma_cluster.intent_name. If the files are of this intent, such as after a change of intent_name or"
    " node_selector, run on each node, as root: {rename}. If no intent of that name is left, run on the node, as root:"
    " rm -f {paths}. Then run stage {stage} again."
)


def build_owner(intent: str, selector: typing.Mapping[str, str]) -> str:
    """Return the name by which an intent marks its files. With the default name it has a digest of the labels of the
    nodes, because two intents may both have that name.

    :param intent: name of the intent; empty: the default
    :param selector: labels of the nodes that the intent selects
    """
    (label,) = build_user_label(intent, selector)
    return label[len(USER_LABEL) :]


def format_owner(owner: str) -> str:
    """Return the line of a file that names the intent; empty without an owner."""
    return f"# intent: {owner}\n" if owner else ""


def find_owner(text: str) -> str:
    """Return the name of the intent that wrote a file; empty if the file names none."""
    found = _OWNER.search(text)
    return found[1] if found is not None else ""


def is_of_other_intent(text: str, owner: str) -> bool:
    """Return whether a file names another intent than this one as its owner. Return False for a file without an owner.

    :param text: text of the file; empty if there is no file
    :param owner: name by which this intent marks its files
    """
    return find_owner(text) not in ("", owner)


def has_settings(text: str, wanted: str) -> bool:
    """Return whether a file has all the settings of another text. Settings are the lines that are neither empty nor
    comments; their order does not matter.

    :param text: text of the file
    :param wanted: text with the settings that the file must have
    """
    return _list_settings(wanted) <= _list_settings(text)


def explain_owner(path: str, text: str, setting: str) -> str:
    """Return why a file of another intent is not replaced.

    :param path: path of the file
    :param text: text of the file
    :param setting: setting of the intent that the file has
    """
    return f"{path} belongs to the intent '{find_owner(text)}' and has other values than {setting} of this intent"


def describe_owner_remedy(paths: str, setting: str, stage: str, owner: str) -> str:
    """Return the remedy for a file of another intent that is not replaced.

    :param paths: paths of the files that the intents share
    :param setting: setting of the intent that the file has
    :param stage: stage that writes the file
    :param owner: name by which this intent marks its files
    """
    return _REMEDY.format(paths=paths, setting=setting, stage=stage, rename=make_rename_command(paths, owner))


def make_rename_command(paths: str, owner: str) -> str:
    """Return the shell command that replaces the intent that files name as their owner, such as after the intent was
    renamed. Files that do not exist are skipped.

    :param paths: paths of the files, separated by blanks
    :param owner: new name of the intent
    """
    return f"for file in {paths}; do test ! -e $file || sed -i 's/^# intent: .*/# intent: {owner}/' $file; done"


def _list_settings(text: str) -> set[str]:
    return {line for line in text.splitlines() if line and not line.startswith("#")}
