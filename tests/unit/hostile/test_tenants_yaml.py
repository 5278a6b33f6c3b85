# SPDX-License-Identifier: GPL-3.0-or-later

"""YAML in ConfigMaps, which tenants may have made: DaemonSets are known by what they run, in whatever namespace they
are."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes import jobs
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.cluster_reader import Listing
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.yaml_documents import (
    MOST_YAML,
    read_yaml,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators import feature_discovery
from ansible_collections.linerate.rdma.tests.unit.fake_api import Paged, Resource
from ansible_collections.linerate.rdma.tests.unit.limit import bounded

LEVELS = 7
BOMB = "\n".join(
    (
        "l0: &l0 [lol]",
        *(f"l{level}: &l{level} [{', '.join([f'*l{level - 1}'] * 9)}]" for level in range(1, LEVELS)),
        f"sources: {{pci: {{deviceClassWhitelist: *l{LEVELS - 1}}}}}",
    )
)
WORKER: Resource = {
    "kind": "DaemonSet",
    "metadata": {
        "name": "nfd-worker",
        "namespace": "tenant",
        "uid": "6e3f9f0c-5a0e-4d0c-8f0b-0e8c1f6d2a11",
        "generation": 1,
    },
    "spec": {
        "template": {
            "spec": {
                "containers": [{"name": "worker", "image": "example.com/worker:1", "command": ["nfd-worker"]}],
                "volumes": [{"name": "config", "configMap": {"name": "config"}}],
            }
        }
    },
    "status": {"observedGeneration": 1},
}


class Api(Paged):
    def __init__(self, text: str) -> None:
        self.text = text

    def list(self, kind: str, *_where: str) -> Listing:
        return Listing((WORKER,) if kind == "DaemonSet" else (), "1")

    def get(self, kind: str, namespace: str, name: str) -> Resource:
        return {
            "kind": kind,
            "metadata": {"name": name, "namespace": namespace},
            "data": {"nfd-worker.conf": self.text},
        }


@pytest.mark.parametrize(
    "text",
    [
        BOMB,
        # without aliases
        f"sources: {{pci: {{deviceClassWhitelist: {'[' * 200}{']' * 200}}}}}",
        "a:\n" + "- {}\n" * (MOST_YAML // 5 + 1),
    ],
)
def test_a_configuration_that_would_fill_the_memory_is_unread_in_a_few_words(text: str) -> None:
    with bounded(1):
        (found,) = feature_discovery.observe(typing.cast(typing.Any, Api(text)))
    assert found.config is None and 0 < len(found.unread) < 300


def test_the_default_is_read() -> None:
    (found,) = feature_discovery.observe(
        typing.cast(typing.Any, Api("sources:\n  pci:\n    deviceClassWhitelist: ['0207']\n"))
    )
    assert found.config is not None and found.config.classes == ("0207",) and not found.unread


def test_what_is_refused_says_why() -> None:
    with pytest.raises(RdmaError, match="alias"):
        read_yaml("a: &a [1]\nb: *a\n")
    with pytest.raises(RdmaError, match="at most"):
        read_yaml("#" * (MOST_YAML + 1))


def test_a_key_is_text() -> None:
    assert read_yaml("{1: a, on: b, .nan: c}") == {"1": "a", "on": "b", ".nan": "c"}
    with pytest.raises(RdmaError, match="a mapping key is a list or a mapping"):
        read_yaml("? {=: 5}\n: a\n")


@pytest.mark.parametrize(
    "text", ["a: !!bool \"{{ lookup('pipe', 'id') }}\"", "a: !!int ''", "a: !!timestamp x", "a: 0x_"]
)
def test_a_tag_in_the_configuration_of_a_tenant_is_an_error_of_that_worker(text: str) -> None:
    (found,) = feature_discovery.observe(typing.cast(typing.Any, Api(text)))
    assert found.config is None and found.unread.startswith("not valid YAML: ") and "lookup" not in found.unread


@pytest.mark.parametrize("data", ["text", ["a"], {"controller_manager_config.yaml": "a: !!int ''"}])
def test_a_configuration_of_kueue_that_is_none_is_an_error_of_that_object(data: typing.Any) -> None:
    with pytest.raises(RdmaError):
        jobs._read_kueue({"kind": "ConfigMap", "metadata": {"name": "kueue-manager-config"}, "data": data})
