# SPDX-License-Identifier: GPL-3.0-or-later

"""How a node is tuned, as procfs, sysfs, nvidia-smi, dcb and the kernel's log say it."""

from __future__ import annotations

import contextlib
import gzip
import json
import pathlib
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import ParseError
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.text import format_ranges
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.tuning_rows.row import rule_accepts, rule_of
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.tuning_rows.table import ROWS
from ansible_collections.linerate.rdma.plugins.module_utils._parse.node import (
    dcb,
    kernel_config,
    kernel_log,
    nvidia_smi,
    pci_config,
    pci_path,
    tuning,
)

FIXTURES = pathlib.Path(__file__).parents[1] / "fixtures"
GPU = "0000:00:06.0"


def captured(name: str) -> str:
    return (FIXTURES / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        # of the GPU server of the captures, and of others
        (tuning.parse_chosen, "always [madvise] never", "madvise"),
        (tuning.parse_chosen, "always defer defer+madvise [madvise] never", "madvise"),
        (tuning.parse_chosen, "[always] madvise never", "always"),
        (tuning.on_off, "Y", "on"),
        (tuning.on_off, "0", "off"),
        (tuning.parse_cpu_list, "0-3,8", frozenset({0, 1, 2, 3, 8})),
        (tuning.parse_cpu_list, "", frozenset()),
        (tuning.parse_cpu_list, "(null)", frozenset()),
        (tuning.parse_swap_kib, "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority", 0),
        (
            tuning.parse_swap_kib,
            "Filename Type Size Used Priority\n/dev/sda2 partition 8388604 12 -2\n/swap\\040file file 1024 0 -3\n",
            8389628,
        ),
        (
            tuning.parse_memlock,
            "Limit                     Soft Limit           Hard Limit           Units     \n"
            "Max locked memory         unlimited            unlimited            bytes     \n",
            "unlimited",
        ),
        (tuning.is_of_node, "Name:\tcrio\nPid:\t7\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nNSpid:\t7\nNSpgid:\t7\n", True),
        # of a container, of another user, and one that has both in its name
        (
            tuning.is_of_node,
            "Name:\tcrio\nPid:\t7\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nNSpid:\t7\t1\nNSpgid:\t7\t1\n",
            False,
        ),
        (
            tuning.is_of_node,
            "Name:\tcrio\nPid:\t7\nUid:\t0\t1000\t0\t0\nGid:\t0\t0\t0\t0\nNSpid:\t7\nNSpgid:\t7\n",
            False,
        ),
        (tuning.is_of_node, "Name:\t\\nNSpid:\\t7\nUid:\t0\t0\t0\t0\nNSpid:\t7\t1\n", False),
        (tuning.is_of_node, "Name:\tcrio\nUid:\t0\t0\t0\t0\n", False),
        (tuning.is_of_node, "", False),
        (tuning.manager_policy, '{"policyName":"none","defaultCpuSet":"","checksum":1353318690}', "none"),
        (tuning.manager_policy, '{"policyName":"Static","machineState":{},"checksum":1}', "static"),
        (
            tuning.parse_kubelet_settings,
            "kind: KubeletConfiguration\ntopologyManagerPolicy: restricted\nstaticPodPath: /x\n",
            {"topologyManagerPolicy": "restricted"},
        ),
        (
            tuning.parse_kubelet_settings,
            '{\n  "kind": "KubeletConfiguration",\n  "cpuManagerPolicy": "static",\n'
            '  "reservedSystemCPUs": "0-1,32"\n}',
            {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0-1,32"},
        ),
        (
            tuning.parse_kubelet_settings,
            '{"kind":"KubeletConfiguration","topologyManagerPolicy":"none","reservedSystemCPUs":null,"x":{"a":1}}',
            {"topologyManagerPolicy": "none", "reservedSystemCPUs": ""},
        ),
        (
            tuning.parse_kubelet_settings,
            "kind: KubeletConfiguration\ntopologyManagerPolicy: none # a\ncpuManagerPolicy: ~\nreservedSystemCPUs: ''",
            {"topologyManagerPolicy": "none", "cpuManagerPolicy": "", "reservedSystemCPUs": ""},
        ),
        (
            tuning.parse_kubelet_arguments,
            "/usr/bin/kubelet\0--config\0/a\0--config_dir=/b\0--node-labels=\0--reserved-cpus=\0",
            tuning.KubeletArguments("/a", "/b", {"reservedSystemCPUs": ""}),
        ),
        (tuning.parse_kubelet_arguments, "kubelet\0--\0--config=/a\0", tuning.KubeletArguments("", "", {})),
        # of another mapping
        (tuning.parse_kubelet_settings, "kind: KubeletConfiguration\nx:\n    cpuManagerPolicy: static\n", {}),
        (
            tuning.idle_arguments,
            "quiet processor.max_cstate=1 intel_idle.max_cstate=0 password=x",
            "intel_idle.max_cstate=0 processor.max_cstate=1",
        ),
        (tuning.idle_arguments, "quiet", "none"),
        (tuning.pci_realloc, "quiet pci=realloc=off driver_async_probe=mlx5_core", "off"),
        (tuning.pci_realloc, "pci=noaer,realloc", "on"),
        (tuning.pci_realloc, "pci=noaer xpci=realloc", "unset"),
        (tuning.traffic_class, "Global tclass=106", "106"),
        (tuning.traffic_class, "", "unset"),
        (tuning.traffic_class, "tclass=5 src_ip=10.0.0.1", "unset"),
        (dcb.parse_lossless_priorities, captured("dcb/pfc.json"), "3"),
        (dcb.parse_lossless_priorities, captured("dcb/pfc.json").replace("true", "false"), "none"),
        (dcb.parse_priorities, captured("dcb/app.json"), {26: 3, 48: 6}),
        (dcb.parse_priorities, "{}", {}),
        (nvidia_smi.explain_slowness, "0x0000000000000001", "none"),
        (nvidia_smi.explain_slowness, "0x0000000000000004", "none"),
        (nvidia_smi.explain_slowness, "0x0000000000000048", "hw_slowdown+hw_thermal"),
        (nvidia_smi.explain_slowness, "0xa0", "sw_thermal+hw_power_brake"),
    ],
)
def test_what_it_says(parse: typing.Callable[[str], typing.Any], text: str, value: typing.Any) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (tuning.parse_chosen, "always madvise never"),
        (tuning.parse_chosen, "[always] [never]"),
        (tuning.parse_word, "two words"),
        (tuning.on_off, "2"),
        (tuning.parse_cpu_list, "3-1"),
        (tuning.parse_cpu_list, "0-999999"),
        (tuning.parse_swap_kib, ""),
        (tuning.parse_swap_kib, "Filename Type Size Used Priority\n/dev/sda2 partition x 12 -2\n"),
        (tuning.parse_memlock, "Max open files 1 1 files"),
        (tuning.manager_policy, '{"defaultCpuSet":""}'),
        (tuning.manager_policy, '{"policyName":"none","policyName":"static"}'),
        (tuning.parse_kubelet_settings, "apiVersion: v1\nkind: Config\n"),
        (tuning.parse_kubelet_settings, '{"kind":"KubeletConfiguration"'),
        (tuning.parse_kubelet_settings, '{"kind":"KubeletConfiguration","topologyManagerPolicy":["none"]}'),
        (tuning.parse_kubelet_arguments, ""),
        (tuning.parse_kubelet_arguments, "kubelet\0--config"),
        (tuning.parse_kubelet_arguments, "kubelet\0--topology-manager-policy=a b\0"),
        (tuning.traffic_class, "Permission denied"),
        (tuning.at_least_zero, "-1"),
        (dcb.parse_lossless_priorities, "{}"),
        (dcb.parse_lossless_priorities, '{"prio_pfc":[false,true]}'),
        (dcb.parse_lossless_priorities, "Attribute read: Operation not supported"),
        (dcb.parse_priorities, '{"dscp_prio":[[26]]}'),
        (dcb.parse_priorities, '{"dscp_prio":[[64,3]]}'),
        (dcb.parse_priorities, '{"dscp_prio":7}'),
        (nvidia_smi.explain_slowness, "Not Active"),
    ],
)
def test_what_it_does_not_take(parse: typing.Callable[[str], typing.Any], text: str) -> None:
    with pytest.raises(ParseError):
        parse(text)


