# SPDX-License-Identifier: GPL-3.0-or-later

"""What a finding means, whatever was measured in a run: the text of its page in docs/findings."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Explanation:
    """Of one check id. Markdown in all texts.

    :ivar means: what it means that the check does not pass, and what harm comes of it
    :ivar measured: what the check looks at
    :ivar causes: the likeliest first
    :ivar look: commands with which a reader looks by hand, on the node or where kubectl is; in capitals what he puts in
    :ivar remedy: what to do, with its command
    """

    means: str
    measured: str
    causes: tuple[str, ...]
    look: tuple[str, ...]
    remedy: str
