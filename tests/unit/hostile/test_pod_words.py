# SPDX-License-Identifier: GPL-3.0-or-later

"""What a pod, an observer, a config daemon and a BMC say of themselves: refused by name where it is not of its type."""

from __future__ import annotations

import copy
import json
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.boundary.addresses import ADDRESS, HOST_ADDRESS
from ansible_collections.linerate.rdma.plugins.module_utils._model.boundary.paths import PATH
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.networks.multus import (
    STATUS_ANNOTATION,
    network_interface,
    own_interface,
    training_pod,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.resource import (
    ResourceError,
    moment_of,
    number_of,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.operators.sriov_operator import node_state
from ansible_collections.linerate.rdma.plugins.module_utils._parse.pods.host import parse_host
from ansible_collections.linerate.rdma.plugins.module_utils._parse.pods.probe import ProbeError, parse

ENTRY = {
    "name": "test/net",
    "interface": "net1",
    "ips": ["10.0.0.2"],
    "device-info": {"pci": {"pci-address": "0000:3C:00.2", "rdma-device": "mlx5_4"}},
}
BAD = (
    "10.0.0.2\nid",
    "{{ lookup('pipe', 'id') }}",
    "-oProxyCommand=id",
    "$(id)",
    "fe80::1%\n-id",
    "127.0.0.1",
    "::1",
    "net1\x00",
    "a b",
    "../x",
    "\u202e1",
)


def pod(**changes: typing.Any) -> dict[str, typing.Any]:
    entry = copy.deepcopy(ENTRY)
    for key, value in changes.items():
        if key in ("pci_address", "rdma_device"):
            entry["device-info"]["pci"][key.replace("_", "-")] = value  # type: ignore[index]
        else:
            entry[key] = value
    metadata = {"name": "pod-1", "namespace": "test", "annotations": {STATUS_ANNOTATION: json.dumps([entry])}}
    return {"kind": "Pod", "metadata": metadata, "spec": {"nodeName": "worker-1"}, "status": {"podIP": "10.244.0.7"}}


def test_a_pod_s_own_words() -> None:
    assert network_interface(pod(), "test/net") == ("net1", "10.0.0.2", "0000:3c:00.2")
    assert own_interface(pod(default=True)) == ("net1", "10.244.0.7", None)


@pytest.mark.parametrize("text", BAD)
def test_network_status_is_refused_by_the_pod_s_name(text: str) -> None:
    changes: list[dict[str, typing.Any]] = [{"ips": [text]}, {"pci_address": text}, {"ips": [["x"]]}, {"interface": 7}]
    if text != "127.0.0.1":
        # a kernel takes this for the name of an interface
        changes.append({"interface": text})
    for change in changes:
        with pytest.raises(ResourceError, match="pod pod-1") as raised:
            network_interface(pod(**change), "test/net")
        assert str(raised.value).isprintable()


@pytest.mark.parametrize("text", BAD)
def test_a_pod_without_an_address_of_its_own_is_named(text: str) -> None:
    bad = pod(default=True)
    bad["status"]["podIP"] = text
    with pytest.raises(ResourceError, match=r"pod pod-1: status.podIP"):
        own_interface(bad)


def test_what_a_training_pod_says_of_its_networks_is_its_error() -> None:
    for change in ({"interface": "$(id)"}, {"pci_address": "{{ x }}"}, {"rdma_device": "-d"}, {"name": "a\nb"}):
        found = training_pod(pod(**change))
        assert (
            (found.name, found.functions) == ("pod-1", None)
            and "' is rejected: it is not" in found.error
            and found.error.isprintable()
        )
    whole = training_pod(pod())
    assert whole.functions is not None and whole.functions[0].rdma_device == "mlx5_4" and whole.error == ""


def test_an_observer_s_address_with_a_zone_is_none() -> None:
    """The standard library takes any text for a zone, line ends as well."""

    def seen(address: str) -> typing.Optional[str]:
        text = json.dumps([{"ifname": "eth7", "addr_info": [{"local": address, "prefixlen": 64}]}])
        return parse_host(f"net 0000:3c:00.0 eth7\naddresses {text}\n", "0000:3c:00.0").address("0000:3c:00.0")

    assert seen("fd00::2") == "fd00::2"
    assert [seen(address) for address in ("fd00::2%eth7", "fd00::2%\nid", "fd00::2%$(id)", "127.0.0.1", "fe80::2")] == [
        None
    ] * 5


def test_devices_whose_name_no_driver_makes_are_not_taken() -> None:
    lines = (
        "pci 0000:3c:00.2 $(id)",
        "pci 0000:3c:00.2 -d",
        "pci {{x}} mlx5_0",
        'rdma [{"ifname": "`id`", "netdev": "net1"}]',
        "physfn 0000:3c:00.2 ../../x",
    )
    probe = parse("env PCIDEVICE_A=0000:3c:00.2,$(id)\n" + "\n".join(lines))
    assert (probe.addresses, probe.pci_devices, probe.links, probe.functions) == (("0000:3c:00.2",), {}, {}, {})
    with pytest.raises(ProbeError, match="no RDMA device on net1"):
        probe.device("net1")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("name",), "{{x}}"),
        (("pciAddress",), "0000:3c:00.0\n"),
        (("vendor",), "$(id)"),
        (("driver",), "mlx5_core\nid"),
        (("linkType",), {"x": "y"}),
        (("Vfs", 0, "name"), "-o"),
        (("Vfs", 0, "guid"), "x"),
        (("Vfs", 0, "pciAddress"), "../x"),
        (("mtu",), "many"),
        (("Vfs",), [{"vfID": number, "pciAddress": "0000:3c:00.2"} for number in range(2)]),
    ],
)
def test_a_node_state_that_a_node_made_up_has_failed(path: tuple[typing.Any, ...], value: typing.Any) -> None:
    interface: dict[str, typing.Any] = {
        "name": "ens1f0np0",
        "pciAddress": "0000:3c:00.0",
        "vendor": "15b3",
        "deviceID": "1021",
        "Vfs": [{"vfID": 0, "pciAddress": "0000:3c:00.2"}],
    }
    place: typing.Any = interface
    for key in path[:-1]:
        place = place[key]
    good = {
        "metadata": {"name": "worker-2"},
        "status": {"interfaces": [copy.deepcopy(interface)], "syncStatus": "Succeeded"},
    }
    place[path[-1]] = value
    bad = {"metadata": {"name": "worker-1"}, "status": {"interfaces": [interface], "syncStatus": "Succeeded"}}
    states = [node_state(item) for item in (bad, good)]
    assert [(state.node, state.sync_status, len(state.interfaces)) for state in states] == [
        ("worker-1", "Failed", 0),
        ("worker-2", "Succeeded", 1),
    ]
    assert "SriovNetworkNodeState worker-1" in states[0].last_sync_error and states[0].last_sync_error.isprintable()


