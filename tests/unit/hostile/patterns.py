# SPDX-License-Identifier: GPL-3.0-or-later

"""All regular expressions of the plugins, each with how it is used, and texts on which a pattern is slow that goes back
over what it has read.

The texts are made out of the pattern itself: for each repetition in it what leads there, and then what is repeated,
with an end that fits nowhere.
"""

from __future__ import annotations

import ast
import collections
import contextlib
import importlib
import pathlib
import re
import re._constants as codes  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
import typing

from ansible_collections.linerate.rdma import plugins
from ansible_collections.linerate.rdma.tests.unit.limit import measure_seconds

ROOT = pathlib.Path(plugins.__path__[0])
PACKAGE = plugins.__name__
#: ways to use a pattern that try it at one place, and those that try it at each
_ANCHORED, _SEARCHING = ("match", "fullmatch"), ("search", "sub", "subn", "split", "findall", "finditer")
#: repetitions of fewer are short
_LONG = 64
#: characters that a repetition of nearly any character is filled with
_FILL = 256
#: fits in no pattern that ends in a literal
_BREAK = "\x00"
_REPEATS = (
    codes.MAX_REPEAT,
    codes.MIN_REPEAT,
    *([codes.POSSESSIVE_REPEAT] if hasattr(codes, "POSSESSIVE_REPEAT") else []),
)
_CATEGORIES = {
    codes.CATEGORY_DIGIT: "0",
    codes.CATEGORY_NOT_DIGIT: "a",
    codes.CATEGORY_SPACE: " ",
    codes.CATEGORY_NOT_SPACE: "a",
    codes.CATEGORY_WORD: "a",
    codes.CATEGORY_NOT_WORD: "-",
}


class Use(typing.NamedTuple):
    """A pattern, and how it is used.

    :ivar place: file and line
    :ivar method: the name of the method that looks through the most of the text
    """

    place: str
    pattern: typing.Pattern[typing.Any]
    method: str


