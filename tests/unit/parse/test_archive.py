# SPDX-License-Identifier: GPL-3.0-or-later

"""Where an archive shall go: what a user may write, and what is no place."""

from __future__ import annotations

import datetime
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as some

from ansible_collections.linerate.rdma.plugins.module_utils._model.run.archive import Address, ArchiveError, Folder
from ansible_collections.linerate.rdma.plugins.module_utils._parse.archive import parse_expiry, place_of, refusal_words

SIGNED = "https://s3.example.com/reports/last.tar.gz?X-Amz-Date=20260102T030405Z&X-Amz-Expires=3600&X-Amz-Signature=5ecret0123"
NAME = "rdma-evidence-20260102T030405Z-aaaaaa.tar.gz"


@pytest.mark.parametrize(
    ("said", "path", "shown"),
    [
        (
            "https://dav.example.com/reports/",
            f"https://dav.example.com/reports/{NAME}",
            "https://dav.example.com/reports/",
        ),
        ("HTTPS://dav.example.com:8443", f"https://dav.example.com:8443/{NAME}", "https://dav.example.com:8443/"),
        (
            "http://[fd00::1]/{run}/archive.tar.gz",
            "http://[fd00::1]/RUN/archive.tar.gz",
            "http://[fd00::1]/{run}/archive.tar.gz",
        ),
        (SIGNED, "https://s3.example.com/reports/last.tar.gz", "https://s3.example.com/reports/last.tar.gz?..."),
        (
            "https://blob.example.com/reports/?sig=5ecret",
            f"https://blob.example.com/reports/{NAME}",
            "https://blob.example.com/reports/?...",
        ),
    ],
)
def test_an_address_says_where_the_file_goes_and_shows_no_query(said: str, path: str, shown: str) -> None:
    place = place_of(said)
    assert isinstance(place, Address)
    assert place.of("RUN", NAME) == path and place.shown == shown
    assert "5ecret" not in repr(place) and place.base + place.query == said.replace("HTTPS", "https").replace(
        ":8443", ":8443/"
    )


@pytest.mark.parametrize("said", ["/srv/reports", "reports", "~/reports", "/srv/a report", "/srv/a:b"])
def test_whatever_has_no_scheme_is_a_folder(said: str) -> None:
    assert place_of(said) == Folder(said)


@pytest.mark.parametrize("said", [None, ""])
def test_nothing_is_no_place(said: typing.Any) -> None:
    assert place_of(said) is None


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ("s3://bucket/5ecret", "generate_presigned_url"),
        ("ftp://host/5ecret", "https URL"),
        ("https:/host/5ecret", "https://host/path"),
        ("https://", "host or port"),
        ("https://user:5ecret@host/reports/", "RDMA_REPORT_ARCHIVE_PASSWORD"),
        ("https://host:99999/reports/", "port"),
        ("https://host/rep orts/?5ecret", "one line"),
        ("https://host/reports/?x=5ecret\n", "one line"),
        ("https://host/reports/#5ecret", "%23"),
        ("https://host/{name}/5ecret", "{run}"),
        ("https://host/reports", "slash"),
        ("/srv/\0", "one line"),
        (["/srv"], "list"),
        (True, "bool"),
        ("  ", "names no folder or URL"),
    ],
)
def test_what_is_no_place_is_refused_in_words_without_a_secret(said: typing.Any, word: str) -> None:
    with pytest.raises(ArchiveError) as told:
        place_of(said)
    assert word in str(told.value) and told.value.remedy and "5ecret" not in str(told.value)


@given(some.text(max_size=80) | some.from_regex(r"https?://\S{0,60}"))
def test_whatever_is_written_is_a_place_or_refused(said: str) -> None:
    try:
        place = place_of(said)
    except ArchiveError as error:
        assert error.remedy
        return
    if isinstance(place, Address):
        # what is sent on has one host, and no sign that ends a line of a request
        assert (
            (place.base + place.query).isprintable()
            and " " not in place.base + place.query
            and place.base.count("://") >= 1
        )


def test_a_signature_says_until_when_it_is_taken() -> None:
    place = place_of(SIGNED)
    assert isinstance(place, Address)
    assert parse_expiry(place) == datetime.datetime(2026, 1, 2, 4, 4, 5, tzinfo=datetime.timezone.utc)
    assert parse_expiry(Address("https://host/", "?X-Amz-Date=20260102T030405Z")) is None
    assert parse_expiry(Address("https://host/", "?X-Amz-Date=20269902T030405Z&X-Amz-Expires=1")) is None


def test_what_s3_says_is_told_and_nothing_else_of_it() -> None:
    body = (
        "<?xml version='1.0'?><Error><Code>AccessDenied</Code><Message>Request has"
        " expired</Message><AWSAccessKeyId>AKIA</AWSAccessKeyId></Error>"
    )
    assert refusal_words(body) == "AccessDenied: Request has expired"
    assert (
        refusal_words("<html>403 Forbidden</html>") == "" and refusal_words("<Message>\x1b[2J</Message>") == "\\x1b[2J"
    )
