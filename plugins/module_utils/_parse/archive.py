# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the destination of the report's archive as the user writes it, and the reason that an HTTP server gives when it
refuses the archive.

Sources: RFC 3986 (addresses), RFC 4918 section 9.7 (PUT below a collection), Amazon S3 API reference (signature in the
query; Error, Code, Message).
"""

from __future__ import annotations

import datetime
import re
import typing

from .._model.base.text import cut_plain, kind_of
from .._model.run.archive import RUN, VARIABLE, Address, ArchiveError, Folder, Place

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,30}):/")
_ADDRESS = re.compile(r"(https?)://([^/?#]*)(/[^?#]*)?(\?[^#]*)?(#.*)?", re.IGNORECASE | re.DOTALL)
_HOST = re.compile(r"([A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?|\[[0-9A-Fa-f:.]{2,45}\])(:(\d{1,5}))?", re.ASCII)
_CODE = re.compile(r"<Code>([A-Za-z0-9._-]{1,64})</Code>")
_MESSAGE = re.compile(r"<Message>([^<>]{1,300})</Message>")
_SIGNED = re.compile(r"[?&]X-Amz-(Date|Expires)=(\d{8}T\d{6}Z|\d{1,7})(?=&|$)", re.ASCII)
_MOST = 65536


def place_of(said: typing.Any) -> typing.Optional[Place]:
    """Parse the destination of the report's archive: a folder, or an HTTP address that accepts PUT. Return None if the
    value is None or an empty text.

    :param said: value of the variable with which the user sets the destination, of any type
    :raises ArchiveError: the value is neither the path of a folder nor a valid address
    """
    if said is None or said == "":
        return None
    if not isinstance(said, str) or not said.strip():
        raise ArchiveError(
            f"{VARIABLE} is {kind_of(said)}, and names no folder or URL",
            "Set the path of a folder, or a URL that accepts PUT",
        )
    scheme = _SCHEME.match(said)
    if scheme is None:
        if "\0" in said or "\n" in said:
            raise ArchiveError(
                f"{VARIABLE} has characters that no path has", "Write the path of one folder on one line"
            )
        return Folder(said)
    if scheme[1].lower() not in ("http", "https"):
        remedy = "Set an https URL that accepts PUT"
        remedy += (
            "; for S3, a presigned URL (generate_presigned_url('put_object', ...))"
            if scheme[1].lower() == "s3"
            else ", or the path of a folder"
        )
        raise ArchiveError(f"{VARIABLE} begins with {scheme[1].lower()}:, which is not supported", remedy)
    return _parse_archive_address(said)


def _parse_archive_address(said: str) -> Address:
    """Return the address of an archive from its URL. No message repeats the URL, because the invalid part may be its
    secret.

    :param said: the URL
    :raises ArchiveError: the URL is invalid, contains a user, a fragment or braces, or does not show whether it is a
        folder
    """
    match = _ADDRESS.fullmatch(said)
    # no message repeats it: what is wrong in an address may be its secret part
    if match is None or not said.isascii() or not said.isprintable() or " " in said:
        raise ArchiveError(
            f"{VARIABLE} is not a valid URL: it contains spaces or invalid characters, or has no host",
            "Copy it again, on one line, as https://host/path",
        )
    scheme, host, path, query = match[1].lower(), match[2], match[3] or "/", match[4] or ""
    if "@" in host:
        seen = f"{VARIABLE} contains a user or a password, and URLs are written to logs"
        raise ArchiveError(
            seen, "Remove them, and set RDMA_REPORT_ARCHIVE_USER and RDMA_REPORT_ARCHIVE_PASSWORD in the environment"
        )
    found = _HOST.fullmatch(host)
    if found is None or (found[4] is not None and not 1 <= int(found[4]) <= 65535):
        raise ArchiveError(
            f"{VARIABLE} has no valid host or port", "Write it as https://host/path or https://host:port/path"
        )
    if match[5]:
        raise ArchiveError(
            f"{VARIABLE} contains a #, and the part after it is not sent to the server",
            "Replace it with %23, or remove it",
        )
    rest = path.replace(RUN, "")
    if "{" in rest or "}" in rest:
        raise ArchiveError(
            f"{VARIABLE} has braces in its path", f"Write {RUN} for the name of the run, and no other braces"
        )
    in_folder = path.endswith("/")
    if not (in_folder or query or RUN in path):
        seen = f"{VARIABLE} does not show whether it is a folder, and each run would replace the previous archive"
        raise ArchiveError(
            seen, f"End the path of a folder with a slash, or write {RUN} in the place of the name of the run"
        )
    return Address(f"{scheme}://{host}{path}", "" if query == "?" else query, in_folder)


def parse_expiry(address: Address) -> typing.Optional[datetime.datetime]:
    """Return the time (UTC) at which a presigned S3 address expires: the date in its query plus the duration. Return
    None if the query does not contain both in a valid form.
    """
    found = {match[1]: match[2] for match in _SIGNED.finditer(address.query[:_MOST])}
    try:
        begins: datetime.datetime = datetime.datetime.strptime(found["Date"], "%Y%m%dT%H%M%SZ").replace(
            tzinfo=datetime.timezone.utc
        )
        return begins + datetime.timedelta(seconds=int(found["Expires"]))
    except (KeyError, ValueError, OverflowError):
        return None


def refusal_words(text: str) -> str:
    """Return the error code and the message from the XML body with which S3, or a compatible server, refuses a request,
    as ``code: message``. Return only one of them if the other is missing, and an empty string if both are.
    """
    head = text[:_MOST]
    code, message = _CODE.search(head), _MESSAGE.search(head)
    return cut_plain(": ".join(found[1].strip() for found in (code, message) if found is not None), 400)