def uses() -> list[Use]:
    """All of them: calls of ``re``, and compiled patterns that a module has, alone or in something else."""
    found: dict[tuple[typing.Any, int, str], Use] = {}
    called: dict[str, set[str]] = {}
    for path in ROOT.rglob("*.py"):
        for name, methods in _methods(ast.parse(path.read_text(encoding="utf-8"))).items():
            called.setdefault(name, set()).update(methods)
    for path in sorted(ROOT.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "re." not in text:
            continue
        name = ".".join((PACKAGE, *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
        for use in _of_file(str(path.relative_to(ROOT)), ast.parse(text), vars(importlib.import_module(name)), called):
            found.setdefault((use.pattern.pattern, use.pattern.flags, use.method), use)
    return list(found.values())


def _of_file(
    place: str,
    tree: ast.Module,
    names: typing.Mapping[str, typing.Any],
    everywhere: typing.Mapping[str, set[str]],
) -> typing.Iterator[Use]:
    """:param everywhere: methods by the names of patterns, of all files: one may be used only where it is imported"""
    called = {**everywhere, **_methods(tree)}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "re"
        ):
            made = _made(node, names) if node.func.attr in (*_ANCHORED, *_SEARCHING, "compile") else None
            if made is not None and node.func.attr != "compile":
                yield Use(f"{place}:{node.lineno}", made, node.func.attr)
            elif made is not None and not _is_named(node, tree):
                yield Use(f"{place}:{node.lineno}", made, "search")
            elif made is None and node.func.attr in (*_ANCHORED, *_SEARCHING, "compile"):
                # one out of a table of the module: each text of it, whatever it is
                method = "search" if node.func.attr == "compile" else node.func.attr
                yield from (
                    Use(f"{place}: {name}", pattern, method)
                    for name, value in names.items()
                    for pattern in _texts_in(value)
                )
    for name, value in names.items():
        for pattern in _patterns_in(value):
            # one in a table is used by another name
            methods = called.get(name, {"search"}) if isinstance(value, re.Pattern) else {"search"}
            for method in methods:
                yield Use(f"{place}: {name}", pattern, method)


def _methods(tree: ast.Module) -> dict[str, set[str]]:
    """By name of a pattern the methods by which its module uses it; where it is handed on, nobody knows, and it is
    looked for at each place."""
    found: dict[str, set[str]] = {}
    owned: set[int] = set()
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.attr in (*_ANCHORED, *_SEARCHING)
        ):
            found.setdefault(node.value.id, set()).add(node.attr)
            owned.add(id(node.value))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owned.add(id(node.value))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in owned:
            found.setdefault(node.id, set()).add("search")
    return found


def _is_named(call: ast.Call, tree: ast.Module) -> bool:
    """Whether the compiled pattern is one that the module has under a name of its own."""
    return any(isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is call for node in tree.body)


def _made(call: ast.Call, names: typing.Mapping[str, typing.Any]) -> typing.Optional[typing.Pattern[typing.Any]]:
    """What a call compiles. What only its function knows stands as a letter."""
    if not call.args:
        return None
    flags = 0
    for word in [*call.args[1:], *(keyword.value for keyword in call.keywords if keyword.arg == "flags")]:
        value = _value(word, names)
        flags |= int(value) if isinstance(value, re.RegexFlag) else 0
    text = _value(call.args[0], names)
    if isinstance(text, re.Pattern):
        return text
    if text is None and isinstance(call.args[0], ast.JoinedStr):
        parts = [
            _value(part, names) if isinstance(part, ast.Constant) else _inner(part, names)
            for part in call.args[0].values
        ]
        text = "".join(part if isinstance(part, str) else "x" for part in parts)
    if text is None and isinstance(call.args[0], ast.BinOp):
        literal = next(
            (
                part.value
                for part in ast.walk(call.args[0])
                if isinstance(part, ast.Constant) and isinstance(part.value, (str, bytes))
            ),
            None,
        )
        text = re.sub(rb"%[sd]", b"1", literal) if isinstance(literal, bytes) else literal
    return re.compile(text, flags) if isinstance(text, (str, bytes)) else None


def _inner(part: ast.expr, names: typing.Mapping[str, typing.Any]) -> typing.Any:
    return _value(part.value, names) if isinstance(part, ast.FormattedValue) else None


def _value(node: ast.expr, names: typing.Mapping[str, typing.Any]) -> typing.Any:
    try:
        return eval(compile(ast.Expression(node), "pattern", "eval"), dict(names))
    except Exception:
        return None


def _patterns_in(value: typing.Any, depth: int = 3) -> typing.Iterator[typing.Pattern[typing.Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict) and depth:
        for item in [*value.keys(), *value.values()]:
            yield from _patterns_in(item, depth - 1)
    elif isinstance(value, (tuple, list, set, frozenset)) and depth:
        for item in value:
            yield from _patterns_in(item, depth - 1)
    elif (
        type(value).__module__.startswith(PACKAGE)
        and hasattr(value, "__dict__")
        and not isinstance(value, type)
        and depth
    ):
        yield from _patterns_in(vars(value), depth - 1)


def _texts_in(value: typing.Any, depth: int = 4) -> typing.Iterator[typing.Pattern[str]]:
    if isinstance(value, str) and depth < 4 and any(sign in value for sign in "*+{"):
        with contextlib.suppress(re.error):
            yield re.compile(value)
    elif isinstance(value, (tuple, list, dict)) and depth:
        for item in [*value, *value.values()] if isinstance(value, dict) else value:
            yield from _texts_in(item, depth - 1)
    elif (
        type(value).__module__.startswith(PACKAGE)
        and hasattr(value, "__dict__")
        and not isinstance(value, type)
        and depth
    ):
        yield from _texts_in(vars(value), depth - 1)


def pumps(pattern: typing.Pattern[typing.Any]) -> list[tuple[str, str]]:
    """What a text begins with, and what is then repeated."""
    text = pattern.pattern.decode("latin-1") if isinstance(pattern.pattern, bytes) else pattern.pattern
    tree = parser.parse(
        text, pattern.flags & ~re.DEBUG if isinstance(pattern.pattern, str) else pattern.flags & ~re.UNICODE & ~re.DEBUG
    )
    found: dict[tuple[str, str], None] = {}
    whole = _sample(tree)
    borders = _borders(tree, bool(pattern.flags & re.MULTILINE))
    for prefix, body in _repeats(tree, ""):
        for sign in _signs(body):
            found.update(dict.fromkeys(((prefix, sign), ("", prefix + sign), ("", sign), ("", f"{sign}{prefix}"))))
        found[(prefix, _sample(body))] = None
        # where it may begin only at a line or at a word, the repeated text has to end with one
        for sign in _signs(body)[:2]:
            found.update(dict.fromkeys(("", f"{prefix}{sign}{border}") for border in borders))
    if found:
        found.update(dict.fromkeys((("", whole), ("", whole[:-1]), ("", whole[:1]))))
    return [(prefix, pump) for prefix, pump in found if pump]


def _borders(tree: typing.Any, is_of_lines: bool) -> list[str]:
    """Characters before which, or after which, a pattern may begin that does not begin anywhere: at the begin of a
    line, at a border of a word, or where a text before it does not fit.

    :param is_of_lines: whether ``^`` is the begin of a line
    """
    found: dict[str, None] = {}
    for code, argument in _flat(tree):
        if code is codes.AT and argument is codes.AT_BEGINNING and is_of_lines:
            found["\n"] = None
        elif (code is codes.AT and argument is codes.AT_BOUNDARY) or (code is codes.ASSERT_NOT and argument[0] < 0):
            found[" "] = None
    return list(found)


def chain(pattern: typing.Pattern[typing.Any]) -> str:
    """A short text in which each repetition of nearly any character may end at many places: it is filled with what
    comes after it. Empty where the pattern has fewer than two of them."""
    text = pattern.pattern.decode("latin-1") if isinstance(pattern.pattern, bytes) else pattern.pattern
    parts, filled = [""], []
    for code, argument in _flat(parser.parse(text, pattern.flags & ~re.UNICODE & ~re.DEBUG)):
        if code in _REPEATS and argument[1] - argument[0] >= _LONG // 2 and _is_wide(argument[2]):
            filled.append(min(argument[1], _FILL))
            parts.append("")
        else:
            parts[-1] += _sample([(code, argument)])
    if len(filled) < 2:
        return ""
    return parts[0] + "".join(
        (after or "a") * max(1, most // max(1, len(after))) for most, after in zip(filled, parts[1:])
    )


def _flat(tree: typing.Any) -> typing.Iterator[tuple[typing.Any, typing.Any]]:
    """The parts of a pattern one after the other, those of its groups as well, of alternatives the first."""
    for code, argument in tree:
        if code is codes.SUBPATTERN:
            yield from _flat(argument[3])
        elif code in _REPEATS and argument[1] == 1:
            yield from _flat(argument[2])
        else:
            yield code, argument


def _is_wide(tree: typing.Any) -> bool:
    """Whether nearly any character fits."""
    return any(
        code in (codes.ANY, codes.NOT_LITERAL)
        or (
            code is codes.IN
            and (argument[0][0] is codes.NEGATE or (codes.CATEGORY, codes.CATEGORY_NOT_SPACE) in argument)
        )
        for code, argument in tree
    )


def _repeats(tree: typing.Any, prefix: str) -> typing.Iterator[tuple[str, typing.Any]]:
    """Each long repetition: what leads there, and what is repeated."""
    for code, argument in tree:
        if code in _REPEATS:
            _least, most, body = argument
            if most is codes.MAXREPEAT or most >= _LONG:
                yield prefix, body
            yield from _repeats(body, prefix)
        elif code is codes.SUBPATTERN:
            yield from _repeats(argument[3], prefix)
        elif code is codes.BRANCH:
            for branch in argument[1]:
                yield from _repeats(branch, prefix)
        elif code in (codes.ASSERT, codes.ASSERT_NOT):
            yield from _repeats(argument[1], prefix)
        elif code is getattr(codes, "ATOMIC_GROUP", None):
            yield from _repeats(argument, prefix)
        prefix += _sample([(code, argument)])


def _sample(tree: typing.Any) -> str:
    """A short text that fits."""
    text = ""
    for code, argument in tree:
        if code in _REPEATS:
            least, _most, body = argument
            text += _sample(body) * min(max(least, 0), 64)
        elif code is codes.SUBPATTERN:
            text += _sample(argument[3])
        elif code is codes.BRANCH:
            text += _sample(argument[1][0])
        elif code is codes.ASSERT:
            text += _sample(argument[1])
        elif code is getattr(codes, "ATOMIC_GROUP", None):
            text += _sample(argument)
        else:
            text += next(iter(_signs_of(code, argument)), "")
    return text


def _signs(tree: typing.Any) -> list[str]:
    """Characters that may stand in it, some of each class."""
    found: dict[str, None] = {}
    for code, argument in tree:
        parts = (
            [argument[3]]
            if code is codes.SUBPATTERN
            else argument[1]
            if code is codes.BRANCH
            else [argument[2]]
            if code in _REPEATS
            else []
        )
        for sign in [sign for part in parts for sign in _signs(part)] or _signs_of(code, argument):
            found[sign] = None
    return list(found)[:6]


def _signs_of(code: typing.Any, argument: typing.Any) -> list[str]:
    if code is codes.LITERAL:
        return [chr(argument)]
    if code is codes.NOT_LITERAL:
        return [sign for sign in "a -0" if ord(sign) != argument]
    if code is codes.ANY:
        return list("a 0-")
    if code is not codes.IN:
        return []
    inside = [item for item in argument if item[0] is not codes.NEGATE]
    signs: list[str] = []
    for kind, value in inside:
        signs += (
            [chr(value)]
            if kind is codes.LITERAL
            else [chr(value[0])]
            if kind is codes.RANGE
            else [_CATEGORIES.get(value, "a")]
        )
    if len(inside) == len(argument):
        return signs
    shut = re.compile("".join(("[", *(re.escape(sign) for sign in signs), "]")))
    return [sign for sign in 'a 0-,:="' if not shut.match(sign)]


def seconds(use: Use, text: str) -> float:
    """CPU time of one use on a text."""
    subject: typing.Any = text.encode("utf-8", "replace") if isinstance(use.pattern.pattern, bytes) else text
    if use.method in _ANCHORED:
        return measure_seconds(lambda: getattr(use.pattern, use.method)(subject), 1)
    return measure_seconds(lambda: collections.deque(use.pattern.finditer(subject), 0), 1)


#: characters: from few on where a group is repeated, since some of those double their time with each of them
_FEW, _SIZES = (8, 12, 16, 20, 23, 26, 29, 32, 40, 64), (256, 1024, 4096, 32768)
#: seconds of CPU for whatever text, and for each character: below it nothing is slow; above the last one, everything is
_FLOOR, _PER_SIGN, _MOST_PER_SIGN = 5e-3, 5e-7, 4e-6
#: the same of a line that fits: three times what the slowest pattern takes, a third of what a slow one takes
_PER_SIGN_OF_LINE = 1.5e-6
#: times the time of a quarter of the text: 4 where it is linear, 16 where it is quadratic
_MOST_RATIO = 8
#: a linear pattern that tries 80 characters at each place, and its time on the machine that the figures above are of
_REFERENCE, _REFERENCE_SECONDS = Use("", re.compile("[a-z]{0,80}:"), "search"), 0.0105


def slow(use: Use) -> str:
    """A text on which it is slower than linear, in words; empty where there is none."""
    text = str(use.pattern.pattern)
    ends = (
        (_BREAK, "\n")
        if use.method == "fullmatch" or any(sign in text for sign in ("$", "\\Z", "\n", "\\n"))
        else (_BREAK,)
    )
    sizes = (*_FEW, *_SIZES) if re.search(r"\)[*+{]", text) else _SIZES
    for prefix, pump in pumps(use.pattern):
        for end in ends:
            for size in sizes:
                if _is_slow(use, prefix, pump, end, size):
                    return (
                        f"{use.place}: {use.method} of {use.pattern.pattern!r} is slow on {prefix!r} and then {pump!r},"
                        f" {size} characters"
                    )
    line = chain(use.pattern)
    if (
        line
        and (taken := min(seconds(use, line + _BREAK) for _again in range(9))) > _PER_SIGN_OF_LINE * len(line) * _pace()
    ):
        return f"{use.place}: {use.method} of {use.pattern.pattern!r} takes {taken * 1e6:.0f} us for the line {line!r}"
    return ""


def _is_slow(use: Use, prefix: str, pump: str, end: str, size: int) -> bool:
    def text(length: int) -> str:
        return f"{prefix}{pump * max(1, length // len(pump))}{end}"

    limit = _FLOOR + _PER_SIGN * size
    taken = seconds(use, text(size))
    if taken < limit or taken > 20 * limit * (pace := max(1.0, _pace())):
        return taken > limit
    # a busy machine is no proof, nor is a slow one
    whole, quarter = (min(seconds(use, text(length)) for _again in range(2)) for length in (size, size // 4))
    return whole > limit * pace and (whole > _MOST_PER_SIGN * pace * size or whole > _MOST_RATIO * quarter)


def _pace() -> float:
    """How many times slower this machine is now than the one that the figures are of: by a pattern that is linear."""
    return min(seconds(_REFERENCE, "a" * 32768) for _again in range(3)) / _REFERENCE_SECONDS
