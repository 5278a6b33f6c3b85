# SPDX-License-Identifier: GPL-3.0-or-later

"""Failures of rping and perftest, from captures where there is one, else from the texts in the tools' sources."""

from __future__ import annotations

import pathlib
import tracemalloc
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.linerate.rdma.plugins.module_utils._model.measurement import completions
from ansible_collections.linerate.rdma.plugins.module_utils._parse.pods.failure import Failure, classify

FAIL = pathlib.Path(__file__).parent.parent / "fixtures/perftest-4.5/fail"
#: of public reports, as they were published
PUBLIC = FAIL.parent.parent / "public"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("wb-noserver", "not_listening"),
        ("wb-fw-tcp18515-reject.client", "not_listening"),
        ("wb-R-noserver", "not_listening"),
        ("rping-noserver", "not_listening"),
        ("rping-wrongip", "no_address"),
        ("wb-R-wrongip", "no_address"),
        ("wb-badname", "name"),
        ("wb-baddev", "no_device"),
        ("wb-badport", "port_down"),
        ("wb-D20-clientkilled.server", "peer_gone"),
        ("wb-R-rc3-midrun-drop.client", "transport_retry"),
        ("wb-R-rc3-serverkilled.client", "transport_retry"),
        ("wb-noroute", "hang"),
        ("wb-fw-udp4791-drop.client", "hang"),
        ("rping-fw-udp4791-drop.client", "hang"),
        # a perfect table, and the server beside it ended with 0
        ("../../perftest-25.01/ib_write_bw-not-closed.client", "not_closed"),
    ],
)
def test_captures(name: str, kind: str) -> None:
    code = int((FAIL / f"{name}.rc").read_text())
    failure = classify(code, code == 124, (FAIL / f"{name}.stdout").read_text() + (FAIL / f"{name}.stderr").read_text())
    assert failure is not None
    assert failure.kind == kind
    assert failure.evidence


@pytest.mark.parametrize(
    ("stderr", "kind"),
    [
        ("Couldn't allocate MR\nfailed to create mr\nFailed to create MR\n Couldn't create IB resources\n", "memlock"),
        (
            " Port number 1 state is Down\n Couldn't set the link layer\n Couldn't get context for the device\n",
            "port_down",
        ),
        (" Failed to modify QP 28 to RTR\n Unable to Connect the HCA's through the link\n", "gid"),
        ("Unable to Connect the HCA's through the link\n", "gid"),
        (
            " Completion with error at client\n Failed status 10: wr_id 0 syndrom 0x0\nscnt=100, ccnt=0\n",
            "remote_access",
        ),
        # the row of 26.01 and later
        (
            (
                " Completion with error at client\n Failed status-transport retry counter exceeded (12): wr_id 0"
                " syndrom 0x81\n"
            ),
            "transport_retry",
        ),
        (" Failed status 12: qp_num 295 wr_id 0 syndrom 0x81\n", "transport_retry"),
        ("cq completion failed status 4\n", "local_protection"),
        (" Completion with error at client\n", "completion"),
        (" Completion with error at client\n Failed status 24: wr_id 0 syndrom 0x0\n", "completion"),
        # a flushed request is a consequence: of another status, or of an end that is gone
        (" Failed status 5: wr_id 0 syndrom 0xf9\n Failed status 4: wr_id 0 syndrom 0x51\n", "local_protection"),
        (" Failed status 5: wr_id 0 syndrom 0xf9\nethernet_read_keys: Couldn't read remote address\n", "peer_gone"),
        (" Failed status 5: wr_id 0 syndrom 0xf9\n", "flushed"),
        ("failed to create RDMA CM event channel\n", "device_access"),
        # the option is of 23.07
        (
            (
                "ib_write_bw: unrecognized option '--ipv6-addr'\n Invalid Command or flag.\n Please check command line"
                " and run again.\n"
            ),
            "no_option",
        ),
        ("No RDMA devices were detected\n", "no_device"),
        (" Did not detect devices \n If device exists, check if driver is up\n", "no_device"),
        ("timeout: failed to run command 'ib_write_bw': No such file or directory\n", "no_tool"),
        # the runtime's words: runc, and crun of a container that cannot start and of a command in one that runs
        ('exec: "sleep": executable file not found in $PATH: unknown', "no_tool"),
        (
            (
                "failed to create containerd task: failed to create shim task: OCI runtime create failed: executable"
                " file `sleepy` not found in $PATH: No such file or directory: unknown"
            ),
            "no_tool",
        ),
        (
            (
                "Internal error occurred: error executing command in container: failed to exec in container: failed to"
                ' start exec "0b736afc8b291bfb45b0625855e0473862f30de1cfb732a4deab4e95a7ccbe0b": OCI runtime exec'
                " failed: executable file `sh` not found in $PATH: No such file or directory: unknown"
            ),
            "no_tool",
        ),
        ("cma event RDMA_CM_EVENT_UNREACHABLE, error -110\n", "no_address"),
        ("rdma_resolve_addr: Invalid argument\n", "address_family"),
        ("rdma_bind_addr: Invalid argument\n", "address_family"),
        ("rdma_resolve_addr: error -22\n", "address_family"),
        ("rdma_resolve_addr: No such device\n", "no_address"),
        ("rdma_resolve_addr: Network is unreachable\n", "no_address"),
        ("rdma_bind_addr: Cannot assign requested address\n", "no_address"),
        # perftest up to 4.5, and newer ones
        ("rdma_resolve_addr failed\n Unable to perform rdma_client function\n", "no_address"),
        ("Failed to resolve RDMA CM address.\n", "no_address"),
        ("rdma_bind_addr: Address already in use\n", "port_in_use"),
        ("Couldn't listen to port 18600\n Unable to open file descriptor for socket connection\n", "port_in_use"),
        (
            "iperf3: error - unable to start listener for connections: Address already in use\niperf3: exiting\n",
            "port_in_use",
        ),
        # the client's other half of the last handshake; the line that names it stands after other failures as well
        (
            (
                "Bad wc status -- 5 -- 0 \n Unable to read from socket/rdma_cm\nFailed to close connection between"
                " server and client\n"
            ),
            "not_closed",
        ),
        (
            (
                "Couldn't read remote address\n Unable to read to socket/rdma_cm\nFailed to close connection between"
                " server and client\n"
            ),
            "peer_gone",
        ),
        ("", "exit_code"),
        ("something new\n", "exit_code"),
    ],
)
def test_texts(stderr: str, kind: str) -> None:
    failure = classify(1, False, stderr)
    assert failure is not None
    assert failure.kind == kind


