# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""Marks texts that came from the cluster, a node or a pod, so that Ansible never takes them for templates.

What ansible-core marks by itself, read in the sources of 2.16.19, 2.18.19 and 2.19.14:

- 2.19 and newer: a string is a template only if something trusted it (_internal/_datatag/_tags.py, TrustedAsTemplate).
  Modules, actions, lookups, filters and inventory plugins make strings without that tag (``trusted_by_default = False``
  in plugins/inventory/__init__.py). Nothing is left for us to mark.
- 2.16 and 2.18: each string is a template unless it is marked as unsafe. These cores mark
  - the result of a module or action that returned it, its facts too (executor/task_executor.py, ``result =
    wrap_var(result)``), and facts from the cache;
  - what a lookup returns (template/__init__.py, ``_lookup``), unless the caller says ``allow_unsafe``;
  - the message of an AnsibleError of an action or a filter (executor/task_executor.py, ``run``);
  - what comes out of a template into which an unsafe value went, so what filters make of such values
    (template/__init__.py, ``AnsibleContext.unsafe``).
  They do not mark
  - variables that an inventory plugin sets (inventory/data.py), nor the values that ``compose``, ``groups`` and
    ``keyed_groups`` see (plugins/inventory/__init__.py): plugins/inventory/nodes.py marks them;
  - the message of a lost connection, ``dict(unreachable=True, msg=to_text(e))``, which by ssh holds the banner of the
    node: ``Unreachable`` marks it. What ansible.builtin.ssh raises in a module of others becomes one only in the module
    on_node, which our roles use where they register such a result;
  - the message of an AnsibleActionFail, which ``validate_argument_spec`` raises with the value that it refuses:
    _controller.py makes a result of it;
  - the traceback of an exception that is none of Ansible, ``exception`` beside ``msg``: _unforeseen.py lets none out of
    a plugin. A rescue gets the result as ``ansible_failed_result``, and a template that names any part of it evaluates
    all: our rescues take the lookup ``failure``, which does not.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import typing

from ansible.errors import AnsibleAction, AnsibleConnectionFailure, AnsibleError
from ansible.utils.display import Display

from ansible_collections.linerate.rdma.plugins.module_utils._model.base import escape
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.text import cut, kind_of
from ansible_collections.linerate.rdma.plugins.module_utils._parse.limits import (
    BYTES_A_VALUE,
    MOST_ANSWER,
    count_values,
)
from ansible_collections.linerate.rdma.plugins.plugin_utils._bounded_ssh import bounded_ssh
from ansible_collections.linerate.rdma.plugins.plugin_utils._held_up import explain_why_not_asked, watched

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
#: where a line of a text begins that is not its first one
_INNER_LINE = re.compile(r"\n(?=[^\n])")
#: that of ansible-core itself in an answer: whether it was JSON
_PARSED = "_ansible_parsed"
#: methods by which ansible-core shows something while it serves a node, and characters of it. Those that begin with a
#: line are ways of 2.19 and later to another process
_SHOWS = {
    **dict.fromkeys(("warning", "system_warning", "deprecated", "error"), 2000),
    **dict.fromkeys(("display", "debug", "_verbose_display", "_verbose_log"), 65536),
}
#: characters of the words about a lost connection, and of what a module printed that is no JSON
_MOST_LOSS = _MOST_JUNK = 4000
#: warnings of one answer, and characters of each: ansible-playbook itself prints them, and no other node is served
#: meanwhile
_MOST_WARNINGS, _MOST_WARNING = 20, 2000
#: differences of one answer, and characters and lines of each side: difflib takes the cube of what differs, in
#: ansible-playbook itself
_MOST_DIFFERENCES, _MOST_DIFFERENCE, _MOST_DIFFERENCE_LINES = 8, 8000, 200
#: what ends a line for str.splitlines, and other white space
_ENDS, _BLANKS = r"[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", r"[^\S\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]*"
_LINE_ENDS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
#: the first line that begins with JSON, and all up to the last that ends with an object
_JSON_BEGIN = re.compile(rf"(?:\A|{_ENDS})(?P<json>{_BLANKS}[{{\[])")
_JSON_END = re.compile(rf".*\}}{_BLANKS}(?:{_ENDS}|\Z)", re.DOTALL)
#: an action plugin asks with it that its result is not shown. The answer of a module never has it [ansible-core
#: vars/clean.py, remove_internal_keys]
_NO_LOG = "_ansible_no_log"
#: keys that ansible-core takes for true or false
_FLAGS = frozenset({"changed", "failed", "skipped", "unreachable"})
#: keys whose words ansible-core shows on the terminal [plugins/callback/__init__.py, _handle_exception, _dump_results]
_SHOWN = frozenset({"msg", "module_stdout", "module_stderr", "skip_reason"})
#: characters of each text that is shown, and of each text in an answer that failed: more than any answer to on_node has
_MOST_SHOWN = 128 * 1024
#: lines of an answer, and of a text in it that ansible-core divides into lines: each takes some 60 bytes more than its
#: own. A module prints one
_MOST_LINES = 32_768
#: keys of texts that are cut whatever came of the task
_SHORT = _SHOWN | {"exception"}
#: keys that ansible-core takes for text, and for lists of it
_TEXTS, _LINES = frozenset({"stdout", "stderr"}), frozenset({"stdout_lines", "stderr_lines"})
#: what a deprecation may have, so that it can be shown [ansible-core utils/display.py, deprecated]: with ``removed`` it
#: raises
_DEPRECATION = ("msg", "version", "date", "collection_name")
#: texts of a difference, and sizes in it [ansible-core plugins/callback/__init__.py, _get_diff]
_DIFF_TEXTS, _DIFF_SIZES = (
    ("before_header", "after_header", "prepared"),
    ("dst_binary", "src_binary", "dst_larger", "src_larger"),
)


