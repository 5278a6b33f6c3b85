# SPDX-License-Identifier: GPL-3.0-or-later

"""Each message in the source of UCX and libfabric has a class, or a reason here why it has none: the library's own
words are shown then."""

from __future__ import annotations

import pathlib
import re
import typing

import hypothesis
import hypothesis.strategies as some
import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.job.log.problems import CAUSES, check_problem
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job import transports
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.nccl.log import parse_text

MESSAGES = pathlib.Path(__file__).parent.parent / "fixtures" / "messages"

#: why messages have no class: parts of them, as they stand in the source
UNKNOWN: typing.Mapping[str, typing.Mapping[str, tuple[str, ...]]] = {
    "ucx.txt": {
        "An object of UCX itself could not be made, found or removed, or is in a state that its code rules out.": (
            "llocat",
            "TYPE_NULL",
            "hash",
            "dci",
            "DCI",
            "FC ep",
            "fc_ep",
            "flow-control",
            "removing user pending",
            "keepalive",
            "destroy",
            "uncompleted",
            "SRQ ",
            "SRQ topology",
            "send ops",
            "cur_post",
            "consumer index",
            "tx wq",
            "wqe count",
            "WQE dump",
            "UMR_FILL",
            "outstanding map",
            "was not purged",
            "cleanup with",
            "timer handler",
            "event handler",
            "event_channel",
            "async event: %d",
            "async_events",
            "async context",
            "async != NULL",
            "qp failed: unknown type",
            "opcode",
            "packet arrived",
            "pending op mask",
            "atomic type length",
            "Out of order",
            "Synchronous callback",
            "spinlock",
            "checksum",
            "dummy ud qp",
            "passive endpoint",
            "peer address",
            "disconnect",
            "id=%p to peer",
            "private data pack",
            "sockaddr accessibility",
            "UCT_EP_PARAM",
            "OPEN_MODE",
            "SIGIO",
            "sa_family",
            "features set",
            "removed qpn",
            "LRU push",
            "NULL plugin",
            "lane - reached limit",
            "too many components",
            "perf estimations",
            "boot id",
            "dereg",
            "flush_remote",
        ),
        "A feature that the HCA, its firmware or its driver does not have; UCX goes on without it.": (
            "not supported",
            "is unsupported",
            "cannot export",
            "cannot invalidate",
            "cannot set ",
            "cannot create verbs",
            "with DEVX",
            "fallback to",
            "assuming 1x",
            "max_get_zcopy",
            "system device is",
            "ports, but only",
            "maximal supported size",
            "device parameters not suitable",
            "reserved qpn",
            "multi-threaded worker",
            "unsupported thread mode",
            "nvalid active_",
            "using original path",
            "from sysfs",
            "fence value",
            "memory type specifier",
            "numa policy",
        ),
        "The text names the call that failed, and the system's words stand behind it.": (
            "%s failed",
            "%s: %s",
            "failed: %m",
            "returned %d",
            "failed to open",
            "failed to read",
            "failed to scan",
            "could not read",
            "unable to read",
            "failed to find port",
            "query",
            "poll",
            "post receives",
            "create socket",
            "shmat",
            "shared memory segment",
            "registration cache",
            "port MTU",
            "process affinity",
            "cpu count",
            "index for %s",
            "gid to hash",
            "modify send CQ",
        ),
    },
    "libfabric.txt": {
        "An object of libfabric could not be made, found or removed, or is in a state that its code rules out.": (
            "llocat",
            "an out of",
            "buf pool",
            "context pool",
            "info pool",
            "wce_pool",
            "XRC",
            "INI ",
            "SIDR",
            "CM data",
            "CM thread",
            "CM REJ",
            "CM Reject",
            "CM reject",
            "CM entry",
            "CM ID",
            "CM getinfo",
            "cmap",
            "CMAP",
            "handle",
            "key",
            "state",
            "event",
            "EQ",
            "CQ",
            "EP",
            "PEP",
            "msg ",
            "MSG ",
            "msg_ep",
            "fi_",
            "endpoint",
            "srx",
            "SRX",
            "receive context",
            "flags",
            "opcode",
            "op!",
            "ep ops",
            "atomic",
            "Atomic",
            "address format",
            "fi_addr",
            "invalid reject",
            "Connection tag",
            "completion",
            "signal",
            "collective",
            "coll ",
            "dest addr",
            "src addr",
            "core info",
            "rxm_info",
            "wait object",
            "poll error",
            "error: %s, bytes",
            "message type",
            "dupinfo",
            "mem_dup",
            "copy",
            "size mismatch",
            "buffer size",
            "memory allocation",
            "uninitialized iface",
            "AH Destroying",
            "domain_close",
            "realpath",
            "rndv",
            "ack",
            "ACK",
            "recv bufs",
            "receive buffers",
            "during error handling",
            "vrb_",
            "dgram_",
            "Message truncated",
            "already enabled",
            "Invalid address",
            "dynamic rbuf",
            "Post send failed",
            "hmem",
        ),
        "A note, or of a part of libfabric that is not used on Linux or for RDMA.": (
            "nd_create_module",
            "OS specific",
            "128-bit",
            "CUDA",
            "unrecognized MTU",
            "config file",
            "config line",
            "in config",
            "PCI address",
            "PCI device",
            "pci bus address",
            "NIC array",
            "NIC affinity handler",
            "NIC_AFFINITY",
            "AFFINITY_DEVICE",
            "interface addresses",
            "getaddrinfo",
        ),
        "The text names the call that failed, and the system's words stand behind it.": ("%s (%d)",),
    },
}