def test_warnings_of_libibverbs_above_the_last_line_decide_and_are_shown_once() -> None:
    failure = classify(1, False, (PUBLIC / "libibverbs-abi.txt").read_text())
    warning = (
        "libibverbs: Warning: Driver bnxt_re does not support the kernel ABI of 6 (supports 1 to 1) for device"
        " /sys/class/infiniband/bnxt_re2"
    )
    assert failure == Failure("provider_abi", f"{warning}; Did not detect devices")


NO_PROVIDER = "libibverbs: Warning: no userspace device-specific driver found for /sys/class/infiniband_verbs/uverbs0\n"
OTHERS = (
    "libibverbs: Warning: couldn't load driver 'libmana-rdmav34.so': libmana-rdmav34.so: cannot open shared object"
    " file: No such file or directory\n"
)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (f"{OTHERS}{NO_PROVIDER} Did not detect devices \n", "provider_missing"),
        (f"{NO_PROVIDER}No RDMA devices were detected\n", "provider_missing"),
        (f"{NO_PROVIDER}rdma_create_event_channel: No such device\n", "provider_missing"),
        (
            "libibverbs: Fatal: kernel ABI version 7 doesn't match library version 6.\n Did not detect devices \n",
            "uverbs_abi",
        ),
        (
            "libibverbs: Fatal: couldn't read uverbs ABI version.\nfailed to create RDMA CM event channel\n",
            "uverbs_abi",
        ),
        # providers of other vendors say nothing of this device
        (f"{OTHERS} Did not detect devices \n", "no_device"),
        (f"{OTHERS}IB device mlx5_9 not found\n", "no_device"),
        ("librdmacm: Fatal: no RDMA devices found\n", "no_device"),
        # another HCA of the node
        (
            f"{NO_PROVIDER} Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81\n",
            "transport_retry",
        ),
        (f"{NO_PROVIDER}Couldn't allocate MR\n", "memlock"),
    ],
)
def test_warnings_of_libibverbs_explain_why_there_is_no_device(text: str, kind: str) -> None:
    failure = classify(1, False, text)
    assert failure is not None
    assert failure.kind == kind
    assert ("no userspace device-specific driver found" in failure.evidence) is (kind == "provider_missing")