def test_a_gpu_as_nvidia_smi_shows_it() -> None:
    fields = [
        "pci.bus_id",
        "persistence_mode",
        "ecc.mode.current",
        "mig.mode.current",
        "clocks.max.sm",
        "driver_version",
        "clocks_event_reasons.active",
    ]
    text = captured("nvidia-smi/580.159.04-row.csv")
    assert nvidia_smi.parse_gpus(text, fields)[GPU] == {
        "persistence_mode": "Enabled",
        "ecc.mode.current": "Enabled",
        "mig.mode.current": "Disabled",
        "clocks.max.sm": "1980 MHz",
        "driver_version": "580.159.04",
        "clocks_event_reasons.active": "0x0000000000000001",
    }
    lacking = text.replace("Enabled, Disabled", "[N/A], [Not Supported]")
    assert not {"ecc.mode.current", "mig.mode.current"} & set(nvidia_smi.parse_gpus(lacking, fields)[GPU])


def test_a_field_that_nvidia_smi_does_not_know_is_named() -> None:
    assert nvidia_smi.find_unknown_field(captured("nvidia-smi/580.159.04-bad-field.csv")) is not None
    assert nvidia_smi.find_unknown_field('Field "fabric.state" is not a valid field to query.\n') == "fabric.state"
    assert nvidia_smi.find_unknown_field(captured("nvidia-smi/580.159.04-fabric.csv")) is None


