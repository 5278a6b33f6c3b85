# SPDX-License-Identifier: GPL-3.0-or-later

"""The report in a real browser: Debian's chromium, driven by an environment of its own below ``build/``. Arguments go
to pytest.

``--pictures`` makes the pictures of the documentation anew. ``site`` as the first argument opens the pages of the
documentation instead, which ``python -m dev.docs`` has built.
"""

from __future__ import annotations

import pathlib
import subprocess
import sys

from .setup import link_checkout, make_environment
from .steps import BUILD, ROOT, guarded, install_packages

ENVIRONMENT = BUILD / "venv-browser"
#: fonts are those of a plain desktop: widths and page breaks of a machine without any are nobody's
PACKAGES = {"chromium": "/usr/bin/chromium", "fonts-dejavu-core": "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"}


def main() -> int:
    """Set up what is missing, and run the tests in the foreground.

    :returns: pytest's exit code
    """
    BUILD.mkdir(exist_ok=True)
    missing = [name for name, path in PACKAGES.items() if not pathlib.Path(path).exists()]
    if missing:
        install_packages(missing, f"{', '.join(missing)} must be there for the tests in a browser")
    make_environment(ENVIRONMENT, pathlib.Path(__file__).parent / "browser.txt")
    link_checkout()
    tests, arguments = "report", sys.argv[1:]
    if arguments[:1] == ["site"]:
        tests, *arguments = arguments
    command = [str(ENVIRONMENT / "bin" / "python"), "-m", "pytest", "--durations", "5"]
    return subprocess.call([*command, f"tests/browser/test_{tests}.py", *arguments], cwd=ROOT)


if __name__ == "__main__":
    guarded(main)
