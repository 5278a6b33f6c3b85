# SPDX-License-Identifier: GPL-3.0-or-later

"""The general explanation of a finding: the text of its page in docs/findings."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Explanation:
    """The general explanation of the findings of one check id. All texts are Markdown.

    :ivar means: meaning and consequences of a check that does not pass
    :ivar measured: quantity that the check evaluates
    :ivar causes: causes, the most likely first
    :ivar look: commands for a manual check, on the node or with kubectl; placeholders are in capitals
    :ivar remedy: instruction that resolves the cause, with its command
    """

    means: str
    measured: str
    causes: tuple[str, ...]
    look: tuple[str, ...]
    remedy: str