def test_all_that_was_captured_of_a_gpu_can_be_read() -> None:
    for name in ("580.159.04", "580.159.04-reasons", "580.159.04-ecc-mig"):
        text = captured(f"nvidia-smi/{name}.csv")
        fields = [field.strip().partition(" [")[0] for field in text.split("\n", 1)[0].split(",")]
        assert len(nvidia_smi.parse_gpus(text, fields)[GPU]) == len(fields) - 1


@pytest.mark.parametrize(
    "change", [("00000000:00:06.0", "0000:00:06"), (", Enabled", ""), ("pci.bus_id", "uuid"), ("\n0000", "\n\n#0000")]
)
def test_a_table_of_gpus_that_is_another_one(change: tuple[str, str]) -> None:
    fields = [
        "pci.bus_id",
        "persistence_mode",
        "ecc.mode.current",
        "mig.mode.current",
        "clocks.max.sm",
        "driver_version",
        "clocks_event_reasons.active",
    ]
    with pytest.raises(ParseError):
        nvidia_smi.parse_gpus(captured("nvidia-smi/580.159.04-row.csv").replace(*change), fields)
    with pytest.raises(ParseError):
        nvidia_smi.parse_gpus(captured("nvidia-smi/580.159.04-bad-field.csv"), fields)


def test_faults_that_the_kernel_has_told_of() -> None:
    records = [
        "6,1,0,-;Linux version 6.12",
        "3,7,1,-;NVRM: Xid (PCI:0000:18:00): 79, pid='<unknown>', GPU has fallen off the bus.\n SUBSYSTEM=pci\n",
        "3,8,1,-;NVRM: Xid (PCI:0000:18:00): 79, pid='<unknown>', GPU has fallen off the bus.\n",
        "3,9,1,-;mlx5_core 0000:3c:00.0: poll_health:820:(pid 0): device's health compromised - reached miss count",
        "4,9,1,-;pcieport 0000:17:01.0: PCIe Bus Error: severity=Correctable, type=Physical Layer, (Receiver ID)",
        "3,9,1,-;pcieport 0000:17:01.0: PCIe Bus Error: severity=Uncorrectable (Non-Fatal), type=Transaction Layer",
        "4,9,1,-;pcieport 0000:18:01.0: AER: aer_status: 0x00000001, aer_mask: 0x00000000",
        "3,9,1,-;pcieport 0000:18:02.0: AER: aer_status: 0x00004000, aer_mask: 0x00000000",
        "3,9,1,-;pcieport 0000:18:02.0: AER: aer_uncor_severity: 0x004e2030",
        "3,9,1,-;mlx5_core 0000:3c:00.0: mlx5_port_module_event:1131:(pid 0): Port module event[error]: module 0, Cable"
        " error, High Temperature",
        "6,9,1,-;mlx5_core 0000:3c:00.0: Port module event: module 0, Cable plugged",
        "4,9,1,-;mlx5_core 0000:3d:00.0: temp_warn:171:(pid 0): High temperature on sensors with bit set 0 1",
        "4,9,1,-;mlx5_core 0000:3d:00.0: mlx5_pcie_event:299: Detected insufficient power on the PCIe slot (27W).",
        "4,9,1,-;bnxt_en 0000:c1:00.0 ens1f0np0: Detected firmware fatal condition, initiating reset",
        "6,9,1,-;amdgpu 0000:c3:00.0: amdgpu: 2 uncorrectable hardware errors detected in umc block",
        "6,9,1,-;amdgpu 0000:c4:00.0: amdgpu: 0 uncorrectable hardware errors detected in umc block",
        # what it tells of each HCA when it starts
        "6,9,1,-;mlx5_core 0000:3c:00.0: 63.008 Gb/s available PCIe bandwidth",
    ]
    assert kernel_log.parse_faults(records) == {
        ("device", "Xid 79", "0000:18:00"),
        ("device", "mlx5 health", "0000:3c:00.0"),
        ("corrected", "PCIe error Correctable", "0000:17:01.0"),
        ("device", "PCIe error Uncorrectable", "0000:17:01.0"),
        ("corrected", "PCIe error reported by the firmware of the machine", "0000:18:01.0"),
        ("device", "PCIe error reported by the firmware of the machine", "0000:18:02.0"),
        ("device", "mlx5 port module error", "0000:3c:00.0"),
        ("device", "mlx5 high temperature", "0000:3d:00.0"),
        ("device", "bnxt firmware fatal", "0000:c1:00.0"),
        ("device", "amdgpu uncorrectable error", "0000:c3:00.0"),
    }


