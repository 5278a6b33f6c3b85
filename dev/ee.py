# SPDX-License-Identifier: GPL-3.0-or-later

"""Builds the image of the execution environment from this checkout with podman, and tries it.

The image is that of ``execution-environment.yml``. Only the collections come from ``build/`` instead of Galaxy, so that
the image contains the checkout, and the build needs no Galaxy server. It needs a base image, the packages of its
distribution, and the Python package index.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import shutil
import typing

import yaml

from .lint import tarball
from .setup import WANTED
from .steps import ANSIBLE_ENV, BUILD, COLLECTIONS, ROOT, VENV, guarded, run, say
from .tree import make_tree

FOLDER = BUILD / "ee"
DEFINITION = ROOT / "execution-environment.yml"
#: tried in the image
TRIED = (
    ("ansible-galaxy", "collection", "list"),
    ("ansible-playbook", "--syntax-check", "linerate.rdma.site"),
    ("ansible-playbook", "linerate.rdma.demo"),
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="make ee")
    parser.add_argument("--base", default="", help="the base image; the default is that of execution-environment.yml")
    parser.add_argument("--tag", default="localhost/linerate-rdma-ee:checkout", help="name of the image")
    parser.add_argument("--program", default="podman", help="path of podman")
    parser.add_argument("--build", action="append", default=[], metavar="OPTION", help="more options of podman build")
    parser.add_argument("--run", action="append", default=[], metavar="OPTION", help="more options of podman run")
    given = parser.parse_args()
    context = make_context()
    bases = [f"EE_BASE_IMAGE={given.base}"] if given.base else []
    # no Galaxy server is asked
    arguments = [f"--build-arg={name}" for name in (*bases, "ANSIBLE_GALAXY_CLI_COLLECTION_OPTS=--offline")]
    file = str(context / "Containerfile")
    build = [given.program, "build", "--tag", given.tag, "--file", file, *arguments, *given.build, str(context)]
    run("build the image", build, "Read the log. Is the base image in reach, and the package index?")
    for command in TRIED:
        words = [given.program, "run", "--rm", *given.run, given.tag, *command]
        output = run(f"in the image: {' '.join(command)}", words, "The image lacks something: read the log.")
    say("\n".join(output.splitlines()[-3:]))
    say(f"The image is {given.tag}. To push it: {given.program} push {given.tag} docker://REGISTRY/linerate-rdma-ee:1")


def make_context() -> pathlib.Path:
    """Make the build context of podman anew.

    :returns: its folder
    :raises StepError: a collection cannot be built, or ansible-builder refuses the definition
    """
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    archives = [tarball(make_tree(), FOLDER / "own"), *(_pack(name) for name in WANTED)]
    definition = FOLDER / "execution-environment.yml"
    definition.write_text(yaml.safe_dump(from_checkout(archives), sort_keys=False), encoding="utf-8")
    context = FOLDER / "context"
    words = ["create", "--file", str(definition), "--context", str(context), "--output-filename", "Containerfile"]
    run("ansible-builder create", [VENV / "bin" / "ansible-builder", *words], "Correct execution-environment.yml.")
    return context


def from_checkout(archives: typing.Sequence[pathlib.Path]) -> dict[str, typing.Any]:
    """Return the definition with ``archives`` in place of the collections from Galaxy."""
    definition: dict[str, typing.Any] = yaml.safe_load(DEFINITION.read_text(encoding="utf-8"))
    files = definition["additional_build_files"]
    for item in files:
        item["src"] = str(ROOT / item["src"])
    files += [{"src": str(archive), "dest": "collections"} for archive in archives]
    collections = [{"name": f"collections/{archive.name}", "type": "file"} for archive in archives]
    definition["dependencies"]["galaxy"] = {"collections": collections}
    return definition


def _pack(name: str) -> pathlib.Path:
    """Build the tarball of an installed collection, which has a manifest in place of ``galaxy.yml``.

    :param name: with a slash
    """
    copy = FOLDER / "packed" / name
    shutil.copytree(COLLECTIONS / "ansible_collections" / name, copy)
    info = json.loads((copy / "MANIFEST.json").read_text(encoding="utf-8"))["collection_info"]
    described = {key: value for key, value in info.items() if value is not None}
    (copy / "galaxy.yml").write_text(yaml.safe_dump(described), encoding="utf-8")
    command = [
        str(VENV / "bin" / "ansible-galaxy"),
        "collection",
        "build",
        "--output-path",
        str(FOLDER / "others"),
        str(copy),
    ]
    run(f"build {name.replace('/', '.')}", command, "Remove build/collections, and run 'make setup'.", env=ANSIBLE_ENV)
    return FOLDER / "others" / f"{name.replace('/', '-')}-{info['version']}.tar.gz"


if __name__ == "__main__":
    guarded(main)
