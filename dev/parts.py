# SPDX-License-Identifier: GPL-3.0-or-later

"""What 'make check', 'make test' and 'make test-all' run: each part once, in the smallest size that has it.

``python -m dev.parts`` writes the table of CONTRIBUTING.md.
"""

from __future__ import annotations

import dataclasses
import typing

from . import lint, sanity
from .blocks import put_block
from .sizes import ALL, CHECK, SIZES, TEST, up_to
from .steps import ROOT, VENV, guarded

PYTHON = str(VENV / "bin" / "python")
PAGE = ROOT / "CONTRIBUTING.md"

#: where a part runs: without a lab; beside those, with what they leave of the processor; on the lab; beside that, where
#: it takes no processor from guests, else without a lab; after it, whatever has failed
ALONE, BESIDE, LAB, MEANWHILE, END = "alone", "beside", "lab", "meanwhile", "end"

#: tests on the lab that want something built or started before them, that leave the lab without an operator, or that
#: need no lab; the others run in one go
APART = ("collectives", "hca", "jobs", "machine_config", "nvidia", "olm", "second_run", "teardown")
_NOT_THOROUGH = ("-m", "not thorough")
_THOROUGH = ("-m", "thorough")
_SLOWEST = ("--durations", "20")
_ON_OLDEST = ("green_twice", "wrong_type", "broken_role", "never_dropped", "busy_server")
#: cores on which each string is a template that nobody marks
UNTAGGED = ("2.16", "2.18")

#: what no size has, and why
LEFT_OUT = {
    "make audit": (
        "what it finds changes without a change of the checkout, and where its index can't be asked it knows nothing: a"
        " release looks at it by hand"
    ),
    "make ee": "it needs podman and a base image, which a machine of the tests does not have",
    "python -m dev.docs links": "pages of others, which are down now and then",
    "tests/benchmarks, at their full size": "figures for a reader; each runs at its smallest size in `make test-all`",
}


@dataclasses.dataclass(frozen=True)
class Part:
    """A command.

    :ivar size: the smallest that has it
    :ivar holds: what it runs, for the table; nothing is in two parts
    :ivar place: of ALONE, BESIDE, LAB, MEANWHILE, END
    """

    name: str
    size: str
    command: tuple[str, ...]
    holds: tuple[str, ...]
    place: str = ALONE
    environment: typing.Mapping[str, str] = dataclasses.field(default_factory=dict)


def parts_of(size: str) -> tuple[Part, ...]:
    """The parts of a size and of those that are smaller, in the order in which they run."""
    return tuple(part for part in PARTS if part.size in up_to(size))


def table() -> str:
    """The table of CONTRIBUTING.md."""
    lines = ["| | part | what it holds |", "|---|---|---|"]
    for size in SIZES:
        title = f"`make {size}`"
        for part in PARTS:
            if part.size == size:
                lines.append(f"| {title} | {part.name} | {'; '.join(part.holds)} |")
                title = ""
    title = "none"
    for what, reason in LEFT_OUT.items():
        lines.append(f"| {title} | `{what}` | not run: {reason} |")
        title = ""
    return "\n".join(lines) + "\n"


def put_table(page: str) -> str:
    """The text of CONTRIBUTING.md with the table in its place."""
    return put_block(page, "dev.parts", PAGE, table())