@pytest.mark.parametrize(
    ("xid", "cause"),
    [
        *((xid, "program") for xid in (11, 13, 25, 31, 43, 45, 69, 137)),
        # NVIDIA's first action is to restart the program also for these, but hardware causes them
        *((xid, "device") for xid in (32, 39, 80, 94)),
        *((xid, "device") for xid in (48, 62, 63, 64, 74, 79, 92, 95, 109, 119, 120, 140, 144, 154)),
        (121, "corrected"),
        (9999, "device"),
    ],
)
def test_an_xid_has_the_cause_that_the_catalog_of_nvidia_names(xid: int, cause: str) -> None:
    record = f"4,1,1,-;NVRM: Xid (PCI:0000:18:00): {xid}, pid=1234, name=python, Ch 00000008"
    assert kernel_log.parse_faults([record]) == {(cause, f"Xid {xid}", "0000:18:00")}


ROOT, SWITCH = "/sys/devices/pci0000:17", "/sys/devices/pci0000:17/0000:17:01.0/0000:18:00.0"


@pytest.mark.parametrize(
    ("gpu", "hca", "word", "bridges"),
    [
        (
            f"{SWITCH}/0000:19:00.0/0000:1a:00.0",
            f"{SWITCH}/0000:19:01.0/0000:1b:00.0",
            "PIX",
            ("0000:19:00.0", "0000:19:01.0"),
        ),
        (
            f"{SWITCH}/0000:19:00.0/0000:1a:00.0",
            f"{SWITCH}/0000:19:01.0/0000:1b:00.0/0000:1c:00.0/0000:1d:00.0",
            "PXB",
            ("0000:19:00.0", "0000:19:01.0", "0000:1b:00.0", "0000:1c:00.0"),
        ),
        (f"{ROOT}/0000:17:01.0/0000:18:00.0", f"{ROOT}/0000:17:01.0/0000:18:00.1", "PIX", ()),
        (f"{ROOT}/0000:17:01.0/0000:18:00.0", f"{ROOT}/0000:17:02.0/0000:19:00.0", "PHB", ()),
        (f"{ROOT}/0000:17:01.0/0000:18:00.0", "/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0", "NODE", ()),
    ],
)
def test_the_way_between_a_gpu_and_an_hca(gpu: str, hca: str, word: str, bridges: tuple[str, ...]) -> None:
    one, other = pci_path.parse_path(gpu), pci_path.parse_path(hca)
    assert (pci_path.measure_distance(one, other, True), pci_path.list_bridges_between(one, other)) == (word, bridges)
    assert pci_path.measure_distance(one, other, False) == ("SYS" if word == "NODE" else word)


