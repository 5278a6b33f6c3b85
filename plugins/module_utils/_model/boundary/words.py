# SPDX-License-Identifier: GPL-3.0-or-later

"""Formats of short texts that belong to no single system: states, versions, models, image names and host names of an
inventory.
"""

from __future__ import annotations

import re
import typing

from .form import Form, make_pattern

#: no braces, quotes, dollar signs, backslashes and no line ends: nothing that a template, a shell or a line protocol
#: knows
_WORD = re.compile(r"[A-Za-z0-9_(?][A-Za-z0-9_ .,:;+/@()=*#~%?-]{0,199}", re.ASCII)
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:+~()/ -]{0,99}", re.ASCII)
#: a host of an inventory may be an address, and IPv6 has colons
_HOST = re.compile(r"[A-Za-z0-9_\[][A-Za-z0-9_.:@+\[\]-]{0,252}", re.ASCII)
#: of a container's image: place, tag, digest
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/@+-]{0,511}", re.ASCII)

#: what an admin calls a switch may have letters of any script
_SWITCH_NAME = re.compile(r"\w[\w .,:;+/@()=*#~%?&-]{0,254}")

WORD = Form("letters, digits and common punctuation, up to 200 characters", "LinkUp", 200, make_pattern(_WORD))
VERSION = Form("a version", "28.42.1000", 100, make_pattern(_VERSION))
#: of LLDP, which has 255 bytes for each [IEEE 802.1AB-2016, 8.5.2.3, 8.5.3.3, 8.5.6.2]
SWITCH_NAME = Form(
    "the name of a switch: letters, digits and common punctuation, up to 255 characters",
    "leaf-1",
    255,
    make_pattern(_SWITCH_NAME),
)
HOST = Form("the name of a host", "worker-1", 253, make_pattern(_HOST))
IMAGE = Form("the name of an image", "quay.io/site/tools:1", 512, make_pattern(_IMAGE))

Word = typing.Annotated[str, WORD]
Version = typing.Annotated[str, VERSION]
SwitchName = typing.Annotated[str, SWITCH_NAME]
Host = typing.Annotated[str, HOST]
Image = typing.Annotated[str, IMAGE]
