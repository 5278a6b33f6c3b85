# SPDX-License-Identifier: GPL-3.0-or-later

"""Each message in the source of perftest, rping and libibverbs has a class, or a reason here why it has none: the
tool's own words are shown then."""

from __future__ import annotations

import pathlib
import re
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.fleet.completions import COMPLETIONS
from ansible_collections.linerate.rdma.plugins.module_utils._check.bandwidth.causes import CAUSES
from ansible_collections.linerate.rdma.plugins.module_utils._parse.pods import libibverbs
from ansible_collections.linerate.rdma.plugins.module_utils._parse.pods.failure import classify

MESSAGES = pathlib.Path(__file__).parent.parent / "fixtures" / "messages"

#: why messages have no class: parts of them, as they stand in the source
UNKNOWN: typing.Mapping[str, typing.Mapping[str, tuple[str, ...]]] = {
    "perftest.txt": {
        "Of options that no command of ours has.": (
            "--data_validation",
            "--numa_node",
            "--pin_cores",
            "--tph_mem",
            "--cpu_id",
            "VALIDATION:",
            "alidation",
            "aes_xts",
            "encrypt_on_tx",
            "credentials",
            "kek path",
            "key encryption key",
            "data encryption key",
            "data_encryption_key",
            "sig_before",
            "ignature",
            "T10DIF",
            "dek\\n",
            "DWORD",
            "mkey",
            "MKEY",
            "MKey",
            "log_dci_streams",
            "log_active_dci_streams",
            "run_infinitely",
            "running infinitely",
            "Packet Pacing",
            "ate limit",
            "Rate limiter",
            "rate limiter",
            "burst",
            "CUDA",
            "GPU",
            "ROCm",
            "ROCM",
            "MLU",
            "Neuron",
            "OPENCL",
            "OpenCL",
            "DMABUF",
            "DMA-BUF",
            "Data Direct",
            "data direct",
            "cuDevice",
            "mmap",
            "ODP",
            "On-Demand Paging",
            "on-demand paging",
            "device memory",
            "hugepage",
            "shm",
            "shared memory region",
            "null M",
            "null mem",
            "payload",
            "Payload",
            "file %s errno",
            "congest type",
            "OOO ",
            "RSS ",
            "TPH",
            "DMAH",
            "DV ",
            "NUMA",
            "node %d",
            "CPU affinity",
            "CPU list",
            "CPU number",
            "CPU range",
            "out of range. System",
            "number of CPUs",
            "CPU Utilization",
            "perf event",
            "performance counter",
            "Dualport",
            "Unsolicited",
            "without recv credit",
            "Write_with_imm",
            "Warm up",
            "warm up",
            "inline",
            "Inline",
            "Post list",
            "post list",
            "post send flow",
            "old post send",
            "send properties",
            "Service levels",
            "outstanding reads",
            "Outstanding reads",
            "RDMA request size",
            "Completion vector",
            "completion vector",
            "Events",
            "vents to CQ",
            "event mode",
            "Duration mode",
            "DURATION",
            "margin",
            "-a / --all",
            "verbosity",
            "CQ moderation",
            "Typical packet size",
            "memory types",
            "memory type",
            "GID index isn't",
            "PKey Index",
            "report per port",
            "link layer value",
            "flow",
            "Flows",
            "gpu_touch",
            "bw limit",
            "msg_rate limit",
            "BW Limit",
            "msgRate Limit",
            "Multiple QPs",
            "NoPeak",
            "Bidirectional",
            "iterations must be",
            "bi function",
            "unsupported by HCA",
            "TOS option",
            "Ack timeout",
            "Couldn't login",
            "environment variable",
            "output addr",
            "operation code",
            "RX Depth",
            "rx depth",
            "Can't produce",
            "credit failed",
            "Execution of",
            "send credit",
        ),
        "Of other verbs, transports and link types than ib_write_bw has by our commands.": (
            "SRD",
            "EFA",
            "XRC",
            " DC ",
            "DC.",
            "DC\\n",
            " UC ",
            "UC\\n",
            "UD ",
            "Raw",
            "RawEth",
            "RawEth",
            "raw",
            "MAC",
            "mac ",
            "L2 tests",
            "L3 tests",
            "L4 you",
            "ethertype",
            "UDP",
            "ATOMIC",
            "Atomic",
            "atomic",
            "SEND verb",
            "ulticast",
            "MultiCast",
            "LAT",
            "Latency",
            "latency",
            "Send_with_imm",
            "FS rate",
            "AH",
            "SRQ",
            "recv",
            "Receive",
            "receive recv_wqes",
            "READ",
            "Read verb",
            "WRITE verb",
            "--client or --server",
            "Bi-Dir",
            "Multi QP",
            "attach QP",
            "Connection type",
            "connection type",
            "Unsupported transport",
            "post_recv",
            "Eth MTU",
        ),
        "Of an option that is wrong, which ours are not; the tool names it.": (
            "Duplicated argument",
            "Invalid Command",
            "Invalid MTU",
            "choose mtu",
            "Invalid local",
            "Invalid remote",
            "Invalid server",
            "Invalid client",
            "Message Size",
            "IB Port can't",
            "Parser function exited",
            "check command line",
            "Please Try to use a different IP version",
            "address family",
            "source address",
            "source IP",
            "network address",
            "hex char",
            "Non-digit",
            "value %X",
            "mtu",
            "msg size",
            "Invalid",
        ),
        "A note; the tool goes on.": (
            "Changing",
            "Conflicting CPU frequency",
            "Correlation coefficient",
            "Warning:",
            "Skipping",
            "falling back",
            "active mtu",
            "retries = %d",
            "Blueflame",
            "HW rate",
            "a = ",
            "b = ",
            "a / b",
            "r^2",
            "x=%ld",
            "#",
        ),
        "The line above it says what failed.": (
            "Unable to create RDMA_CM resources",
            "Unable to create rdma resources",
            "Unable to create the resources",
            "Couldn't create IB resources",
            "Unable to perform rdma_",
            "Unable to init the socket",
            "Unable to set up socket",
            "Unable to open file descriptor",
            "Couldn't set the link layer",
            "run_iter",
            "RDMA CM connection with resources",
            "If device exists",
            "resolving basic address",
            "init memory",
            "%s\\n",
            "%s for",
            "%s\\nERRNO",
            "validation init",
        ),
        "Of the end of a run that was measured, or has failed already.": (
            "Failed to close",
            "Failed to destroy",
            "Couldn't destroy",
            "Unable to destroy",
            "deallocate",
            "deregister",
            "Failed to disconnect",
            "Couldn't close",
        ),
        "Of a query, a poll or a call that fails where driver and rdma-core don't fit, or the device goes; nothing "
        "more is known of it.": (
            "query device",
            "query port",
            "query EFA",
            "query_device_ex",
            "query_qp",
            "Poll ",
            "poll ",
            "Couldn't post send",
            "ibv_post_send failed",
            "post send",
            "request CQ notification",
            "Internal error",
            "unknown state",
            "allocate work buf",
            "Failed to allocate",
            "HOST_MEMORY",
            "gettimeofday",
            "Bad wc status",
            "Link layer on port",
            "isn't supported",
            "not supported",
            "rdma_create_id",
            "rdma_get_cm",
            "rdma_listen",
            "rdma_resolve_route",
            "rdma_accept",
            "rdma_connect",
            "CM event %d",
            "connect request %d",
            "bind socket",
            "accept() failed",
            "failed to open %s",
            "Failed to open '%s'",
            "parse line",
            "parse the",
            "older than 5.70",
            "device vendor",
            "such device ID",
            "completion with Error",
            "flags mismatch",
            "Unable to validata",
            "Client write",
            "client write",
            "server accept",
            "error",
            "cpu frequency",
            "Can not open",
            "not available in libibverbs",
            "Current TX depth",
            "Failed to read",
            "compare type",
            "Set  N*%d",
            "ai_family",
            "Problems with",
            "cannot be used",
            "You cannot use",
            "supports using",
            "only for",
            "only be used",
            "only available",
            "can be",
            "must be",
        ),
    },
    "rping.txt": {
        "Of -V, which no command of ours has, and of options that are wrong, which ours are not.": (
            "data mismatch",
            "Invalid count",
            "Invalid size",
        ),
        "The system's own words stand behind it, and these have a class.": ("rdma_resolve_addr",),
        "A note, or a state that follows from the event above it.": (
            "wait",
            "cma event",
            "unhandled event",
            "DISCONNECT EVENT",
            "device removal",
        ),
        "The line above it says what failed.": (
            "setup_qp failed",
            "rping_setup_buffers failed",
            "connect error",
            "rping server failed",
            "rping client failed",
        ),
        "Of a call that fails where driver and rdma-core don't fit, or the device goes; nothing more is known of it.": (
            "bogus data",
            "wc error",
            "post recv error",
            "poll error",
            "poll failed",
            "malloc failed",
            "cq event",
            "Unknown CQ",
            "set notify",
            "post send error",
            "post_recv failed",
            "pthread",
            "rdma_accept",
            "rdma_listen",
            "rdma_connect",
            "rdma_establish",
            "rdma_get_cm_event",
            "rdma_resolve_route",
            "rdma_create_id",
            "modify_qp",
            "rdma_bind_addr",
            "event FD",
            "CM thread",
        ),
    },
}


