# SPDX-License-Identifier: GPL-3.0-or-later

"""Measure how the plugins read: names, docstrings, density, sizes. ``python -m dev.house`` prints the figures.

Nothing fails by it: rules that hold are tests and linters. It counts what a later change should improve.
"""

from __future__ import annotations

import ast
import collections
import pathlib
import typing

from .steps import ROOT, say

FOLDER = ROOT / "plugins"
#: lines of a file, and files of a folder, above which they are counted
MOST_LINES, MOST_FILES = 400, 25
#: with which the name of a function begins
VERBS = frozenset(
    """
    accept add admit agree allow answer append apply ask assert attach await begin blame bound break build calculate
    call cancel change check choose classify clean clear close collect combine commit compare complete compute
    confirm connect convert copy correct count cover create cut decide decode delete describe detect diff divide
    draw drop emit enable encode end enter escape estimate evict examine exclude expand expect explain extract fail
    fetch fill filter find finish fit fold follow forbid forget format gather generate get give go group guard
    handle hide hold identify ignore include index init insert inspect interpret iterate join judge keep kill label
    lay leave limit link lint list listen load locate lock look lose make map mark match measure meet mend merge
    move name narrow normalize note observe omit open order own pack pair parse pass patch pause pick ping place
    plan play poll prepare print probe propose prove publish pull put quote raise rank read rebuild recognize redact
    reduce refuse register reject rejudge release reload remove rename render renumber repeat replace report require
    reset resolve restore restrict resume return revoke roll round run save say scan schedule search see seek select
    send separate serve set settle shorten show shrink shuffle skip sort split spread start state step stop store
    strip sum summarize sync take talk tell test time touch track translate trim try turn undo unfold unlock unpack
    update upgrade use validate verify visit wait walk warn watch weigh withdraw work wrap write yield
    """.split()
)
#: of a question that is answered by yes or no, and of what Python calls itself
_PREDICATES = ("is_", "has_", "may_", "can_", "needs_", "shall_", "was_", "__", "test_")
_OPENINGS = ("What", "Who", "Whether", "Why", "That", "How", "Which", "Where", "When")
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_DECORATORS = frozenset({"property", "cached_property", "functools.cached_property", "typing.overload", "fixture"})


class Figures(typing.NamedTuple):
    """Counts of a folder, in the order of the output.

    :ivar functions: without properties, predicates and special methods, as are ``verbs`` and ``one_word`` of them
    :ivar openings: docstrings that begin with What, Who, Whether and the like
    :ivar twice: names of several public classes
    :ivar nested: comprehensions with another one inside
    :ivar long_files: and ``large_folders``, each with its number of lines or files
    """

    functions: int
    verbs: int
    one_word: int
    docstrings: int
    openings: int
    classes: int
    twice: tuple[str, ...]
    lines: int
    comprehensions: int
    nested: int
    conditionals: int
    long_files: tuple[str, ...]
    large_folders: tuple[str, ...]


def measure(folder: pathlib.Path = FOLDER) -> Figures:
    """Read all Python files below a folder.

    :raises SyntaxError: a file is not Python
    """
    names: list[str] = []
    docstrings: list[str] = []
    classes: collections.Counter[str] = collections.Counter()
    counts: collections.Counter[str] = collections.Counter()
    long_files: list[str] = []
    folders: collections.Counter[str] = collections.Counter()
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        lines = text.count("\n")
        counts["lines"] += lines
        folders[path.parent.relative_to(folder.parent).as_posix()] += 1
        if lines > MOST_LINES:
            long_files.append(f"{path.relative_to(folder.parent).as_posix()} ({lines})")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                if not _is_property(node) and not node.name.startswith(_PREDICATES):
                    names.append(node.name.lstrip("_"))
                docstrings.append(ast.get_docstring(node) or "")
            elif isinstance(node, ast.ClassDef):
                classes[node.name] += 1
                docstrings.append(ast.get_docstring(node) or "")
            elif isinstance(node, _COMPREHENSIONS):
                counts["comprehensions"] += 1
                counts["nested"] += any(isinstance(child, _COMPREHENSIONS) for child in _below(node))
            elif isinstance(node, ast.IfExp):
                counts["conditionals"] += 1
    written = [text for text in docstrings if text]
    return Figures(
        len(names),
        sum(name.split("_")[0] in VERBS for name in names),
        sum("_" not in name for name in names),
        len(written),
        sum(text.split()[0] in _OPENINGS for text in written),
        len(classes),
        tuple(sorted(name for name, count in classes.items() if count > 1 and not name.startswith("_"))),
        counts["lines"],
        counts["comprehensions"],
        counts["nested"],
        counts["conditionals"],
        tuple(long_files),
        tuple(f"{name} ({count})" for name, count in sorted(folders.items()) if count > MOST_FILES),
    )


def _below(node: ast.AST) -> typing.Iterator[ast.AST]:
    return (child for direct in ast.iter_child_nodes(node) for child in ast.walk(direct))


def _is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(ast.unparse(decorator) in _DECORATORS for decorator in node.decorator_list)


def main() -> None:
    found = measure()
    thousands = found.lines / 1000
    say(f"functions: {found.functions}; begin with a verb: {found.verbs / found.functions:.0%}")
    say(f"functions named by one word: {found.one_word / found.functions:.0%}")
    say(f"docstrings: {found.docstrings}; begin with What, Who, Whether ...: {found.openings / found.docstrings:.0%}")
    say(f"classes: {found.classes}; names of several: {', '.join(found.twice) or 'none'}")
    say(f"lines: {found.lines}; in 1,000 of them")
    say(f"  comprehensions: {found.comprehensions / thousands:.1f}, with one inside: {found.nested / thousands:.1f}")
    say(f"  conditional expressions: {found.conditionals / thousands:.1f}")
    say(f"files of more than {MOST_LINES} lines: {len(found.long_files)}: {', '.join(found.long_files)}")
    say(f"folders of more than {MOST_FILES} files: {', '.join(found.large_folders)}")


if __name__ == "__main__":
    main()
