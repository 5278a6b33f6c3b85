# SPDX-License-Identifier: GPL-3.0-or-later

"""Kernel arguments: of the running kernel, of GRUB's entries, of grubby, and of the drop-in that is ours."""

from __future__ import annotations

import typing

import hypothesis
import hypothesis.strategies as some
import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import ParseError
from ansible_collections.linerate.rdma.plugins.module_utils._parse.node.kernel_arguments import (
    drop_in,
    parse_command_line,
    parse_grub_entries,
    parse_grubby_entries,
)
from ansible_collections.linerate.rdma.plugins.module_utils._render.node.kernel_arguments import grub_drop_in

#: Debian 12, with a memory test beside the system
GRUB = """### BEGIN /etc/grub.d/10_linux ###
menuentry 'Debian GNU/Linux' --class debian {
\tinsmod gzio
\techo\t'Loading Linux 6.1.0-28-amd64 ...'
\tlinux\t/boot/vmlinuz-6.1.0-28-amd64 root=UUID=5a1c ro  quiet iommu=pt
\tinitrd\t/boot/initrd.img-6.1.0-28-amd64
}
\tmenuentry 'Debian GNU/Linux (recovery mode)' {
\t\tlinux\t/boot/vmlinuz-6.1.0-28-amd64 root=UUID=5a1c ro single
\t}
menuentry "Memory test" {
\tlinux\t/boot/memtest86+x64.bin console=ttyS0
}
"""
#: Rocky Linux 9
GRUBBY = """index=0
kernel="/boot/vmlinuz-5.14.0-503.el9.x86_64"
args="ro crashkernel=1G-4G:192M dyndbg=\\"file x\\" iommu=pt"
root="/dev/mapper/rl-root"
index=1
kernel="/boot/vmlinuz-0-rescue"
args="ro"
non linux entry
"""
ARGUMENT = some.text(alphabet="abcz019_.,:=@/+%~-", min_size=1, max_size=12)


def test_command_line_with_quotes() -> None:
    assert parse_command_line('BOOT_IMAGE=/vmlinuz ro dyndbg="file a +p"  iommu=pt\n') == (
        "BOOT_IMAGE=/vmlinuz",
        "ro",
        'dyndbg="file a +p"',
        "iommu=pt",
    )
    assert parse_command_line("") == () and parse_command_line('x="never closed iommu=pt') == (
        'x="never closed iommu=pt',
    )


def test_entries_of_grub_are_those_that_boot_a_system() -> None:
    assert parse_grub_entries(GRUB) == (
        ("root=UUID=5a1c", "ro", "quiet", "iommu=pt"),
        ("root=UUID=5a1c", "ro", "single"),
    )
    assert parse_grub_entries("linuxefi /vmlinuz root=/dev/a b") == (("root=/dev/a", "b"),)


def test_entries_of_grubby() -> None:
    assert [entry[-1] for entry in parse_grubby_entries(GRUBBY)] == ["iommu=pt", "ro"]


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_grub_entries, ""),
        (parse_grub_entries, "linux /boot/memtest86+x64.bin"),
        (parse_grub_entries, "# linux /vmlinuz root=/dev/a"),
        (parse_grubby_entries, ""),
        (parse_grubby_entries, 'args="ro'),
        (drop_in, ""),
        (drop_in, 'GRUB_CMDLINE_LINUX="iommu=pt"'),
        (drop_in, 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX `reboot`"'),
        (drop_in, 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX a"\nGRUB_TIMEOUT=0'),
    ],
)
def test_what_is_none(parse: typing.Any, text: str) -> None:
    with pytest.raises(ParseError):
        parse(text)


@hypothesis.given(some.lists(ARGUMENT, max_size=5))
def test_the_drop_in_comes_back(arguments: list[str]) -> None:
    assert drop_in(grub_drop_in(arguments)) == tuple(arguments)


@hypothesis.given(some.lists(ARGUMENT, min_size=1, max_size=5), some.text(alphabet=' "\nax=', max_size=40))
def test_arguments_without_quotes_come_back_whatever_is_behind(arguments: list[str], tail: str) -> None:
    assert parse_command_line(" ".join(arguments) + " " + tail)[: len(arguments)] == tuple(arguments)
    assert "".join(parse_command_line(tail)).replace(" ", "").replace("\n", "") == tail.replace(" ", "").replace(
        "\n", ""
    )


@hypothesis.given(some.integers(0, len(GRUBBY)), some.integers(0, len(GRUB)))
def test_truncated(one: int, other: int) -> None:
    for parse, text, whole in (
        (parse_grubby_entries, GRUBBY[:one], parse_grubby_entries(GRUBBY)),
        (parse_grub_entries, GRUB[:other], parse_grub_entries(GRUB)),
    ):
        try:
            found = parse(text)
        except ParseError:
            continue
        assert len(found) <= len(whole) and found[:-1] == whole[: len(found) - 1]
