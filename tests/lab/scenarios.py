# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Faults as data: how each is injected, and the finding that must name it. The tests run them, and docs/faults.md is made from them."""

from __future__ import annotations

import dataclasses
import typing

from .conftest import SETTINGS


@dataclasses.dataclass(frozen=True)
class Injection:
    """A fault of the lab.

    :ivar name: as 'python -m lab fault' takes it
    :ivar target: its options
    :ivar after: text in the playbook's output after which it is injected; empty: before the playbook starts
    :ivar times: how often that text must be there
    """

    name: str
    target: typing.Mapping[str, str] = dataclasses.field(default_factory=dict)
    after: str = ""
    times: int = 1

    @property
    def words(self) -> typing.List[str]:
        return [word for key, value in self.target.items() for word in (f"--{key}", value)]


@dataclasses.dataclass(frozen=True)
class Expected:
    """A finding that must come of it.

    :ivar fault: what is wrong, as an admin would say it
    :ivar subject: of the finding; * stands for any text
    :ivar says: texts that must be in its measured, expected or why
    :ivar remedy: text that must be in its remedy
    """

    fault: str
    check: str
    subject: str
    says: typing.Tuple[str, ...]
    remedy: str
    status: str = "fail"

    @property
    def stage(self) -> str:
        return self.check.partition(".")[0]


@dataclasses.dataclass(frozen=True)
class Scenario:
    """One run of a playbook with one fault, or with several on different subjects.

    :ivar survives: the run must end well all the same
    :ivar how: words for the page, where variables are what injects it
    """

    name: str
    playbook: str
    expected: typing.Tuple[Expected, ...]
    injections: typing.Tuple[Injection, ...] = ()
    variables: typing.Mapping[str, typing.Any] = dataclasses.field(default_factory=dict)
    how: str = ""
    survives: bool = False


@dataclasses.dataclass(frozen=True)
class Elsewhere:
    """A fault that the lab cannot inject, why, and the test that proves its finding from facts."""

    fault: str
    why: str
    finding: str
    test: str


def intent(**changes: typing.Any) -> typing.List[typing.Dict[str, typing.Any]]:
    """The lab's fabrics with keys of ``storage`` replaced; a mapping is merged into the one that is there."""

    def merged(fabric: typing.Dict[str, typing.Any]) -> typing.Dict[str, typing.Any]:
        return {**fabric, **{key: {**fabric[key], **value} if isinstance(value, dict) and key in fabric else value for key, value in changes.items()}}

    return [merged(fabric) if fabric["name"] == "storage" else fabric for fabric in SETTINGS["rdma_fabrics"]]


FABRIC, REACHABILITY, OPERATORS, NETWORK, BANDWIDTH = (f"playbooks/{stage}.yml" for stage in ("fabric", "reachability", "operators", "network", "bandwidth"))
NO_SUCH_NIC = {"vendor": "8086", "device": "1583", "netdev": ["eth1"]}
#: both pods of a measurement run
PODS_READY = "pod is ready"

