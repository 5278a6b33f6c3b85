# SPDX-License-Identifier: GPL-3.0-or-later

"""Format of resource paths on a BMC. A path must be valid in an HTTP request line and must not lead to another host.
[RFC 9112, 3.2.1; DMTF DSP0266]
"""

from __future__ import annotations

import typing

from .form import Form


def _on_this_bmc(text: str) -> typing.Optional[str]:
    own = text.startswith("/") and not text.startswith(("//", "/\\"))
    return text if own and text.isascii() and text.isprintable() and " " not in text else None


PATH = Form("a path on this BMC", "/redfish/v1/Systems/1", 1999, _on_this_bmc)

Path = typing.Annotated[str, PATH]