def test_how_a_function_asks_and_a_bridge_redirects() -> None:
    raw = bytearray(4096)
    raw[0x06], raw[0x34], raw[0x60:0x62], raw[0x64:0x6A] = 0x10, 0x60, b"\x10\x00", b"\xe2\x8f\x00\x10\x30\x59"
    assert pci_config.parse_requests(bytes(raw)) == (4096, True)
    raw[0x68:0x6A] = b"\x20\x20"
    assert pci_config.parse_requests(bytes(raw)) == (512, False)
    assert pci_config.parse_requests(bytes(raw[:64])) is None
    assert pci_config.acs_redirects(bytes(raw)) is False and pci_config.acs_redirects(bytes(raw[:256])) is None
    for control, redirects in ((0x1D, True), (0x04, True), (0x08, True), (0x11, False)):
        raw[0x100:0x108] = bytes([0x0D, 0, 1, 0, 0x5F, 0, control, 0])
        assert pci_config.acs_redirects(bytes(raw)) is redirects


@given(st.frozensets(st.integers(0, 1023)))
def test_a_list_of_cpus_is_read_as_it_was_written(cpus: frozenset[int]) -> None:
    assert tuning.parse_cpu_list(format_ranges(cpus)) == cpus


@given(st.dictionaries(st.integers(0, 63), st.integers(0, 7)), st.lists(st.booleans(), min_size=8, max_size=8))
def test_priorities_are_read_as_dcb_writes_them(by_dscp: dict[int, int], pfc: list[bool]) -> None:
    assert (
        dcb.parse_priorities(json.dumps({"dscp_prio": [[dscp, priority] for dscp, priority in by_dscp.items()]}))
        == by_dscp
    )
    on = [str(priority) for priority in range(8) if pfc[priority]]
    assert dcb.parse_lossless_priorities(json.dumps({"prio_pfc": pfc})) == (",".join(on) or "none")


@given(st.integers(0, (1 << 64) - 1))
def test_a_gpu_is_slow_by_these_bits_alone(mask: int) -> None:
    assert (nvidia_smi.explain_slowness(f"0x{mask:016x}") == "none") == (mask & 0xE8 == 0)


@pytest.mark.parametrize(
    ("rule", "value", "fit"),
    [
        ("performance", "performance", True),
        ("performance", "powersave", False),
        ("0|2", "2", True),
        ("0 | 2", "1", False),
        (">=65536", "67584", True),
        (">=65536", "4096", False),
        (">=580", "580.159.04", True),
        (">=580", "570.86.15", False),
        ("<=100", "133", False),
        ("<=100", "fast", False),
        (">=8", "unlimited", True),
        ("<=8", "unlimited", False),
    ],
)
def test_rules(rule: str, value: str, fit: bool) -> None:
    assert rule_accepts(rule, value) is fit


