# SPDX-License-Identifier: GPL-3.0-or-later

"""Selectors of claims against the devices of ResourceSlices: what fits, what does not, and what can't be told."""

from __future__ import annotations

import contextlib
import dataclasses
import typing

import hypothesis
import hypothesis.strategies as some
import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.job.devices.choice import choose
from ansible_collections.linerate.rdma.plugins.module_utils._check.job.devices.selectors import (
    check_selectors,
    check_totals,
)
from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import ParseError
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.device_claims import (
    DeviceAlternative,
    DeviceClaim,
    DeviceClaims,
    DeviceClass,
    DeviceMatch,
    DeviceRequest,
    DeviceSlice,
    SliceDevice,
)
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.dra.device_selectors import parse

ROOT = "resource.kubernetes.io/pcieRoot"


def nic(**changes: typing.Any) -> SliceDevice:
    attributes: dict[str, typing.Any] = {
        "dra.net/rdma": True,
        "dra.net/ifName": "eth1",
        "dra.net/numaNode": 1,
        "dra.net/release": None,
        ROOT: "a",
    }
    attributes.update({f"dra.net/{name}" if name != "root" else ROOT: value for name, value in changes.items()})
    return SliceDevice({name: value for name, value in attributes.items() if value != "absent"})


def slices(*nodes: typing.Sequence[SliceDevice], driver: str = "dra.net") -> tuple[DeviceSlice, ...]:
    return tuple(
        DeviceSlice(driver, f"worker-{number}", 1, f"worker-{number}", len(devices), tuple(devices))
        for number, devices in enumerate(nodes, 1)
    )


def known(*parts: DeviceSlice) -> DeviceClaims:
    classes = (
        DeviceClass("dranet", ("dra.net",), selectors=('device.driver == "dra.net"',)),
        DeviceClass("gpu", ("gpu.nvidia.com",), selectors=("device.driver == 'gpu.nvidia.com'",)),
        DeviceClass("numa0", selectors=('device.attributes["dra.net"].numaNode == 0',)),
    )
    return DeviceClaims(classes=classes, unread=False, slices=parts)


#: expression: whether it fits the NIC; None where it can't be told
EXPRESSIONS: typing.Mapping[str, typing.Optional[bool]] = {
    'device.driver == "dra.net"': True,
    'device.driver != "dra.net"': False,
    'device.attributes["dra.net"].rdma': True,
    "!device.attributes['dra.net'].rdma": False,
    "!!device.attributes['dra.net'].rdma": True,
    'device.attributes["dra.net"].rdma == true && device.attributes["dra.net"].ifName == "eth1"': True,
    'device.attributes["dra.net"]["ifName"] in ["eth0", "eth1"]': True,
    'device.attributes["dra.net"].ifName in ["eth0"]': False,
    'device.attributes["dra.net"].ifName == "eth0" || device.attributes["dra.net"].numaNode == 1': True,
    'device.attributes["dra.net"].numaNode >= 1 && device.attributes["dra.net"].numaNode < 2': True,
    'device.attributes["dra.net"].numaNode == -1': False,
    'device.attributes["dra.net"].numaNode == "1"': False,
    'device.attributes["dra.net"].ifName.startsWith("eth")': True,
    'device.attributes["dra.net"].ifName.endsWith("0")': False,
    "device.attributes['dra.net'].ifName.lowerAscii().contains('th')": True,
    '"ifName" in device.attributes["dra.net"]': True,
    '"alias" in device.attributes["dra.net"]': False,
    '"alias" in device.attributes["dra.net"] && device.attributes["dra.net"].alias == "a"': False,
    'has(device.attributes["dra.net"].alias) && device.attributes["dra.net"].alias == "a"': False,
    # lacks it, which one part that decides outweighs
    'device.attributes["dra.net"].alias == "a"': False,
    'device.attributes["dra.net"].alias == "a" || device.attributes["dra.net"].rdma': True,
    'device.attributes["dra.net"].alias == "a" && !device.attributes["dra.net"].rdma': False,
    f'device.attributes["resource.kubernetes.io"].{ROOT.rpartition("/")[2]} == "a"': True,
    "true": True,
    # can't be told
    'device.attributes["dra.net"].ifName.matches("eth[0-9]+")': None,
    'device.attributes["dra.net"].release.compareTo(semver("1.0.0")) >= 0': None,
    'device.attributes["dra.net"].release == "1.0.0"': None,
    'device.capacity["dra.net"].memory.compareTo(quantity("10Gi")) >= 0': None,
    'device.capacity["dra.net"].memory == 10Gi': None,
    'device.attributes["dra.net"].rdma ? true : false': None,
    'device.attributes["dra.net"].?alias.orValue("a") == "a"': None,
    'cel.bind(dra, device.attributes["dra.net"], dra.rdma)': None,
    '["a"].exists(x, x == device.attributes["dra.net"].ifName)': None,
    "device.attributes['dra.net'].numaNode + 1 == 2": None,
    "device.attributes['dra.net'].ifName": None,
    "a.b": None,
    "": None,
    "(": None,
    # one part that decides outweighs what can't be told
    'device.attributes["dra.net"].ifName.matches("a") && !device.attributes["dra.net"].rdma': False,
    'device.attributes["dra.net"].ifName.matches("a") || device.attributes["dra.net"].rdma': True,
    'device.attributes["dra.net"].ifName.matches("a") && device.attributes["dra.net"].rdma': None,
}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expression_fits_a_device_or_not_or_can_not_be_told(expression: str) -> None:
    found = choose(DeviceAlternative("dranet", 1, (expression,)), known(*slices([nic()])))
    assert found is not None
    counts = len(found.sure.get("worker-1", ())), len(found.doubted.get("worker-1", ()))
    assert counts == {True: (1, 0), False: (0, 0), None: (0, 1)}[EXPRESSIONS[expression]]
    assert found.unevaluated == ((expression,) if EXPRESSIONS[expression] is None else ())


