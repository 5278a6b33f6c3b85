# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the default limits of containers (``default_ulimits``) from CRI-O's configuration files in a MachineConfig.

CRI-O reads its main file first, and then the files of its folder in the order of their names. A later list replaces an
earlier one as a whole. [cri-o pkg/config UpdateFromPath]
"""

from __future__ import annotations

import base64
import binascii
import gzip
import io
import re

from ..._model.kubernetes.host import CRIO_FILE
from ..kubernetes.resource import Resource, items_of, mapping_at, name_of

_MAIN, _FOLDER = "/etc/crio/crio.conf", "/etc/crio/crio.conf.d/"
#: bytes of a file that are read
_MOST = 1 << 20
#: a list, and its end. Without the end the file is invalid; the pattern matches it nevertheless, because a search that
#: reads up to the end of the file again for each line takes quadratic time
_LIST = re.compile(r"^[ \t]*default_ulimits[ \t]*=[ \t]*\[([^\]]*)(\]?)", re.MULTILINE)
_COMMENT = re.compile(r"#[^\n]*")
_ENTRY = re.compile(r"\"([^\"\n]*)\"|'([^'\n]*)'")
#: a byte in a data URL
_ESCAPED = re.compile(rb"%([0-9A-Fa-f]{2})")


def parse_ulimits(resource: Resource, own: bool = False) -> tuple[str, ...]:
    """Return the entries of ``default_ulimits``, such as ``memlock=-1:-1``, that take effect on a node with a
    MachineConfig, from the files that CRI-O reads before that of the collection. Return an empty tuple if no such file
    sets them.

    :param resource: the MachineConfig, such as the rendered one of a MachineConfigPool
    :param own: whether to return the entries in the file of the collection instead
    :raises ResourceError: the object is not a valid MachineConfig
    """
    what = f"MachineConfig {name_of(resource)}"
    files = {
        str(item.get("path")): mapping_at(item, "contents")
        for item in items_of(mapping_at(resource, "spec", "config", "storage"), "files", what)
    }
    found: tuple[str, ...] = ()
    for path in sorted(files, key=lambda path: (path != _MAIN, path)):
        if path == CRIO_FILE if own else path == _MAIN or (path.startswith(_FOLDER) and path < CRIO_FILE):
            text = _COMMENT.sub("", _read_contents(files[path]))
            lists = [entries for entries, end in _LIST.findall(text) if end]
            found = tuple(one or other for one, other in _ENTRY.findall(lists[-1])) if lists else found
    return found


def _read_contents(contents: Resource) -> str:
    """Return the text of a file in a MachineConfig, at most _MOST bytes of it. Return an empty text if the contents are
    not a valid data URL. [Ignition 3.2.0, RFC 2397]

    :param contents: ``contents`` of the file
    """
    head, comma, body = str(contents.get("source") or "").partition(",")
    if not comma or not head.startswith("data:"):
        return ""
    data = _ESCAPED.sub(lambda match: bytes.fromhex(match[1].decode()), body.encode())
    try:
        if head.endswith(";base64"):
            data = base64.b64decode(data)
        if contents.get("compression") == "gzip":
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
                data = file.read(_MOST)
    except (binascii.Error, OSError, EOFError, ValueError):
        return ""
    return data[:_MOST].decode("utf-8", "replace")