#: warnings of libibverbs that do not say why there is no device
NOTES = (
    "couldn't load driver",
    "couldn't allocate",
    "config",
    "stat '",
    "dlopen(NULL)",
    "node_type",
    "RLIMIT_MEMLOCK",
    "fork()",
    "statically",
    "ibdev class attr",
)


def said(message: str) -> str:
    """A line of a format, with values in it, as the tool prints it."""
    text = message.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"').replace("\\x1b", "")
    text = re.sub(r"%[-0-9.*]*(?:l{0,2}|h{0,2}|z)(?:[dux]|i)", "12", text)
    return re.sub(r"%[-0-9.*]*l?[sgfcX%]", "x", text)


def kind_of(message: str) -> str:
    failure = classify(1, False, said(message))
    assert failure is not None
    return failure.kind


@pytest.mark.parametrize("name", sorted(UNKNOWN))
def test_each_message_of_the_source_has_a_class_or_a_reason_why_it_has_none(name: str) -> None:
    head, *messages = (MESSAGES / name).read_text(encoding="utf-8").splitlines()
    assert head.startswith("# ") and len(messages) > 20
    parts = [part for texts in UNKNOWN[name].values() for part in texts]
    without = {message for message in messages if kind_of(message) == "exit_code"}
    assert [message for message in without if not any(part in message for part in parts)] == []
    assert [part for part in parts if not any(part in message for message in without)] == [], (
        "no message of no class has this part any more"
    )


