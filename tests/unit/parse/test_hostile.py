# SPDX-License-Identifier: GPL-3.0-or-later

"""Every parser against truncated, shuffled, mutated and huge input: its own error or a value, never a traceback, never
a hang, nothing good out of garbage.

A new parser needs a line in TEXT or DATA: a test counts them.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import importlib
import inspect
import ipaddress
import json
import pathlib
import pkgutil
import signal
import typing

import hypothesis
import hypothesis.strategies as some
import pytest
import yaml

from ansible_collections.linerate.rdma.plugins.module_utils import _parse
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.job.nccl import NcclLog
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.disruption import OperatorSettings
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.images.pull_rules import RegistrySources
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.bios import KEYS
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.hca import SriovAbsence
from ansible_collections.linerate.rdma.plugins.module_utils._model.node.shown_boot import Boot
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.drivers import OperatorUpgrade
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.feature_discovery import WorkerConfig
from ansible_collections.linerate.rdma.plugins.module_utils._model.run.archive import Address
from ansible_collections.linerate.rdma.plugins.module_utils._parse.intent import IntentError
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.networks.addresses import RangeError
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.pod_requests import Amounts
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.resource import items_of, mapping_at
from ansible_collections.linerate.rdma.plugins.module_utils._parse.node.tuning import KubeletArguments
from ansible_collections.linerate.rdma.tests.unit import olm_world
from ansible_collections.linerate.rdma.tests.unit.examples import examples
from ansible_collections.linerate.rdma.tests.unit.sysfs_tree import PLACED, bridge, resource, space, sriov_body

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures"
#: characters of huge input; CPU seconds in which a parser is through with it, unless it walks over it again and again
HUGE, SECONDS = 2_000_000, 30
NETWORK = ipaddress.ip_network("100.100.0.0/22")
ANY = object()


def seeds(pattern: str) -> list[str]:
    found = [path.read_text(encoding="utf-8", errors="replace") for path in sorted(FIXTURES.glob(pattern))]
    assert found, pattern
    return found


@dataclasses.dataclass(frozen=True)
class Text:
    """A parser of text.

    :ivar samples: real output, or values of files
    :ivar nothing: what it may make of garbage, where it does not raise
    """

    call: typing.Callable[..., typing.Any]
    samples: typing.Sequence[str]
    nothing: tuple[typing.Any, ...] = ()


@dataclasses.dataclass(frozen=True)
class Data:
    """A parser of what the API server or the user sends; ``samples`` are arguments, ``nothing`` as in Text."""

    call: typing.Callable[..., typing.Any]
    samples: typing.Sequence[typing.Any]
    nothing: tuple[typing.Any, ...] = ()


def parser(name: str) -> typing.Callable[..., typing.Any]:
    module, _dot, function = name.rpartition(".")
    found: typing.Callable[..., typing.Any] = getattr(importlib.import_module(f"{_parse.__name__}.{module}"), function)
    return found


def on_failure(text: str) -> typing.Any:
    """A run that ended with 1: what failed is the question, never whether."""
    return parser("pods.failure.classify")(1, False, text).kind


def own_words(text: str) -> typing.Any:
    """A status without a message is shown as it came: no news."""
    said = parser("kubernetes.core.status_message")(text)
    return None if said == text.strip() else said


def own_arguments(text: str) -> typing.Any:
    """All of it, but for the spaces between, is what it says: no news."""
    said = parser("node.kernel_arguments.parse_command_line")(text)
    return None if "".join("".join(said).split()) == "".join(text.split()) else said


def own_status(text: str) -> typing.Any:
    """What is no Status is its own message, and nothing else."""
    said = parser("kubernetes.core.parse_status")(text)
    return None if said == type(said)(message=text.strip()) else said


def seen_in(log: NcclLog) -> typing.Any:
    return (*log.versions, *log.processes, *log.communicators, *log.problems)


def address_in(text: str) -> typing.Any:
    """Whatever has no scheme is the path of a folder: no news."""
    found = parser("archive.place_of")(text)
    return found if isinstance(found, Address) else None


def share(text: str) -> typing.Any:
    return parser("kubernetes.networks.nv_ipam.parse_blocks")(text, 1).share(3)


SYSFS: dict[str, str] = {
    "parse_number": "4096",
    "parse_hexadecimal": "0x15b3",
    "parse_enumeration_name": "4: ACTIVE",
    "parse_rate": "400 Gb/sec (4X NDR)",
    "parse_guid": "b83f:d203:00e0:0000",
    "port_guid_of_gid": "fe80:0000:0000:0000:b83f:d203:00e0:0001",
    "guid_of_bytes": "00:11:22:33:44:55:66:77",
    "link_policy": "Follow",
    "parse_ipoib_address": "00:00:10:49:fe:80:00:00:00:00:00:00:b8:3f:d2:03:00:e0:00:01",
    "parse_pcie_speed": "32.0 GT/s PCIe",
    "parse_pcie_width": "16",
    "parse_numa_node": "1",
    "locked_down": "none [integrity] confidentiality",
    "parse_switch": "Y",
}
SPACES = {
    "acs_redirects": bridge(0x3C, 0x3C, [(0x000D, b"\x5f\x00\x1d\x00")]),
    "parse_requests": bridge(0x3C, 0x3D),
    "parse_sriov": space([(0x0001, bytes(0x28)), (0x0010, sriov_body(16))]),
    "parse_acs": bridge(0x3C, 0x3C, [(0x000D, b"\x5f\x00\x1d\x00")]),
    "parse_last_bus": bridge(0x3C, 0x3D),
}
PROBE = """env PCIDEVICE_A=0000:01:10.0
pci 0000:01:10.0 mlx5_3
speed 0000:01:10.0 16.0 GT/s
width 0000:01:10.0 16
rdma [{"ifname": "mlx5_3", "netdev": "net1"}]
"""
ADDRESSES = '[{"ifname": "eth7", "addr_info": [{"family": "inet", "local": "10.0.0.2", "prefixlen": 24}]}]'
MEMLOCK = """user 65532
soft 8388608
hard 8388608
asked 67108864
device mlx5_4
  local address:  LID 0x0001, QPN 0x000011, PSN 0x9a3f12, GID ::
