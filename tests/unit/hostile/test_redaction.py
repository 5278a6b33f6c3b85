# SPDX-License-Identifier: GPL-3.0-or-later

"""Credentials in the forms of their issuers, wherever a tool prints them, and text that only looks like one."""

from __future__ import annotations

import json
import time
import typing

import hypothesis
import hypothesis.strategies as some
import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.redact import REDACTED, is_free, redact, redact_text

WORD = "hunter2hunter2hunter2"
SECRETS: typing.Sequence[typing.Tuple[str, str]] = (
    ("token sha256~Zz0_9-aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789abc in use", "Zz0_9"),
    (f"Authorization: Basic {WORD}==", WORD),
    (f"authorization: basic {WORD}", WORD),
    (f'{{"Authorization": "Basic {WORD}"}}', WORD),
    ("key AKIAIOSFODNN7EXAMPLE was refused", "IOSFODNN7"),
    ("ASIAIOSFODNN7EXAMPLE", "IOSFODNN7"),
    ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalrXUt"),
    ('"SecretAccessKey": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"', "wJalrXUt"),
    ("ghp_0123456789abcdefghijABCDEFGHIJ012345", "0123456789abc"),
    ("gho_0123456789abcdefghijABCDEFGHIJ012345", "0123456789abc"),
    ("github_pat_11ABCDEFG0123456789_abcdefghij", "11ABCDEFG"),
    ("glpat-0123456789abcdefghij", "0123456789abc"),
    (f"mstconfig --password {WORD} query", WORD),
    (f"helm --password={WORD} pull", WORD),
    (f"helm --registry-password '{WORD} two' pull", WORD),
    (f"oc login --token={WORD}", WORD),
    (f"oc login --token {WORD}", WORD),
    (f"oc --api-key {WORD}", WORD),
    (f"['helm', '--password', '{WORD}']", WORD),
    (f"https://me:{WORD}@registry.example/v2", WORD),
    (f"https://me:a@{WORD}@registry.example/v2", WORD),
    (f"Authorization: Bearer\t{WORD}", WORD),
    (f"authorization: bearer {WORD}", WORD),
    (f"key nvapi-{WORD}", WORD),
    (f"hf_{WORD}", WORD),
    (f"/chart?X-Amz-Signature={WORD}&b=1", WORD),
    (f"redis://:{WORD}@cache", WORD),
)


@pytest.mark.parametrize(("text", "secret"), SECRETS)
def test_a_credential_goes(text: str, secret: str) -> None:
    assert secret not in redact_text(text) and REDACTED in redact_text(text)
    document = json.dumps({"said": [text]})
    assert not is_free(document) and secret not in json.dumps(redact(json.loads(document)))


def test_the_value_of_an_option_goes_from_a_list_of_arguments() -> None:
    assert redact({"argv": ["helm", "--password", WORD, "pull", "--insecure"]}) == {"argv": ["helm", "--password", REDACTED, "pull", "--insecure"]}


@pytest.mark.parametrize(
    "text",
    [
        "image quay.io/x@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        "https://docs.example/findings/a.html@x",
        "ssh://git@host/x",
        "Basic authentication is off",
        "--set driver.enabled=true --wait",
        "mlx5_0 -- mlx5_1",
        "0xb83fd20300e10000",
        "high_ghz",
        "hf_rate is 3",
    ],
)
def test_what_is_none_stays(text: str) -> None:
    assert redact_text(text) == text


@hypothesis.given(some.lists(some.one_of(some.sampled_from([text for text, _secret in SECRETS]), some.text(max_size=10)), max_size=3))
def test_what_is_not_looked_through_has_nothing_to_take_out(texts: typing.List[str]) -> None:
    assert not is_free(json.dumps(texts)) or redact(texts) == texts


@pytest.mark.parametrize(
    "part",
    [
        "://a:",
        "://",
        "--password ",
        '--password "',
        "--a-",
        "authorization: basic",
        "sha256~",
        "secret_key=",
        "gh",
        "nvapi-",
        "hf_",
        "X-Amz-Signature=",
        "ghp_",
        "AKIA",
        "-",
        "://a:@",
        "' --token '",
    ],
)
def test_no_pattern_is_worse_than_linear(part: str) -> None:
    def seconds(count: int) -> float:
        text = part * (count // len(part))
        began = time.process_time()
        redact_text(text)
        return time.process_time() - began

    assert seconds(300_000) < 1.0, "0.03 s on an idle machine; a quadratic one takes minutes"