def claim(*requests: DeviceRequest, matches: typing.Sequence[DeviceMatch] = ()) -> DeviceClaim:
    return DeviceClaim("training/a", True, requests, tuple(matches))


def request(*selectors: str, count: int = 1, name: str = "nic", of: str = "dranet") -> DeviceRequest:
    return DeviceRequest(name, (DeviceAlternative(of, count, selectors),))


RDMA = 'device.attributes["dra.net"].rdma == true'


@pytest.mark.parametrize(
    ("asked", "there", "statuses"),
    [
        (request(RDMA, count=2), slices([nic(), nic()], [nic()]), []),
        # on two nodes together there would be enough
        (request(RDMA, count=2), slices([nic(), nic(rdma=False)], [nic()]), ["fail"]),
        (request(RDMA, 'device.attributes["dra.net"].ifName == "eth9"'), slices([nic()]), ["fail"]),
        (request('device.attributes["dra.net"].ifName.matches("eth")'), slices([nic()]), ["unknown"]),
        # what can be told is enough to refuse it
        (request('device.attributes["dra.net"].ifName.matches("eth")', count=2), slices([nic()]), ["fail"]),
        (request(RDMA), slices([nic(rdma="absent")]), ["fail"]),
        (request(RDMA), slices([nic(rdma="absent"), nic()]), ["warn"]),
        # nothing but their number is known
        (request(RDMA), (DeviceSlice("dra.net", "a", 1, "worker-1", 2),), ["unknown"]),
        (request(), (DeviceSlice("dra.net", "a", 1, "worker-1", 2),), []),
        (request(RDMA, of="other"), slices([nic(rdma=False)]), []),
        # its class alone leaves none
        (request(of="numa0"), slices([nic()]), ["fail"]),
        (request(of="numa0"), slices([nic(numaNode=0)]), []),
        # of no node by name
        (request(RDMA, count=2), (DeviceSlice("dra.net", "a", 1, "", 1, (nic(),)), *slices([nic()])), []),
        (request(RDMA), slices([dataclasses.replace(nic(), tainted=True)]), ["fail"]),
        (
            DeviceRequest("nic", (DeviceAlternative("dranet", 1, (RDMA,), True),)),
            slices([dataclasses.replace(nic(), tainted=True)]),
            [],
        ),
        # one of two ways is enough
        (
            DeviceRequest("nic", (DeviceAlternative("dranet", 9, (RDMA,)), DeviceAlternative("dranet", 1, (RDMA,)))),
            slices([nic()]),
            [],
        ),
    ],
)
def test_request_against_the_devices_of_the_nodes(
    asked: DeviceRequest, there: tuple[DeviceSlice, ...], statuses: list[str]
) -> None:
    found = list(check_selectors("job rdma", claim(asked), known(*there)))
    assert [item.status for item in found] == statuses
    assert all(item.why and "kubectl get resourceslices" in item.remedy for item in found if item.status != "warn")


