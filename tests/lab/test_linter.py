# SPDX-License-Identifier: GPL-3.0-or-later

"""The linter against the operator's own webhook: it refuses what the webhook refuses, in the same words, and nothing
else."""

from __future__ import annotations

import itertools
import json
import random
import sys
import typing

from .conftest import ROOT, Lab

LABEL = {"feature.node.kubernetes.io/network-sriov.capable": "true"}
#: of a policy that is good in the lab: values that a field may have, the good one first
FIELDS: typing.Mapping[str, typing.Sequence[typing.Any]] = {
    "resourceName": ("igb_lint", "igb_storage", "igb-lint", "igb.lint", ""),
    "nodeSelector": (LABEL, {"kubernetes.io/hostname": "worker-1"}, {"kubernetes.io/hostname": "nobody"}),
    "numVfs": (4, 0, 1, 7, 8, 129),
    "vendor": ("8086", None, "15b3", "1af4"),
    "deviceID": ("10c9", None, "10ca", "1583"),
    "rootDevices": (None, ["0000:01:00.0"], ["0000:99:00.0"], ["0000:99:00.0", "0000:01:00.0"]),
    "pfNames": (
        None,
        ["eth1"],
        ["eth9"],
        ["eth1#0-3"],
        ["eth1#4-6"],
        ["eth1#0-9"],
        ["eth1#3-0"],
        ["eth1#x-3"],
        ["eth1#2"],
        ["eth1#0-1#2-3"],
        ["eth1#"],
    ),
    "deviceType": ("netdevice", "vfio-pci"),
    "isRdma": (False, True),
    "linkType": ("ETH", None, "IB", "ib"),
    "eSwitchMode": (None, "legacy", "switchdev"),
    "vdpaType": (None, "virtio"),
    "externallyManaged": (False, True),
    "excludeTopology": (False, True),
    "mtu": (None, 1500, 20000),
}
PAIRS = 250


def spec(**values: typing.Any) -> dict[str, typing.Any]:
    fields = {key: values.get(key, choices[0]) for key, choices in FIELDS.items()}
    nic = {key: fields.pop(key) for key in ("vendor", "deviceID", "rootDevices", "pfNames")}
    return {
        **{key: value for key, value in fields.items() if value is not None},
        "nicSelector": {key: value for key, value in nic.items() if value is not None},
    }


def mutations() -> list[dict[str, typing.Any]]:
    """The good policy, each single change of it, and some of the pairs of changes; the same ones each time."""
    single = [{key: value} for key, choices in FIELDS.items() for value in choices[1:]]
    pairs = [{**a, **b} for a, b in itertools.combinations(single, 2) if a.keys() != b.keys()]
    return [
        spec(),
        *(spec(**change) for change in single),
        *(spec(**change) for change in random.Random(4).sample(pairs, PAIRS)),
    ]


def test_the_linter_and_the_webhook_agree(lab: Lab) -> None:
    path = lab.folder / "specs.json"
    path.write_text(json.dumps(mutations()))
    program = str(ROOT / "tests/lab/judge_policies.py")
    done = lab.command(
        "exec",
        "env",
        f"PYTHONPATH={ROOT / 'build/collections'}",
        sys.executable,
        program,
        ".lab/pki/admin.kubeconfig",
        str(path),
    )
    assert done.returncode == 0, done.stderr
    verdicts = json.loads(done.stdout)
    refused = [verdict for verdict in verdicts if verdict["refusal"]]
    assert 0 < len(refused) < len(verdicts)
    wrong = [item for item in verdicts if bool(item["refusal"]) != bool(item["objections"])]
    assert not wrong, wrong
    other_words = [item for item in refused if not any(text in item["refusal"] for text in item["objections"])]
    assert not other_words, other_words
