# SPDX-License-Identifier: GPL-3.0-or-later

"""Classify the failure in the output of rping, perftest or iperf3.

Texts: perftest 4.5 and 25.01, rping of rdma-core 44 and 56, and iperf3 3.12 and 3.18, from captures and from their
sources. The order of the patterns matters, because the first match wins. A specific text precedes the general text that
follows it in the same output.
"""

from __future__ import annotations

import dataclasses
import re
import typing

from ..._model.measurement import completions
from . import libibverbs

_OwnKind = typing.Literal[
    "not_listening",
    "no_address",
    "address_family",
    "port_in_use",
    "name",
    "no_device",
    "device_access",
    "port_down",
    "no_lid",
    "no_queue",
    "other_release",
    "memlock",
    "gid",
    "no_gid",
    "completion",
    "peer_gone",
    "not_closed",
    "disconnected",
    "no_tool",
    "no_option",
    "hang",
    "crash",
    "exec_lost",
    "pod_gone",
    "deadline",
    "no_measurement",
    "other_run",
    "exit_code",
]
#: what failed; statuses of work completions and warnings of libibverbs are kinds of their own
Kind = typing.Union[_OwnKind, completions.Kind, libibverbs.Kind]
#: kinds that a warning of libibverbs above explains
_WITHOUT_DEVICE = frozenset(("no_device", "device_access", "no_address", "exit_code"))

#: kinds of a first contact that comes too early, worth a bounded retry while the server still runs: the server does not
#: accept yet, or the virtual function's port has just come up, and its neighbours or the subnet manager do not know it
#: yet
RETRIED = ("not_listening", "no_address")

#: kinds that say nothing of the link, worth a bounded number of measurements anew: the connection to the pod broke; or
#: perftest measured, and its two ends then missed each other in the last handshake over rdma_cm. On iWARP a send is
#: complete once the local TCP has it, so the server may have torn the connection down before the client's own last send
#: is complete (perftest's rdma_write_keys: "Bad wc status 2", with a perfect table on both sides). On InfiniBand and
#: RoCE a send is complete when the other end has it. Or rping's server left before the last round trip, as it does when
#: its time is over while the client is still trying to reach it. Or a tool ended with 0 and has no figure: perftest
#: writes 0 or inf where it could not tell how fast the node's clock runs, which it finds out anew at each start
#: (get_cpu_mhz), and which a moment of other work on the node can spoil. Or a tool crashed, which is a mistake of its
#: own (seen: ib_write_bw, signal 11, once in many runs); what makes it crash each time, as a node GUID of zeros does,
#: is found all the same Or another process has the port: each attempt takes other ports
LOST = frozenset(("exec_lost", "not_closed", "disconnected", "no_measurement", "crash", "port_in_use"))

#: of perftest: "Failed status 12: wr_id 0", from 26.01 on "Failed status-transport retry counter exceeded (12): wr_id
#: 0"; and of rping
_STATUS = r"(?:Failed status(?: |-[^\n()]{0,100}\()|cq completion failed status )([0-9]{1,3})\b"
#: perftest's line before it, which names the end
_END = re.compile(r"Completion with error at (?:client|server)")

#: perftest's line of an end, and of its GID: 16 numbers, some versions with more than two digits
_ADDRESS = re.compile(r"(local|remote) address: [^\n]{0,200}\n\s{0,20}GID: ([0-9a-fA-F:]{31,63})")

