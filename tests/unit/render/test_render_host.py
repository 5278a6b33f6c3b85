# SPDX-License-Identifier: GPL-3.0-or-later

"""What hosts need, against golden files. LINERATE_UPDATE_GOLDEN=1 writes them anew."""

from __future__ import annotations

import base64
import importlib
import os
import pathlib
import re
import typing

import hypothesis
import hypothesis.strategies as some
import pytest
import yaml
from ansible.errors import AnsibleFilterError

from ansible_collections.linerate.rdma.plugins.filter.host import make_containerd_drop_in, render_host
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.host_intent import HostNeeds, Kubelet, Memlock
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.intent import ClusterIntent, Fabric, Select
from ansible_collections.linerate.rdma.plugins.module_utils._model.intent.networks import Ipam, Network
from ansible_collections.linerate.rdma.plugins.module_utils._model.kubernetes.host import DROP_IN
from ansible_collections.linerate.rdma.plugins.module_utils._render.measurement.memlock import render_memlock_pod
from ansible_collections.linerate.rdma.plugins.module_utils._render.node import host

GOLDEN = pathlib.Path(__file__).parent.parent / "golden"


def same_as_golden(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("LINERATE_UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def file_of(config: typing.Any) -> str:
    (file,) = config["spec"]["config"]["storage"]["files"]
    head, _comma, body = file["contents"]["source"].partition(",")
    assert head == "data:text/plain;charset=utf-8;base64" and file["mode"] == 0o644
    return base64.b64decode(body).decode()


def test_machine_configs() -> None:
    needs = HostNeeds(Memlock("machine_config", limit_gib=64), ("intel_iommu=on", "iommu=pt"), machine_role="gpu")
    same_as_golden("machine-configs.golden", yaml.safe_dump_all(host.render_host_configs(needs), sort_keys=False))


def test_kubelet_configs() -> None:
    whole = Kubelet("single-numa-node", "pod", "static", "0-1,32", {"linerate.rdma/pool": "gpu"})
    made = [
        config
        for needs in (HostNeeds(kubelet=whole, machine_role="gpu"), HostNeeds(kubelet=Kubelet("restricted")))
        for config in host.render_host_configs(needs)
    ]
    same_as_golden("kubelet-configs.golden", yaml.safe_dump_all(made, sort_keys=False))


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("topology_manager_policy", ("none", "best-effort", "restricted", "single-numa-node")),
        ("topology_manager_scope", ("container", "pod")),
        ("cpu_manager_policy", ("none", "static")),
        ("reserved_system_cpus", ("0", "0-1,32")),
        ("pool_labels", ({"a": "b"}, {"a": "b", "c": ""})),
    ],
)
def test_each_setting_of_the_kubelet_shows_in_its_object_and_nowhere_else(
    field: str, values: typing.Sequence[typing.Any]
) -> None:
    def made(**settings: typing.Any) -> typing.Any:
        (config,) = host.render_host_configs(HostNeeds(kubelet=Kubelet(**settings)))
        return config

    plain, base = made(), made(**{field: values[0]})
    assert plain["spec"]["kubeletConfig"] == {} and plain["metadata"] == base["metadata"]
    others = [made(**{field: value}) for value in values]
    assert len({str(config) for config in (plain, *others)}) == 1 + len(values)
    assert sum(len(config["spec"]["kubeletConfig"]) for config in others) == (
        0 if field == "pool_labels" else len(values)
    )


def test_files_are_readable_and_in_bytes() -> None:
    (config,) = host.render_host_configs(HostNeeds(Memlock("machine_config", limit_gib=64)))
    same_as_golden("crio-memlock.golden", file_of(config))
    same_as_golden(
        "containerd-memlock.golden", host.make_containerd_drop_in(Memlock("containerd", limit_gib=64), "gpu")
    )


def test_other_limits_of_crio_are_kept() -> None:
    memlock = Memlock("machine_config", limit_gib=1, ulimits=("nofile=1048576:1048576", "core=-1"))
    limits = importlib.import_module("tomllib").loads(host.crio_config(memlock))["crio"]["runtime"]["default_ulimits"]
    assert limits == ["memlock=1073741824:1073741824", "nofile=1048576:1048576", "core=-1"]


def test_unlimited_is_said_as_each_runtime_says_it() -> None:
    memlock = Memlock("machine_config", unlimited=True)
    assert '"memlock=-1:-1"' in host.crio_config(memlock)
    assert host.make_containerd_drop_in(memlock, "gpu").endswith("\n# intent: gpu\n[Service]\nLimitMEMLOCK=infinity\n")


def test_the_cluster_policy_is_patched_and_never_made_ours() -> None:
    same_as_golden(
        "cluster-policy.golden", yaml.safe_dump(host.render_cluster_policy("gpu-cluster-policy"), sort_keys=False)
    )


