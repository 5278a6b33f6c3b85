# SPDX-License-Identifier: GPL-3.0-or-later

"""All linters, each without exceptions, and ``ansible-test`` as 'make test' has it.

Arguments are sizes: ``python -m dev.lint check`` is for while you write.
"""

from __future__ import annotations

import pathlib
import shutil
import sys
import typing

from . import sanity
from .sizes import ALL, CHECK, SIZES
from .steps import ANSIBLE_ENV, BUILD, COLLECTIONS, ROOT, VENV, StepError, guarded, log_of, run, say, together
from .tree import TREE, make_tree

#: what is strictly typed of the plugins, by the name under which Ansible finds them
KINDS = ("module_utils", "plugin_utils", "action", "callback", "connection", "filter", "inventory", "lookup", "modules")
PLUGINS = [f"ansible_collections/linerate/rdma/plugins/{name}" for name in KINDS]
#: and of all else
OTHERS = ("dev", "lab", "tests")
#: files for CI, by the schema of their system
CI_FILES = {
    "vendor.github-workflows": ("docs/examples/ci/github.yml", ".github/workflows/ci.yml"),
    "vendor.gitlab-ci": ("docs/examples/ci/gitlab.yml",),
}
#: how galaxy-importer says that it ended ansible-lint
_LATE = "Timeout on call to ansible-lint"


def main() -> None:
    sizes = sys.argv[1:]
    known = dict.fromkeys(size for _name, size, _lint in LINTERS)
    if not set(known).issuperset(sizes):
        raise StepError(f"no size that has linters: {' '.join(sizes)}", f"Give {', '.join(known)}, or nothing for all.")
    for each in SIZES:
        # galaxy-importer alone: it gives its own linter three minutes
        together([lint for _name, size, lint in LINTERS if size == each and (not sizes or size in sizes)])
    if not sizes:
        sanity.main()


def _ruff() -> None:
    ruff = VENV / "bin" / "ruff"
    run("ruff check", [ruff, "check", "."], "Correct what it names; 'ruff check --fix' can do a part of it.")
    run("ruff format", [ruff, "format", "--check", "."], "Give the command: build/venv/bin/ruff format")


def _yamllint() -> None:
    run("yamllint", [VENV / "bin" / "yamllint", "--strict", "."], "Correct what it names.")


def _ansible_lint() -> None:
    command = [str(VENV / "bin" / "ansible-lint"), "--nocolor"]
    run("ansible-lint, profile production", command, "Correct what it names; nothing is skipped here.", env=ANSIBLE_ENV)


def _changelog() -> None:
    run(
        "antsibull-changelog",
        [VENV / "bin" / "antsibull-changelog", "lint"],
        "Correct the fragment that it names; see CONTRIBUTING.md.",
    )
    say("- not audited here: what is pinned; 'make audit' asks an index of vulnerabilities, and fails where it can't")


def _types() -> None:
    mypy = [str(VENV / "bin" / "mypy"), "--config-file", str(ROOT / "pyproject.toml")]
    remedy = "Correct the types that it names."
    run("mypy on the plugins", [*mypy, *PLUGINS], remedy, cwd=COLLECTIONS)
    # tests import from folders that are not looked at: each file answers for itself
    run("mypy on the rest", [*mypy, "--follow-imports", "silent", *OTHERS], remedy)


def _workflows() -> None:
    """Check the files for CI by the schemas of their systems, which come with the tool: what docs/ci.md gives to
    others, and the workflows of this repository. actionlint reads the expressions as well."""
    for schema, paths in CI_FILES.items():
        command = [str(VENV / "bin" / "check-jsonschema"), "--verbose", "--builtin-schema", schema, *paths]
        run(f"check-jsonschema, {schema}", command, "Correct what it names.")
    environment = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly"}
    workflows = [str(ROOT / path) for path in CI_FILES["vendor.github-workflows"]]
    configuration = ["-config-file", str(ROOT / ".github/actionlint.yaml")]
    run(
        "actionlint",
        ["go", "tool", "actionlint", "-no-color", *configuration, *workflows],
        "Correct what it names; it is built by Go 1.25 or newer, from the module proxy.",
        cwd=ROOT / "dev/actionlint",
        env=environment,
    )


def _docs() -> None:
    """Markup and references of all documentation. The dependencies are found beside the copy, and git must not take
    them for ignored files of this one."""
    command = [
        str(VENV / "bin" / "antsibull-docs"),
        "lint-collection-docs",
        "--plugin-docs",
        "--validate-collection-refs=dependent",
        ".",
    ]
    environment = {**ANSIBLE_ENV, "ANSIBLE_COLLECTIONS_PATH": str(TREE), "GIT_CEILING_DIRECTORIES": str(BUILD)}
    run("antsibull-docs", command, "Correct the documentation that it names.", cwd=make_tree(), env=environment)


def galaxy(copy: pathlib.Path) -> pathlib.Path:
    """What a server says of the collection that it takes in: it has no other one beside it. It lints once more what is
    left.

    :returns: the tarball
    """
    built = BUILD / "galaxy"
    archive = tarball(copy, built)
    (built / "importer.cfg").write_text(
        "[galaxy-importer]\nRUN_FLAKE8 = False\nRUN_ANSIBLE_TEST = False\n", encoding="utf-8"
    )
    environment = {**ANSIBLE_ENV, "GALAXY_IMPORTER_CONFIG": str(built / "importer.cfg")}
    name, remedy = "galaxy-importer", "Correct what it warns of; a server shows it to whoever looks for the collection."
    # its exit code is 0 whatever it warns of
    command = [str(VENV / "bin" / "python"), "-m", "galaxy_importer.main", str(archive)]
    text = run(name, command, remedy, cwd=built, env=environment)
    if _LATE in text:
        # it gives ansible-lint 180 s and has no option for that; what else the machine does is no fault of the
        # collection
        say("ansible-lint took longer than galaxy-importer allows; once more")
        text = run(name, command, remedy, cwd=built, env=environment)
        if _LATE in text:
            raise StepError(
                "ansible-lint took longer than galaxy-importer allows (180 s), twice",
                "End what else this machine does, and give the command again.",
            )
    warned = [line for line in text.splitlines() if line.startswith(("WARNING", "ERROR", "CRITICAL"))]
    if warned or "Importer processing completed successfully" not in text:
        raise StepError(
            "\n".join([f"'{name}' is not content; all of its output: {log_of(name).relative_to(ROOT)}", *warned]),
            remedy,
        )
    return archive


def tarball(copy: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """Build the collection.

    :param folder: is emptied first
    :returns: the path in it
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    command = [str(VENV / "bin" / "ansible-galaxy"), "collection", "build", "--output-path", str(folder), str(copy)]
    run("build the collection", command, "Correct galaxy.yml.", env=ANSIBLE_ENV)
    (archive,) = folder.glob("*.tar.gz")
    return archive


#: name, the smallest size that has it, and what runs it; they run beside each other, so that the longest come first
LINTERS: tuple[tuple[str, str, typing.Callable[[], object]], ...] = (
    ("ruff", CHECK, _ruff),
    ("ansible-lint", CHECK, _ansible_lint),
    ("mypy", CHECK, _types),
    ("yamllint", CHECK, _yamllint),
    ("antsibull-changelog", CHECK, _changelog),
    ("check-jsonschema and actionlint", CHECK, _workflows),
    ("antsibull-docs", CHECK, _docs),
    ("galaxy-importer", ALL, lambda: galaxy(make_tree())),
)

if __name__ == "__main__":
    guarded(main)
