# SPDX-License-Identifier: GPL-3.0-or-later

"""A Secret with the token of a ServiceAccount keeps its namespace if a user created it."""

from __future__ import annotations

import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.foreign import is_everywhere

TOKEN = "kubernetes.io/service-account.name"
PULL = "openshift.io/internal-registry-auth-token.service-account"
CREATED: dict[str, typing.Any] = {"f:data": {}, "f:type": {}}
FILLED: dict[str, typing.Any] = {"f:data": {}, "f:metadata": {}}


def written(*managers: tuple[str, dict[str, typing.Any]]) -> dict[str, typing.Any]:
    return {"managedFields": [{"manager": manager, "fieldsV1": fields} for manager, fields in managers]}


@pytest.mark.parametrize(
    ("account", "metadata", "everywhere"),
    [
        ("default", {}, False),
        # kube-controller-manager adds the token to the Secret of a user
        ("default", written(("kubectl-create", CREATED), ("kube-controller-manager", FILLED)), False),
        ("default", written(("kube-controller-manager", CREATED)), True),
        ("builder", written(("openshift-controller-manager", CREATED)), True),
        ("builder", {"ownerReferences": [{"kind": "ServiceAccount", "name": "builder", "uid": "u"}]}, True),
        ("trainer", written(("kube-controller-manager", CREATED)), False),
    ],
)
def test_token_of_a_user_keeps_its_namespace(account: str, metadata: dict[str, typing.Any], everywhere: bool) -> None:
    secret = {"kind": "Secret", "metadata": {"name": "token", "annotations": {TOKEN: account}, **metadata}}
    assert is_everywhere("Secret", secret) is everywhere


def test_pull_secret_of_openshift_keeps_no_namespace() -> None:
    assert is_everywhere("Secret", {"kind": "Secret", "metadata": {"name": "a", "annotations": {PULL: "builder"}}})
