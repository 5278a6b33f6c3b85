# SPDX-License-Identifier: GPL-3.0-or-later

"""The report in a real browser: Debian's chromium, driven by an environment of its own below ``build/``. Arguments go to pytest.

``--pictures`` makes the pictures of the documentation anew.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import typing

from .setup import link_checkout, make_environment
from .steps import BUILD, ROOT, StepError, guarded, run

ENVIRONMENT = BUILD / "venv-browser"
#: fonts are those of a plain desktop: widths and page breaks of a machine without any are nobody's
PACKAGES = {"chromium": "/usr/bin/chromium", "fonts-dejavu-core": "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"}


def main() -> int:
    """Set up what is missing, and run the tests in the foreground.

    :returns: pytest's exit code
    """
    BUILD.mkdir(exist_ok=True)
    _install([name for name, path in PACKAGES.items() if not pathlib.Path(path).exists()])
    make_environment(ENVIRONMENT, pathlib.Path(__file__).parent / "browser.txt")
    link_checkout()
    return subprocess.call([str(ENVIRONMENT / "bin" / "python"), "-m", "pytest", "--durations", "5", "tests/browser", *sys.argv[1:]], cwd=ROOT)


def _install(missing: typing.List[str]) -> None:
    if not missing:
        return
    command = ["apt-get", "install", "-y", "--no-install-recommends", *missing]
    remedy = f"Look whether the Debian mirror can be reached, then, as root: {' '.join(command)}"
    if not shutil.which("apt-get") or os.geteuid() != 0:
        raise StepError(f"{', '.join(missing)} must be there for the tests in a browser", remedy)
    run("apt-get update", ["apt-get", "update"], remedy)
    run(f"apt-get install {' '.join(missing)}", command, remedy, env={"DEBIAN_FRONTEND": "noninteractive"})


if __name__ == "__main__":
    guarded(main)