def test_finding_names_the_selector_and_the_attribute_that_lacks() -> None:
    (found,) = check_selectors("job rdma", claim(request(RDMA)), known(*slices([nic(rdma="absent")])))
    assert found.measured == "at most 0 of 1 requested devices on a node"
    assert (
        RDMA in found.why
        and "Some devices do not have dra.net/rdma" in found.why
        and '"NAME" in device.attributes' in found.remedy
    )


@pytest.mark.parametrize(
    ("first", "second", "fails"),
    [
        (request(RDMA), request(RDMA), False),
        (request(RDMA, count=2), request(RDMA), True),
        # other devices
        (request(RDMA, count=2), request(RDMA, name="gpu", of="gpu"), False),
        (request(RDMA, count=2), request(), False),
        # told of the request itself
        (request(RDMA, count=3), request(RDMA), False),
        # nobody knows which way is taken
        (
            request(RDMA, count=2),
            DeviceRequest("nic", (DeviceAlternative("dranet", 1, (RDMA,)), DeviceAlternative("gpu"))),
            False,
        ),
    ],
)
def test_claims_of_one_pod_are_on_one_node(first: DeviceRequest, second: DeviceRequest, fails: bool) -> None:
    there = known(*slices([nic(), nic()], [nic(), nic()]))
    found = list(check_totals("job", [("a", claim(first)), ("b", claim(second))], there))
    assert [item.status for item in found] == (["fail"] if fails else [])
    assert all("a/nic, b/nic" in item.why and item.measured == "at most 2 of 3 devices on a node" for item in found)


GPU = SliceDevice({ROOT: "a"})


@pytest.mark.parametrize(
    ("nics", "gpus", "words"),
    [
        ([[nic()]], [[GPU]], ""),
        # on AKS the NICs have none, and so it is never met
        ([[nic(root="absent")]], [[GPU]], "no device that request nic can use has this attribute"),
        ([[nic(root="b")]], [[GPU]], "no node has enough"),
        ([[nic(root="b")], [nic()]], [[GPU], [SliceDevice({ROOT: "b"})]], "no node has enough"),
        ([[nic(root="b"), nic()]], [[GPU]], ""),
        # a list of values, as newer drivers have it, may have any
        ([[nic(root=None)]], [[GPU]], ""),
    ],
)
def test_constraint_on_one_value(
    nics: typing.Sequence[typing.Sequence[SliceDevice]], gpus: typing.Sequence[typing.Sequence[SliceDevice]], words: str
) -> None:
    asked = claim(request(), request(name="gpu", of="gpu"), matches=[DeviceMatch(ROOT)])
    found = list(check_selectors("job rdma", asked, known(*slices(*nics), *slices(*gpus, driver="gpu.nvidia.com"))))
    assert [item.status for item in found] == (["fail"] if words else [])
    assert all(words in item.why and item.expected == f"devices with the same {ROOT}" for item in found)
    # one that names other requests is not about these
    other = dataclasses.replace(asked, matches=(DeviceMatch(ROOT, ("else",)),))
    assert list(check_selectors("job", other, known(*slices(*nics), *slices(*gpus, driver="gpu.nvidia.com")))) == []


@hypothesis.given(some.text(alphabet='device.attributes["a"]&|!=<>()in?:-+,\' 019truefalsehas', max_size=120))
def test_any_expression_is_parsed_or_refused(text: str) -> None:
    with contextlib.suppress(ParseError):
        parse(text)
    found = choose(DeviceAlternative("dranet", 1, (text,)), known(*slices([nic()])))
    assert found is not None and found.most(True) <= 1


def test_deep_and_long_expressions_are_refused() -> None:
    for text in ("(" * 1000 + "true" + ")" * 1000, "true && " * 1000 + "true", "[" * 100, "!" * 10_000):
        with pytest.raises(ParseError):
            parse(text)
