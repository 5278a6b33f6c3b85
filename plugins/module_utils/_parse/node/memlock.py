# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the output of the pod that tests locked memory: ``ulimit -l`` and ibv_rc_pingpong, which first registers its
buffer.

Texts of ibv_rc_pingpong: rdma-core 44 and 56, from its source (libibverbs/examples/rc_pingpong.c).
"""

from __future__ import annotations

import dataclasses
import re
import typing

from ..._model.base.errors import RdmaError
from ..._model.base.text import cut_plain
from ..._model.boundary.devices import RDMA_DEVICE
from ..._model.boundary.form import Range
from ..._model.boundary.numbers import BYTES, USER
from ..._model.kubernetes.host import MemlockProof

_LONGEST = 300
_KEYS = re.compile(r"^(user|soft|hard|device|asked|code) (\S+)$", re.MULTILINE)
#: the registration failed
_REFUSED = ("Couldn't register MR",)
#: printed only after the registration, also where what comes behind it fails
_REGISTERED = (
    "local address:",
    "Couldn't create CQ",
    "Couldn't create QP",
    "Failed to modify QP to INIT",
    "Couldn't get local LID",
    "Couldn't get port info",
)


class MemlockError(RdmaError):
    """The error for a text that is not the output of the pod that tests locked memory."""

    def __init__(self, seen: str) -> None:
        super().__init__(cut_plain(seen, 2 * _LONGEST))


def parse(text: str, fabric: str, node: str, pod: str) -> MemlockProof:
    """Return the result of the pod that tests how much memory it may lock. If the test ended before it registered
    memory, the result contains an error instead of the size.

    :param text: output of the pod
    :param fabric: name of the fabric whose HCA the pod uses
    :param node: node of the pod
    :param pod: name of the pod
    :raises MemlockError: the limits, the requested size or the user are missing or invalid
    """
    seen = dict(_KEYS.findall(text))
    for key in ("user", "soft", "hard", "asked"):
        if key not in seen:
            raise MemlockError(f"no line '{key} ...' in the output of the pod: {text.strip()[:_LONGEST] or 'nothing'}")
    proof = MemlockProof(
        fabric=fabric,
        node=node,
        pod=pod,
        user=_parse_number(seen["user"], "user", USER),
        soft=_parse_memlock_limit(seen["soft"], "soft"),
        hard=_parse_memlock_limit(seen["hard"], "hard"),
        device=RDMA_DEVICE.parse(seen.get("device")) or "",
        asked=_parse_number(seen["asked"], "asked"),
    )
    lines = [line.strip()[:_LONGEST] for line in text.splitlines() if line.strip() and not _KEYS.match(line)]
    for line in lines:
        if any(mark in line for mark in _REFUSED):
            return dataclasses.replace(proof, registered=0, evidence=line)
    for line in lines:
        if any(mark in line for mark in _REGISTERED):
            return dataclasses.replace(proof, registered=proof.asked, evidence=line)
    return dataclasses.replace(
        proof, evidence=lines[-1] if lines else "", error=_describe_proof_failure(proof, lines, seen.get("code", ""))
    )


def _describe_proof_failure(proof: MemlockProof, lines: typing.Sequence[str], code: str) -> str:
    """Return why the proof of locked memory did not register memory.

    :param lines: lines that the proof printed
    :param code: exit code as the pod printed it; empty without one
    """
    said = lines[-1] if lines else "it printed nothing"
    if not proof.device:
        return "the pod has no RDMA device on its interface"
    if code in ("126", "127"):
        return f"the image lacks ibv_rc_pingpong or timeout: {said}"
    return f"ibv_rc_pingpong ended with {code or 'no exit code'} before it registered memory: {said}"


def _parse_number(text: str, key: str, known: Range = BYTES, unit: int = 1) -> int:
    """Return a number, multiplied by its unit.

    :param key: name of the value, for error messages
    :param known: values that are possible
    :param unit: factor, such as 1024
    :raises MemlockError: the text is no number, or the value is out of range
    """
    if not re.fullmatch(r"[0-9]{1,20}", text):
        raise MemlockError(f"'{key} {text[:_LONGEST]}' is not a number")
    found = int(text) * unit
    if not known.fits(found):
        raise MemlockError(f"'{key} {text}' is not {known.expected}")
    return found


def _parse_memlock_limit(text: str, key: str) -> int:
    """Return the limit of locked memory in bytes, or -1 for ``unlimited``. ``ulimit -l`` prints the limit in KiB.

    :param text: output of ``ulimit -l``
    :param key: name of the value in messages
    :raises MemlockError: the text is neither a number nor ``unlimited``
    """
    return -1 if text == "unlimited" else _parse_number(text, key, unit=1024)
