# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""Mark texts that come from the cluster, a node or a pod as unsafe, so that Ansible never evaluates them as templates.

The sources of ansible-core 2.16.19, 2.18.19 and 2.19.14 show what it marks by itself.

From 2.19 on, a string is a template only if it is tagged as trusted (_internal/_datatag/_tags.py, TrustedAsTemplate).
Strings that modules, actions, lookups, filters and inventory plugins create do not have that tag (``trusted_by_default
= False`` in plugins/inventory/__init__.py). This collection has nothing to mark there.

In 2.16 and 2.18, each string is a template unless it is marked as unsafe. These versions mark:

- the result of a module or action that returned it, including its facts (executor/task_executor.py, ``result =
  wrap_var(result)``), and facts from the cache
- the result of a lookup (template/__init__.py, ``_lookup``), unless the caller sets ``allow_unsafe``
- the message of an AnsibleError of an action or a filter (executor/task_executor.py, ``run``)
- the result of a template that used an unsafe value, and with it the result of filters for such values
  (template/__init__.py, ``AnsibleContext.unsafe``)

They do not mark:

- variables that an inventory plugin sets (inventory/data.py), and the values that ``compose``, ``groups`` and
  ``keyed_groups`` use (plugins/inventory/__init__.py). plugins/inventory/nodes.py marks them
- the message of a lost connection, ``dict(unreachable=True, msg=to_text(e))``, which by ssh contains the banner of the
  node. ``Unreachable`` marks it. An error of ansible.builtin.ssh in a module of another collection becomes an
  ``Unreachable`` only in the module on_node, which the roles use where they register such a result
- the message of an AnsibleActionFail, which ``validate_argument_spec`` raises with the value that it refuses.
  _controller.py returns it as a result
- the traceback of an exception that is not an error of Ansible, ``exception`` beside ``msg``. _unforeseen.py lets no
  such exception leave a plugin. A rescue gets the result as ``ansible_failed_result``, and a template that names any
  part of it evaluates all of it. The rescues of this collection therefore use the lookup ``failure``, which does not
  evaluate it