def main() -> None:
    PAGE.write_text(put_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def _pytest(*arguments: str) -> tuple[str, ...]:
    return (PYTHON, "-m", "pytest", *arguments)


def _lab(*arguments: str) -> tuple[str, ...]:
    return (PYTHON, "-m", "lab", *arguments)


def _molecule(*arguments: str) -> tuple[str, ...]:
    return (str(VENV / "bin" / "molecule"), *arguments)


def _site(name: str) -> Part:
    command = (PYTHON, "-m", "dev.site", "-i", "inventory/lab")
    return Part(f"site.yml before {name}", ALL, command, (f"the lab as site.yml leaves it, for {name}",), LAB)


def _linters(size: str) -> tuple[str, ...]:
    return tuple(name for name, of_size, _lint in lint.LINTERS if of_size == size)


def _releases(size: str) -> tuple[str, ...]:
    return tuple(invocation.name for invocation in sanity.INVOCATIONS if invocation.size == size)


def _processes() -> tuple[str, ...]:
    """Files with tests that start processes: the others need not be read for them."""
    paths = sorted((ROOT / "tests/unit").rglob("test_*.py"))
    return tuple(
        path.relative_to(ROOT).as_posix()
        for path in paths
        if "pytest.mark.processes" in path.read_text(encoding="utf-8")
    )


def _on_lab(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/lab/test_{name}.py" for name in names)


# its frame around Ansible's output folds the lines that name a cause
_UNFRAMED = {"MOLECULE_COMMAND_BORDERS": "false"}
_FRAME = ("tests/unit/house/test_frame.py", "tests/unit/house/test_report_archive.py")
_HOSTILE = tuple(f"tests/unit/hostile/test_{name}.py" for name in ("templates", "results", "unforeseen", "core_words"))
_REST = tuple(word for path in _on_lab(*APART) for word in ("--ignore", path))

PARTS = (
    Part("lab build", TEST, _lab("build"), ("what the lab is built of, beside all that needs no lab",), BESIDE),
    Part("linters", CHECK, (PYTHON, "-m", "dev.lint", CHECK), _linters(CHECK)),
    Part(
        "tests without a lab",
        CHECK,
        (PYTHON, "-m", "dev.unit", "-n", "auto", "-m", "not processes and not thorough", "tests/unit"),
        ("tests/unit, but for those with the markers processes or thorough",),
    ),
    Part("linters that take longer", ALL, (PYTHON, "-m", "dev.lint", ALL), _linters(ALL)),
    Part("ansible-test", TEST, (PYTHON, "-m", "dev.sanity", TEST), _releases(TEST), MEANWHILE),
    # by file: tests of a file share what a fixture has run
    Part(
        "tests that start processes",
        TEST,
        (
            PYTHON,
            "-m",
            "dev.unit",
            "-n",
            "auto",
            "--dist",
            "loadfile",
            "-m",
            "processes and not thorough",
            *_SLOWEST,
            *_processes(),
        ),
        ("tests/unit: those with the marker processes, which start ansible-playbook",),
    ),
    Part(
        "molecule, scenario judge",
        TEST,
        _molecule("test", "--scenario-name", "judge"),
        ("molecule: judge",),
        environment=_UNFRAMED,
    ),
    Part(
        "the frame on the oldest ansible-core",
        TEST,
        (PYTHON, "-m", "dev.cores", "2.16", "-n", "auto", *_FRAME, "-k", " or ".join(_ON_OLDEST)),
        (f"a part of {' and '.join(_FRAME)} on ansible-core 2.16",),
    ),
    *(
        Part(
            f"hostile texts on ansible-core {core}",
            TEST,
            (PYTHON, "-m", "dev.cores", core, "-n", "auto", *_HOSTILE),
            (f"{' and '.join(_HOSTILE)} on ansible-core {core}",),
        )
        for core in UNTAGGED
    ),
    Part("ansible-test, the rest", ALL, (PYTHON, "-m", "dev.sanity", ALL), _releases(ALL)),
    Part(
        "slow tests that start processes",
        ALL,
        (PYTHON, "-m", "dev.unit", "-m", "processes and thorough", *_processes()),
        (
            (
                "tests/unit: those with the markers processes and thorough, the benchmarks at their smallest size among"
                " them"
            ),
        ),
    ),
    Part(
        "many drawn faults",
        ALL,
        (
            PYTHON,
            "-m",
            "dev.unit",
            "-n",
            "auto",
            "-m",
            "thorough and not processes",
            "tests/unit/analysis",
            "tests/unit/truth",
        ),
        (
            (
                "tests/unit/analysis and tests/unit/truth: those with the marker thorough, which draw the faults of"
                " many fleets"
            ),
        ),
    ),
    Part(
        "property tests with more examples",
        ALL,
        (PYTHON, "-m", "dev.unit", "-n", "auto", "-m", "hypothesis", "--hypothesis-profile", "thorough", "tests/unit"),
        ("tests/unit: property tests, ten times as many examples",),
    ),
    Part("runner", ALL, (PYTHON, "-m", "dev.runner"), ("tests/runner, as `make runner`",)),
    Part("browser", ALL, (PYTHON, "-m", "dev.browser"), ("tests/browser/test_report.py, as `make browser`",)),
    Part("documentation", ALL, (PYTHON, "-m", "dev.docs"), ("the site, as `make docs`",)),
    Part(
        "documentation in a browser",
        ALL,
        (PYTHON, "-m", "dev.browser", "site"),
        ("tests/browser/test_site.py: its pages, as `make docs`",),
    ),
    Part(
        "emulated HCA", ALL, _pytest(*_on_lab("hca")), ("tests/lab/test_hca.py: a guest of its own, without the lab",)
    ),
    # the newest of them wants minutes of a compiler: before hours of tests that need it
    Part(
        "lab build, on demand",
        ALL,
        _lab("build", "--operators", "--machines", "--nvidia", "--olm", "--collectives"),
        ("what the lab runs on demand",),
    ),
    Part("lab", TEST, _lab("up"), ("the lab starts",), LAB),
    # it wants the lab as it is made
    Part(
        "molecule, scenario default",
        TEST,
        _lab("exec", *_molecule("test", "--scenario-name", "default", "--destroy", "never")),
        ("molecule: default",),
        LAB,
        _UNFRAMED,
    ),
    Part(
        "a second run",
        TEST,
        _pytest(*_on_lab("second_run"), *_NOT_THOROUGH),
        ("tests/lab/test_second_run.py: the stages that change something",),
        LAB,
    ),
    Part(
        "a second run of all stages",
        ALL,
        _pytest(*_on_lab("second_run"), *_THOROUGH),
        ("tests/lab/test_second_run.py, what is slow",),
        LAB,
    ),
    Part(
        "tests on the lab",
        TEST,
        _pytest("tests/lab", *_REST, *_NOT_THOROUGH, *_SLOWEST),
        ("tests/lab: one fault of each kind, and what is fast",),
        LAB,
    ),
    Part(
        "slow tests on the lab",
        ALL,
        _pytest("tests/lab", *_REST, *_THOROUGH, *_SLOWEST),
        ("tests/lab: all faults, and what is slow",),
        LAB,
    ),
    _site("training jobs"),
    Part("training jobs", ALL, _pytest(*_on_lab("jobs")), (*_on_lab("jobs"),), LAB),
    _site("collectives"),
    Part("collectives", ALL, _pytest(*_on_lab("collectives")), (*_on_lab("collectives"),), LAB),
    _site("machine configs"),
    Part("machine configs", ALL, _pytest(*_on_lab("machine_config")), (*_on_lab("machine_config"),), LAB),
    _site("NVIDIA's network operator"),
    Part("NVIDIA's network operator", ALL, _pytest(*_on_lab("nvidia")), (*_on_lab("nvidia"),), LAB),
    # from here on the lab is without an operator
    Part(
        "teardown on the lab",
        TEST,
        _pytest(*_on_lab("teardown"), *_NOT_THOROUGH),
        ("tests/lab/test_teardown.py, what is fast",),
        LAB,
    ),
    Part(
        "slow teardowns on the lab",
        ALL,
        _pytest(*_on_lab("teardown"), *_THOROUGH),
        ("tests/lab/test_teardown.py, what is slow",),
        LAB,
    ),
    Part("lab down before OLM", ALL, _lab("down"), ("the end of a lab on which operators came and went",), LAB),
    Part("lab for OLM", ALL, _lab("up"), ("a lab on which no operator ever was",), LAB),
    Part("OLM", ALL, _lab("olm", "on"), ("OLM starts",), LAB),
    Part("site.yml by OLM", ALL, (PYTHON, "-m", "dev.site", "-i", "inventory/lab-olm"), ("the operator by OLM",), LAB),
    Part("faults of OLM", ALL, _pytest(*_on_lab("olm")), (*_on_lab("olm"),), LAB),
    # molecule leaves out what it does not remember having made, and its destroy ends the namespace that the rest is in;
    # the second proves that nothing is left
    Part(
        "molecule destroy",
        TEST,
        _molecule("destroy", "--scenario-name", "default"),
        ("the lab is taken down, also when something failed",),
        END,
        _UNFRAMED,
    ),
    Part("lab down", TEST, _lab("down"), ("nothing of the lab is left",), END),
)


if __name__ == "__main__":
    guarded(main)