_TOOL = "(?:rping|ib_write_bw|iperf3)"
_PATTERNS: tuple[tuple[Kind, str], ...] = (
    # runc, and crun, which names the file in the middle of it
    (
        "no_tool",
        (
            r"executable file (?:\S{1,200} )?not found|(?:command|No such file or"
            rf" directory).{{0,300}}{_TOOL}|{_TOOL}.{{0,300}}(?:not found|No such file)"
        ),
    ),
    ("no_option", r"unrecognized option|invalid option -- "),
    ("memlock", r"Couldn't allocate MR|failed to create mr|Failed to create MR|reg_mr failed|Cannot allocate memory"),
    ("port_down", r"Port number [0-9]+ state is|Unable to query port [0-9]+ attributes"),
    ("no_lid", r"Local lid 0x0 detected"),
    (
        "no_device",
        r"IB device \S+ not found|Unable to find the Infiniband/RoCE device|Did not detect devices|No RDMA devices were"
        r" detected|No IB devices found"
        r"|no RDMA devices found|unable to get RDMA device list",
    ),
    (
        "device_access",
        (
            r"failed to create RDMA CM event channel|rdma_create_event_channel|Couldn't get context for the"
            r" device|Failed to open device"
        ),
    ),
    ("name", r"Name or service not known"),
    # rping by perror, perftest and iperf3
    ("port_in_use", r"Address already in use|Couldn't listen to port"),
    ("address_family", r"rdma_(?:resolve|bind)_addr\b.{0,100}(?:Invalid argument|-22\b|Address family not supported)"),
    (
        "not_listening",
        (
            r"RDMA_CM_EVENT_REJECTED|Unexpected CM event bl blka 8|Couldn't connect to |unable to connect to"
            r" server.{0,300}Connection refused|server is busy"
        ),
    ),
    (
        "no_address",
        r"RDMA_CM_EVENT_ADDR_ERROR|ADDR_ERROR|RDMA_CM_EVENT_ROUTE_ERROR|RDMA_CM_EVENT_UNREACHABLE|Unexpected CM"
        r" event|unable to connect to server"
        r"|rdma_(?:resolve|bind)_addr\b.{0,100}(?:No such device|unreachable|No route to host|Cannot assign requested"
        r" address|failed|error)"
        r"|Failed to resolve RDMA CM address",
    ),
    (
        "no_queue",
        r"Couldn't (?:create|allocate) (?:a receiver |(?:send |receive )?completion |rdma (?:new |old"
        r" )?)?(?:CQ|PD|TD|PAD|QP|SRQ|context|channel)\b"
        r"|Failed to create (?:CQs|QP)|Unable to create QP|QP size might be too big|Failed to modify QP to INIT"
        r"|ibv_(?:alloc_pd|create_cq|create_comp_channel|create_qp)\b|rdma_create_qp\b",
    ),
    (
        "gid",
        (
            r"Failed to modify QP (?:[0-9]+ )?to RT[RS]|Unable to Connect the HCA's through the link|Found"
            r" Incompatibility issue with GID types"
        ),
    ),
    ("other_release", r" mismatch: local="),
    # with a status that is a cause; flushed requests are a consequence of what follows
    ("completion", _STATUS),
    (
        "peer_gone",
        (
            r"Couldn't read remote address|Unable to read to socket/rdma_cm|Did not get Message for [0-9]+"
            r" Seconds|stream socket: |closed unexpectedly"
        ),
    ),
    ("flushed", _STATUS),
    ("completion", r"Completion with error at|Failed status[ -]|cq completion failed status"),
    # what made the handshake fail may stand before it
    ("not_closed", r"Failed to close connection between server and client"),
    # and this before that
    (
        "peer_gone",
        r"Unable to (?:read|write) (?:from|to) socket/rdma_cm|Failed to (?:exchange|negotiate|sync between)\b"
        r"|Couldn't (?:write to socket|send (?:local|reports))"
        r"|Couldn't read reports|Client closed connection",
    ),
)


#: characters of a line that are looked at: the tools' own lines are shorter, and the patterns that look for two words
#: take long over others
_LONGEST = 500
#: characters of an output that are looked at: those of its begin and of its end
_MOST = 256 * 1024


@dataclasses.dataclass(frozen=True)
class Failure:
    """The failure of a command.

    :ivar kind: kind of the failure, such as ``no_gid``
    :ivar evidence: the line that determined the kind as the tool printed it, or a description of the end of the command
    """

    kind: Kind
    evidence: str