def test_rules_that_somebody_writes() -> None:
    assert [rule_of(written) for written in ("performance", 0, " >=580 ", "a|b")] == [
        "performance",
        "0",
        ">=580",
        "a|b",
    ]
    wrong: tuple[typing.Any, ...] = (True, 1.5, None, [], "", "a|", ">= x", "<3", "x\ny", "x" * 81)
    assert [rule_of(written) for written in wrong] == [None] * 10


def test_rows_say_what_they_are_about() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)
    for row in ROWS:
        assert row.harm.endswith(".") and row.remedy.endswith(".") and "?" not in row.remedy, row.name
        assert all(rule_of(rule) == rule for rule in (row.training, row.inference) if rule), row.name
        assert row.source or not (row.training or row.inference), f"nobody says so: {row.name}"


def test_values_of_a_row_that_need_it_are_explained_after_the_rule_of_the_profile_alone() -> None:
    rows = {row.name: row for row in ROWS}
    assert rows["irq_locality"].explain_rule("local") == ", that is, only CPUs of the NUMA node of the HCA"
    assert rows["irq_locality"].explain_rule("remote") == rows["governor"].explain_rule("performance") == ""
    assert (
        rows["p2pdma"]
        .explain_rule("on|peermem")
        .endswith("CONFIG_PCI_P2PDMA of the kernel or the module nvidia_peermem")
    )
    assert all(row.training for row in ROWS if row.meaning)


def test_the_readme_lists_the_rows() -> None:
    text = (pathlib.Path(__file__).parents[3] / "roles" / "tuning" / "README.md").read_text(encoding="utf-8")
    for row in ROWS:
        line = next((line for line in text.splitlines() if line.startswith(f"| `{row.name}` |")), "")
        assert f"| `tuning.{row.check}` | {row.what} |" in line and all(
            rule.replace("|", "\\|") in line for rule in (row.training, row.inference)
        ), row.name


@pytest.mark.parametrize(("name", "on"), [("6.18-off", False), ("6.18-on", True), ("6.18-left-out", False)])
def test_whether_a_kernel_was_built_for_peer_to_peer(name: str, on: bool) -> None:
    raw = captured(f"kernel-config/{name}.config").encode()
    assert kernel_config.has_p2pdma_support(raw) is on and kernel_config.has_p2pdma_support(gzip.compress(raw)) is on


def test_a_configuration_that_was_cut_off_or_never_ends_is_none() -> None:
    raw = captured("kernel-config/6.18-left-out.config").encode()
    bomb = gzip.compress(b"#" * (kernel_config.MOST_BYTES + 1))
    for wrong in (
        b"",
        raw[: len(raw) // 2],
        gzip.compress(raw)[:-9],
        b"\x1f\x8bnonsense",
        bomb,
        b"CONFIG_PCI_P2PDMA=yes\n",
        b"kind: Pod\n",
    ):
        with pytest.raises(ParseError):
            kernel_config.has_p2pdma_support(wrong)


@given(st.binary(max_size=300), st.integers(0, 300))
def test_a_configuration_is_read_or_refused(noise: bytes, place: int) -> None:
    raw = captured("kernel-config/6.18-on.config").encode()
    packed = bytearray(gzip.compress(raw))
    packed[place % len(packed) : place % len(packed) + len(noise)] = noise
    for text in (noise, bytes(packed)):
        with contextlib.suppress(ParseError):
            # what says yes has the line, however it is packed
            assert (
                not kernel_config.has_p2pdma_support(text)
                or b"CONFIG_PCI_P2PDMA=" in text
                or text.startswith(b"\x1f\x8b")
            )