def said(message: str) -> str:
    """A text of a format, with values in it."""
    text = message.replace("\\n", " ").replace('\\"', '"').replace("%%", "%")
    text = re.sub(r"%[-0-9.*]*(?:l{0,2}|h{0,2}|z)(?:[dux]|i)", "12", text)
    return re.sub(r"%[-0-9.*]*l?[sgfcpmSX%]", "x", text)


@pytest.mark.parametrize("name", sorted(UNKNOWN))
def test_each_message_of_the_source_has_a_class_or_a_reason_why_it_has_none(name: str) -> None:
    head, *messages = (MESSAGES / name).read_text(encoding="utf-8").splitlines()
    assert head.startswith("# ") and len(messages) > 300
    parts = [part for texts in UNKNOWN[name].values() for part in texts]
    without = {message for message in messages if not transports.classify(said(message))}
    # of one message of UCX nothing but the place of another text is in the source
    left = [message for message in without if not any(part in message for part in parts)]
    assert left == (["%s"] if name == "ucx.txt" else [])
    assert [part for part in parts if not any(part in message for message in without)] == []


UCX = "[1700000000.123456] [worker-1:12   :0]          ib_md.c:285  UCX  "
LIBFABRIC = "libfabric:12:1700000000::verbs:domain:vrb_open_device():123<warn> "


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (
            UCX + "ERROR ibv_reg_mr(address=0x7f, length=4096, access=0xf) failed: Cannot allocate memory. Please set"
            " max locked memory (ulimit -l) to 'unlimited' (current: 64 kbytes)",
            "memlock",
        ),
        (
            UCX + "ERROR Transport retry count exceeded on mlx5_0:1/RoCE (synd 0x15 vend 0x81 hw_synd 0/0)",
            "completion",
        ),
        (
            UCX + "WARN  network device 'mlx5_9:1' is not available, please use one or more of: 'mlx5_0:1'",
            "transport_names",
        ),
        (UCX + "WARN  transport 'rcx' is not available, please use one or more of: rc, sm", "transport_names"),
        (UCX + "ERROR no active messages transport to <no debug data>: Unsupported operation", "no_transport_between"),
        (UCX + "ERROR IB Async event on mlx5_0: port error on port 1", "async_event"),
        (UCX + "DIAG  IB Async event on mlx5_0: SM change on port 1", "sm_event"),
        (UCX + "ERROR something new", ""),
        (LIBFABRIC + "ibv_alloc_pd: Cannot allocate memory (12)", "memlock"),
        (
            LIBFABRIC + "no valid IPoIB interfaces found, FI_EP_MSG endpoint type would not be available",
            "no_ip_of_device",
        ),
        (LIBFABRIC + "rdma_resolve_addr: No such device (19)", "rdma_cm"),
        (LIBFABRIC + "cm data version mismatch (local: 1, remote:  2)", "other_protocol"),
    ],
)
def test_line_of_a_job_has_its_class_its_cause_and_its_remedy(line: str, kind: str) -> None:
    log = parse_text(f"{line}\n")
    (problem,) = log.problems
    finding = check_problem(problem, log)
    assert problem.kind == kind and problem.text == line.strip()[:500]
    assert kind == "completion" or (finding.status, finding.why, finding.remedy) == CAUSES[kind]


@pytest.mark.parametrize(
    "line",
    [
        "[1700000000.123456] [worker-1:12:0] ib_md.c:285  UCX  INFO  something",
        "libfabric:12:1700000000::verbs:domain:vrb_open_device():123<info> something",
        "UCX is fine",
        "libfabric: no",
    ],
)
def test_other_lines_are_no_problem(line: str) -> None:
    assert transports.parse(line) is None and parse_text(f"{line}\n").problems == ()


@pytest.mark.parametrize(
    ("syndrome", "link", "words"),
    [
        ("0x15", "IB", ("status 12", "ibqueryerrors")),
        ("0x15", "RoCE", ("status 12", "dcb pfc show")),
        ("0x13", "RoCE", ("status 10",)),
    ],
)
def test_failed_completion_of_ucx_has_the_cause_of_its_status(
    syndrome: str, link: str, words: typing.Sequence[str]
) -> None:
    log = parse_text(f"{UCX}ERROR Something on mlx5_0:1/{link} (synd {syndrome} vend 0x81 hw_synd 0/0)\n")
    finding = check_problem(log.problems[0], log)
    assert finding.status == "fail" and all(word in finding.why + finding.remedy for word in words)
    assert ("dcb pfc" in finding.remedy) is (link == "RoCE" and syndrome == "0x15")


@hypothesis.given(some.text(max_size=300))
def test_any_text_is_a_problem_or_none(text: str) -> None:
    found = transports.parse(UCX + "ERROR " + text)
    assert found is None or found.text in text or found.text == text.strip()[:1000]
