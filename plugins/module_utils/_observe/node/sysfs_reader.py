# SPDX-License-Identifier: GPL-3.0-or-later

"""Read single values, links and names below a folder of sysfs. A file that could not be read is recorded, and never
counts as absent.
"""

from __future__ import annotations

import errno
import os
import re
import typing

from ..._model.base.errors import ParseError
from ..._model.boundary.form import Form
from ..._parse.node import sysfs as parse

Value = typing.TypeVar("Value")
#: no attribute is larger; a tree that is not sysfs must not fill the memory
_MOST_BYTES = 65536


class SysfsReader:
    """A reader of the files below one folder of sysfs. It records the files that exist and cannot be read.

    :ivar unread: names of these files, relative to the folder
    :ivar errors: error of each of these files, with the full path
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.unread: list[str] = []
        self.errors: list[str] = []

    def value(self, name: str, parser: typing.Callable[[str], Value]) -> typing.Optional[Value]:
        """Return the parsed text of a file. Return None if it is absent. Return None and add an entry to ``unread`` if
        it cannot be read or parsed.

        :param name: path of the file, relative to the folder
        :param parser: function that parses the text of the file, without its last line end
        """
        raw = self.raw(name)
        if raw is None:
            return None
        try:
            return parser(raw.decode("utf-8").rstrip("\n"))
        except (ParseError, UnicodeDecodeError) as error:
            self._record_read_failure(name, str(error))
            return None

    def text(self, name: str) -> typing.Optional[str]:
        r"""Return the text of a file, of any form, without its last line end. Return None if it is absent, or could not
        be read. Bytes that are not UTF-8 are shown as ``\xNN`` and reported as an error.

        :param name: path of the file, relative to the folder
        """
        raw = self.raw(name)
        if raw is None:
            return None
        try:
            return raw.decode("utf-8").rstrip("\n")
        except UnicodeDecodeError:
            self.errors.append(f"{os.path.join(self.folder, name)}: not UTF-8; invalid bytes are shown as \\xNN")
            return raw.decode("utf-8", "backslashreplace").rstrip("\n")

    def formed(self, name: str, form: Form) -> typing.Optional[str]:
        """Return the text of a file that must have a given form. Return None if the file is absent or empty. Return
        None and add an entry to ``unread`` if the text does not have this form.

        :param name: path of the file, relative to the folder
        :param form: form that the text must have
        """
        return self.value(name, lambda text: form.of(text, "the text") if text else "") or None

    def names(self, name: str) -> tuple[str, ...]:
        """Return the entries of a folder in natural order. Return an empty tuple if the folder is absent. Return an
        empty tuple and add an entry to ``unread`` if it cannot be read.

        :param name: path of the folder, relative to the folder of the reader
        """
        try:
            return tuple(sorted(os.listdir(os.path.join(self.folder, name)), key=make_natural_sort_key))
        except (FileNotFoundError, NotADirectoryError):
            return ()
        except OSError as error:
            self._record_read_failure(name, error.strerror or str(error))
            return ()

    def link(self, name: str) -> typing.Optional[str]:
        """Return the name of the target of a symbolic link, without its folders. Return None if the path is absent, and
        also, with an entry in ``unread``, if it is not a link or cannot be read. The link is resolved, because its text
        may end with ``..``.

        :param name: path of the link, relative to the folder of the reader
        """
        path = os.path.join(self.folder, name)
        try:
            os.readlink(path)
            return os.path.basename(os.path.realpath(path))
        except (FileNotFoundError, NotADirectoryError):
            # class/net holds a plain file too: bonding_masters
            return None
        except OSError as error:
            self._record_read_failure(name, error.strerror or str(error))
            return None

    def above(self, name: str) -> str:
        """Return the name of the parent folder of the target of a symbolic link.

        :param name: path of the link, relative to the folder of the reader
        """
        return os.path.basename(os.path.realpath(os.path.join(self.folder, name, "..")))

    def raw(self, name: str, most: int = _MOST_BYTES) -> typing.Optional[bytes]:
        """Return the first bytes of a file. Return None if it is absent or the device does not support it (EOPNOTSUPP).
        Return None and add an entry to ``unread`` if it cannot be read.

        :param name: path of the file, relative to the folder
        :param most: maximum number of bytes to read
        """
        try:
            # without a buffer, so that no more is asked of a device than is needed
            with open(os.path.join(self.folder, name), "rb", buffering=0) as stream:
                return stream.read(most)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            # the kernel makes some files for every device, and this is how one says that it has no such thing
            if error.errno != errno.EOPNOTSUPP:
                self._record_read_failure(name, error.strerror or str(error))
            return None

    def number_if_any(self, name: str) -> typing.Optional[int]:
        """Return the number in a file that the kernel may refuse to read in a normal state, such as ``speed`` without a
        link. Return None if the read fails, without recording an error.

        :param name: path of the file, relative to the folder
        """
        try:
            with open(os.path.join(self.folder, name), "rb") as stream:
                return parse.parse_number(stream.read(_MOST_BYTES).decode("ascii").rstrip("\n"))
        except (OSError, ParseError, UnicodeDecodeError):
            return None

    def _record_read_failure(self, name: str, why: str) -> None:
        self.unread.append(name)
        self.errors.append(f"{os.path.join(self.folder, name)}: {why}")


def make_natural_sort_key(name: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key for natural order, in which mlx5_10 comes after mlx5_9."""
    parts = re.split(r"([0-9]+)", name)
    return tuple((1, int(part), "") if place % 2 else (0, 0, part) for place, part in enumerate(parts) if part)
