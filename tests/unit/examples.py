# SPDX-License-Identifier: GPL-3.0-or-later

"""How many examples property tests have: as many as take a minute, and ten times as many in 'make test-all'
(``--hypothesis-profile thorough``)."""

from __future__ import annotations

import hypothesis

USUAL, THOROUGH = 60, 600


def register_profiles() -> None:
    """The same examples on each run, so that a red run can be looked at; a slow machine is no failure."""
    for name, count in (("linerate", USUAL), ("thorough", THOROUGH)):
        hypothesis.settings.register_profile(name, deadline=None, derandomize=True, database=None, max_examples=count)
    hypothesis.settings.load_profile("linerate")


def examples(usual: int) -> int:
    """For a test that wants another number than most: it grows with the profile."""
    return usual * hypothesis.settings().max_examples // USUAL
