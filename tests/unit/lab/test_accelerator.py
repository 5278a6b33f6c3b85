# SPDX-License-Identifier: GPL-3.0-or-later

"""KVM is used only where a guest was seen to boot by it."""

from __future__ import annotations

import pathlib
import platform
import sys
import time

import pytest

from dev.steps import StepError
from lab import accelerator
from lab.build import kernel

#: what a guest's console says, in Python: flush after each line
SAY = "import sys, time\nfor line in {lines}:\n    print(line, flush=True)\ntime.sleep({seconds})\n"


def guest(*lines: str, seconds: float = 0) -> list[str]:
    """A program that says these lines on its console, and ends after some seconds."""
    return [sys.executable, "-c", SAY.format(lines=lines, seconds=seconds)]


@pytest.mark.parametrize(
    ("command", "boots"),
    [
        (guest("Linux version 6.1", "lab: no root file system on /dev/vda", seconds=60), True),
        (guest("Linux version 6.1", "lab: no root file system on /dev/vda"), True),
        (guest("Linux version 6.1"), False),
        (guest("Linux version 6.1", seconds=60), False),
        (guest(seconds=60), False),
        (guest(), False),
    ],
    ids=["hangs-at-its-end", "ends", "breaks-off", "hangs", "silent", "nothing"],
)
def test_guest_boots_only_when_its_last_words_are_seen(command: list[str], boots: bool) -> None:
    start = time.monotonic()
    assert accelerator.boots_by(command, first=5, last=6) is boots
    assert time.monotonic() - start < 50, "a guest that hangs is ended"


@pytest.fixture
def host(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A host whose device opens and whose processor virtualizes; a guest that boots writes ``booted``."""
    (tmp_path / "kvm-device").touch()
    (tmp_path / "cpuinfo").write_text("flags : fpu vmx sse\n", encoding="ascii")
    (tmp_path / "kernel").mkdir()
    monkeypatch.setattr(accelerator, "DEVICE", tmp_path / "kvm-device")
    monkeypatch.setattr(accelerator, "PROCESSORS", tmp_path / "cpuinfo")
    monkeypatch.setattr(accelerator, "CACHE", tmp_path)
    monkeypatch.setattr(kernel, "kernel", lambda: tmp_path / "kernel")
    script = f"open({str(tmp_path / 'booted')!r}, 'a').write('x'); print('lab: no root file system', flush=True)"
    monkeypatch.setattr(accelerator, "probe_command", lambda: [sys.executable, "-c", script])
    monkeypatch.delenv("LAB_ACCELERATOR", raising=False)
    return tmp_path


def test_guest_is_booted_once_and_the_answer_is_kept(host: pathlib.Path) -> None:
    assert accelerator.options() == accelerator.options() == accelerator.OPTIONS["kvm"]
    assert (host / "booted").read_text() == "x"
    (host / "kvm").write_text("another-boot-of-the-host kernel no", encoding="ascii")
    assert accelerator.options() == accelerator.OPTIONS["kvm"]
    assert (host / "booted").read_text() == "xx"


def test_guest_that_does_not_boot_means_emulation(
    host: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(accelerator, "probe_command", lambda: [sys.executable, "-c", ""])
    assert accelerator.options() == accelerator.OPTIONS["tcg"]
    assert "does not boot by" in capsys.readouterr().out


def test_paravirtual_device_is_not_tried(host: pathlib.Path) -> None:
    (host / "cpuinfo").write_text("flags : fpu sse\n", encoding="ascii")
    assert accelerator.options() == accelerator.OPTIONS["tcg"]
    (host / "cpuinfo").write_text("flags : fpu svm\n", encoding="ascii")
    (host / "kvm-device").unlink()
    assert accelerator.options() == accelerator.OPTIONS["tcg"] and not (host / "booted").exists()


def test_choice_of_the_user_comes_first(host: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_ACCELERATOR", "tcg")
    assert accelerator.options() == accelerator.OPTIONS["tcg"] and not (host / "booted").exists()
    monkeypatch.setenv("LAB_ACCELERATOR", "xen")
    with pytest.raises(StepError, match="'xen'"):
        accelerator.options()


@pytest.mark.skipif(platform.machine() != accelerator.X86, reason="x86's counter")
def test_kernel_is_told_the_frequency_of_the_counter_within_the_percent_that_it_refines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LAB_ACCELERATOR", accelerator.TCG)
    told = dict(word.partition("=")[::2] for word in accelerator.kernel_arguments().split())
    accelerator.measure_counter.cache_clear()
    assert int(told["tsc_early_khz"]) == pytest.approx(accelerator.measure_counter(), rel=0.002)
    assert 500_000 < int(told["tsc_early_khz"]) < 10_000_000, "kHz of a processor"


def test_kernel_by_kvm_reads_the_frequency_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_ACCELERATOR", accelerator.KVM)
    assert "tsc_early_khz" not in accelerator.kernel_arguments()