code 124
"""
SIGNED = "X-Amz-Date=20260102T030405Z&X-Amz-Expires=3600&X-Amz-Signature=0"
LEASE = {
    "metadata": {
        "name": "linerate-rdma",
        "uid": "u",
        "resourceVersion": "7",
        "annotations": {"linerate.rdma/run": "run-1"},
    },
    "spec": {
        "holderIdentity": "run-1@control-1",
        "leaseDurationSeconds": 60,
        "renewTime": "2026-01-02T12:00:00.000000Z",
        "leaseTransitions": 1,
    },
}
TEXT: dict[str, Text] = {
    **{f"node.sysfs.{name}": Text(parser(f"node.sysfs.{name}"), [sample]) for name, sample in SYSFS.items()},
    "node.sysfs.is_pci_address": Text(parser("node.sysfs.is_pci_address"), ["0000:3c:00.0"], (False,)),
    "node.sysfs.is_representor": Text(
        parser("node.sysfs.is_representor"), ["pf0vf3", "c1pf0sf2", "p0", "7"], (False, True)
    ),
    "node.sysfs.pci_address_of_link": Text(
        parser("node.sysfs.pci_address_of_link"), ["../../devices/pci0000:3a/0000:3b:00.2/net/net1"], (None,)
    ),
    "kubernetes.refusal.unknown_fields": Text(
        lambda text: parser("kubernetes.refusal.unknown_fields")([text]), ['unknown field "spec.x"'], ((),)
    ),
    "kubernetes.no_answer.cause_of": Text(
        parser("kubernetes.no_answer.cause_of"),
        [
            "HTTPSConnectionPool(host='127.0.0.1', port=1): Max retries exceeded with url: /version (Caused by"
            " NewConnectionError('Connection refused'))"
        ],
        ("",),
    ),
    "kubernetes.refusal.explain": Text(
        parser("kubernetes.refusal.explain"),
        [
            (
                'failed calling webhook "a.b": Post "https://s.n.svc:443/x?timeout=10s": no endpoints available for'
                ' service "s"'
            ),
            "failed to create typed patch object (n/a; g/v1, Kind=K): .spec.x: field not declared in schema",
        ],
        (None,),
    ),
    "node.date.parse_date": Text(parser("node.date.parse_date"), ["1764126000.123456789\n"], (None,)),
    "kubernetes.lease.http_date": Text(
        parser("kubernetes.lease.http_date"), ["Fri, 02 Jan 2026 12:00:00 GMT"], (None,)
    ),
    "infiniband.dump_fts.parse": Text(
        parser("infiniband.dump_fts.parse"),
        seeds("infiniband-diags/dump_fts*.txt") + seeds("infiniband-diags/opensm_lfts.txt"),
    ),
    "infiniband.saquery.parse_forwarding": Text(
        parser("infiniband.saquery.parse_forwarding"), seeds("infiniband-diags/saquery_lftr.txt")
    ),
    "infiniband.ibnetdiscover.parse": Text(
        parser("infiniband.ibnetdiscover.parse"), seeds("infiniband-diags/ibnetdiscover.txt")
    ),
    "infiniband.ibping.parse": Text(parser("infiniband.ibping.parse"), seeds("infiniband-diags/ibping_*.txt")),
    "infiniband.ibping.count_resent": Text(
        parser("infiniband.ibping.count_resent"), ["ibwarn: [7] ibping: resent\n"], (0,)
    ),
    "infiniband.sminfo.parse": Text(parser("infiniband.sminfo.parse"), seeds("infiniband-diags/sminfo_*.txt")),
    "infiniband.saquery.parse_sm_records": Text(
        parser("infiniband.saquery.parse_sm_records"), seeds("infiniband-diags/saquery_*.txt")
    ),
    "infiniband.saquery.parse_manager_ports": Text(
        parser("infiniband.saquery.parse_manager_ports"), seeds("infiniband-diags/saquery_issm.txt")
    ),
    "infiniband.smpquery.parse_is_manager": Text(
        parser("infiniband.smpquery.parse_is_manager"), seeds("infiniband-diags/smpquery_*.txt")
    ),
    "infiniband.smpquery.parse_description": Text(
        parser("infiniband.smpquery.parse_description"), seeds("infiniband-diags/smpquery_*.txt")
    ),
    "node.lldp.parse_switch_port": Text(
        lambda text: parser("node.lldp.parse_switch_port")(text[:4096].encode("latin-1", "replace")),
        [bytes.fromhex(text).decode("latin-1") for text in seeds("lldp/*.hex")],
    ),
    "node.netlink_routes.parse_answer": Text(
        lambda text: parser("node.netlink_routes.parse_answer")(text[:4096].encode("latin-1", "replace")),
        [
            # a default route over interface 7, then the end
            bytes.fromhex(
                "24000000180002000100000000000000020000 00fe030001000000000800040007000000".replace(" ", "")
                + "1400000003000200010000000000000000000000"
            ).decode("latin-1")
        ],
        (((), False), ((), True)),
    ),
    "node.neighbours.parse_neighbours": Text(
        parser("node.neighbours.parse_neighbours"),
        ['[{"dst":"192.0.2.1","dev":"eth0","lladdr":"02:fc:00:00:00:05","state":["STALE"]}]'],
        ({},),
    ),
    "node.neighbours.parse_default_routes": Text(
        parser("node.neighbours.parse_default_routes"),
        [
            "Iface\tDestination\tGateway"
            " \tFlags\tRefCnt\tUse\tMetric\tMask\neth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\n"
        ],
        ((),),
    ),
    "node.neighbours.parse_default_routes_6": Text(
        parser("node.neighbours.parse_default_routes_6"),
        [f"{'0' * 32} 00 {'0' * 32} 00 {'0' * 32} 00000400 00000001 00000000 00450003 ens1\n"],
        ((),),
    ),
    "node.neighbours.parse_networks": Text(
        parser("node.neighbours.parse_networks"),
        [
            "Iface\tDestination\tGateway"
            " \tFlags\tRefCnt\tUse\tMetric\tMask\neth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\n"
        ],
        ((),),
    ),
    "node.neighbours.parse_networks_6": Text(
        parser("node.neighbours.parse_networks_6"),
        [f"20010db8{'0' * 24} 40 {'0' * 32} 00 {'0' * 32} 00000100 00000001 00000000 00000001 ens1\n"],
        ((),),
    ),
    "node.neighbours.parse_local_addresses": Text(
        parser("node.neighbours.parse_local_addresses"),
        ["Main:\n  +-- 192.0.2.0/24 2 0 2\n     |-- 192.0.2.2\n        /32 host LOCAL\n"],
        ((),),
    ),
    "node.neighbours.parse_local_addresses_6": Text(
        parser("node.neighbours.parse_local_addresses_6"),
        [f"20010db8{'0' * 23}2 04 40 00 82 eth0\n"],
        ((),),
    ),
    "node.ip_link.parse_vf_settings": Text(parser("node.ip_link.parse_vf_settings"), seeds("iproute2/*.stdout"), ({},)),
    "infiniband.iblinkinfo.parse": Text(
        parser("infiniband.iblinkinfo.parse"), seeds("infiniband-diags/iblinkinfo_*.txt")
    ),
    "infiniband.ibqueryerrors.parse": Text(
        parser("infiniband.ibqueryerrors.parse"), seeds("infiniband-diags/ibqueryerrors_*.txt")
    ),
    # without a heading no port is told
    "infiniband.perfquery.parse": Text(
        parser("infiniband.perfquery.parse"), seeds("infiniband-diags/perfquery*.txt"), ((),)
    ),
    "infiniband.perfquery.list_answers": Text(
        parser("infiniband.perfquery.list_answers"),
        [
            f"linerate asked 2\n{sample}linerate asked 77\nibwarn: [1] x\n"
            for sample in seeds("infiniband-diags/perfquery*.txt")
        ],
        ({},),
    ),
    "node.pci_config.parse_sriov_absence": Text(
        lambda text: parser("node.pci_config.parse_sriov_absence")(text[:4096].encode("utf-8", "replace")),
        ["\x15\x01" * 128 + "\x01\x00\x02\x15" + "\x00" * 60, "\xff" * 4096],
        # each of them says that there is no SR-IOV, or that nobody knows
        (None, *typing.get_args(SriovAbsence)),
    ),
    **{
        f"node.pci_config.{name}": Text(
            lambda text, name=name: parser(f"node.pci_config.{name}")(text[:4096].encode("latin-1", "replace")),
            [sample.decode("latin-1")],
            (None,),
        )
        for name, sample in SPACES.items()
    },
    "node.sysfs.parse_vf_memory": Text(parser("node.sysfs.parse_vf_memory"), [resource(), resource(PLACED)]),
    "node.pci_config.parse_payload": Text(
        lambda text: parser("node.pci_config.parse_payload")(text[:4096].encode("latin-1", "replace")),
        [
            "\x15\xb3\x21\x10\x46\x05\x10\x00"
            + "\x00" * 44
            + "\x60"
            + "\x00" * 43
            + "\x10\x00\x02\x00\xe2\x8f\x00\x10\x30\x59\x00\x00"
            + "\x00" * 148
        ],
        (None,),
    ),
    "node.kernel_config.has_p2pdma_support": Text(
        lambda text: parser("node.kernel_config.has_p2pdma_support")(text.encode("utf-8", "replace")),
        seeds("kernel-config/*.config"),
        (False,),
    ),
    "node.ethtool.parse": Text(
        lambda text: parser("node.ethtool.parse")(text[:200].encode("latin-1", "replace")),
        ["L\x00\x00\x00\xa0\x86\x01\x00\x01\x03\x00\x01\x00\x00\x00\x04" + "\x00" * 32 + "\x40\x04\x00\x00" * 12],
        (parser("node.ethtool.LinkModes")(None, None),),
    ),
    "node.kernel_arguments.parse_command_line": Text(
        own_arguments, ['BOOT_IMAGE=/vmlinuz root=/dev/vda1 ro dyndbg="file x +p"'], (None,)
    ),
    "node.kernel_arguments.parse_grub_entries": Text(
        parser("node.kernel_arguments.parse_grub_entries"),
        ["\tlinux\t/boot/vmlinuz-6.1 root=UUID=7 ro quiet iommu=pt\n"],
    ),
    "node.kernel_arguments.parse_grubby_entries": Text(
        parser("node.kernel_arguments.parse_grubby_entries"),
        ['index=0\nkernel="/boot/vmlinuz-5.14"\nargs="ro crashkernel=1G iommu=pt"\nroot="/dev/sda3"\n'],
    ),
    "node.kernel_arguments.drop_in": Text(
        parser("node.kernel_arguments.drop_in"), ['# x\nGRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX iommu=pt"\n']
    ),
    "node.mstconfig.parse": Text(parser("node.mstconfig.parse"), seeds("mstflint/mstconfig_*_*.txt")),
    "node.mstconfig.parse_json": Text(parser("node.mstconfig.parse_json"), seeds("mstflint/*connectx6.json")),
    "node.mstconfig.parse_version": Text(
        parser("node.mstconfig.parse_version"), seeds("mstflint/mstconfig_4.21_version.txt")
    ),
    "node.devlink.parse": Text(
        lambda text: parser("node.devlink.parse")(text, "0000:3b:00.0"), seeds("mstflint/devlink_*.json")
    ),
    "operators.config_daemon_log.last_error": Text(
        parser("operators.config_daemon_log.last_error"),
        ['2026-01-02T03:04:05Z\tERROR\tReconciler error\t{"error": "busy"}\n'],
        ("",),
    ),
    "job.nccl.log.parse": Text(
        lambda text: seen_in(parser("job.nccl.log.parse")(line + "\n" for line in text.split("\n"))),
        seeds("nccl/*.txt"),
        ((),),
    ),
    "job.nccl.log_reader.is_document": Text(
        parser("job.nccl.log_reader.is_document"),
        ('{"version": 1, "nccl_version": 22809}\n', "host-1:71:99 [0] NCCL INFO Using network IB\n"),
        (False, True),
    ),
    "job.nccl.log.parse_files": Text(
        lambda text: seen_in(
            parser("job.nccl.log.parse_files")((name, (line + "\n" for line in text.split("\n"))) for name in "ab")
        ),
        seeds("nccl/*.txt"),
        ((),),
    ),
    "job.nccl.log.parse_text": Text(
        lambda text: seen_in(parser("job.nccl.log.parse_text")(text)), seeds("nccl/*.txt"), ((),)
    ),
    "job.nccl.tests.parse": Text(
        lambda text: parser("job.nccl.tests.parse")(line + "\n" for line in text.split("\n")),
        seeds("nccl-tests/mpi*.txt"),
        ((),),
    ),
    "job.nccl.tests.parse_text": Text(parser("job.nccl.tests.parse_text"), seeds("nccl-tests/all*.txt"), ((),)),
    "job.nccl.tests_json.parse_json": Text(parser("job.nccl.tests_json.parse_json"), seeds("nccl-tests/*.json")),
    # what they are given comes back where it refers to nothing
    **{
        f"job.expansion.{name}": Text(
            lambda text, name=name: isinstance(parser(f"job.expansion.{name}")(text, {"A": "a"}), (str, type(None))),
            ['"${B:-$A}/$(A)$A$$(A)"'],
            (True,),
        )
        for name in ("expand", "expand_listed", "expand_word")
    },
    "job.expansion.find_settings": Text(
        lambda text: parser("job.expansion.find_settings")(text, {"A": "a"}),
        ["D=1; export NCCL_IB_DISABLE=$D; : ${C:=2}"],
        ([],),
    ),
    "job.torchrun.parse_torchrun": Text(
        lambda text: parser("job.torchrun.parse_torchrun")(text, {"A": "a"}, "command"),
        ["torchrun --nnodes=1:2 --nproc_per_node $A --rdzv-endpoint localhost:29500 train.py"],
        ((),),
    ),
    "kubernetes.dra.device_selectors.parse": Text(
        parser("kubernetes.dra.device_selectors.parse"),
        ['device.attributes["dra.net"].ifName in ["eth1"] && !false'],
        (),
    ),
    "job.transports.classify": Text(
        parser("job.transports.classify"), ["ibv_reg_mr failed: Cannot allocate memory"], ("",)
    ),
    "job.transports.names_endpoint": Text(
        parser("job.transports.names_endpoint"),
        ["[1.2] [host:71:0]  ucp_worker.c:1855 UCX  INFO  ucp_context_0 inter-node cfg#2 rma(tcp/e"],
        (False, True),
    ),
    "job.transports.parse": Text(
        parser("job.transports.parse"),
        ["[1.2] [a:1:0] ib_md.c:2  UCX  ERROR no usable transports/devices (asked x)"],
        (None,),
    ),
    "job.transports.parse_endpoint": Text(
        parser("job.transports.parse_endpoint"),
        ["[1.2] [a:1:0] ucp_worker.c:1855 UCX  INFO  ucp_context_0 inter-node cfg#2 tag(rc_mlx5/mlx5_0:1)"],
        (None,),
    ),
    "job.transports.parse_failed": Text(
        parser("job.transports.parse_failed"), ["Generic on mlx5_0:1/IB (synd 0x15 vend 0x81 hw_synd 0/0)"], (None,)
    ),
    "job.nccl.problem.classify": Text(
        parser("job.nccl.problem.classify"), ["Call to ibv_reg_mr failed with error Cannot allocate memory"], ("",)
    ),
    "job.nccl.problem.parse_completion": Text(
        parser("job.nccl.problem.parse_completion"),
        [
            "NET/IB: Got completion from peer 10.0.0.1<5> with status=12 opcode=1 len=0 vendor err 129 (Send) localGid"
            " fe80::1 remoteGidsfe80::2 hca mlx5_0"
        ],
        (None,),
    ),
    "pods.perftest.parse": Text(parser("pods.perftest.parse"), seeds("perftest-*/ib_write_bw*.stdout")),
    "pods.iperf3.parse": Text(parser("pods.iperf3.parse"), seeds("iperf3-*/*.client.stdout")),
    "pods.iperf3.find_error": Text(parser("pods.iperf3.find_error"), seeds("iperf3-*/*.client.stdout"), ("",)),
    "pods.rping.parse": Text(
        parser("pods.rping.parse"), seeds("perftest-*/rping.client.stdout"), (parser("pods.rping.Pings")(0),)
    ),
    "pods.rping.detect_shortfall": Text(
        lambda text: parser("pods.rping.detect_shortfall")(text, 5).kind,
        seeds("perftest-*/fail/rping-*.std*"),
        ("no_measurement",),
    ),
    "pods.rping.join_tail": Text(
        lambda text: len(parser("pods.rping.join_tail")(text)) > 200, seeds("perftest-*/rping.client.std*"), (False,)
    ),
    "pods.libibverbs.parse": Text(
        parser("pods.libibverbs.parse"),
        seeds("public/libibverbs-*.txt"),
        (parser("pods.libibverbs.Warnings")(None, ()),),
    ),
    "pods.failure.classify": Text(on_failure, seeds("perftest-4.5/fail/*.std*"), ("exit_code",)),
    "pods.observer_reply.parse_replies": Text(
        lambda text: parser("pods.observer_reply.parse_replies")(text, ["hcas"]),
        ['{"hcas": {"value": {"hcas": []}}}', '{"hcas": {"error": "no right"}}'],
    ),
    "pods.host.parse_host": Text(
        lambda text: parser("pods.host.parse_host")(text, "0000:3c:00.0"),
        [f"{PROBE}\nvf 0 0000:3c:00.2\nnet 0000:3c:00.2 eth7\nactive mlx5_2\nsettings []\naddresses {ADDRESSES}"],
        (parser("pods.host.parse_host")("", ""),),
    ),
    "pods.host.parse_throttled": Text(
        parser("pods.host.parse_throttled"), ["usage_usec 7\nnr_periods 9\nnr_throttled 3\nthrottled_usec 8\n"], (None,)
    ),
    "pods.probe.parse": Text(parser("pods.probe.parse"), [PROBE], (parser("pods.probe.parse")(""),)),
    "kubernetes.networks.addresses.is_address": Text(
        parser("kubernetes.networks.addresses.is_address"), ["100.100.0.1", "fd00::1"], (False,)
    ),
    "kubernetes.networks.addresses.parse_range": Text(
        parser("kubernetes.networks.addresses.parse_range"), ["100.100.0.0/22", "10.0.0.9-10.0.0.20/24", "fd00::/64"]
    ),
    "kubernetes.networks.addresses.address_or_none": Text(
        parser("kubernetes.networks.addresses.address_or_none"), ["100.100.0.1", "fd00::1"], (None,)
    ),
    "kubernetes.networks.addresses.is_between": Text(
        lambda text: parser("kubernetes.networks.addresses.is_between")(text, NETWORK, 0, 2**32 - 1),
        ["100.100.0.1"],
        (False,),
    ),
    "kubernetes.networks.addresses.split_range": Text(
        parser("kubernetes.networks.addresses.split_range"), ["100.100.0.0/22", "10.0.0.9-10.0.0.20/24", "fd00::/64"]
    ),
    "kubernetes.networks.addresses.parse_exclusion": Text(
        lambda text: parser("kubernetes.networks.addresses.parse_exclusion")(text, 0, 4),
        ["100.100.0.0/30", "100.100.0.9"],
    ),
    "kubernetes.networks.addresses.merge_exclusions": Text(
        lambda text: parser("kubernetes.networks.addresses.merge_exclusions")([text], 0, 2**32 - 1, 4),
        ["100.100.0.0/30", "100.100.0.9"],
    ),
    "kubernetes.networks.nv_ipam.parse_blocks": Text(share, ["100.100.0.0/22", "fd00::/64"]),
    "kubernetes.networks.nv_ipam.parse_networks": Text(
        lambda text: parser("kubernetes.networks.nv_ipam.parse_networks")(text, 30).share(3), ["100.100.0.0/22"]
    ),
    "kubernetes.networks.addresses.parse_network": Text(
        parser("kubernetes.networks.addresses.parse_network"), ["100.100.0.0/22"]
    ),
    "kubernetes.core.parse_status": Text(
        own_status, ['{"kind": "Status", "status": "Failure", "message": "container not found", "code": 500}'], (None,)
    ),
    "kubernetes.core.status_message": Text(
        own_words, ['{"kind": "Status", "status": "Failure", "message": "container not found"}'], (None,)
    ),
    "job.pod_template.parse_networks": Text(
        lambda text: parser("job.pod_template.parse_networks")(text, "a", "x"),
        ["a/b@net1,c", '[{"name": "a", "namespace": "b"}]'],
        ((),),
    ),
    "kubernetes.quantity.parse_whole": Text(
        lambda text: parser("kubernetes.quantity.parse_whole")(text, "x"), ["4", "1k"]
    ),
    "kubernetes.quantity.parse_quantity": Text(
        lambda text: parser("kubernetes.quantity.parse_quantity")(text, "x"), ["512Gi", "100m"]
    ),
    "node.containerd.parse_containerd_limit": Text(
        parser("node.containerd.parse_containerd_limit"),
        ["MainPID=812\nLimitMEMLOCK=infinity\nNeedDaemonReload=no\n"],
    ),
    "node.memlock.parse": Text(
        lambda text: parser("node.memlock.parse")(text, "compute", "a", "test/pod").registered, [MEMLOCK], (None,)
    ),
    "job.nic_map.parse_nic_map": Text(
        lambda text: parser("job.nic_map.parse_nic_map")(text).lines,
        ["worker-1:ens13:net1:10.249.65.9\nworker-2:ens13:net1:10.249.65.10\n"],
        ((),),
    ),
    "operators.charts.definitions_text": Text(
        parser("operators.charts.definitions_text"),
        ["---\n# Source: operator/crds/one.yaml\nkind: CustomResourceDefinition\n"],
        ("",),
    ),
    "operators.sriov_operator.vf_range": Text(
        lambda text: parser("operators.sriov_operator.vf_range")(text, "x"), ["0-3"]
    ),
}


TEXT["archive.place_of"] = Text(
    address_in, ["https://dav.example.com:8443/reports/", "https://s3.example.com/a/{run}?X-Amz-Signature=0"], (None,)
)
TEXT["archive.parse_expiry"] = Text(
    lambda text: parser("archive.parse_expiry")(Address("https://s3.example.com/a", f"?{text}")), [SIGNED], (None,)
)
TEXT["archive.refusal_words"] = Text(
    parser("archive.refusal_words"),
    ["<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>"],
    ("",),
)
TEXT["registry.parse_challenge"] = Text(
    parser("registry.parse_challenge"),
    ['Bearer realm="https://auth.example/token",service="site",scope="repository:a:pull"'],
    (None,),
)
TEXT["registry.parse_logins"] = Text(
    parser("registry.parse_logins"), ['{"auths": {"quay.io": {"auth": "dXNlcjpwYXNz"}}}'], ({},)
)
TEXT["registry.token_of"] = Text(parser("registry.token_of"), ['{"token": "a.b.c"}'])
TEXT["registry.parse_tags"] = Text(parser("registry.parse_tags"), ['{"name": "a", "tags": ["1", "2"]}'])
TEXT["limits.decode_answer"] = Text(
    lambda text: parser("limits.decode_answer")(text.encode(errors="surrogatepass"), "a file"),
    ['{"a": [1, 2.5, "x", null, true]}'],
    (ANY,),
)
TEXT["limits.count_values"] = Text(
    lambda text: 0 <= parser("limits.count_values")(text) <= len(text), ['{"a": [1, 2.5, "x", null, true]}'], (True,)
)
TEXT["node.tuning.is_of_node"] = Text(
    parser("node.tuning.is_of_node"), ["Name:\tirqbalance\nUid:\t0\t0\t0\t0\nNSpid:\t812\n"], (False,)
)
TEXT["pods.perftest.parse_latency"] = Text(
    parser("pods.perftest.parse_latency"),
    [
        " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]"
        "   99% percentile[usec]   99.9% percentile[usec]\n"
        " 8       10000          1.44           2.93         1.48          1.49        0.02   1.56    2.93\n"
    ],
)
TEXT["pods.rdma_counters.parse_counters"] = Text(
    parser("pods.rdma_counters.parse_counters"),
    ["count mlx5_2 symbol_error 0\ncount mlx5_2 packet_seq_err 12\n"],
    ({},),
)
TEXT["pods.agent.parse_requests"] = Text(
    parser("pods.agent.parse_requests"), ["ask 1\nlinerate-b\norted --hnp 10.0.0.1\n"], ((),)
)
TEXT["limits.count_values_outside_strings"] = Text(
    lambda text: (
        0
        <= parser("limits.count_values_outside_strings")(text.encode(errors="surrogatepass"))
        <= parser("limits.count_values")(text)
    ),
    ['{"a": [1, 2.5, "x,[{", null, true]}'],
    (True,),
)
TEXT["limits.describe_excess"] = Text(
    lambda text: parser("limits.describe_excess")(text.encode("ascii", "replace").decode()),
    ['{"a": [1, 2.5, "x", null, true]}'],
    ("",),
)
TEXT["limits.longest_text"] = Text(
    lambda text: parser("limits.longest_text")({"a": [1, text]}) == max(1, len(text)), ["ab"], (True,)
)
TEXT["limits.decode_json"] = Text(
    lambda text: parser("limits.decode_json")(text, "a file"), ['{"a": [1, 2.5, "x", null, true]}'], (ANY,)
)
TEXT["kubernetes.images.parse_reference"] = Text(
    parser("kubernetes.images.parse_reference"), ["quay.io:443/site/tools:1@sha256:0", "debian"]
)
TEXT["kubernetes.observers.knows_recursive_read_only"] = Text(
    parser("kubernetes.observers.knows_recursive_read_only"), ["v1.34.4", "v1.30.2"], (False,)
)


SMI_FIELDS = (
    "pci.bus_id",
    "persistence_mode",
    "ecc.mode.current",
    "mig.mode.current",
    "clocks.max.sm",
    "driver_version",
    "clocks_event_reasons.active",
)
_PATH = "/sys/devices/pci0000:17/0000:17:01.0/0000:18:00.0"
TUNING: dict[str, tuple[str, tuple[typing.Any, ...]]] = {
    "parse_word": ("performance", ()),
    "parse_chosen": ("always [madvise] never", ()),
    "on_off": ("1", ()),
    "parse_cpu_list": ("0-3,8", (frozenset(),)),
    "parse_swap_kib": ("Filename\tType\tSize\tUsed\tPriority\n/dev/sda2 partition 8388604 0 -2\n", ()),
    "parse_memlock": ("Max locked memory         8388608              8388608              bytes     ", ()),
    "manager_policy": ('{"policyName":"static","defaultCpuSet":"0-1","checksum":1}', ()),
    "parse_kubelet_settings": (
        "kind: KubeletConfiguration\ntopologyManagerPolicy: restricted\nreservedSystemCPUs: 0-1,32\n",
        (),
    ),
    "parse_kubelet_arguments": (
        "/usr/bin/kubelet\0--config=/etc/kubernetes/kubelet.conf\0--config-dir=/etc/openshift/kubelet.conf.d\0",
        (KubeletArguments("", "", {}),),
    ),
    "idle_arguments": ("quiet intel_idle.max_cstate=0 processor.max_cstate=1", ("none",)),
    "pci_realloc": ("quiet pci=noaer,realloc=off", ("unset",)),
    "traffic_class": ("Global tclass=106", ("unset",)),
    "at_least_zero": ("135168", ()),
}
TEXT.update(
    {
        f"node.tuning.{name}": Text(parser(f"node.tuning.{name}"), [sample], nothing)
        for name, (sample, nothing) in TUNING.items()
    }
)
TEXT.update(
    {
        "node.nvidia_smi.parse_gpus": Text(
            lambda text: parser("node.nvidia_smi.parse_gpus")(text, SMI_FIELDS), seeds("nvidia-smi/580.159.04-row.csv")
        ),
        "node.nvidia_smi.find_unknown_field": Text(
            parser("node.nvidia_smi.find_unknown_field"), seeds("nvidia-smi/580.159.04-bad-field.csv"), (None,)
        ),
        "node.nvidia_smi.explain_slowness": Text(parser("node.nvidia_smi.explain_slowness"), ["0x0000000000000048"]),
        "node.nvidia_smi.describe_link": Text(parser("node.nvidia_smi.describe_link"), ["P0 5 5"]),
        "node.dcb.parse_lossless_priorities": Text(parser("node.dcb.parse_lossless_priorities"), seeds("dcb/pfc.json")),
        "node.dcb.parse_priorities": Text(parser("node.dcb.parse_priorities"), seeds("dcb/app.json"), ({},)),
        "node.kernel_log.parse_faults": Text(
            lambda text: parser("node.kernel_log.parse_faults")(text.split("\n\n")),
            ["3,7,1,-;NVRM: Xid (PCI:0000:18:00): 79, pid=1, GPU has fallen off the bus.\n"],
            (set(),),
        ),
        "node.pci_path.parse_path": Text(
            parser("node.pci_path.parse_path"), [_PATH], (parser("node.pci_path.Path")("", ()),)
        ),
        "node.pci_path.measure_distance": Text(
            lambda text: parser("node.pci_path.measure_distance")(
                parser("node.pci_path.parse_path")(text), parser("node.pci_path.parse_path")(_PATH), False
            ),
            [_PATH],
            ("SYS",),
        ),
        "node.pci_path.list_bridges_between": Text(
            lambda text: parser("node.pci_path.list_bridges_between")(
                parser("node.pci_path.parse_path")(text), parser("node.pci_path.parse_path")(_PATH)
            ),
            [_PATH],
            ((),),
        ),
    }
)


def objects(name: str, kind: str) -> list[typing.Any]:
    data = yaml.safe_load((FIXTURES / "kubernetes" / name).read_text(encoding="utf-8"))
    found = [item for item in data.get("items", [data]) if item.get("kind") == kind]
    assert found, (name, kind)
    return found


def golden(name: str) -> list[typing.Any]:
    """Objects as the collection writes them."""
    found = list(yaml.safe_load_all((FIXTURES.parent / "golden" / f"{name}.golden").read_text(encoding="utf-8")))
    assert found, name
    return found


def named(**rest: typing.Any) -> dict[str, typing.Any]:
    return {
        "metadata": {"name": "a", "namespace": "b", "labels": {"c": "d"}, "annotations": {}, "generation": 1},
        **rest,
    }


TEMPLATE = {
    "template": {
        "spec": {"containers": [{"image": "r/x:1", "env": [{"name": "RESOURCE_PREFIX", "value": "openshift.io"}]}]}
    }
}
DEPLOYMENT = named(
    kind="Deployment",
    spec={"replicas": 1, **TEMPLATE},
    status={"observedGeneration": 1, "availableReplicas": 1, "updatedReplicas": 1},
)
OF_HELM = {
    "metadata": {"name": "a", "annotations": {"meta.helm.sh/release-name": "b", "meta.helm.sh/release-namespace": "a"}}
}
OF_2026 = {"metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"}}
WORKER = named(
    spec={
        "template": {
            "spec": {
                "containers": [{"command": ["nfd-worker"], "args": ["-v"]}],
                "volumes": [{"name": "c", "configMap": {"name": "conf"}}],
            }
        }
    }
)
SELECTOR = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
POD = objects("pod-with-vf.yaml", "Pod")
FABRIC = {
    "name": "compute",
    "profile": "sriov_infiniband",
    "select": {"subnet_manager": "any", "hcas_per_node": 4},
    "virtual_functions": 8,
    "resource_name": "mlx_compute",
    "network": {"name": "sriov-ib-compute", "namespace": "test"},
    "ipam": {"type": "whereabouts", "range": "100.100.0.0/22"},
}
KUBELET_CONFIG = named(
    kind="KubeletConfig",
    spec={"kubeletConfig": {"cpuManagerPolicy": "static"}, "machineConfigPoolSelector": SELECTOR},
    status={"observedGeneration": 1, "conditions": [{"type": "Failure", "status": "False", "message": "Error: x"}]},
)
CIDR_POOL = named(
    kind="CIDRPool",
    spec={"cidr": "10.0.0.0/16", "perNodeNetworkPrefix": 24},
    status={"allocations": [{"nodeName": "a"}]},
)
MIRROR = {"source": "quay.io/site", "mirrors": ["mirror.example"], "mirrorSourcePolicy": "NeverContactSource"}
MIRRORS = [
    named(kind=kind, spec={key: [MIRROR]})
    for kind, key in (
        ("ImageDigestMirrorSet", "imageDigestMirrors"),
        ("ImageTagMirrorSet", "imageTagMirrors"),
        ("ImageContentSourcePolicy", "repositoryDigestMirrors"),
    )
]
NIC_STATUS = {
    "state": "notReady",
    "reason": "x",
    "appliedStates": [{"name": "state-OFED", "state": "notReady", "message": "y"}],
}
NIC_SPEC = {
    "configuration": {"template": {"numVfs": 8, "linkType": "Infiniband"}},
    "firmware": {"updatePolicy": "Validate"},
}
CARD_STATUS = {
    "node": "worker-1",
    "ports": [{"pci": "0000:3c:00.0"}],
    "psid": "mt_0000000838",
    "firmwareVersion": "28.42.1000",
    "dpu": False,
    "conditions": [{"type": "ConfigUpdateInProgress", "status": "True", "reason": "PendingReboot", "message": "m"}],
}
DATA: dict[str, Data] = {
    "kubernetes.core.internal_address": Data(
        parser("kubernetes.core.internal_address"),
        [named(status={"addresses": [{"type": "InternalIP", "address": "10.0.0.2"}]})],
        (None,),
    ),
    "kubernetes.core.system_uuid": Data(
        parser("kubernetes.core.system_uuid"),
        [named(status={"nodeInfo": {"systemUUID": "4c4c4544-0035-3510-8054-c6c04f503347"}})],
        ("",),
    ),
    "kubernetes.core.boot_of": Data(
        parser("kubernetes.core.boot_of"),
        [
            named(
                status={
                    "nodeInfo": {
                        "bootID": "5b3a1e0c-9a44-4a63-9f57-0f6a4f2a3a11",
                        "systemUUID": "4c4c4544-0035-3510-8054-c6c04f503347",
                    }
                }
            )
        ],
        (Boot(),),
    ),
    "kubernetes.core.parse_node": Data(parser("kubernetes.core.parse_node"), objects("node-worker-sriov.yaml", "Node")),
    "kubernetes.foreign.judge_objects": Data(
        lambda item: parser("kubernetes.foreign.judge_objects")([("ConfigMap", item)]),
        [
            named(
                metadata={
                    "name": "a",
                    "uid": "u",
                    "labels": {"a": "b"},
                    "annotations": {"a": "b"},
                    "ownerReferences": [{"uid": "o"}],
                }
            )
        ],
    ),
    "kubernetes.foreign.parse_resources": Data(
        lambda item: parser("kubernetes.foreign.parse_resources")(item, "/api/v1"),
        [{"resources": [{"name": "pods", "kind": "Pod", "namespaced": True, "verbs": ["list"]}]}],
        ((),),
    ),
    "kubernetes.foreign.parse_versions": Data(
        parser("kubernetes.foreign.parse_versions"),
        [
            {
                "groups": [
                    {
                        "name": "apps",
                        "versions": [{"groupVersion": "apps/v1"}],
                        "preferredVersion": {"groupVersion": "apps/v1"},
                    }
                ]
            }
        ],
        ((),),
    ),
    "kubernetes.cluster_version.parse_progress": Data(
        parser("kubernetes.cluster_version.parse_progress"),
        [
            named(
                status={"conditions": [{"type": "Progressing", "status": "True", "message": "Working towards 4.20.3"}]}
            )
        ],
        ("",),
    ),
    "kubernetes.etcd.parse_member": Data(
        parser("kubernetes.etcd.parse_member"),
        [named(spec={"nodeName": "a"}, status={"conditions": [{"type": "Ready", "status": "True"}]})],
    ),
    "kubernetes.health_check.parse_machine": Data(
        parser("kubernetes.health_check.parse_machine"),
        [
            named(
                metadata={"name": "a", "namespace": "b", "labels": {"a": "b"}}, status={"nodeRef": {"name": "worker-1"}}
            )
        ],
    ),
    "kubernetes.health_check.machine_health_check": Data(
        lambda item: parser("kubernetes.health_check.machine_health_check")(
            item, "MachineHealthCheck.machine.openshift.io"
        ),
        [named(metadata={"name": "a", "annotations": {"cluster.x-k8s.io/paused": ""}}, spec={"selector": SELECTOR})],
    ),
    "kubernetes.health_check.node_health_check": Data(
        parser("kubernetes.health_check.node_health_check"),
        [named(spec={"selector": SELECTOR, "pauseRequests": ["an upgrade"]})],
    ),
    "operators.sriov_operator.node_state": Data(
        parser("operators.sriov_operator.node_state"),
        objects("sriovnetworknodestates-igb-succeeded.yaml", "SriovNetworkNodeState"),
    ),
    "operators.sriov_operator.parse_policy": Data(
        parser("operators.sriov_operator.parse_policy"), objects("sriov-crs.yaml", "SriovNetworkNodePolicy")
    ),
    "operators.sriov_operator.node_pool": Data(
        parser("operators.sriov_operator.node_pool"), [named(spec={"maxUnavailable": 1, "nodeSelector": SELECTOR})]
    ),
    "operators.node_tuning.node_profile": Data(
        parser("operators.node_tuning.node_profile"), objects("node-tuning.yaml", "Profile")
    ),
    "operators.node_tuning.explain_invalid": Data(
        parser("operators.node_tuning.explain_invalid"), objects("node-tuning.yaml", "Tuned"), ("",)
    ),
    "operators.node_tuning.parse_recommendations": Data(
        parser("operators.node_tuning.parse_recommendations"), objects("node-tuning.yaml", "Tuned"), ((),)
    ),
    "operators.node_tuning.selected_nodes": Data(
        parser("operators.node_tuning.selected_nodes"), objects("node-tuning.yaml", "PerformanceProfile"), ({},)
    ),
    "operators.crio.parse_ulimits": Data(
        parser("operators.crio.parse_ulimits"),
        [
            named(
                spec={
                    "config": {
                        "storage": {
                            "files": [
                                {
                                    "path": "/etc/crio/crio.conf.d/10-a.conf",
                                    "contents": {"source": "data:,default_ulimits%20%3D%20%5B%22nofile%3D1%3A2%22%5D"},
                                }
                            ]
                        }
                    }
                }
            )
        ],
        ((),),
    ),
    "operators.machine_config.machine_pool": Data(
        parser("operators.machine_config.machine_pool"), objects("machineconfigpools.yaml", "MachineConfigPool")
    ),
    "operators.sriov_operator.operator_settings": Data(
        parser("operators.sriov_operator.operator_settings"),
        [named(spec={"disableDrain": True, "disablePlugins": ["mellanox"]})],
        (OperatorSettings(),),
    ),
    "kubernetes.inventory.parse_inventory": Data(
        lambda item: len(parser("kubernetes.inventory.parse_inventory")([item]).nodes),
        objects("node-worker-sriov.yaml", "Node"),
        (0,),
    ),
    "kubernetes.core.internal_addresses": Data(
        parser("kubernetes.core.internal_addresses"),
        [named(status={"addresses": [{"type": "InternalIP", "address": "10.0.0.2"}]})],
        ((),),
    ),
    "kubernetes.inventory.inventory_node": Data(
        parser("kubernetes.inventory.inventory_node"), objects("node-worker-sriov.yaml", "Node")
    ),
    "kubernetes.core.parse_budget": Data(
        parser("kubernetes.core.parse_budget"), [named(spec={"selector": SELECTOR}, status={"disruptionsAllowed": 0})]
    ),
    "kubernetes.pod_requests.parse_cpu": Data(
        lambda item: parser("kubernetes.pod_requests.parse_cpu")(
            item.get("cpu") if isinstance(item, dict) else item, "x"
        ),
        [{"cpu": "500m"}],
    ),
    "kubernetes.pod_requests.parse_memory": Data(
        lambda item: parser("kubernetes.pod_requests.parse_memory")(
            item.get("memory") if isinstance(item, dict) else item, "x"
        ),
        [{"memory": "1Gi"}],
    ),
    "kubernetes.pod_requests.parse_allocatable": Data(
        parser("kubernetes.pod_requests.parse_allocatable"),
        [named(status={"allocatable": {"cpu": "4", "memory": "8Gi"}})],
        ((None, None),),
    ),
    "kubernetes.pod_requests.parse_pod_amounts": Data(
        parser("kubernetes.pod_requests.parse_pod_amounts"), POD, (Amounts(),)
    ),
    "kubernetes.health_check.list_versions": Data(
        parser("kubernetes.health_check.list_versions"),
        [
            {
                "name": "cluster.x-k8s.io",
                "versions": [{"version": "v1beta2"}],
                "preferredVersion": {"version": "v1beta2"},
            }
        ],
        ((),),
    ),
    "kubernetes.core.parse_pod": Data(parser("kubernetes.core.parse_pod"), POD),
    "kubernetes.core.unread_pod": Data(parser("kubernetes.core.unread_pod"), POD),
    "kubernetes.core.parse_controller": Data(parser("kubernetes.core.parse_controller"), POD),
    "kubernetes.core.controller_uid": Data(parser("kubernetes.core.controller_uid"), POD, ("",)),
    "kubernetes.core.tolerates_taint": Data(
        lambda toleration: [
            parser("kubernetes.core.tolerates_taint")(item, {"key": "role", "effect": "NoSchedule"})
            for item in parser("kubernetes.resource.items_of")({"tolerations": [toleration]}, "tolerations", "Pod")
        ],
        [{"key": "role", "operator": "Equal", "value": "", "effect": "NoSchedule"}],
        ([False],),
    ),
    "kubernetes.core.parse_workload": Data(parser("kubernetes.core.parse_workload"), [DEPLOYMENT]),
    # of anything else nobody knows that it is ours
    "operators.sriov_operator.kept_release": Data(
        lambda item: (
            "ours" if parser("operators.sriov_operator.kept_release")("a", "b", True, [item], True) is None else None
        ),
        [OF_HELM],
        (None,),
    ),
    "operators.sriov_operator.parse_installation": Data(
        parser("operators.sriov_operator.parse_installation"), [DEPLOYMENT]
    ),
    "kubernetes.networks.multus.network_interface": Data(
        lambda pod: parser("kubernetes.networks.multus.network_interface")(pod, "default/op-hl"), POD
    ),
    "kubernetes.networks.multus.held_addresses": Data(
        parser("kubernetes.networks.multus.held_addresses"), POD, (None,)
    ),
    "kubernetes.networks.multus.own_interface": Data(parser("kubernetes.networks.multus.own_interface"), POD),
    "operators.drivers.driver_policy": Data(
        parser("operators.drivers.driver_policy"),
        [
            named(
                kind="NicClusterPolicy",
                spec={"ofedDriver": {"image": "doca-driver", "repoConfig": {"name": "r"}}},
                status=NIC_STATUS,
            ),
            named(
                kind="ClusterPolicy",
                spec={"driver": {"enabled": True, "repoConfig": {"configMapName": "r"}}},
                status={"state": "ready"},
            ),
            named(
                kind="NicNodePolicy",
                spec={"ofedDriver": {"image": "doca-driver"}, "nodeSelector": {"pool": "a"}},
                status=NIC_STATUS,
            ),
            named(
                kind="NVIDIADriver", spec={"image": "driver", "repoConfig": {"name": "r"}}, status={"state": "ready"}
            ),
        ],
    ),
    "operators.drivers.driver_selector": Data(
        parser("operators.drivers.driver_selector"),
        [named(kind="NicNodePolicy", spec={"nodeSelector": {"a": "b"}})],
        ({},),
    ),
    "operators.drivers.driver_host": Data(
        parser("operators.drivers.driver_host"), objects("node-worker-sriov.yaml", "Node")
    ),
    "operators.gpu_driver.parse_gpu_driver": Data(
        parser("operators.gpu_driver.parse_gpu_driver"),
        [
            {
                "kind": "NVIDIADriver",
                "metadata": {"name": "a"},
                "spec": {"rdma": {"enabled": True}, "nodeSelector": {"pool": "x"}},
                "status": {"state": "ready"},
            }
        ],
        (parser("operators.gpu_driver.parse_gpu_driver")({"kind": "NVIDIADriver", "metadata": {"name": "a"}}),),
    ),
    "operators.gpu_driver.parse_gpu_driver_change": Data(
        parser("operators.gpu_driver.parse_gpu_driver_change"),
        [
            {
                "kind": "ClusterPolicy",
                "metadata": {
                    "name": "gpu",
                    "managedFields": [{"manager": "helm", "fieldsV1": {"f:spec": {"f:driver": {"f:rdma": {}}}}}],
                },
                "spec": {"driver": {"rdma": {}, "upgradePolicy": {"maxParallelUpgrades": 2, "drain": {}}}},
            }
        ],
    ),
    "operators.gpu_driver.parse_gpu_driver_creation": Data(
        lambda node: (
            parser("operators.gpu_driver.parse_gpu_driver_creation")(
                [node], OperatorUpgrade("gpu-operator", "created", {"enabled": True}, creates="gpu")
            ).nodes
        ),
        [{"kind": "Node", "metadata": {"name": "a"}, "status": {"allocatable": {"nvidia.com/gpu": "8"}}}],
        ((),),
    ),
    "operators.gpu_driver.parse_gpu_driver_upgrade": Data(
        lambda there: parser("operators.gpu_driver.parse_gpu_driver_upgrade")(
            there, OperatorUpgrade("gpu-operator", "a -> b", {"upgradePolicy": {"autoUpgrade": True}})
        ),
        [
            named(
                kind="ClusterPolicy",
                spec={"driver": {"enabled": True, "upgradePolicy": {"maxParallelUpgrades": 2, "drain": {}}}},
            )
        ],
        (None,),
    ),
    "operators.nic_driver.parse_driver_upgrade": Data(
        lambda there: parser("operators.nic_driver.parse_driver_upgrade")(
            there, OperatorUpgrade("network-operator", "a -> b")
        ),
        [
            named(
                kind="NicClusterPolicy",
                spec={
                    "ofedDriver": {"upgradePolicy": {"autoUpgrade": True, "maxParallelUpgrades": 2}},
                    "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}},
                },
            )
        ],
        (None,),
    ),
    "operators.nic_driver.parse_driver_change": Data(
        lambda there: parser("operators.nic_driver.parse_driver_change")(
            {"metadata": {"name": "nic-cluster-policy"}, "spec": {}}, there
        ),
        [
            named(
                kind="NicClusterPolicy",
                spec={
                    "ofedDriver": {"image": "doca-driver", "version": "doca3"},
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {"matchExpressions": [{"key": "role", "operator": "In", "values": ["rdma"]}]}
                            ]
                        }
                    },
                },
            )
        ],
        (None,),
    ),
    "operators.nic_driver.parse_driver_removal": Data(
        parser("operators.nic_driver.parse_driver_removal"),
        [
            named(
                kind="NicClusterPolicy",
                spec={
                    "ofedDriver": {"version": "doca3"},
                    "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}},
                },
            )
        ],
        (None,),
    ),
    "operators.nic_driver.list_kept_out": Data(
        lambda node: parser("operators.nic_driver.list_kept_out")([node], {"spec": {"tolerations": [{"key": "a"}]}}),
        [named(kind="Node", spec={"taints": [{"key": "role", "effect": "NoSchedule", "value": "control"}]})],
        ((),),
    ),
    "operators.nvidia_network_operator.parse_reported": Data(
        parser("operators.nvidia_network_operator.parse_reported"), [named(kind="NicClusterPolicy", status=NIC_STATUS)]
    ),
    "operators.nvidia_network_operator.nic_policy": Data(
        parser("operators.nvidia_network_operator.nic_policy"),
        [named(kind="NicClusterPolicy", spec={"rdmaSharedDevicePlugin": {"config": "{}"}}, status=NIC_STATUS)],
    ),
    "operators.nic_configuration_operator.nic_state": Data(
        parser("operators.nic_configuration_operator.nic_state"),
        [named(kind="NicDevice", spec=NIC_SPEC, status=CARD_STATUS)],
    ),
    "operators.nic_configuration_operator.node_of": Data(
        parser("operators.nic_configuration_operator.node_of"),
        [{"metadata": {"name": "card", "ownerReferences": [{"kind": "Node", "name": "worker-1"}]}}],
        ("worker-1", ""),
    ),
    "operators.maintenance_operator.parse_parallel_operations": Data(
        parser("operators.maintenance_operator.parse_parallel_operations"),
        [named(kind="MaintenanceOperatorConfig", spec={"maxParallelOperations": "10%"})],
        ("",),
    ),
    "operators.nic_configuration_operator.parse_turn": Data(
        parser("operators.nic_configuration_operator.parse_turn"),
        [named(kind="NicDevice", spec=NIC_SPEC, status=CARD_STATUS)],
    ),
    "operators.nic_configuration_operator.is_reported": Data(
        parser("operators.nic_configuration_operator.is_reported"),
        [named(kind="NicDevice", spec=NIC_SPEC, status=CARD_STATUS)],
        (True, False),
    ),
    "operators.nic_configuration_operator.nic_template": Data(
        lambda item: parser("operators.nic_configuration_operator.nic_template")(
            item, "app.kubernetes.io/managed-by", "linerate.rdma"
        ),
        [named(kind="NicConfigurationTemplate", status={"nicDevices": ["card"]})],
    ),
    "operators.nic_configuration_operator.nic_device": Data(
        parser("operators.nic_configuration_operator.nic_device"),
        [named(kind="NicDevice", spec=NIC_SPEC, status=CARD_STATUS)],
    ),
    "operators.nvidia_network_operator.parse_attachment": Data(
        parser("operators.nvidia_network_operator.parse_attachment"),
        objects("networkattachmentdefinitions.yaml", "NetworkAttachmentDefinition"),
    ),
    "kubernetes.networks.multus.network_status": Data(parser("kubernetes.networks.multus.network_status"), POD),
    "kubernetes.networks.multus.training_pod": Data(parser("kubernetes.networks.multus.training_pod"), POD),
    "kubernetes.networks.multus.training_pods": Data(
        lambda data: parser("kubernetes.networks.multus.training_pods")([data]), POD, ([],)
    ),
    "operators.sriov_operator.supported_nics": Data(
        parser("operators.sriov_operator.supported_nics"),
        [named(kind="ConfigMap", data={"Intel_igb_82576": "8086 10c9 10ca"})],
        ((),),
    ),
    "operators.sriov_operator.runs_operator": Data(
        lambda data: parser("operators.sriov_operator.runs_operator")(
            items_of(mapping_at(data, "spec"), "containers", "x")
        ),
        [
            {
                "spec": {
                    "containers": [
                        {"command": ["manager"], "env": [{"name": "SRIOV_NETWORK_CONFIG_DAEMON_IMAGE", "value": "x"}]}
                    ]
                }
            }
        ],
        (False,),
    ),
    "operators.sriov_operator.origin_of": Data(
        lambda data: parser("operators.sriov_operator.origin_of")(mapping_at(data, "metadata", "labels"), "x"),
        [named(metadata={"name": "a", "labels": {"helm.sh/chart": "network-operator-26.4.1"}})],
        ("unknown",),
    ),
    "operators.charts.olm_examples": Data(
        parser("operators.charts.olm_examples"),
        [named(kind="ClusterServiceVersion", metadata={"name": "x", "annotations": {"alm-examples": "[{}]"}})],
        ((),),
    ),
    "operators.nfd_and_olm.is_worker": Data(parser("operators.nfd_and_olm.is_worker"), [WORKER], (False,)),
    "operators.nfd_and_olm.config_maps": Data(parser("operators.nfd_and_olm.config_maps"), [WORKER], ((),)),
    "operators.nfd_and_olm.worker_text": Data(
        parser("operators.nfd_and_olm.worker_text"), [named(data={"nfd-worker.conf": "core: {}"})], ("",)
    ),
    "operators.nfd_and_olm.worker_config": Data(
        parser("operators.nfd_and_olm.worker_config"),
        [{"core": {"labelSources": ["pci"]}, "sources": {"pci": {"deviceClassWhitelist": ["0200"]}}}],
        (WorkerConfig(),),
    ),
    "operators.nfd_and_olm.olm_object": Data(
        parser("operators.nfd_and_olm.olm_object"),
        [
            named(
                kind="Subscription",
                spec={"name": "sriov-network-operator"},
                status={"conditions": [{"type": "ResolutionFailed", "status": "True"}]},
            ),
            {
                "kind": "ClusterServiceVersion",
                "metadata": {"name": "sriov-network-operator.v4"},
                "spec": {"version": "4"},
                "status": {"phase": "Succeeded"},
            },
        ],
    ),
    "operators.olm.parse_catalog": Data(parser("operators.olm.parse_catalog"), [olm_world.catalog()]),
    "operators.olm.parse_package": Data(parser("operators.olm.parse_package"), [olm_world.package()]),
    "operators.olm.operator_group": Data(
        parser("operators.olm.operator_group"), [olm_world.group("one", ["ops"]), named(spec={"selector": SELECTOR})]
    ),
    "operators.olm.parse_subscription": Data(
        parser("operators.olm.parse_subscription"),
        [olm_world.subscription(conditions=[olm_world.condition("ResolutionFailed", "r", "m")])],
    ),
    "operators.olm.install_plan": Data(
        parser("operators.olm.install_plan"),
        [
            olm_world.plan(
                "x", ["nfd.v1"], bundleLookups=[{"conditions": [olm_world.condition("BundleLookupFailed", "r", "m")]}]
            )
        ],
    ),
    "operators.olm.service_version": Data(
        parser("operators.olm.service_version"),
        [
            olm_world.version(
                "nfd.v1",
                spec={
                    "webhookdefinitions": [{"deploymentName": "d"}],
                    "customresourcedefinitions": {"owned": [{"name": "x"}]},
                },
                requirementStatus=[
                    {
                        "kind": "K",
                        "name": "n",
                        "status": "NotPresent",
                        "dependents": [{"status": "NotSatisfied", "message": "m"}],
                    }
                ],
            )
        ],
    ),
    "kubernetes.roll_mark.is_in_roll": Data(
        parser("kubernetes.roll_mark.is_in_roll"),
        [
            {
                "metadata": {
                    "annotations": {"linerate.rdma/roll": "{}"},
                    "labels": {"linerate.node-restriction.kubernetes.io/roll": "marked"},
                }
            }
        ],
        (False,),
    ),
    "kubernetes.roll_mark.is_kept": Data(
        parser("kubernetes.roll_mark.is_kept"),
        [{"metadata": {"annotations": {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}}}],
        (False,),
    ),
    "kubernetes.roll_mark.find_keep_value": Data(
        parser("kubernetes.roll_mark.find_keep_value"),
        [{"metadata": {"annotations": {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "false"}}}],
        ("",),
    ),
    "kubernetes.roll_mark.parse_mark": Data(
        parser("kubernetes.roll_mark.parse_mark"),
        [{"metadata": {"annotations": {"linerate.rdma/roll": '{"boot": "b", "differences": ["x"]}'}}}],
        (None,),
    ),
    "kubernetes.lease.parse_lease": Data(
        parser("kubernetes.lease.parse_lease"), [LEASE], (parser("kubernetes.lease.parse_lease")({}),)
    ),
    "kubernetes.pod_state.state_of_pod": Data(
        parser("kubernetes.pod_state.state_of_pod"), POD, (parser("kubernetes.pod_state.state_of_pod")({}),)
    ),
    # any text is the place of everything; stage validate says whether it is one
    "intent.mirror_of": Data(
        lambda data: isinstance(parser("intent.mirror_of")(data), dict), [{"nvcr.io": "registry.example/m"}], (True,)
    ),
    "kubernetes.pulled_images.pulled_images": Data(
        parser("kubernetes.pulled_images.pulled_images"),
        [
            {
                "kind": "ClusterPolicy",
                "spec": {"driver": {"repository": "nvcr.io/nvidia", "image": "driver", "version": "580"}},
            }
        ],
        ((),),
    ),
    "kubernetes.images.mirror_rules": Data(parser("kubernetes.images.mirror_rules"), MIRRORS, ((),)),
    "kubernetes.images.registry_sources": Data(
        parser("kubernetes.images.registry_sources"),
        [
            named(
                kind="Image",
                spec={"registrySources": {"blockedRegistries": ["docker.io"], "allowedRegistries": ["quay.io"]}},
            )
        ],
        (RegistrySources(),),
    ),
    "intent.parse_intent": Data(parser("intent.parse_intent"), [[FABRIC]]),
    "kubernetes.networks.ipam.node_networks": Data(
        parser("kubernetes.networks.ipam.node_networks"),
        [*objects("node-worker-sriov.yaml", "Node"), named(spec={"podCIDRs": ["10.0.0.0/24"]})],
    ),
    "kubernetes.networks.ipam.unread_pod": Data(
        lambda item: parser("kubernetes.networks.ipam.unread_pod")(item, "why"), POD, (None,)
    ),
    "kubernetes.networks.ipam.unread_node": Data(
        parser("kubernetes.networks.ipam.unread_node"), objects("node-worker-sriov.yaml", "Node"), (None,)
    ),
    "kubernetes.networks.ipam.service_networks": Data(
        parser("kubernetes.networks.ipam.service_networks"), [named(spec={"cidrs": ["10.96.0.0/16"]})]
    ),
    "kubernetes.networks.ipam.service_addresses": Data(
        parser("kubernetes.networks.ipam.service_addresses"), [named(spec={"clusterIPs": ["10.96.0.1"]})]
    ),
    "kubernetes.networks.ipam.openshift_networks": Data(
        parser("kubernetes.networks.ipam.openshift_networks"),
        [named(status={"clusterNetwork": [{"cidr": "10.0.0.0/14"}], "serviceNetwork": ["10.96.0.0/16"]})],
    ),
    "kubernetes.networks.ipam.pod_networks": Data(parser("kubernetes.networks.ipam.pod_networks"), POD),
    "kubernetes.networks.ipam.attachment_networks": Data(
        lambda item: parser("kubernetes.networks.ipam.attachment_networks")(item, ()),
        objects("networkattachmentdefinitions.yaml", "NetworkAttachmentDefinition"),
    ),
    "kubernetes.networks.ipam.parse_leases": Data(
        parser("kubernetes.networks.ipam.parse_leases"),
        [named(spec={"range": "10.0.0.0/24", "allocations": {"1": {"podref": "a/b"}}})],
    ),
    "kubernetes.networks.ipam.shared_pool": Data(parser("kubernetes.networks.ipam.shared_pool"), [CIDR_POOL]),
}

CHOOSING: dict[str, typing.Any] = {
    "nodeSelector": {"a": "b"},
    "tolerations": [{"key": "a", "operator": "Equal", "value": "b", "effect": "NoSchedule"}],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {
                        "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}],
                        "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["c"]}],
                    }
                ]
            }
        }
    },
}
POD_SPEC: dict[str, typing.Any] = {
    "containers": [
        {
            "name": "a",
            "image": "b",
            "env": [{"name": "NCCL_IB_HCA", "value": "mlx5_0"}],
            "resources": {"limits": {"nvidia.com/gpu": "8"}},
            "volumeMounts": [{"name": "c", "mountPath": "/dev/shm"}],
        }
    ],
    "volumes": [{"name": "c", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}],
}
JOBS = [item for name in ("job-pytorch", "job-trainjob-roce") for item in golden(name)]
CLAIM = named(
    kind="PersistentVolumeClaim",
    spec={"accessModes": ["ReadWriteMany"], "storageClassName": "nfs"},
    status={"phase": "Bound"},
)
VOLUME = named(kind="PersistentVolume", spec={"accessModes": ["ReadWriteMany"], "storageClassName": "nfs"})
CLASS = named(kind="StorageClass", provisioner="nfs.csi.k8s.io")
DEVICE_CLASS = named(
    kind="DeviceClass",
    spec={
        "selectors": [{"cel": {"expression": 'device.driver == "dra.net"'}}],
        "extendedResourceName": "example.com/nic",
    },
)
DEVICE_SLICE = named(
    kind="ResourceSlice",
    spec={
        "driver": "dra.net",
        "pool": {"name": "a", "generation": 1},
        "nodeName": "a",
        "devices": [
            {
                "name": "eth1",
                "attributes": {"rdma": {"bool": True}, "dra.net/ifName": {"string": "eth1"}, "mtu": {"int": 9000}},
                "taints": [{"key": "a", "effect": "NoSchedule"}],
            },
            {"name": "eth2", "basic": {"attributes": {"rdma": {"bool": False}}}},
        ],
    },
)
COMPUTE_DOMAIN = named(
    kind="ComputeDomain", spec={"numNodes": 2, "channel": {"resourceClaimTemplate": {"name": "channel"}}}
)
WAYS = {
    "name": "nic",
    "firstAvailable": [{"name": "a", "deviceClassName": "dranet"}, {"name": "b", "deviceClassName": "dra.net"}],
}
DEVICE_CLAIMS = [
    named(
        kind="ResourceClaim",
        spec={
            "devices": {
                "requests": [
                    {
                        "name": "gpu",
                        "exactly": {
                            "deviceClassName": "gpu.nvidia.com",
                            "selectors": [{"cel": {"expression": "true"}}],
                            "tolerations": [{"operator": "Exists"}],
                        },
                    },
                    WAYS,
                ],
                "constraints": [{"matchAttribute": "resource.kubernetes.io/pcieRoot", "requests": ["gpu"]}],
            }
        },
    ),
    named(
        kind="ResourceClaimTemplate",
        spec={"spec": {"devices": {"requests": [{"name": "gpu", "deviceClassName": "gpu.nvidia.com"}]}}},
    ),
]
COVERED = {"name": "h100", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 8}]}
QUEUE = named(
    kind="ClusterQueue",
    spec={
        "namespaceSelector": SELECTOR,
        "resourceGroups": [{"coveredResources": ["nvidia.com/gpu"], "flavors": [COVERED]}],
    },
    status={"conditions": [{"type": "Active", "status": "True"}]},
)
ATTACHMENTS = objects("networkattachmentdefinitions.yaml", "NetworkAttachmentDefinition")
BINDING = named(kind="ClusterRoleBinding", subjects=[{"kind": "ServiceAccount", "namespace": "a", "name": "b"}])
DATA.update(
    {
        "kubernetes.networks.ipam.attachment_plugins": Data(
            lambda item: parser("kubernetes.networks.ipam.attachment_plugins")(item, "x"), ATTACHMENTS
        ),
        "kubernetes.dra.device_claims.read_pod_claims": Data(
            lambda item: parser("kubernetes.dra.device_claims.read_pod_claims")(item, "x"),
            [{"resourceClaims": [{"name": "a", "resourceClaimName": "b"}]}],
            ((),),
        ),
        "kubernetes.dra.device_claims.read_taken_claims": Data(
            lambda item: parser("kubernetes.dra.device_claims.read_taken_claims")(item, "x"),
            [{"resources": {"claims": [{"name": "a"}]}}],
            ((),),
        ),
        "kubernetes.dra.device_claims.read_claim": Data(
            parser("kubernetes.dra.device_claims.read_claim"), DEVICE_CLAIMS
        ),
        "kubernetes.dra.device_claims.read_class": Data(
            parser("kubernetes.dra.device_claims.read_class"), [DEVICE_CLASS]
        ),
        "kubernetes.dra.device_claims.read_compute_domain": Data(
            parser("kubernetes.dra.device_claims.read_compute_domain"), [COMPUTE_DOMAIN]
        ),
        "kubernetes.dra.compute_domains.parse_compute_domain": Data(
            parser("kubernetes.dra.compute_domains.parse_compute_domain"),
            [
                {
                    **COMPUTE_DOMAIN,
                    "status": {
                        "status": "Ready",
                        "nodes": [{"name": "a", "ipAddress": "10.0.0.1", "cliqueID": "a.1", "status": "Ready"}],
                    },
                }
            ],
        ),
        "kubernetes.dra.compute_domains.parse_claiming_pod": Data(
            parser("kubernetes.dra.compute_domains.parse_claiming_pod"),
            [
                named(
                    kind="Pod",
                    spec={"nodeName": "a", "resourceClaims": [{"name": "a", "resourceClaimTemplateName": "b"}]},
                )
            ],
            (None,),
        ),
        "kubernetes.dra.device_claims.read_slice": Data(
            parser("kubernetes.dra.device_claims.read_slice"), [DEVICE_SLICE]
        ),
        "job.job_objects.parse_attachment": Data(parser("job.job_objects.parse_attachment"), ATTACHMENTS),
        "job.job_objects.resource_of": Data(parser("job.job_objects.resource_of"), ATTACHMENTS, ("",)),
        "job.job_objects.parse_claim": Data(parser("job.job_objects.parse_claim"), [CLAIM]),
        "job.pod_template.parse_template": Data(
            lambda item: parser("job.pod_template.parse_template")("x", item, 1, "a", {}),
            [named(spec=POD_SPEC)],
            (parser("job.pod_template.parse_template")("x", {}, 1, "a", {}),),
        ),
        "job.pod_template.parse_entries": Data(
            lambda item: parser("job.pod_template.parse_entries")(item, "volumes", "x"), [POD_SPEC], ([],)
        ),
        "job.node_choice.parse_node_choice": Data(
            lambda item: parser("job.node_choice.parse_node_choice")(item, "x"),
            [CHOOSING],
            (parser("job.node_choice.parse_node_choice")({}, "x"),),
        ),
        "job.node_choice.parse_taints": Data(
            parser("job.node_choice.parse_taints"),
            [named(kind="Node", spec={"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]})],
            (("a", ()),),
        ),
        "job.node_choice.parse_flavor": Data(
            parser("job.node_choice.parse_flavor"),
            [
                named(
                    kind="ResourceFlavor",
                    spec={
                        "nodeLabels": {"gpu": "h200"},
                        "nodeTaints": [{"key": "a", "value": "b", "effect": "NoSchedule"}],
                        "tolerations": [{"operator": "Exists"}],
                    },
                )
            ],
            (parser("job.node_choice.parse_flavor")(named(kind="ResourceFlavor")),),
        ),
        "job.pod_template.parse_amounts": Data(
            lambda item: parser("job.pod_template.parse_amounts")(item, "limits", "x"), POD_SPEC["containers"], ({},)
        ),
        "job.train_job.add_runtime": Data(lambda item: parser("job.train_job.add_runtime")(item, JOBS), JOBS),
        "job.train_job.is_trainer": Data(
            parser("job.train_job.is_trainer"),
            [{"template": {"metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}}}}],
            (False,),
        ),
        "job.manifest.is_job": Data(parser("job.manifest.is_job"), JOBS, (False,)),
        "job.job_objects.parse_pod_devices": Data(parser("job.job_objects.parse_pod_devices"), POD),
        "job.train_job.find_runtime": Data(parser("job.train_job.find_runtime"), JOBS),
        "job.manifest.parse_workload": Data(lambda item: parser("job.manifest.parse_workload")(item, JOBS), JOBS),
        "operators.machine_config.host_config": Data(
            lambda item: parser("operators.machine_config.host_config")(item, item),
            [*golden("machine-configs"), KUBELET_CONFIG],
        ),
        "job.nic_map.text_of": Data(
            parser("job.nic_map.text_of"), [named(kind="ConfigMap", data={"map": "worker-1:ens13:net1:10.249.65.9"})]
        ),
        "job.stack.parse_cluster_queue": Data(parser("job.stack.parse_cluster_queue"), [QUEUE]),
        "job.stack.account_of": Data(parser("job.stack.account_of"), [DEPLOYMENT], ("/default",)),
        "job.stack.list_accounts": Data(parser("job.stack.list_accounts"), [BINDING], (frozenset(),)),
        "job.stack.parse_controller": Data(parser("job.stack.parse_controller"), [DEPLOYMENT], (None,)),
        "job.stack.parse_frameworks": Data(
            parser("job.stack.parse_frameworks"),
            [{"controller_manager_config.yaml": "integrations: {frameworks: [batch/job]}"}],
            ((),),
        ),
        "job.stack.parse_uncounted": Data(
            parser("job.stack.parse_uncounted"),
            [{"resources": {"excludeResourcePrefixes": ["a"], "transformations": [{"input": "b", "strategy": "c"}]}}],
            (((), ()),),
        ),
        "job.stack.parse_local_queue": Data(
            parser("job.stack.parse_local_queue"), [named(kind="LocalQueue", spec={"clusterQueue": "a"})]
        ),
        "job.stack.parse_policy_state": Data(
            parser("job.stack.parse_policy_state"), [named(kind="NicClusterPolicy", status=NIC_STATUS)]
        ),
        "job.stack.shared_class": Data(parser("job.stack.shared_class"), [VOLUME], ("",)),
        "job.stack.parse_storage_class": Data(
            lambda item: parser("job.stack.parse_storage_class")(item, ("nfs",)), [CLASS]
        ),
    }
)

OF_OWNER = {
    "metadata": {
        "name": "a",
        "labels": {"owner": "helm", "name": "a"},
        "annotations": {"kubernetes.io/service-account.name": "b"},
    }
}
OBSERVERS = {item["kind"]: item for item in golden("observers")}
OBSERVER_POD = named(
    spec=OBSERVERS["DaemonSet"]["spec"]["template"]["spec"],
    status={"containerStatuses": [{"name": "observer", "restartCount": 1}]},
)
EVENT = named(
    involvedObject={"kind": "Pod", "name": "a", "uid": "u"},
    reason="Failed",
    message="x",
    type="Warning",
    series={"lastObservedTime": "t"},
)
GOING = named(
    status={
        "conditions": [
            {"type": "NamespaceContentRemaining", "status": "True", "message": "pods. has 1 resource instances"}
        ]
    }
)
DATA.update(
    {
        "kubernetes.observers.owned_namespace": Data(
            parser("kubernetes.observers.owned_namespace"), [OBSERVERS["Namespace"]], (("foreign", ""),)
        ),
        "kubernetes.tenancy.describe_missing_part": Data(
            lambda item: bool(
                parser("kubernetes.tenancy.describe_missing_part")(item, OBSERVERS["Namespace"], "linerate.rdma/run")
            ),
            [OBSERVERS["Namespace"]],
            (True,),
        ),
        "kubernetes.tenancy.list_strangers": Data(
            lambda item: parser("kubernetes.tenancy.list_strangers")([item], "a"),
            [
                named(
                    kind="RoleBinding", roleRef={"kind": "Role", "name": "b"}, subjects=[{"kind": "User", "name": "c"}]
                )
            ],
            ((),),
        ),
        "kubernetes.tenancy.role_of": Data(
            parser("kubernetes.tenancy.role_of"), [named(roleRef={"kind": "Role", "name": "b"})], (("", ""),)
        ),
        "kubernetes.tenancy.only_reads": Data(
            parser("kubernetes.tenancy.only_reads"), [named(rules=[{"verbs": ["get"], "resources": ["pods"]}])], (True,)
        ),
        "kubernetes.tenancy.release_of": Data(
            parser("kubernetes.tenancy.release_of"),
            [OF_HELM],
            (("", ""),),
        ),
        "kubernetes.tenancy.is_record": Data(
            lambda item: parser("kubernetes.tenancy.is_record")(item, "a"), [OF_OWNER], (False,)
        ),
        "kubernetes.tenancy.proven_releases": Data(
            lambda item: parser("kubernetes.tenancy.proven_releases")(OF_2026, [item]),
            [{"metadata": {**OF_HELM["metadata"], **OF_2026["metadata"]}}],
            (frozenset(), frozenset("b")),
        ),
        "kubernetes.tenancy.asks_for_more": Data(
            lambda item: parser("kubernetes.tenancy.asks_for_more")(item, ("a",)), [named(spec={"name": "a"})], (True,)
        ),
        "kubernetes.tenancy.can_act_for_creator": Data(
            lambda item: parser("kubernetes.tenancy.can_act_for_creator")("Secret", item), [OF_OWNER], (False,)
        ),
        "kubernetes.foreign.is_mirror_pod": Data(
            lambda item: parser("kubernetes.foreign.is_mirror_pod")("Pod", item), POD, (False,)
        ),
        "kubernetes.foreign.is_copied": Data(
            parser("kubernetes.foreign.is_copied"),
            [
                named(
                    metadata={
                        "name": "a",
                        "labels": {"app.kubernetes.io/managed-by": "linerate.rdma"},
                        "managedFields": [{"manager": "kubectl"}],
                    }
                )
            ],
            (True, False),
        ),
        "kubernetes.foreign.is_made_pod": Data(parser("kubernetes.foreign.is_made_pod"), POD, (True,)),
        "kubernetes.foreign.is_everywhere": Data(
            lambda item: parser("kubernetes.foreign.is_everywhere")("ConfigMap", item), [OF_HELM], (False,)
        ),
        "kubernetes.observers.explain_remaining_namespace": Data(
            parser("kubernetes.observers.explain_remaining_namespace"), [GOING], ("",)
        ),
        "kubernetes.observers.observer_set": Data(
            parser("kubernetes.observers.observer_set"), [OBSERVERS["DaemonSet"]]
        ),
        "kubernetes.observers.observer_pod": Data(parser("kubernetes.observers.observer_pod"), [OBSERVER_POD]),
        "kubernetes.observers.parse_event": Data(
            parser("kubernetes.observers.parse_event"),
            [EVENT, *objects("events-of-a-daemonset.yaml", "Event")],
            (parser("kubernetes.observers.parse_event")({}),),
        ),
        "kubernetes.observers.image_of_tag": Data(
            parser("kubernetes.observers.image_of_tag"), [named(image={"dockerImageReference": "r/x@sha256:1"})]
        ),
    }
)

BMC = json.loads((FIXTURES / "redfish/dell.json").read_text(encoding="utf-8"))
IDRAC = "/redfish/v1/Managers/iDRAC.Embedded.1"
BIOS = BMC["/redfish/v1/Systems/System.Embedded.1/Bios"]
BIOS_REGISTRY = BMC["/redfish/v1/Systems/System.Embedded.1/Bios/BiosRegistry"]
# a few of its attributes: each of their places is changed
SHORT_BIOS = {
    **BIOS,
    "Attributes": {name: BIOS["Attributes"][name] for name in ("SriovGlobalEnable", "ProcCStates", "SysProfile")},
}
SHORT_REGISTRY = {
    "SupportedSystems": BIOS_REGISTRY["SupportedSystems"],
    "RegistryEntries": {
        "Attributes": [
            row for row in BIOS_REGISTRY["RegistryEntries"]["Attributes"] if row["AttributeName"] == "ProcCStates"
        ],
        "Dependencies": [
            row
            for row in BIOS_REGISTRY["RegistryEntries"]["Dependencies"]
            if row["DependencyFor"] == row["Dependency"]["MapToAttribute"] == "ProcCStates"
        ][-1:],
    },
}
DELL_JOB = BMC[f"{IDRAC}/Oem/Dell/Jobs/JID_102241909559"]
REFUSAL = {
    "error": {
        "code": "Base.1.12.GeneralError",
        "@Message.ExtendedInfo": [{"MessageId": "Base.1.12.InsufficientPrivilege", "Message": "no"}],
    }
}


def found_in(data: typing.Any) -> typing.Any:
    """All that is made of a registry: the settings of a node with these attributes."""
    registry = parser("redfish.registry.parse")(data, "/registry")
    return [
        item
        for item in parser("redfish.settings.list_settings")(
            parser("redfish.resources.parse_bios")(SHORT_BIOS), {}, registry, "", KEYS
        )
        if item.attributes
    ]


def by_names(data: typing.Any) -> typing.Any:
    return [
        item
        for item in parser("redfish.settings.list_settings")(
            parser("redfish.resources.parse_bios")(data), {}, None, "", KEYS
        )
        if item.attributes
    ]


TEXT.update(
    {
        "redfish.values.parse_switch": Text(
            parser("redfish.values.parse_switch"), ["Enabled", "No", "C0/C1 state"], (None,)
        ),
        "redfish.values.parse_number": Text(
            lambda text: (
                parser("redfish.values.parse_number")("numa_per_socket", text)
                or parser("redfish.values.parse_number")("max_read_request", text)
            ),
            ["NPS2", "4096B", "Enable SNC2 (2-clusters)", "OneMemoryDomainPerSocket"],
            (None,),
        ),
        "redfish.values.value_matches": Text(
            lambda text: parser("redfish.values.value_matches")("sriov", [True], text, text), ["Enabled"], (None,)
        ),
        "redfish.resources.job_of": Text(
            parser("redfish.resources.job_of"), ["/redfish/v1/TaskService/Tasks/JID_102241909559"], ("",)
        ),
        "redfish.values.spell_like_current": Text(
            lambda text: parser("redfish.values.spell_like_current")(text, "sriov", True),
            ["Disabled", "Enable", "YES"],
            (None,),
        ),
        "redfish.keys.is_display": Text(
            lambda text: any(parser("redfish.keys.is_display")(key, "x", text) for key in KEYS),
            ["SR-IOV Global Enable"],
            (False,),
        ),
        "redfish.keys.is_name": Text(
            lambda text: any(parser("redfish.keys.is_name")(key, text) for key in KEYS),
            ["SR_IOVSupport_0047"],
            (False,),
        ),
        "redfish.registry.find_candidates": Text(
            lambda text: parser("redfish.registry.find_candidates")(text.split("\n"), text),
            ["/redfish/v1/Registries/BiosAttributeRegistry.v1_0_0"],
            ((),),
        ),
    }
)
DATA.update(
    {
        "redfish.resources.list_members": Data(
            lambda data: parser("redfish.resources.list_members")(data, "x"), [BMC["/redfish/v1/Systems"]]
        ),
        "redfish.resources.is_partial": Data(
            lambda data: parser("redfish.resources.is_partial")(data, "x"),
            [{"Members": [{"@odata.id": "/redfish/v1/Systems/1"}], "Members@odata.count": 2}],
            (False,),
        ),
        "redfish.resources.list_expanded_members": Data(
            lambda data: parser("redfish.resources.list_expanded_members")(data, "x"), [{"Members": [DELL_JOB]}]
        ),
        "redfish.resources.parse_system": Data(
            parser("redfish.resources.parse_system"),
            [BMC["/redfish/v1/Systems/System.Embedded.1"]],
            (parser("redfish.resources.parse_system")({}),),
        ),
        "redfish.resources.reset_types": Data(
            parser("redfish.resources.reset_types"),
            [{"Parameters": [{"Name": "ResetType", "AllowableValues": ["On", "ForceRestart"]}]}],
            ((),),
        ),
        "redfish.resources.parse_bios": Data(parser("redfish.resources.parse_bios"), [SHORT_BIOS]),
        "redfish.resources.parse_pending": Data(
            lambda data: parser("redfish.resources.parse_pending")(data, {}), [SHORT_BIOS], ({},)
        ),
        "redfish.resources.parse_manager": Data(
            parser("redfish.resources.parse_manager"), [BMC[IDRAC]], (parser("redfish.resources.parse_manager")({}),)
        ),
        "redfish.resources.is_locked_down": Data(
            parser("redfish.resources.is_locked_down"),
            [{"SysLockdownEnabled": True}, {"Attributes": {"Lockdown.1.SystemLockdown": "Enabled"}}],
        ),
        "redfish.resources.next_page": Data(
            parser("redfish.resources.next_page"), [{"Members@odata.nextLink": "/jobs?$skip=50"}], ("",)
        ),
        "redfish.resources.cut_jobs": Data(
            lambda data: parser("redfish.resources.cut_jobs")([data]),
            [{**DELL_JOB, "JobState": "Scheduled"}],
            ([],),
        ),
        "redfish.resources.parse_bios_jobs": Data(
            lambda data: parser("redfish.resources.parse_bios_jobs")([data]),
            [{**DELL_JOB, "JobState": "Scheduled"}],
            ((),),
        ),
        "redfish.resources.explain_failed_job": Data(
            lambda data: parser("redfish.resources.explain_failed_job")([data]),
            [{**DELL_JOB, "JobState": "Failed"}],
            ("",),
        ),
        "redfish.resources.parse_message_id": Data(parser("redfish.resources.parse_message_id"), [REFUSAL], ("",)),
        "redfish.resources.parse_refusal": Data(parser("redfish.resources.parse_refusal"), [REFUSAL], ("",)),
        "redfish.resources.parse_etag": Data(
            lambda data: parser("redfish.resources.parse_etag")(data, ""), [{"@odata.etag": 'W/"2C3F7FBA"'}], ("",)
        ),
        "redfish.registry.find_location": Data(
            parser("redfish.registry.find_location"), [BMC["/redfish/v1/Registries/BiosAttributeRegistry.v1_0_0"]]
        ),
        "redfish.registry.is_system_supported": Data(
            lambda data: parser("redfish.registry.is_system_supported")(data, "PowerEdge R750", ""),
            [SHORT_REGISTRY],
            (False,),
        ),
        "redfish.registry.parse": Data(found_in, [SHORT_REGISTRY]),
        "redfish.settings.list_settings": Data(by_names, [SHORT_BIOS], ([],)),
        "redfish.settings.list_others_pending": Data(
            lambda data: parser("redfish.settings.list_others_pending")(
                (), parser("redfish.resources.parse_pending")(data, {})
            ),
            [SHORT_BIOS],
            ((),),
        ),
        "redfish.settings.explain_why_held": Data(
            lambda data: parser("redfish.settings.explain_why_held")(
                parser("redfish.resources.parse_bios")(data), None, ()
            ),
            [SHORT_BIOS],
            ("the BMC has no settings object for its BIOS",),
        ),
    }
)

#: the kin of errors that a parser may raise
OWN = (RdmaError, RangeError, IntentError)


def outcome(call: typing.Callable[..., typing.Any], argument: typing.Any) -> typing.Any:
    """What a parser makes of it: its value, or None where it raised an error of its own, with a text that is not as
    long as the input."""
    try:
        return call(argument)
    except OWN as error:
        assert str(error)
        return ANY


@contextlib.contextmanager
def case(*names: str) -> typing.Iterator[None]:
    """What goes wrong in it names the case."""
    try:
        yield
    except Exception as error:
        raise AssertionError(f"{', '.join(names)}: {error!r}") from error


def test_every_parser_is_in_the_tables() -> None:
    found = set()
    # resource is what those of resources stand on: it is tried in each of them
    for info in (
        info
        for info in pkgutil.walk_packages(_parse.__path__, f"{_parse.__name__}.")
        if info.name.rpartition(".")[2] != "resource"
    ):
        module = importlib.import_module(info.name)
        found |= {
            f"{info.name[len(_parse.__name__) + 1 :]}.{name}"
            for name, item in inspect.getmembers(module, inspect.isfunction)
            if item.__module__ == module.__name__ and name[0] != "_"
        }
    assert found == set(TEXT) | set(DATA)


@pytest.mark.parametrize("name", TEXT)
@hypothesis.given(data=some.data())
def test_text_that_was_cut_shuffled_or_changed(name: str, data: some.DataObject) -> None:
    text = data.draw(some.sampled_from(TEXT[name].samples))
    kind = data.draw(some.sampled_from(["cut", "shuffled", "doubled", "changed", "joined"]))
    if kind == "cut":
        text = text[: data.draw(some.integers(0, len(text)))]
    elif kind == "shuffled":
        text = "\n".join(data.draw(some.permutations(text.split("\n")[:200])))
    elif kind == "doubled":
        text += text
    elif kind == "joined":
        text = text.replace("\n", data.draw(some.sampled_from(["", " ", "\r", "\x00", "\u2028", "\x1b[2J"])))
    else:
        for _number in range(data.draw(some.integers(1, 5))):
            place = data.draw(some.integers(0, len(text)))
            text = (
                text[:place]
                + data.draw(some.text(max_size=4) | some.from_regex(r"[0-9a-f/:.-]{1,3}"))
                + text[place + data.draw(some.integers(0, 3)) :]
            )
    outcome(TEXT[name].call, text)


@hypothesis.given(
    garbage=some.text(alphabet=some.characters(exclude_categories=("Cs", "Nd", "Lu", "Ll")), max_size=200)
)
def test_nothing_good_comes_out_of_garbage(garbage: str) -> None:
    for name, parsed in TEXT.items():
        with case(name):
            value = outcome(parsed.call, garbage)
            assert value is ANY or value in parsed.nothing


SHAPES: dict[str, typing.Callable[[str], str]] = {
    "repeated": lambda sample: sample * (HUGE // max(1, len(sample))),
    "one line": lambda sample: " ".join(sample.split("\n")) * (HUGE // max(1, len(sample))),
    "a first word for ever": lambda sample: (
        (sample.split() or ["x"])[0] * (HUGE // max(1, len((sample.split() or ["x"])[0])))
    ),
    "words without an end": lambda sample: " ".join(sample.split())[:40] + "a " * (HUGE // 2),
    "digits": lambda sample: sample.replace("0", "0" * 5000).replace("1", "1" * 5000)[:HUGE],
    # of patterns that look for one word behind another
    "half of a failure": lambda sample: "rping command Failed status- " * (HUGE // 29),
    "blanks": lambda sample: sample[:20] + " " * HUGE + sample[-20:],
    "brackets": lambda sample: sample[:20] + "[" * HUGE,
}


@pytest.mark.parametrize("name", TEXT)
def test_huge_text_takes_its_time_and_no_more(name: str) -> None:
    def too_long(_number: int, _frame: typing.Any) -> None:
        raise TimeoutError(f"{name} is still at it after {SECONDS} s")

    for shape, make in SHAPES.items():
        text = make(max(TEXT[name].samples, key=len))
        before = signal.signal(signal.SIGVTALRM, too_long)
        signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
        try:
            with case(name, shape):
                outcome(TEXT[name].call, text)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, before)


HOSTILE: list[typing.Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    float("inf"),
    float("nan"),
    "",
    "x",
    "9" * 5000,
    "[" * 100_000,
    "{{ x }}",
    "\x00\u202e",
    [],
    [None],
    ["x"],
    [[]],
    {},
    {"": None},
]


def paths(data: typing.Any, start: tuple[typing.Any, ...] = ()) -> typing.Iterator[tuple[typing.Any, ...]]:
    """All places; of a list only the first item, as the others are like it."""
    yield start
    for key, value in data.items() if isinstance(data, dict) else enumerate(data[:1]) if isinstance(data, list) else ():
        yield from paths(value, (*start, key))


def changed(data: typing.Any, path: tuple[typing.Any, ...], value: typing.Any) -> typing.Any:
    if not path:
        return value
    result = copy.deepcopy(data)
    place = result
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return result


def test_data_with_a_hostile_value_anywhere() -> None:
    """All places: an object of another form is an error of the parser, or was never looked at."""
    for name, parsed in DATA.items():
        for sample in parsed.samples:
            with case(name):
                outcome(parsed.call, sample)
            for path in paths(sample):
                for value in HOSTILE:
                    with case(name, f"at {path}", repr(value)[:40]):
                        outcome(parsed.call, changed(sample, path, value))


@hypothesis.settings(max_examples=examples(25))
@hypothesis.given(
    garbage=some.recursive(
        some.none() | some.booleans() | some.text(max_size=5),
        lambda inner: some.lists(inner) | some.dictionaries(some.text(max_size=5), inner),
    )
)
def test_data_of_any_form(garbage: typing.Any) -> None:
    for name, parsed in DATA.items():
        with case(name):
            value = outcome(parsed.call, garbage)
            assert value is ANY or value in parsed.nothing


@pytest.mark.parametrize("config", ["[" * 100_000, "9" * 5000, '{"a": Infinity}', "\ud800"])
def test_json_inside_of_data(config: str) -> None:
    """A pod's annotation and an attachment's configuration are texts that anybody may write."""
    pod = named(spec={}, status={})
    pod["metadata"]["annotations"] = {"k8s.v1.cni.cncf.io/network-status": config}
    outcome(DATA["kubernetes.networks.multus.network_interface"].call, pod)
    outcome(DATA["kubernetes.networks.ipam.attachment_networks"].call, named(spec={"config": config}))
    outcome(TEXT["pods.probe.parse"].call, f"rdma {config}")
    outcome(DATA["kubernetes.roll_mark.parse_mark"].call, {"metadata": {"annotations": {"linerate.rdma/roll": config}}})
