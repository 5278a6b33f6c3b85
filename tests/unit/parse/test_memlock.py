# SPDX-License-Identifier: GPL-3.0-or-later

"""What the pod that proves locked memory prints. Texts of ibv_rc_pingpong from its source, release 44 and 56 of
rdma-core."""

from __future__ import annotations

import contextlib
import re

import hypothesis
import hypothesis.strategies as some
import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.host import MemlockProof
from ansible_collections.linerate.rdma.plugins.module_utils._parse.node.memlock import MemlockError, parse

HEAD = "user 65532\nsoft {soft}\nhard {hard}\nasked 67108864\ndevice mlx5_4\n"
LOCAL = "  local address:  LID 0x0000, QPN 0x000011, PSN 0x4f2c81, GID ::\n"


def said(body: str, soft: str = "8192", hard: str = "8192") -> MemlockProof:
    return parse(HEAD.format(soft=soft, hard=hard) + body, "compute", "a", "test/pod")


def test_a_registration_that_worked() -> None:
    proof = said(f"{LOCAL}code 124\n", "unlimited", "unlimited")
    assert (proof.user, proof.soft, proof.hard, proof.device) == (65532, -1, -1, "mlx5_4")
    assert (proof.asked, proof.registered, proof.error) == (67108864, 67108864, "")


@pytest.mark.parametrize(
    "line",
    [
        "Couldn't create CQ",
        "Couldn't create QP",
        "Failed to modify QP to INIT",
        "Couldn't get local LID",
        "Couldn't get port info",
    ],
)
def test_what_fails_behind_the_registration_does_not_undo_it(line: str) -> None:
    assert said(f"{line}\ncode 1\n").registered == 67108864


def test_a_registration_that_failed() -> None:
    proof = said("Couldn't register MR\ncode 1\n")
    assert (proof.soft, proof.registered, proof.evidence, proof.error) == (8388608, 0, "Couldn't register MR", "")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            "Couldn't allocate work buf.\ncode 1\n",
            "ended with 1 before it registered memory: Couldn't allocate work buf.",
        ),
        ("Couldn't get context for mlx5_4\ncode 1\n", "Couldn't get context for mlx5_4"),
        ("IB device mlx5_4 not found\ncode 1\n", "not found"),
        (
            "stdbuf: failed to run command 'ibv_rc_pingpong': No such file or directory\ncode 127\n",
            "the image lacks ibv_rc_pingpong",
        ),
        ("code 124\n", "it printed nothing"),
        ("", "no exit code"),
    ],
)
def test_what_was_not_tried_is_no_proof(body: str, words: str) -> None:
    proof = said(body)
    assert proof.registered is None and words in proof.error


def test_a_pod_without_a_device_says_so() -> None:
    proof = parse("user 65532\nsoft 64\nhard 64\nasked 4096\n", "compute", "a", "test/pod")
    assert proof.error == "the pod has no RDMA device on its interface"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "user 1\n",
        "user root\nsoft 1\nhard 1\nasked 1\n",
        "user 1\nsoft x\nhard 1\nasked 1\n",
        "user 1\nsoft 1\nasked 1\n",
        "user \u0663\nsoft 1\nhard 1\nasked 1\n",
    ],
)
def test_text_without_the_limits_is_an_error(text: str) -> None:
    with pytest.raises(MemlockError):
        parse(text, "compute", "a", "test/pod")


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (
            "user 4294967296\nsoft 64\nhard 64\nasked 4096\n",
            "'user 4294967296' is not a user ID from 0 to 4.29497e+09",
        ),
        (
            "user 1\nsoft 18014398509481984\nhard 64\nasked 4096\n",
            "'soft 18014398509481984' is not a number of bytes from 0 to 1.84467e+19",
        ),
        (
            "user 1\nsoft 64\nhard 64\nasked 99999999999999999999\n",
            "'asked 99999999999999999999' is not a number of bytes from 0 to 1.84467e+19",
        ),
    ],
)
def test_a_number_that_no_kernel_has_is_an_error_of_its_pod(head: str, said: str) -> None:
    """The facts of all pods are loaded at once."""
    with pytest.raises(MemlockError) as raised:
        parse(head, "compute", "a", "test/pod")
    assert str(raised.value) == said
    assert (
        parse("user 4294967295\nsoft 18014398509481983\nhard unlimited\nasked 4096\n", "compute", "a", "test/pod").soft
        == 2**64 - 1024
    )


@hypothesis.given(
    some.text(max_size=400)
    | some.lists(some.sampled_from(re.findall(r".+\n", HEAD + LOCAL + "Couldn't register MR\ncode 1\n"))).map("".join)
)
def test_any_text_is_a_proof_or_an_error_of_its_own(text: str) -> None:
    with contextlib.suppress(MemlockError):
        proof = parse(text, "compute", "a", "test/pod")
        assert proof.registered in (None, 0, proof.asked)
        assert proof.registered is not None or proof.error