def outside(value: Value) -> Value:
    """Mark all texts in ``value``, which may hold lists and dictionaries, keys of dictionaries included. The value
    stays equal to what it was."""
    return typing.cast(Value, wrap_var(value))


class Unreachable(AnsibleConnectionFailure):  # type: ignore[misc]
    """A lost connection. Its message holds words of the API server, of the kubelet or of the container."""

    def __str__(self) -> str:
        return outside(str(super().__str__()))


def remove_effects(answer: typing.Mapping[str, typing.Any]) -> dict[str, typing.Any]:
    """Return what a module answered on a node without the keys that ansible-core acts on. Others that it reads have the
    type that it expects.

    The Python of a node belongs to the node. An answer with ``ansible_facts`` would set variables of the host above
    those of the inventory, such as the kubeconfig that tasks on the controller take, or the address of the node's BMC.
    A key of another type, such as ``results`` with a number in it, ends ansible-playbook before 2.19 with all nodes.
    ansible-core shows some of the words as they are, so that what does not print is escaped in these; of an answer that
    failed it shows all, the names of keys among them.
    """
    kept: dict[str, typing.Any] = {}
    for key, value in answer.items():
        if key in _ACTED_ON or (key.startswith(_INTERNAL) and not (key == _NO_LOG and isinstance(value, bool))):
            continue
        held = _held(key, value)
        if held is not None:
            kept[key] = held
    code = answer.get("rc")
    if "failed" not in kept and "rc" in answer and "rc" not in kept:
        # what is no exit code is not 0, as ansible-core sees it
        kept["failed"] = code not in (0, "0")
    if kept.get("failed") or kept.get("unreachable"):
        # the texts that are shown of any answer are cut and escaped by now
        return {
            escaped(cut(key, _MOST_SHOWN)): value if key in _SHORT and isinstance(value, str) else _shortened(value)
            for key, value in kept.items()
        }
    return kept


