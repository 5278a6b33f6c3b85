# SPDX-License-Identifier: GPL-3.0-or-later

"""The definition of the execution environment, read by ansible-builder itself. 'make ee' builds the image: that needs a
base image, and podman."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import typing

import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.version import COLLECTION_VERSION
from dev import ee, steps

MANAGER = "/usr/share/linerate-rdma/ee-packages"
BUILDER = str(pathlib.Path(sys.executable).parent / "ansible-builder")


def builder(*arguments: str) -> str:
    run = subprocess.run([BUILDER, *arguments], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


@pytest.fixture(name="context", scope="module")
def fixture_context(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """What ansible-builder makes of the definition."""
    folder = tmp_path_factory.mktemp("context")
    root = pathlib.Path(__file__).resolve().parents[3]
    builder(
        "create",
        "--file",
        str(root / "execution-environment.yml"),
        "--context",
        str(folder),
        "--output-filename",
        "Containerfile",
    )
    return folder


def test_the_definition_becomes_a_build_with_all_that_is_needed(context: pathlib.Path) -> None:
    steps = (context / "Containerfile").read_text(encoding="utf-8")
    assert re.search(r"ansible-core>=2\.\d+,<2\.\d+ ansible-runner", steps)
    assert (
        re.search(r"introspect\.py introspect .*--user-bindep=bindep\.txt", steps)
        and "ansible-galaxy collection install" in steps
    )
    system = (context / "_build" / "bindep.txt").read_text(encoding="utf-8").splitlines()
    assert {"helm [platform:rpm]", "sshpass"} <= set(system)
    wanted = yaml.safe_load((context / "_build" / "requirements.yml").read_text(encoding="utf-8"))["collections"]
    assert {item["name"] for item in wanted} == {"linerate.rdma", "kubernetes.core", "awx.awx"}
    assert {"name": "linerate.rdma", "version": f">={COLLECTION_VERSION}"} in wanted


def test_jobs_of_the_image_show_their_stages(context: pathlib.Path) -> None:
    last = (context / "Containerfile").read_text(encoding="utf-8").rpartition("\nFROM ")[2]
    assert "\nENV ANSIBLE_STDOUT_CALLBACK=linerate.rdma.stages\n" in last


def test_each_stage_of_the_build_takes_the_versions_that_are_tested(context: pathlib.Path, root: pathlib.Path) -> None:
    """An ARG is there for the commands of its stage, and not in the image."""
    pinned = (root / "dev" / "runner.txt").read_text(encoding="utf-8")
    assert (context / "_build" / "constraints" / "ee-constraints.txt").read_text(encoding="utf-8") == pinned
    assert (root / "meta" / "ee-constraints.txt").read_text(encoding="utf-8") == pinned
    stages = re.split(r"^FROM ", (context / "Containerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    steps = [
        (
            stage,
            re.search(r"^RUN .*(ANSIBLE_INSTALL_REFS|scripts/assemble|install-from-bindep)", stage, flags=re.MULTILINE),
        )
        for stage in stages
    ]
    found = [(stage, step.start()) for stage, step in steps if step is not None]
    assert len(found) == 3
    assert all(
        -1 < stage.find("ARG PIP_CONSTRAINT=/usr/share/linerate-rdma/ee-constraints.txt") < start
        for stage, start in found
    )


def test_build_on_dnf_and_on_apt_get_calls_the_package_manager_of_the_base(context: pathlib.Path) -> None:
    """Debian's python3 refuses ensurepip, and its packages of Python cannot be replaced by pip."""
    steps = (context / "Containerfile").read_text(encoding="utf-8")
    base, *others = re.split(r"^FROM ", steps, flags=re.MULTILINE)[1:]
    assert f'ARG PKGMGR="{MANAGER}"' in steps and 'ARG PYPKG="python3 python3-pip"' in steps
    assert base.index(f"COPY _build/packages/ee-packages {MANAGER}") < base.index("RUN $PKGMGR install $PYPKG")
    assert base.index("ARG PIP_IGNORE_INSTALLED=1") < base.index("-m pip install")
    assert not any("PIP_IGNORE_INSTALLED" in stage for stage in others)
    assert "pip_install" not in steps and (context / "_build" / "packages" / "ee-packages").stat().st_mode & 0o111