@pytest.mark.parametrize("part", ["spec", "status"])
def test_a_node_state_with_two_entries_about_one_function_has_failed(part: str) -> None:
    interfaces = [{"name": name, "pciAddress": "0000:3c:00.0"} for name in ("ens1f0np0", "ens1f1np1")]
    state = node_state({"metadata": {"name": "worker-1"}, part: {"interfaces": interfaces}})
    assert state.sync_status == "Failed"
    assert (
        state.last_sync_error
        == f"SriovNetworkNodeState worker-1: {part} interfaces: entry 1 has the PCI address of an earlier entry"
    )


def test_paths_of_a_bmc_stay_on_that_bmc() -> None:
    assert PATH.fits("/redfish/v1/Systems/1?$expand=.($levels=1)")
    bad = (
        "//evil.example/x",
        "/\\evil.example/x",
        "https://evil.example/",
        "redfish",
        "/a b",
        "/a\r\nHost: x",
        "/\u202e",
        "/" + "a" * 2000,
        "",
        None,
        7,
    )
    assert not any(map(PATH.fits, bad))


def test_numbers_and_times_that_can_be_true() -> None:
    assert [number_of(value, "x") for value in (7, "7", "-1", 2.0)] == [7, 7, -1, 2]
    refused: tuple[typing.Any, ...] = (
        True,
        1.5,
        "1_000",
        " 7",
        "7\n",
        "\u0667",
        "9" * 5000,
        2**64,
        float("nan"),
        float("inf"),
        None,
        [],
        "--1",
    )
    for value in refused:
        with pytest.raises(ResourceError):
            number_of(value, "x")
    assert moment_of("2026-01-02T03:04:05.123456789Z") is not None
    bad = ("1999-01-01T00:00:00Z", "2026-13-01T00:00:00Z", "2026-01-02T03:04:05Z\n", "2026-01-02", "x" * 1_000_000, 7)
    assert not any(map(moment_of, bad))


def test_addresses_are_written_in_one_way() -> None:
    assert ADDRESS.parse("FD00:0:0::2") == "fd00::2" and HOST_ADDRESS.parse("::ffff:10.0.0.2") == "10.0.0.2"
    assert (
        ADDRESS.parse("010.0.0.1") is None
        and ADDRESS.parse(" 10.0.0.1") is None
        and ADDRESS.parse("10.0.0.1/24") is None
    )


@pytest.mark.parametrize(
    "address",
    [
        "64:ff9b::a00:1",
        "64:ff9b::127.0.0.1",
        "64:ff9b:1::a00:1",
        "::10.0.0.1",
        "::127.0.0.1",
        "2002:a00:1::",
        "2001::a00:1",
    ],
)
def test_an_address_of_a_node_that_leads_to_the_ipv4_address_of_another_one_is_refused(address: str) -> None:
    """By NAT64 on the network of the controller 64:ff9b::a00:1 leads to 10.0.0.1, and nobody saw a twin of it."""
    assert ADDRESS.fits(address) and not HOST_ADDRESS.fits(address)
    assert HOST_ADDRESS.fits("2001:db8::a00:1") and HOST_ADDRESS.fits("fd00::a00:1")