def test_the_pod_that_proves_it() -> None:
    fabric = Fabric(
        "compute", "sriov_infiniband", Network("test", "net"), Select(1), 8, "mlx", Ipam("whereabouts", "10.0.0.0/24")
    )
    made = render_memlock_pod(fabric, ClusterIntent(), "worker-1", Memlock("containerd", limit_gib=8, proof_mib=64))
    same_as_golden("memlock-pod.golden", yaml.safe_dump(made, sort_keys=False))


@hypothesis.given(some.integers(1, 1 << 20))
def test_any_limit_is_the_same_in_both_runtimes(gib: int) -> None:
    memlock = Memlock("machine_config", limit_gib=gib)
    assert f"memlock={gib << 30}:{gib << 30}" in host.crio_config(memlock)
    assert f"LimitMEMLOCK={gib << 30}\n" in host.make_containerd_drop_in(memlock, "gpu")


@pytest.mark.parametrize(
    ("cluster", "kinds", "drop_in"),
    [
        ({}, [], ""),
        (None, [], ""),
        ({"host": {"memlock": {"by": "machine_config", "limit_gib": 8}}}, ["MachineConfig"], ""),
        ({"host": {"memlock": {"by": "containerd", "limit_gib": 8}}}, [], "[Service]\nLimitMEMLOCK=8589934592\n"),
        ({"host": {"kernel_arguments": ["iommu=pt"]}}, ["MachineConfig"], ""),
        ({"host": {"kubelet": {"cpu_manager_policy": "static"}}}, ["KubeletConfig"], ""),
    ],
)
def test_doors(cluster: typing.Any, kinds: list[str], drop_in: str) -> None:
    assert [item["object"]["kind"] for item in render_host(cluster)] == kinds
    made = make_containerd_drop_in(cluster)
    assert (made["path"], made["used"], made["refusal"], made["stays"]) == (DROP_IN, False, "", "")
    assert made["content"].partition("# intent: default-8c680ee4\n")[2] == drop_in


@pytest.mark.parametrize(
    ("needs", "path"),
    [({"memlock": {"by": "docker"}}, "memlock.by"), ({"kubelet": {"cpu_manager_policy": "dynamic"}}, "kubelet.cpu")],
)
def test_a_wrong_intent_is_refused_with_its_path(needs: typing.Any, path: str) -> None:
    with pytest.raises(AnsibleFilterError, match=re.escape(f"rdma_cluster.host.{path}")):
        render_host({"host": needs})


def test_a_drop_in_of_another_intent_is_used_or_refused_and_stays() -> None:
    memlock: dict[str, typing.Any] = {"by": "containerd", "limit_gib": 8}
    mine, theirs = ({"intent_name": name, "host": {"memlock": memlock}} for name in ("compute", "storage"))
    text = make_containerd_drop_in(theirs)["content"]
    equal = make_containerd_drop_in(mine, text)
    assert (equal["used"], equal["refusal"], equal["stays"]) == (True, "", "of intent storage")
    other = make_containerd_drop_in({"intent_name": "compute", "host": {"memlock": {**memlock, "limit_gib": 4}}}, text)
    assert not other["used"] and f"{DROP_IN} belongs to the intent 'storage'" in other["refusal"]
    assert f"rm -f {DROP_IN}. Then run stage host again." in other["refusal"]
    assert f"for file in {DROP_IN}; do" in other["refusal"] and "/# intent: compute/' $file" in other["refusal"]
    # a teardown that was lost after it emptied the file
    assert make_containerd_drop_in({"intent_name": "compute"}, equal["emptied"])["stays"] == ""
    assert make_containerd_drop_in(theirs, equal["emptied"])["stays"] == "of intent compute"


def test_a_drop_in_of_an_earlier_release_belongs_to_an_intent_that_asks_for_it() -> None:
    text = "[Service]\nLimitMEMLOCK=1\n"
    asks = {"intent_name": "compute", "host": {"memlock": {"by": "containerd", "limit_gib": 8}}}
    found = make_containerd_drop_in(asks, text)
    assert (found["used"], found["refusal"], found["stays"]) == (False, "", "")
    assert make_containerd_drop_in({"intent_name": "compute"}, text)["stays"] == "without an intent"


def test_two_default_intents_of_other_nodes_have_files_of_their_own() -> None:
    memlock: dict[str, typing.Any] = {"by": "containerd", "limit_gib": 8}
    one, two = ({"node_selector": {"kind": kind}, "host": {"memlock": memlock}} for kind in "ab")
    assert make_containerd_drop_in(two, make_containerd_drop_in(one)["content"])["stays"].startswith(
        "of intent default-"
    )