@pytest.mark.parametrize(
    ("managers", "words", "called"),
    [
        (("dnf", "microdnf"), "install python3 -y", ["dnf install python3 -y"]),
        (("microdnf", "apt-get"), "clean all", ["microdnf clean all"]),
        (
            ("apt-get",),
            "install -y python3",
            ["apt-get update", "apt-get --no-install-recommends install -y python3"],
        ),
        (("apt-get",), "clean all", ["apt-get clean", "rm -rf /var/lib/apt/lists"]),
        (("apt-get",), "upgrade -y", ["apt-get upgrade -y"]),
    ],
)
def test_package_manager_of_the_base_is_called_in_its_own_words(
    root: pathlib.Path, tmp_path: pathlib.Path, managers: tuple[str, ...], words: str, called: list[str]
) -> None:
    for name in (*managers, "rm"):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >>"{tmp_path}/log"\n', encoding="utf-8")
        program.chmod(0o755)
    subprocess.run(["/bin/sh", root / "meta" / "ee-packages", *words.split()], env={"PATH": str(tmp_path)}, check=True)
    assert (tmp_path / "log").read_text(encoding="utf-8").splitlines() == called


def test_image_of_the_checkout_differs_from_the_definition_in_its_collections_only(
    context: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    archives = [tmp_path / name for name in ("linerate-rdma-1.0.0.tar.gz", "kubernetes-core-6.2.0.tar.gz")]
    for archive in archives:
        archive.write_bytes(b"")
    definition, own = tmp_path / "definition.yml", tmp_path / "context"
    definition.write_text(yaml.safe_dump(ee.from_checkout(archives)), encoding="utf-8")
    builder("create", "--file", str(definition), "--context", str(own), "--output-filename", "Containerfile")
    old, new = (
        {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in (context, own)
    )
    wanted = yaml.safe_load(new.pop("_build/requirements.yml"))["collections"]
    assert [item["type"] for item in wanted] == ["file", "file"]
    assert [new.pop(f"_build/{item['name']}") for item in wanted] == [b"", b""]
    assert new == {name: text for name, text in old.items() if name != "_build/requirements.yml"}


def test_image_of_the_checkout_is_built_on_the_given_base_and_tried(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program, log = tmp_path / "podman", tmp_path / "log"
    program.write_text(f'#!/bin/sh\necho "$*" >>"{log}"\necho last\n', encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(ee, "make_context", lambda: tmp_path)
    monkeypatch.setattr(steps, "LOGS", tmp_path / "logs")
    options = [
        "--base",
        "mirror.example/debian:13",
        "--tag",
        "x:1",
        "--build=--isolation=chroot",
        "--run=--network=none",
    ]
    monkeypatch.setattr(sys, "argv", ["ee", "--program", str(program), *options])
    ee.main()
    built, *tried = log.read_text(encoding="utf-8").splitlines()
    assert built == (
        f"build --tag x:1 --file {tmp_path}/Containerfile --build-arg=EE_BASE_IMAGE=mirror.example/debian:13"
        f" --build-arg=ANSIBLE_GALAXY_CLI_COLLECTION_OPTS=--offline --isolation=chroot {tmp_path}"
    )
    assert tried == [f"run --rm --network=none x:1 {' '.join(command)}" for command in ee.TRIED]
    assert "The image is x:1." in capsys.readouterr().out


def test_the_base_is_named_with_its_registry_and_its_digest_can_be_given(
    context: pathlib.Path, root: pathlib.Path
) -> None:
    """A short name is that of whichever registry the builder asks first; a tag is what its registry makes of it."""
    definition = (root / "execution-environment.yml").read_text(encoding="utf-8")
    (base,) = (image["name"] for image in yaml.safe_load(definition)["images"].values())
    registry, _slash, path = base.partition("/")
    assert "." in registry and path
    steps = (context / "Containerfile").read_text(encoding="utf-8")
    assert f'ARG EE_BASE_IMAGE="{base}"' in steps and re.search(
        r"^FROM \$EE_BASE_IMAGE as base", steps, flags=re.MULTILINE | re.IGNORECASE
    )
    given = f"EE_BASE_IMAGE={base.partition(':')[0]}@sha256:..."
    if "@sha256:" not in base:
        told = (root / "docs" / "security.md").read_text(encoding="utf-8")
        assert (
            given in definition
            and f"--build-arg {given}" in told
            and "no registry was in reach" in " ".join(told.split())
        )


def test_what_is_required_has_an_upper_bound_and_the_tested_version_is_in_it(root: pathlib.Path) -> None:
    pins = dict(
        line.split("==")
        for name in ("test-requirements.txt", "dev/runner.txt")
        for line in (root / name).read_text(encoding="utf-8").split()
        if "==" in line
    )
    for line in required(root):
        name, bound = re.fullmatch(r"([a-z]+)>=[\d.]+,<(\d+)", line).groups()  # type: ignore[union-attr]
        assert int(pins[name].split(".")[0]) == int(bound) - 1
    given = yaml.safe_load((root / "execution-environment.yml").read_text(encoding="utf-8"))["dependencies"]
    assert all("<" in item["version"] for item in given["galaxy"]["collections"] if item["name"] != "linerate.rdma")
    assert "<" in given["ansible_core"]["package_pip"] and "<" in given["ansible_runner"]["package_pip"]
    bounds = {yaml.safe_load((root / "requirements.yml").read_text(encoding="utf-8"))["collections"][0]["version"]}
    bounds |= {item["version"] for item in given["galaxy"]["collections"] if item["name"] == "kubernetes.core"}
    bounds.add(yaml.safe_load((root / "galaxy.yml").read_text(encoding="utf-8"))["dependencies"]["kubernetes.core"])
    assert bounds == {">=5.0.0,<7.0.0"}


def names(lines: typing.Iterable[str]) -> set[str]:
    """Of what the collection asks for itself."""
    return {re.split(r"[ ><=\[]", line)[0] for line in lines if line.endswith("# from collection linerate.rdma")}


def test_the_builder_reads_the_needs_from_the_collection(root: pathlib.Path) -> None:
    found = yaml.safe_load(builder("introspect", str(root / "build" / "collections")))
    # pyyaml comes with ansible-core: the builder leaves it out
    assert names(found["python"]) == names(f"{line}  # from collection linerate.rdma" for line in required(root)) - {
        "pyyaml"
    }
    assert names(found["system"]) == {"openssh-clients", "openssh-client"}


def test_each_python_package_that_a_collection_asks_for_is_pinned_or_excluded(
    context: pathlib.Path, root: pathlib.Path
) -> None:
    """pip took the newest version of the others."""
    found = yaml.safe_load(builder("introspect", str(root / "build" / "collections")))
    asked = {re.split(r"[ ><=\[;#]", line.strip())[0].lower().replace("_", "-") for line in found["python"]}
    pinned = {line.partition("==")[0] for line in (root / "meta" / "ee-constraints.txt").read_text("utf-8").split()}
    excluded = set((context / "_build" / "exclude-requirements.txt").read_text(encoding="utf-8").split())
    assert {"kubernetes", "jsonpatch"} <= asked
    assert asked - pinned - excluded == set() and not excluded & pinned
    steps = (context / "Containerfile").read_text(encoding="utf-8")
    assert "--exclude-pip-reqs=exclude-requirements.txt" in steps
    code = [
        path.read_text(encoding="utf-8")
        for folder in ("plugins", "roles", "playbooks")
        for path in (root / folder).rglob("*")
        if path.suffix in (".py", ".yml")
    ]
    users = ("k8s_json_patch", "awx.awx.export", "awx.awx.import", "schedule_rrule")
    assert not [name for name in users for text in code if name in text]


def required(root: pathlib.Path) -> list[str]:
    lines = (root / "requirements.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def test_both_lists_of_python_packages_are_one(root: pathlib.Path) -> None:
    assert (root / "meta" / "ee-requirements.txt").read_text(encoding="utf-8") == (root / "requirements.txt").read_text(
        encoding="utf-8"
    )


def test_jobs_are_tried_with_the_python_packages_of_the_definition(root: pathlib.Path) -> None:
    packages = yaml.safe_load((root / "execution-environment.yml").read_text(encoding="utf-8"))["dependencies"]
    lines = [
        line
        for line in (root / "dev" / "runner.in").read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    ]
    assert sorted(lines) == sorted(
        ["-r ../requirements.txt", packages["ansible_core"]["package_pip"], packages["ansible_runner"]["package_pip"]]
    )