def _held(key: str, value: typing.Any) -> typing.Any:
    """Return the value in the type that ansible-core expects of the key; None where it can't have it."""
    if key in _FLAGS:
        return bool(value)
    if key in _SHOWN:
        return None if value is None else escaped(cut(said(value), _MOST_SHOWN))
    if key in _TEXTS:
        return value if isinstance(value, str) else None
    if key in _LINES:
        return [line for line in value if isinstance(line, str)] if isinstance(value, list) else None
    if key == "rc":
        return value if isinstance(value, int) and not isinstance(value, bool) else None
    if key == "invocation":
        return value if isinstance(value, dict) else None
    if key == "exception":
        text = cut(value, _MOST_SHOWN) if isinstance(value, str) else value
        return escaped(text) if isinstance(value, str) or _is_summary(value) else None
    if key == "warnings":
        return (
            [escaped(item if _is_summary(item) else cut(said(item), _MOST_WARNING)) for item in _limit_warnings(value)]
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
    """Return the first of some warnings, and how many there are besides."""
    more = len(warnings) - _MOST_WARNINGS
    return [*warnings[:_MOST_WARNINGS], *([f"and {more} more warnings"] if more > 0 else [])]


def said(value: typing.Any) -> str:
    """Return a text, or another value in the JSON of it; of one that is larger than what is ever shown, its type."""
    if isinstance(value, str):
        return value
    return _left_out(value) if _is_large(value) else json.dumps(value, default=str)


def _shortened(value: typing.Any) -> typing.Any:
    """Return a value of an answer that failed, as much of it as is shown."""
    if isinstance(value, str):
        return escaped(cut(value, _MOST_SHOWN))
    return _left_out(value) if _is_large(value) else escaped(value)


def _left_out(value: typing.Any) -> str:
    return f"{kind_of(value)}, left out: it has more than {_MOST_SHOWN} characters"


def _is_large(value: typing.Any) -> bool:
    """Return whether a value has more than what is shown, each value in it counted as a character."""
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
    """Return whether it is a warning, a deprecation or an error of ansible-core 2.19 and later."""
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _clean_deprecation(item: typing.Any) -> typing.Any:
    if _is_summary(item):
        return escaped(item)
    if not isinstance(item, dict) or "msg" not in item:
        return None
    return {
        key: escaped(cut(said(item[key]), _MOST_WARNING)) if item[key] is not None else None
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
    """Return one side of a difference, as much of it as is shown; a mapping that is short stays one."""
    text = said(value)
    is_short = len(text) <= _MOST_DIFFERENCE and count_values(text) <= _MOST_DIFFERENCE_LINES
    if isinstance(value, dict) and is_short and not _is_large(value):
        return escaped(value)
    shown = "".join(text[:_MOST_DIFFERENCE].splitlines(keepends=True)[:_MOST_DIFFERENCE_LINES])
    return escaped(
        shown if len(shown) == len(text) else shown.rstrip("\n") + f"\n... cut: it has {len(text)} characters\n"
    )


def escaped(value: typing.Any) -> typing.Any:
    """Return the same with an escape for each character that does not print, in keys as well. A text that prints, of
    whatever class, is left as it is."""
    kind = type(value)
    if isinstance(value, str):
        seen = escape.visible(value, "\n\t")
        return value if seen == value else seen if kind is str else outside(seen)
    if isinstance(value, list):
        return [escaped(item) for item in value]
    if isinstance(value, tuple):
        return tuple(escaped(item) for item in value)
    if isinstance(value, dict):
        return {escaped(key): escaped(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        # a warning of ansible-core 2.19 and later
        return dataclasses.replace(
            value,
            **{field.name: escaped(getattr(value, field.name)) for field in dataclasses.fields(value) if field.init},
        )
    return value


@contextlib.contextmanager
def marked_loss() -> typing.Iterator[None]:
    """Make an Unreachable of each lost connection, whatever connection plugin it is of, and bound and escape the words
    of each other error of Ansible.

    What a host says before the login may have any length, and so may what it says of a file that it does not take.
    ansible-core shows both as they are, and the error that led to one as well.
    """
    try:
        yield
    except AnsibleConnectionFailure as error:
        raise Unreachable(words_of(error)) from None
    except AnsibleAction as error:
        made = type(error)(words_of(error), result=remove_effects(error.result))
        # before 2.19 the trace of both errors, which nothing shows that is not asked for it
        made.result.pop("exception", None)
        raise made from None
    except AnsibleError as error:
        raise AnsibleError(words_of(error)) from None


def words_of(error: AnsibleError) -> str:
    """Return the message of an error as one line that has an end."""
    return escape.line(cut(str(error), _MOST_LOSS))


@contextlib.contextmanager
def heard(action: typing.Any, node: str, most: int = MOST_ANSWER) -> typing.Iterator[None]:
    """Bound what a node answers to an action, and escape what it says beside the JSON of a module.

    The connection plugin of pods stops at the limit. Those of ansible-core hold the whole answer by now; what is too
    large is not decoded at least. A node that held an earlier task of the run up until its time was over is not asked.

    :param action: an action plugin, whose connection is asked for the time of the context
    :param most: bytes of one command, on both of its streams
    """
    connection = action._connection
    ask, parse = connection.exec_command, action._parse_returned_data
    held_up = explain_why_not_asked(node)

    def exec_command(*words: typing.Any, **options: typing.Any) -> tuple[int, bytes, bytes]:
        if held_up:
            raise AnsibleConnectionFailure(held_up)
        answer: tuple[int, bytes, bytes] = ask(*words, **options)
        size = len(answer[1]) + len(answer[2])
        if size > most:
            raise AnsibleConnectionFailure(
                f"{node} answered with {size} bytes, expected {most} at most: look at what its Python and its login"
                " shell print"
            )
        refuse_lines(node, *answer[1:])
        return answer

    def parsed(said: typing.Mapping[str, typing.Any], *options: typing.Any) -> typing.Any:
        output = remove_junk(said.get("stdout") or "")
        values = count_values(output)
        if values > most // BYTES_A_VALUE:
            # decoded they would take many times the memory of the text
            raise AnsibleConnectionFailure(
                f"{node} answered with JSON of {values} values, expected {most // BYTES_A_VALUE} at most: look at its"
                " Python"
            )
        found = remove_internals(parse({**said, "stdout": output}, *options))
        if isinstance(found, dict):
            refuse_lines(node, *(found[name] for name in _TEXTS if isinstance(found.get(name), str)))
        return found

    with (
        quiet(),
        watched(node, getattr(action, "_task", None)),
        bounded_ssh(connection, node, most),
        contextlib.ExitStack() as after,
    ):
        for owner, name, value in (
            (connection, "exec_command", exec_command),
            (connection, "most_output", most),
            (action, "_parse_returned_data", parsed),
        ):
            after.callback(setattr, owner, name, getattr(owner, name, None))
            setattr(owner, name, value)
        yield


def refuse_lines(node: str, *texts: typing.Union[str, bytes]) -> None:
    """Refuse what a node said in more lines than any module prints. ansible-core makes a list of them before a plugin
    sees the answer, which takes twenty times the memory of the text. [plugins/action/__init__.py]

    :raises AnsibleConnectionFailure: a text has more lines
    """
    for text in texts:
        lines = (
            sum(map(text.count, _LINE_ENDS))
            if isinstance(text, str)
            else sum(text.count(end.encode()) for end in _LINE_ENDS)
        )
        if lines > _MOST_LINES:
            raise AnsibleConnectionFailure(
                f"{node} answered with {lines} lines, expected {_MOST_LINES} at most: look at what its Python and its"
                " login shell print"
            )


@contextlib.contextmanager
def quiet(indent: str = "") -> typing.Iterator[None]:
    """Cut and escape what ansible-core itself shows meanwhile: it quotes a node before any plugin has seen the answer,
    such as the words of an ``rm`` that failed, or a key that it drops.

    Each task is done by a process of its own, so that nobody else's words are changed.

    :param indent: before each line but the first of a text, so that none of them can pass for a line of the output
    """
    display = Display()

    def cleaned(show: typing.Callable[..., typing.Any], most: int) -> typing.Callable[..., typing.Any]:
        def shown(msg: typing.Any, *arguments: typing.Any, **options: typing.Any) -> typing.Any:
            return show(_INNER_LINE.sub(f"\n{indent}", _escape_message(str(msg), most)), *arguments, **options)

        return shown

    def error_as_warning(msg: typing.Optional[str], exception: BaseException, **_options: typing.Any) -> None:
        display.warning(f"{msg or 'An error'}: {type(exception).__name__}: {exception}")

    changed = {name: cleaned(getattr(display, name), most) for name, most in _SHOWS.items() if hasattr(display, name)}
    if hasattr(display, "error_as_warning"):
        changed["error_as_warning"] = error_as_warning
    before = {name: vars(display)[name] for name in changed if name in vars(display)}
    vars(display).update(changed)
    try:
        yield
    finally:
        for name in changed:
            del vars(display)[name]
        vars(display).update(before)


def _escape_message(text: str, most: int) -> str:
    return escape.visible(cut(text, most), "\n\t")


@contextlib.contextmanager
def cleaning_up(action: typing.Any, node: str, most: int = MOST_ANSWER) -> typing.Iterator[None]:
    """Remove the temporary folder of a task from a node, whatever the node says to that. What the task has brought
    stays its result, also where the connection is lost by now or the node is not asked any more."""
    with contextlib.suppress(AnsibleConnectionFailure), marked_loss(), heard(action, node, most):
        yield


def remove_internals(answer: typing.Any) -> typing.Any:
    """Return the decoded answer of a module without the keys that only ansible-core may set. It would drop them as
    well, and quote their values, which takes half a minute for one of 15 MiB before 2.19.
    [ansible-core vars/clean.py, remove_internal_keys]"""
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


def remove_junk(output: str) -> str:
    """Return what a module printed from the line in which its JSON begins, and of what is behind the JSON the begin,
    with an escape for what does not print.

    ansible-core drops the lines before the JSON, and warns of those behind it with the words of the node. It goes
    through all of them, line by line, so that 16 MiB of short lines would cost a gigabyte. [ansible-core
    module_utils/json_utils.py, _filter_non_json_lines]
    """
    begin = _JSON_BEGIN.search(output)
    end = _JSON_END.match(output) if begin else None
    start, stop = begin.start("json") if begin else 0, end.end() if end else 0
    behind = escape.visible(cut(output[max(start, stop) :], _MOST_JUNK), "\n\t")
    return output[start:stop] + behind
