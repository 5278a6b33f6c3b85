# SPDX-License-Identifier: GPL-3.0-or-later

"""Sets up what the project needs of Python: a virtual environment and the collections that this one stands on, all
below ``build/``.

Uses the standard library only, and does nothing when nothing changed. What is wanted is taken out of the PyPI package
``ansible``, which carries them, so that a machine without a Galaxy server can be set up.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import pathlib
import shutil
import sys
import zipfile

from .steps import BUILD, CACHE, COLLECTIONS, ROOT, VENV, StepError, guarded, install_packages, run, say

ANSIBLE_PACKAGE = "ansible==12.3.0"
#: awx.awx is no dependency: whoever has an AWX has it, and the tests hold what we give its modules against them
WANTED = ("kubernetes/core", "awx/awx")


def main() -> None:
    make_environment(VENV, ROOT / "test-requirements.txt")
    take_collections()
    link_checkout()


def make_environment(path: pathlib.Path, requirements: pathlib.Path, interpreter: str = "") -> None:
    """Make a virtual environment with the pinned ``requirements``, unless it is there already. New pins go into the one
    that is there: a lab may run on it.

    :param interpreter: another Python than this one
    """
    stamp = path / ".made-of"
    python = f"{interpreter or sys.version} at {path}"
    wanted = f"{python}\n{hashlib.sha256(requirements.read_bytes()).hexdigest()}"
    made = stamp.read_text(encoding="utf-8") if stamp.exists() else ""
    if made == wanted:
        return
    if not made.startswith(python):
        shutil.rmtree(path, ignore_errors=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        if not interpreter:
            _ensure_venv_module()
        run(
            f"virtual environment {path.name}",
            [interpreter or sys.executable, "-m", "venv", path],
            "Install the venv module of your Python.",
        )
    pip = [
        str(path / "bin" / "python"),
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "--no-deps",
        "--progress-bar",
        "off",
    ]
    remedy = "Look whether the Python package index can be reached, then give the command again."
    run(f"Python packages of {requirements.name}", [*pip, "-r", requirements], remedy)
    stamp.write_text(wanted, encoding="utf-8")


def take_collections() -> None:
    stamp, made_of = COLLECTIONS / ".made-of", f"{ANSIBLE_PACKAGE}: {', '.join(WANTED)}"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == made_of:
        return
    wheels = CACHE / "wheels"
    wheel = next(wheels.glob(f"ansible-{ANSIBLE_PACKAGE.partition('==')[2]}-*.whl"), None)
    if wheel is None:
        wheels.mkdir(parents=True, exist_ok=True)
        command = [
            str(VENV / "bin" / "python"),
            "-m",
            "pip",
            "--disable-pip-version-check",
            "download",
            "--no-deps",
            "--progress-bar",
            "off",
        ]
        remedy = "Look whether the Python package index can be reached, then give the command again."
        run(
            f"download {ANSIBLE_PACKAGE}, which carries the collections",
            [*command, "--dest", wheels, ANSIBLE_PACKAGE],
            remedy,
        )
        wheel = next(wheels.glob("ansible-*.whl"))
    target = COLLECTIONS / "ansible_collections"
    for name in WANTED:
        shutil.rmtree(target / name, ignore_errors=True)
    try:
        with zipfile.ZipFile(wheel) as archive:
            prefixes = tuple(f"ansible_collections/{name}/" for name in WANTED)
            archive.extractall(COLLECTIONS, [name for name in archive.namelist() if name.startswith(prefixes)])
    except zipfile.BadZipFile as error:
        wheel.unlink()
        raise StepError(
            f"{wheel} is not complete: {error}", "It was removed; give the command again to download it anew."
        ) from error
    missing = [name for name in WANTED if not (target / name / "MANIFEST.json").exists()]
    if missing:
        raise StepError(f"{wheel.name} does not carry {', '.join(missing)}", "Choose another release in dev/setup.py.")
    stamp.write_text(made_of, encoding="utf-8")
    say(f"- collections {', '.join(name.replace('/', '.') for name in WANTED)}")


def link_checkout() -> None:
    """Ansible finds a collection by its folder's name only, and this checkout may have any; see also ansible.cfg."""
    link = COLLECTIONS / "ansible_collections" / "linerate" / "rdma"
    link.parent.mkdir(parents=True, exist_ok=True)
    target = os.path.relpath(ROOT, link.parent)
    if link.is_symlink() and os.readlink(link) == target:
        return
    link.unlink(missing_ok=True)
    link.symlink_to(target)


def _ensure_venv_module() -> None:
    """Debian leaves ensurepip out of python3; there, take it from the package."""
    if importlib.util.find_spec("ensurepip") is not None:
        return
    install_packages(
        [f"python{sys.version_info.major}.{sys.version_info.minor}-venv"], "this Python has no venv module"
    )


if __name__ == "__main__":
    BUILD.mkdir(exist_ok=True)
    guarded(main)
