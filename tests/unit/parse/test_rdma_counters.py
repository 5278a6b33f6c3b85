# SPDX-License-Identifier: GPL-3.0-or-later

"""Counters of the RDMA devices of a pod, as its shell prints them."""

from __future__ import annotations

import pathlib
import subprocess

import hypothesis
import hypothesis.strategies as some

from ansible_collections.linerate.rdma.plugins.module_utils._parse.pods.rdma_counters import parse_counters
from ansible_collections.linerate.rdma.plugins.module_utils._render.measurement.hca_counters import read_counters


def test_counters_of_several_devices() -> None:
    text = "count mlx5_2 symbol_error 0\ncount mlx5_2 packet_seq_err 12\ncount mlx5_3 symbol_error 4\n"
    assert parse_counters(text) == {
        "mlx5_2": {"symbol_error": 0, "packet_seq_err": 12},
        "mlx5_3": {"symbol_error": 4},
    }


def test_what_is_no_whole_line_is_none() -> None:
    for text in (
        "",
        "count mlx5_2 symbol_error 12",
        "count mlx5_2 symbol_error -1\n",
        "count mlx5_2 symbol_error N/A (no PMA)\n",
        f"count mlx5_2 symbol_error {1 << 64}\n",
        "count ../mlx5_2 symbol_error 1\n",
        "recount mlx5_2 symbol_error 1\n",
    ):
        assert parse_counters(text) == {}, text


def test_the_command_prints_what_is_read(tmp_path: pathlib.Path) -> None:
    for folder, name, text in (
        ("counters", "symbol_error", "3\n"),
        ("hw_counters", "packet_seq_err", "7\n"),
        ("hw_counters", "lifespan", "10\n"),
    ):
        path = tmp_path / "mlx5_2" / "ports" / "1" / folder
        path.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text, encoding="utf-8")
    command = [word.replace("/sys/class/infiniband", str(tmp_path)) for word in read_counters(("mlx5_2", "mlx5_9"))]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert parse_counters(printed) == {"mlx5_2": {"symbol_error": 3, "packet_seq_err": 7, "lifespan": 10}}


@hypothesis.given(some.text())
@hypothesis.settings(max_examples=60, deadline=None)
def test_any_text_gives_numbers_that_it_contains(text: str) -> None:
    for device, counters in parse_counters(f"count mlx5_0 a {text}\n{text}\n").items():
        assert all(str(value) in text for value in counters.values()) and (device == "mlx5_0" or device in text)