"""

from __future__ import annotations

import dataclasses
import enum
import json
import typing

from ansible.errors import AnsibleConnectionFailure

from ansible_collections.linerate.rdma.plugins.module_utils._model.base import escape
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.text import cut_text, kind_of
from ansible_collections.linerate.rdma.plugins.module_utils._parse.limits import (
    count_values,
)

try:
    from ansible.utils.unsafe_proxy import wrap_var
except ImportError:  # pragma: no cover
    # its source announces its end for 2.23, where no string is a template by itself
    def wrap_var(v: typing.Any) -> typing.Any:
        return v


Value = typing.TypeVar("Value")

#: keys by which the result of any module changes a run: variables of hosts, hosts, groups, custom statistics, tasks,
#: the outcome of the task, its loop and its attempts [ansible-core plugins/strategy/__init__.py
#: _process_pending_results, executor/task_executor.py, executor/task_result.py, playbook/included_file.py,
#: plugins/callback/__init__.py]. Beside these, keys that begin with _INTERNAL
_ACTED_ON = frozenset(
    {"ansible_facts", "add_host", "add_group", "ansible_stats", "include", "include_args"}
    | {"results", "failed_when_result", "changed_when_result", "failed_when_suppressed_exception"}
    | {"attempts", "retries", "censored", "item", "ansible_loop", "ansible_loop_var", "ansible_index_var"}
)
_INTERNAL = "_ansible_"
#: that of ansible-core itself in an answer: whether it was JSON
_PARSED = "_ansible_parsed"
#: warnings of one answer, and characters of each: ansible-playbook itself prints them, and no other node is served
#: meanwhile
_MOST_WARNINGS, _MOST_WARNING = 20, 2000
#: differences of one answer, and characters and lines of each side: difflib takes the cube of what differs, in
#: ansible-playbook itself
_MOST_DIFFERENCES, _MOST_DIFFERENCE, _MOST_DIFFERENCE_LINES = 8, 8000, 200
#: an action plugin asks with it that its result is not shown. The answer of a module never has it [ansible-core
#: vars/clean.py, remove_internal_keys]
_NO_LOG = "_ansible_no_log"
#: keys that ansible-core takes for true or false
_FLAGS = frozenset({"changed", "failed", "skipped", "unreachable"})
#: keys whose words ansible-core shows on the terminal [plugins/callback/__init__.py, _handle_exception, _dump_results]
_SHOWN = frozenset({"msg", "module_stdout", "module_stderr", "skip_reason"})
#: characters of each text that is shown, and of each text in an answer that failed: more than any answer to on_node has
_MOST_SHOWN = 128 * 1024
#: keys of texts that are cut whatever came of the task
_SHORT = _SHOWN | {"exception"}
#: keys that ansible-core takes for text, and for lists of it
TEXTS, _LINES = frozenset({"stdout", "stderr"}), frozenset({"stdout_lines", "stderr_lines"})
#: what a deprecation may have, so that it can be shown [ansible-core utils/display.py, deprecated]: with ``removed`` it
#: raises
_DEPRECATION = ("msg", "version", "date", "collection_name")
#: keys whose values a module makes of classes of ansible-core from 2.19 on, and the names of these
_SUMMARIES = {"warnings": "WarningSummary", "deprecations": "DeprecationSummary", "exception": "ErrorSummary"}
#: how a value of a class that was made of one becomes one
_PLAIN: typing.Sequence[tuple[type, typing.Callable[[typing.Any], typing.Any]]] = (
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
)
#: texts of a difference, and sizes in it [ansible-core plugins/callback/__init__.py, _get_diff]
_DIFF_TEXTS, _DIFF_SIZES = (
    ("before_header", "after_header", "prepared"),
    ("dst_binary", "src_binary", "dst_larger", "src_larger"),
)


def mark_outside(value: Value) -> Value:
    """Return a value with all of its texts marked as unsafe, so that Ansible does not evaluate them as templates. The
    value may contain lists and dictionaries, whose keys are marked too. The result compares equal to ``value``.
    """
    return typing.cast(Value, wrap_var(value))


class Unreachable(AnsibleConnectionFailure):  # type: ignore[misc]
    """The error of a lost connection. Its message is marked as unsafe, since it contains text of the API server, the
    kubelet or the container.
    """

    def __str__(self) -> str:
        return mark_outside(str(super().__str__()))


def remove_effects(answer: typing.Mapping[str, typing.Any]) -> dict[str, typing.Any]:
    """Return the answer of a module on a node without the keys on which ansible-core acts. Values that ansible-core
    reads are converted to the type that it expects, or removed. Other keys are kept unchanged.

    The Python interpreter of a node is under the control of the node. An answer with ``ansible_facts`` would set
    variables of the host that override those of the inventory, such as the kubeconfig of tasks on the controller, or
    the address of the node's BMC. Before 2.19, a key with another type, such as ``results`` with a number in it, ends
    ansible-playbook for all nodes.

    Texts that ansible-core shows unchanged are shortened, and their non-printing characters are escaped. For a failed
    answer these are all values, and the names of the keys.
    """
    kept: dict[str, typing.Any] = {}
    for key, value in answer.items():
        if key in _ACTED_ON or (key.startswith(_INTERNAL) and not (key == _NO_LOG and isinstance(value, bool))):
            continue
        held = _coerce_result_value(key, value)
        if held is not None:
            kept[key] = held
    code = answer.get("rc")
    if "failed" not in kept and "rc" in answer and "rc" not in kept:
        # what is no exit code is not 0, as ansible-core sees it
        kept["failed"] = code not in (0, "0")
    if kept.get("failed") or kept.get("unreachable"):
        # the texts that are shown of any answer are cut and escaped by now
        return {
            escape_nonprinting(cut_text(key, _MOST_SHOWN)): value
            if key in _SHORT and isinstance(value, str)
            else _shorten_failed_value(value)
            for key, value in kept.items()
        }
    return kept


def _coerce_result_value(key: str, value: typing.Any) -> typing.Any:
    """Return a value converted to the type that ansible-core expects for the key. Return None if the conversion is not
    possible. A value whose key ansible-core does not use is returned unchanged.
    """
    if key in _FLAGS:
        return bool(value)
    if key in _SHOWN:
        return None if value is None else escape_nonprinting(cut_text(format_said(value), _MOST_SHOWN))
    if key in TEXTS:
        return value if isinstance(value, str) else None
    if key in _LINES:
        return [line for line in value if isinstance(line, str)] if isinstance(value, list) else None
    if key == "rc":
        return value if isinstance(value, int) and not isinstance(value, bool) else None
    if key == "invocation":
        return value if isinstance(value, dict) else None
    if key == "exception":
        text = cut_text(value, _MOST_SHOWN) if isinstance(value, str) else value
        return escape_nonprinting(text) if isinstance(value, str) or _is_summary(value) else None
    if key == "warnings":
        return (
            [
                escape_nonprinting(item if _is_summary(item) else cut_text(format_said(item), _MOST_WARNING))
                for item in _limit_warnings(value)
            ]
            if isinstance(value, (list, tuple))
            else None
        )
    if key == "deprecations":
        return (
            list(filter(None, map(_clean_deprecation, value[:_MOST_WARNINGS])))
            if isinstance(value, (list, tuple))
            else None
        )
    if key == "diff":
        return (
            [_clean_diff(item) for item in value[:_MOST_DIFFERENCES] if isinstance(item, dict)]
            if isinstance(value, list)
            else _clean_diff(value)
        )
    return value


def _limit_warnings(warnings: typing.Sequence[typing.Any]) -> list[typing.Any]:
    """Return the first _MOST_WARNINGS warnings, followed by a text with the number of the remaining ones if there are
    any.
    """
    more = len(warnings) - _MOST_WARNINGS
    return [*warnings[:_MOST_WARNINGS], *([f"and {more} more warnings"] if more > 0 else [])]


def format_said(value: typing.Any) -> str:
    """Return a text unchanged, and any other value as JSON. A value that is too large to be shown is replaced by a note
    with its type.
    """
    if isinstance(value, str):
        return value
    return _left_out(value) if _is_large(value) else json.dumps(value, default=str)


def _shorten_failed_value(value: typing.Any) -> typing.Any:
    """Return a value of a failed result with escapes for non-printing characters. A text is cut to _MOST_SHOWN
    characters. Any other value that is too large is replaced by a note with its type.
    """
    if isinstance(value, str):
        return escape_nonprinting(cut_text(value, _MOST_SHOWN))
    return _left_out(value) if _is_large(value) else escape_nonprinting(value)


def _left_out(value: typing.Any) -> str:
    return f"{kind_of(value)}, left out: it has more than {_MOST_SHOWN} characters"


def _is_large(value: typing.Any) -> bool:
    """Return whether a value is too large to be shown. Each character of its texts and each item of its lists and
    mappings counts as one, and the limit is _MOST_SHOWN.
    """
    left, open_values = _MOST_SHOWN, [value]
    while open_values:
        item = open_values.pop()
        left -= len(item) if isinstance(item, (str, dict, list, tuple)) else 1
        if left < 0:
            return True
        if isinstance(item, dict):
            open_values += [*item, *item.values()]
        elif isinstance(item, (list, tuple)):
            open_values += item
    return False


def _is_summary(value: typing.Any) -> bool:
    """Return whether a value is a warning, a deprecation or an error object of ansible-core 2.19 and later."""
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _clean_deprecation(item: typing.Any) -> typing.Any:
    if _is_summary(item):
        return escape_nonprinting(item)
    if not isinstance(item, dict) or "msg" not in item:
        return None
    return {
        key: escape_nonprinting(cut_text(format_said(item[key]), _MOST_WARNING)) if item[key] is not None else None
        for key in _DEPRECATION
        if key in item
    }


def _clean_diff(item: typing.Any) -> typing.Any:
    if not isinstance(item, dict):
        return None
    kept: dict[str, typing.Any] = {key: _side(item[key]) for key in _DIFF_TEXTS if key in item}
    kept.update({key: item[key] for key in _DIFF_SIZES if isinstance(item.get(key), int)})
    # a mapping is shown as JSON; nothing is shown as an empty text
    kept.update({key: _side(item[key] or "") for key in ("before", "after") if key in item})
    return kept


def _side(value: typing.Any) -> typing.Any:
    """Return the text ``before`` or ``after`` of a diff, shortened to the length that is shown, with escapes for
    non-printing characters. A short mapping remains a mapping, and any other value becomes JSON.
    """
    text = format_said(value)
    is_short = len(text) <= _MOST_DIFFERENCE and count_values(text) <= _MOST_DIFFERENCE_LINES
    if isinstance(value, dict) and is_short and not _is_large(value):
        return escape_nonprinting(value)
    shown = "".join(text[:_MOST_DIFFERENCE].splitlines(keepends=True)[:_MOST_DIFFERENCE_LINES])
    return escape_nonprinting(
        shown if len(shown) == len(text) else shown.rstrip("\n") + f"\n... truncated: it has {len(text)} characters\n"
    )


def escape_nonprinting(value: typing.Any) -> typing.Any:
    """Return a value with an escape for each non-printing character in its texts, including the keys of mappings. A
    text without such characters is returned as the same object.
    """
    kind = type(value)
    if isinstance(value, str):
        seen = escape.escape_nonprinting(value, "\n\t")
        return value if seen == value else seen if kind is str else mark_outside(seen)
    if isinstance(value, list):
        return [escape_nonprinting(item) for item in value]
    if isinstance(value, tuple):
        return tuple(escape_nonprinting(item) for item in value)
    if isinstance(value, dict):
        return {escape_nonprinting(key): escape_nonprinting(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        # a warning of ansible-core 2.19 and later
        return dataclasses.replace(
            value,
            **{
                field.name: escape_nonprinting(getattr(value, field.name))
                for field in dataclasses.fields(value)
                if field.init
            },
        )
    return value


def remove_internals(answer: typing.Any) -> typing.Any:
    """Return the decoded answer of a module without the keys that only ansible-core may set. An answer that is not a
    mapping is returned unchanged. ansible-core would drop these keys as well, but quotes their values, which before
    2.19 takes half a minute for a value of 15 MiB [ansible-core vars/clean.py, remove_internal_keys].
    """
    if not isinstance(answer, dict):
        return answer
    facts = answer.get("ansible_facts", {})
    return {
        key: value
        for key, value in answer.items()
        if not (key.startswith(_INTERNAL) and key != _PARSED)
        and key not in ("add_host", "add_group")
        and not (key == "ansible_facts" and not isinstance(facts, dict))
    }


def remove_tags(node: str, answer: typing.Mapping[str, typing.Any]) -> dict[str, typing.Any]:
    """Return the decoded answer of a module with plain Python values only, except for warnings, deprecations and errors
    of ansible-core under their usual keys.

    From 2.19 on, ansible-core converts each mapping with the key ``__ansible_type`` to an object of its own, even if a
    node has sent the mapping. Such an object can make later templates show texts of the node, and makes a callback
    plugin fail if it is in an unusual place [ansible-core module_utils/_internal/_datatag,
    _json/_profiles/__init__.py].

    :param node: name of the node, for the message
    :raises AnsibleConnectionFailure: the answer contains another object of ansible-core, or one in an unusual place, or
        is nested too deeply
    """
    try:
        return {
            _make_plain(node, key): _make_plain(node, value, _SUMMARIES.get(key, "")) for key, value in answer.items()
        }
    except RecursionError:
        raise AnsibleConnectionFailure(f"{node} sent JSON that is nested too deeply: check its Python") from None


def _make_plain(node: str, value: typing.Any, summary: str = "") -> typing.Any:
    """Return a value with plain Python types instead of the types of ansible-core. A tuple becomes a list.

    :param node: name of the node, for the message
    :param value: a part of the decoded answer
    :param summary: name of the only class of ansible-core that the value, or each item of it, may have; empty if no
        such class is permitted
    :raises AnsibleConnectionFailure: the value has another type
    """
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    for plain_kind, make in _PLAIN:
        if isinstance(value, plain_kind):
            return make(value)
    if isinstance(value, dict):
        return {_make_plain(node, key): _make_plain(node, item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_make_plain(node, item, summary) for item in value]
    if summary and any(base.__name__ == summary for base in kind.__mro__):
        return _make_summary_plain(value)
    raise AnsibleConnectionFailure(
        f"{node} sent a value of type {kind.__name__}; expected JSON of plain values: check its Python"
    )


def _make_summary_plain(value: typing.Any) -> typing.Any:
    """Return a warning, a deprecation or an error of ansible-core whose texts are plain ``str`` objects, without the
    tags that ansible-core adds to texts.
    """
    if isinstance(value, str) and not isinstance(value, enum.Enum):
        return str.__str__(value)
    if isinstance(value, tuple):
        return tuple(map(_make_summary_plain, value))
    if not _is_summary(value):
        return value
    fields = (field.name for field in dataclasses.fields(value) if field.init)
    return dataclasses.replace(value, **{name: _make_summary_plain(getattr(value, name)) for name in fields})