SCENARIOS: typing.Tuple[Scenario, ...] = (
    Scenario(
        "subnet-managers-killed",
        FABRIC,
        (Expected("no subnet manager: all of them were killed", "fabric.one_master", "compute", (), ""),),
        (Injection("sm-killed", {"fabric": "fabric-1"}),),
    ),
    Scenario(
        "port-unlinked",
        FABRIC,
        (Expected("one port unlinked", "fabric.hcas", "worker-1 compute", ("mlx5_0",), ""),),
        (Injection("link-cut", {"worker": "worker-1", "device": "mlx5_0"}),),
    ),
    Scenario(
        "server-unreachable",
        REACHABILITY,
        (Expected("an ibping server that nothing reaches", "reachability.port", "compute * worker-2 mlx5_1 port 1", (), ""),),
        (Injection("ibping-unreachable", {"worker": "worker-2", "device": "mlx5_1"}),),
    ),
    Scenario(
        "no-nic-selected",
        NETWORK,
        (
            Expected(
                "policy that selects no NIC",
                "network.lint_select",
                "storage worker-1",
                ("nearest is eth1", "deviceID is 10c9, the policy asks for 1583"),
                "",
            ),
        ),
        variables={"rdma_fabrics": intent(select=NO_SUCH_NIC), "rdma_waivers": []},
        how="`select.device: \"1583\"`, which no node has",
    ),
    Scenario(
        "no-nic-selected-webhook",
        NETWORK,
        (
            Expected(
                "policy that selects no NIC, the linter waived",
                "network.policy_accepted",
                "storage SriovNetworkNodePolicy linerate-storage",
                ("no supported NIC is selected by the nicSelector",),
                "",
            ),
        ),
        variables={
            "rdma_fabrics": intent(select=NO_SUCH_NIC),
            "rdma_waivers": [{"check": "network.lint_*", "subject": "storage*", "reason": "the webhook shall judge"}],
        },
        how="the same, with a waiver on `network.lint_*`",
    ),
    Scenario(
        "vf-without-carrier",
        BANDWIDTH,
        (Expected("VF administratively down", "bandwidth.rping", "storage *", (), ""),),
        (Injection("vf-down", {"worker": "worker-2"}, PODS_READY, 2),),
    ),
    Scenario(
        "slow-node",
        BANDWIDTH,
        (Expected("one slow node (its link is limited)", "bandwidth.floor", "storage *", (), ""),),
        (Injection("slow-node", {"worker": "worker-2"}, PODS_READY, 2),),
    ),
    Scenario(
        "slow-direction",
        BANDWIDTH,
        (Expected("one slow pair (one direction is limited)", "bandwidth.floor", "storage worker-2 -> worker-1", (), ""),),
        (Injection("slow-direction", {"worker": "worker-2"}, PODS_READY, 2),),
    ),
    Scenario(
        "rdma-dropped",
        BANDWIDTH,
        (Expected("RDMA dropped in silence: a hang, not an error", "bandwidth.rping", "storage *", (), ""),),
        (Injection("rdma-dropped", {"worker": "worker-2"}, PODS_READY, 2),),
    ),
    Scenario(
        "server-killed",
        BANDWIDTH,
        (Expected("server killed in the middle: a good-looking table, exit code 1", "bandwidth.measured", "storage *", (), ""),),
        (Injection("server-killed", {"worker": "worker-2"}, PODS_READY, 2),),
    ),
    Scenario(
        "pod-evicted",
        BANDWIDTH,
        (Expected("pod evicted in the middle", "bandwidth.measured", "storage *", (), ""),),
        (Injection("pod-evicted", {"worker": "worker-2"}, PODS_READY, 2),),
    ),
    Scenario(
        "image-without-tools",
        BANDWIDTH,
        (Expected("image without the tools", "bandwidth.rping", "storage *", (), ""),),
        variables={"rdma_fabrics": intent(pods={"image": "localhost/sriov-node:1"})},
        how="`pods.image` without rping",
    ),
    Scenario(
        "label-absent",
        OPERATORS,
        (Expected("label of node-feature-discovery absent", "operators.label", "worker-2", (), ""),),
        (Injection("label-absent", {"worker": "worker-2"}),),
    ),
    Scenario(
        "policy-overlap",
        NETWORK,
        (Expected("policy overlap", "network.policy_accepted", "storage *", (), ""),),
        (Injection("foreign-policy"),),
    ),
    Scenario(
        "api-restarted-during-the-wait",
        NETWORK,
        (Expected("API server restarted during the wait", "network.allocatable", "storage *", (), "", status="pass"),),
        (Injection("api-restart", {}, "storage worker-1", 1),),
        variables={"rdma_fabrics": intent(virtual_functions=3)},
        survives=True,
    ),
)

ELSEWHERE: typing.Tuple[Elsewhere, ...] = ()