def classify(exit_code: typing.Optional[int], timed_out: bool, text: str) -> typing.Optional[Failure]:
    """Return the failure of a command. Return None if it exited with 0 within its time limit.

    The exit code determines whether the command failed, since a run whose server was killed prints a valid table and
    exits with 1. The output determines the kind of the failure.

    :param exit_code: exit code of the command; None if it is unknown because the connection to the pod broke
    :param timed_out: whether the command exceeded its time limit
    :param text: output of the command, including stderr. The middle of a very long output is ignored
    """
    if exit_code == 0 and not timed_out:
        return None
    if len(text) > _MOST:
        text = f"{text[: _MOST // 2]}\n{text[-_MOST // 2 :]}"
    failure, warnings = _classify_tool(exit_code, timed_out, text), libibverbs.parse(text)
    if warnings.kind is None or failure.kind not in _WITHOUT_DEVICE:
        return failure
    return Failure(warnings.kind, "; ".join([*warnings.lines, failure.evidence])[:500])


def _classify_tool(exit_code: typing.Optional[int], timed_out: bool, text: str) -> Failure:
    """Return the failure of a tool: by the first known error text in its output, then by its time limit, and then by
    its exit code.

    :param exit_code: exit code of the tool; None if the connection was lost before it ended
    :param timed_out: whether the tool ran until its time limit
    :param text: output of the tool
    """
    text = "\n".join(line[:_LONGEST] for line in text.split("\n"))
    for kind, pattern in _PATTERNS:
        found = _find_failed_completion(kind, text) if pattern is _STATUS else None
        if found:
            return found
        match = re.search(pattern, text) if pattern is not _STATUS else None
        if match and kind == "gid":
            return _classify_gids(text, _extract_line(text, match.start()))
        if match:
            return Failure(kind, _extract_line(text, match.start())[:300])
    if timed_out:
        return Failure("hang", "did not end within the limit, and printed no error")
    last = next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "no error text")
    if exit_code in (126, 127):
        return Failure("no_tool", f"exit code {exit_code}: {last[:250]}")
    # 128 and a signal, as the shell says it: ILL, ABRT, BUS, FPE, SEGV
    if exit_code in (132, 134, 135, 136, 139):
        return Failure("crash", f"ended by signal {exit_code - 128}: {last[:250]}")
    if exit_code is None:
        return Failure("exec_lost", last[:300])
    return Failure("exit_code", f"exit code {exit_code}: {last[:250]}")


def _find_failed_completion(kind: Kind, text: str) -> typing.Optional[Failure]:
    """Return the failure that a completion status in the output shows. For the kind ``flushed`` this is the first
    flushed completion. For any other kind it is the first failed completion that can be the cause of other failures.
    Return None if there is no such completion.

    :param kind: kind of the failure that the texts of the output indicate
    :param text: output of the command
    """
    statuses = [(int(match[1]), match.start()) for match in re.finditer(_STATUS, text)]
    wanted = (
        completions.FLUSHED
        if kind == "flushed"
        else completions.find_first_cause(status for status, _start in statuses)
    )
    start = next((start for status, start in statuses if status == wanted), None)
    if wanted is None or start is None:
        return None
    ends = [match[0] for match in _END.finditer(text, 0, start)]
    return Failure(completions.STATUSES[wanted].kind, ": ".join([*ends[-1:], _extract_line(text, start)])[:300])


def _classify_gids(text: str, evidence: str) -> Failure:
    """Return the failure of queue pairs that could not be connected. The kind is ``no_gid`` if a GID in the output is
    all zeros, otherwise ``gid``.

    :param text: output of the command
    :param evidence: the line that reports the failure
    """
    ends = _ADDRESS.findall(text)
    zero = [end for end, gid in ends if not gid.strip("0:")]
    if not zero:
        return Failure("gid", evidence[:300])
    return Failure("no_gid", f"{evidence}; all-zero GID: {' and '.join(dict.fromkeys(zero))}"[:300])


def _extract_line(text: str, start: int) -> str:
    end = text.find("\n", start)
    return text[text.rfind("\n", 0, start) + 1 : end if end >= 0 else len(text)].strip()