def test_gids_of_zeros_are_none() -> None:
    text = (PUBLIC / "perftest-zero-gid.txt").read_text()
    assert classify(1, False, text) == Failure(
        "no_gid", "Failed to modify QP 218 to RTR; all-zero GID: local and remote"
    )
    zero, one = (
        "GID: 00:00:00:00:00:00:00:00:00:00:00:00:00:00:00:00",
        "GID: 00:00:00:00:00:00:00:00:00:00:255:255:10:00:00:02",
    )
    first, second = text.split("remote address")
    assert classify(1, False, f"{first}remote address{second.replace(zero, one)}") == Failure(
        "no_gid", "Failed to modify QP 218 to RTR; all-zero GID: local"
    )
    assert classify(1, False, text.replace(zero, one)) == Failure("gid", "Failed to modify QP 218 to RTR")


@pytest.mark.parametrize("status", completions.STATUSES)
@pytest.mark.parametrize(
    "form", ["Failed status {number}: wr_id 0 syndrom 0x81", "Failed status-{text} ({number}): wr_id 0 syndrom 0x81"]
)
def test_each_completion_status_is_a_kind_of_its_own(status: int, form: str) -> None:
    kind, text, _side = completions.STATUSES[status]
    line = form.format(number=status, text=text)
    failure = classify(
        1,
        False,
        f" Completion with error at client\n {line}\nscnt=128, ccnt=0\n Failed to complete run_iter_bw function"
        " successfully\n",
    )
    assert failure == Failure(kind, f"Completion with error at client: {line}")


@pytest.mark.parametrize(
    ("name", "kind", "evidence"),
    [
        (
            "perftest-remote-operation.txt",
            "remote_operation",
            "Failed status-remote operation error (11): wr_id 0 syndrom 0x89",
        ),
        (
            "perftest-local-protection.txt",
            "local_protection",
            "Failed status-local protection error (4): wr_id 0 syndrom 0x51",
        ),
        ("perftest-transport-retry.txt", "transport_retry", "Failed status 12: wr_id 0 syndrom 0x81"),
    ],
)
def test_completions_of_public_reports(name: str, kind: str, evidence: str) -> None:
    failure = classify(1, False, (PUBLIC / name).read_text())
    assert failure is not None
    assert (failure.kind, failure.evidence) == (kind, f"Completion with error at client: {evidence}")


@pytest.mark.parametrize(
    ("code", "kind"),
    [(126, "no_tool"), (127, "no_tool"), (139, "crash"), (134, "crash"), (1, "exit_code"), (143, "exit_code")],
)
def test_exit_codes_that_say_something(code: int, kind: str) -> None:
    failure = classify(code, False, "")
    assert failure is not None
    assert failure.kind == kind


def test_the_exit_code_decides_and_not_the_table() -> None:
    # lab run: the server was killed, the client printed a perfect row, and exited with 1
    row = (
        " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n 65536   9  373.98  373.64 "
        " 0.005568\n"
    )
    failure = classify(
        1, False, f"{row}ethernet_read_keys: Couldn't read remote address\n Unable to read to socket/rdma_cm\n"
    )
    assert failure is not None
    assert failure.kind == "peer_gone"
    assert classify(0, False, row) is None


def test_a_lost_connection_is_no_success() -> None:
    failure = classify(None, False, "")
    assert failure is not None
    assert failure.kind == "exec_lost"


@given(st.one_of(st.none(), st.integers(-1, 255)), st.booleans(), st.text())
def test_any_text(code: typing.Optional[int], timed_out: bool, text: str) -> None:
    failure = classify(code, timed_out, text)
    assert (failure is None) == (code == 0 and not timed_out)


def test_of_a_long_output_its_begin_and_its_end_are_looked_at() -> None:
    noise, cause = "\n" * 2_000_000, "Couldn't connect to 10.0.0.1:18515\n"
    tracemalloc.start()
    try:
        found = [classify(1, False, text) for text in (cause + noise, noise + cause, noise, noise + "end")]
        # the lines alone are 16 MB
        assert tracemalloc.get_traced_memory()[1] < 12_000_000
    finally:
        tracemalloc.stop()
    expected = classify(1, False, cause)
    assert expected is not None and expected.kind == "not_listening"
    assert found == [
        expected,
        expected,
        Failure("exit_code", "exit code 1: no error text"),
        Failure("exit_code", "exit code 1: end"),
    ]
