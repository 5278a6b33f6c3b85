# SPDX-License-Identifier: GPL-3.0-or-later

"""For all tests: a long one says that it still runs, as every step of this project does."""

from __future__ import annotations

import threading
import time
import typing

import pytest

SECONDS = 8


@pytest.fixture(autouse=True)
def sign_of_life(request: pytest.FixtureRequest) -> typing.Iterator[None]:
    """Every few seconds a line with the name of the test that runs."""
    reporter = request.config.pluginmanager.get_plugin("terminalreporter")
    capture = request.config.pluginmanager.get_plugin("capturemanager")
    if reporter is None or capture is None:
        # pytest was told to do without (-p no:terminal)
        yield
        return
    start = time.monotonic()
    done = threading.Event()

    def speak() -> None:
        while not done.wait(SECONDS):
            with capture.global_and_fixture_disabled():
                reporter.write_line(f"  ... {request.node.name} ({time.monotonic() - start:.0f} s)")

    speaker = threading.Thread(target=speak, daemon=True)
    speaker.start()
    yield
    done.set()
    speaker.join()
