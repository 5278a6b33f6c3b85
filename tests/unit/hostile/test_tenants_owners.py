# SPDX-License-Identifier: GPL-3.0-or-later

"""Owners that tenants write into their pods: the API server takes any text for the uid of an owner, and no list of all
pods ends with it."""

from __future__ import annotations

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.core import parse_pod
from ansible_collections.linerate.rdma.tests.unit.fake_api import Resource

UID = "6e3f9f0c-5a0e-4d0c-8f0b-0e8c1f6d2a11"


def owned(uid: str, kind: str = "Job") -> Resource:
    # garbage collection takes no pod whose owner is of a kind that the API server does not know
    owner = {"apiVersion": "example.com/v1", "kind": kind, "name": "none", "uid": uid, "controller": True}
    metadata = {"name": "pod", "namespace": "training", "uid": UID, "ownerReferences": [owner]}
    return {
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": "worker-1", "containers": [{"name": "main"}]},
        "status": {"phase": "Running"},
    }


@pytest.mark.parametrize("uid", ["not a uid", "{{ lookup('pipe', 'id') }}", "-", "a\nb", "x" * 1000])
def test_an_owner_without_a_uid_is_not_known(uid: str) -> None:
    found = parse_pod(owned(uid))
    assert (found.name, found.node, found.owner, found.controller) == ("pod", "worker-1", "Job", "")


def test_one_with_a_uid_is() -> None:
    assert parse_pod(owned(UID)).controller == UID