def test_each_warning_of_libibverbs_has_a_class_or_is_a_note() -> None:
    head, *messages = (MESSAGES / "libibverbs.txt").read_text(encoding="utf-8").splitlines()
    assert head.startswith("# rdma-core ") and len(messages) > 15
    without = {
        message for message in messages if libibverbs.parse(said(message).replace("x", "libibverbs: ", 1)).kind is None
    }
    assert [message for message in without if not any(part in message for part in NOTES)] == []
    assert [part for part in NOTES if not any(part in message for message in without)] == []


@pytest.mark.parametrize("name", sorted(UNKNOWN))
def test_each_class_of_a_message_has_a_cause_and_a_remedy(name: str) -> None:
    messages = (MESSAGES / name).read_text(encoding="utf-8").splitlines()[1:]
    assert {kind_of(message) for message in messages} <= {*CAUSES, *COMPLETIONS}


@pytest.mark.parametrize(
    ("stderr", "kind", "evidence"),
    [
        (
            " Local lid 0x0 detected. Is an SM running? \n Failed to modify QP 28 to RTR\n",
            "no_lid",
            "Is an SM running?",
        ),
        (
            (
                "Couldn't create rdma old QP - No space left on device\nUnable to create QP.\n Couldn't create IB"
                " resources\n"
            ),
            "no_queue",
            "No space left on device",
        ),
        ("Couldn't create CQ\nFailed to create CQs\n Couldn't create IB resources\n", "no_queue", "Couldn't create CQ"),
        ("Couldn't create CQ\n: Cannot allocate memory\n", "memlock", "Cannot allocate memory"),
        (
            " Tx depth mismatch: local=128, remote=512\n Failed to negotiate parameters\n",
            "other_release",
            "local=128, remote=512",
        ),
        (
            " Unable to write to socket/rdma_cm\n Failed to exchange data between server and clients\n",
            "peer_gone",
            "Unable to write to socket/rdma_cm",
        ),
        (
            " Unable to write to socket/rdma_cm\nFailed to close connection between server and client\n",
            "not_closed",
            "Failed to close connection",
        ),
        ("ibv_create_cq failed\nsetup_qp failed: 12\n", "no_queue", "ibv_create_cq failed"),
    ],
)
def test_what_decides_stands_before_what_follows_from_it(stderr: str, kind: str, evidence: str) -> None:
    failure = classify(1, False, stderr)
    assert failure is not None and failure.kind == kind and evidence in failure.evidence
    cause = CAUSES[kind]
    assert cause.why and any(cause[1:])
