# SPDX-License-Identifier: GPL-3.0-or-later

"""Settings of NCCL and UCX that a command or a file hides, and logs that prove nothing."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._check.job.lint import lint
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.expansion import expand_listed, find_settings
from ansible_collections.linerate.rdma.plugins.module_utils._parse.job.torchrun import parse_torchrun
from ansible_collections.linerate.rdma.tests.unit.check.job_world import WORLD, objects
from ansible_collections.linerate.rdma.tests.unit.limit import bounded

Resource = dict[str, typing.Any]


def shown(
    script: str = "", env: typing.Optional[dict[str, str]] = None, mount: str = "", fabric: str = "roce"
) -> set[tuple[str, str, str]]:
    """Return the findings that are no pass on a job whose pods differ in a command, in variables or in a mount."""
    made = objects(fabric=fabric)
    for replica in made[0]["spec"]["pytorchReplicaSpecs"].values():
        spec = replica["template"]["spec"]
        (container,) = spec["containers"]
        container["env"] += [{"name": name, "value": value} for name, value in (env or {}).items()]
        if script:
            container["command"] = ["bash", "-c", script]
        if mount:
            spec["volumes"].append({"name": "more", "configMap": {"name": "more"}})
            container["volumeMounts"].append({"name": "more", "mountPath": mount, "subPath": "more"})
    found = lint(made, made, WORLD)
    return {
        (item.check, item.status, item.measured)
        for item in found
        if item.status != "pass" and item.check != "job.added"
    }


@pytest.mark.parametrize(
    ("script", "env"),
    [
        ("D=1; export NCCL_IB_DISABLE=$D; torchrun train.py", {}),
        ("export NCCL_IB_DISABLE=${OFF}; torchrun train.py", {"OFF": "1"}),
        ('export NCCL_IB_DISABLE="${OFF:-1}"; torchrun train.py', {}),
        (": ${NCCL_IB_DISABLE:=1}; export NCCL_IB_DISABLE; torchrun train.py", {}),
        ("export NCCL_IB_DISABLE=$(OFF); torchrun train.py", {"OFF": "1"}),
        ("", {"OFF": "1", "NCCL_IB_DISABLE": "$(OFF)"}),
    ],
)
def test_a_value_that_the_object_determines_is_read(script: str, env: dict[str, str]) -> None:
    assert ("job.transport", "fail", "NCCL_IB_DISABLE=1") in shown(script, env)


@pytest.mark.parametrize(
    ("script", "env"),
    [
        ("export NCCL_IB_DISABLE=${NCCL_IB_DISABLE:-0}; torchrun train.py", {}),
        (": ${NCCL_IB_DISABLE:=1}; torchrun train.py", {"NCCL_IB_DISABLE": "0"}),
        ("D=0; export NCCL_IB_DISABLE=$D; torchrun train.py", {}),
    ],
)
def test_a_default_that_permits_rdma_passes(script: str, env: dict[str, str]) -> None:
    assert shown(script, env) == set()


@pytest.mark.parametrize("name", ["NCCL_IB_DISABLE", "NCCL_NET", "UCX_TLS", "UCX_NET_DEVICES"])
def test_a_value_that_only_a_shell_computes_is_unknown(name: str) -> None:
    assert shown(f"export {name}=$(choose); torchrun train.py") == {
        ("job.transport", "unknown", f"value of {name} not read")
    }
    # what the command sets last counts
    assert shown(f"export {name}=$(choose); unset {name}; {name}= torchrun train.py") == set()


def test_interfaces_that_only_a_shell_computes_are_not_a_pass() -> None:
    assert shown("export NCCL_SOCKET_IFNAME=$(first_interface); torchrun train.py") == {
        ("job.interfaces", "warn", "value not read")
    }


def test_variables_of_ucx_in_a_command_count() -> None:
    assert shown("export UCX_TLS=tcp UCX_NET_DEVICES=eth0; torchrun train.py") == {
        ("job.transport", "fail", "UCX_TLS=tcp"),
        ("job.transport", "fail", "UCX_NET_DEVICES=eth0"),
    }


@pytest.mark.parametrize(
    ("env", "mount"), [({"NCCL_CONF_FILE": "/etc/x.conf"}, ""), ({}, "/etc/nccl.conf"), ({}, "/root/.nccl.conf")]
)
def test_a_file_with_variables_of_nccl_is_not_a_pass(env: dict[str, str], mount: str) -> None:
    assert shown(env=env, mount=mount) == {("job.nccl_variables", "warn", "variables of a file not read")}
    assert shown(mount="/etc/nccl.d/x.conf") == set()


@pytest.mark.parametrize(
    ("value", "harm"), [("LOC", True), ("0", True), ("00", True), ("NVL", False), ("1", False), ("5", False)]
)
def test_a_level_of_p2p_that_disables_nvlink(value: str, harm: bool) -> None:
    expected = {("job.transport", "warn", f"NCCL_P2P_LEVEL={value}")} if harm else set()
    assert shown(env={"NCCL_P2P_LEVEL": value}, fabric="compute") == expected


@pytest.mark.parametrize(
    ("parts", "proves"),
    [
        ("INIT", True),
        ("init, net", True),
        ("ALL", True),
        ("^COLL", True),
        ("^NET", True),
        ("COLL", False),
        ("NET,ENV", False),
        ("^INIT,NET", False),
        ("^ALL", False),
    ],
)
def test_a_log_without_the_ranks_proves_nothing(parts: str, proves: bool) -> None:
    expected = {("job.evidence", "warn", f"NCCL_DEBUG INFO, NCCL_DEBUG_SUBSYS {parts}")}
    assert shown(env={"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": parts}) == (set() if proves else expected)


def test_a_log_that_is_discarded_proves_nothing() -> None:
    assert shown(env={"NCCL_DEBUG_FILE": "/dev/null"}) == {("job.evidence", "warn", "NCCL_DEBUG_FILE /dev/null")}
    assert shown(env={"NCCL_DEBUG_FILE": "/tmp/nccl.%h.%p"}) == set()


@pytest.mark.parametrize(
    "name",
    ["NCCL_TESTS_SPLIT_MASK", "NCCL_TESTS_DEVICE", "NCCL_FASTRAK_NUM_FLOWS", "NCCL_SHIMNET_DISABLE", "NCCL_LIB_DIR"],
)
def test_variables_that_other_software_reads_pass(name: str) -> None:
    assert shown(env={name: "1"}) == set()


@pytest.mark.parametrize(
    ("hcas", "value"),
    [
        (("mlx5_0", "mlx5_1"), "^mlx5"),
        (("bnxt_re0", "bnxt_re1"), "^bnxt_re"),
        (("ionic_0", "ionic_1"), "^ionic_"),
        (("irdma0", "irdma1"), "^irdma"),
        (("rocep24s0", "rocep25s0"), "^rocep"),
        (("rocep24s0", "rocep25s0"), "^roce"),
    ],
)
def test_a_list_that_excludes_all_hcas_of_a_driver_is_refused(hcas: tuple[str, ...], value: str) -> None:
    made = objects(fabric="roce", environment={"NCCL_IB_HCA": value})
    world = dataclasses.replace(WORLD, devices={"worker-1": hcas, "worker-2": hcas})
    assert {item.status for item in lint(made, made, world) if item.check == "job.hcas"} == {"fail"}
    # the names of the HCAs are not known
    assert {item.status for item in lint(made, made, WORLD) if item.check == "job.hcas"} == {"warn"}


def test_a_list_that_excludes_one_hca_passes() -> None:
    made = objects(fabric="roce", environment={"NCCL_IB_HCA": "^rocep24s0"})
    world = dataclasses.replace(WORLD, devices={"worker-1": ("rocep24s0", "rocep25s0")})
    assert {item.status for item in lint(made, made, world) if item.check == "job.hcas"} == {"pass"}


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("A=1", "1"),
        ("A='$B'", "$B"),
        ('A="x$B-${B}y"', "xb-by"),
        ("A=${B:-c}", "b"),
        ("A=${C:-c}", "c"),
        ("A=${E:-c}", "c"),
        ("A=${E-c}", ""),
        ("A=${C}", None),
        ("A=$U", None),
        ("A=`date`", None),
        ("A=$(date)", None),
        ("A=$((1 + 1))", None),
        ("A=${B%x}", None),
        ("B=2 A=$B", "2"),
    ],
)
def test_values_of_a_command(words: str, value: typing.Optional[str]) -> None:
    assert dict(find_settings(words, {"B": "b", "E": "", "U": None}))["A"] == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("$(B)/$(B)", "b/b"), ("$(C)", "$(C)"), ("$$(B)", "$(B)"), ("$(U)", None), ("$B", "$B"), ("", "")],
)
def test_values_that_kubernetes_expands(text: str, value: typing.Optional[str]) -> None:
    assert expand_listed(text, {"B": "b", "U": None}) == value


@pytest.mark.parametrize("text", [" torchrun " * 20_000, "${A:=" * 40_000, "A=${B:-" * 20_000, "A=1 " * 20_000])
def test_a_long_command_costs_little(text: str) -> None:
    with bounded(6):
        find_settings(text, {"B": "b"})
        parse_torchrun(text, {}, "command")
