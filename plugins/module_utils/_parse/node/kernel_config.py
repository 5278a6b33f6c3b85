# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the build configuration of a kernel: /proc/config.gz, /boot/config-<release>. Form: Linux 6.12
scripts/kconfig/confdata.c, ``CONFIG_PCI_P2PDMA=y`` or ``# CONFIG_PCI_P2PDMA is not set``. An option is missing if its
dependencies are off. Since Linux 5.4 each menu ends with a comment.
"""

from __future__ import annotations

import re
import zlib

from ..._model.base.errors import ParseError

#: of a text; those of distributions have 300 KiB
MOST_BYTES = 4 << 20
_GZIP = 16 + zlib.MAX_WBITS
_MAGIC = b"\x1f\x8b"
_P2PDMA = re.compile(r"^(?:CONFIG_PCI_P2PDMA=([ym])|# CONFIG_PCI_P2PDMA is not set)$", re.MULTILINE)
_LAST_MENU = re.compile(r"^# end of Kernel hacking$", re.MULTILINE)


def has_p2pdma_support(raw: bytes) -> bool:
    """Return whether the kernel supports peer-to-peer DMA between PCI functions (CONFIG_PCI_P2PDMA), built in or as a
    module. A complete configuration without this option means False.

    :param raw: contents of the file, optionally compressed by gzip
    :raises ParseError: the contents are not the configuration of a kernel, or are incomplete
    """
    text = (_unpack_gzip(raw) if raw.startswith(_MAGIC) else raw).decode("utf-8", "replace")
    found = _P2PDMA.search(text)
    # it may be left out, but not of a text that was cut off
    if not found and not _LAST_MENU.search(text):
        raise ParseError(
            "configuration of the kernel",
            text[:80],
            "a configuration with CONFIG_PCI_P2PDMA, or with the end of its last menu",
        )
    return bool(found and found.group(1))


def _unpack_gzip(raw: bytes) -> bytes:
    """Return the unpacked data.

    :raises ParseError: the data are damaged or incomplete, or larger than ``MOST_BYTES``
    """
    unpacker = zlib.decompressobj(_GZIP)
    try:
        found = unpacker.decompress(raw, MOST_BYTES)
    except zlib.error as error:
        raise ParseError("configuration of the kernel", str(error), "data in gzip format") from error
    if not unpacker.eof:
        raise ParseError(
            "configuration of the kernel",
            f"{len(raw)} bytes of gzip",
            "complete data in gzip format, not larger than the configuration of a kernel",
        )
    return found
