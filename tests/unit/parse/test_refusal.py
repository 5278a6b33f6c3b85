# SPDX-License-Identifier: GPL-3.0-or-later

"""What an API server says where a webhook does not serve, or a definition is of another version."""

from __future__ import annotations

import hypothesis
import hypothesis.strategies as st
import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.refusal import explain, unknown_fields

CALL = (
    'Internal error occurred: failed calling webhook "mspinapp.kb.io": failed to call webhook: Post'
    ' "https://hook-service.ops.svc:443/mutate?timeout=10s": '
)


HOOKS = "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations"


@pytest.mark.parametrize(
    ("said", "means"),
    [
        # as public issue threads have them
        ('no endpoints available for service "hook-service"', "Service ops/hook-service has no ready pod"),
        ("dial tcp 10.96.12.34:443: connect: connection refused", "leads to a pod that does not accept connections"),
        ("EOF", "leads to a pod that does not accept connections"),
        ("context deadline exceeded", "does not respond in time"),
        (
            "tls: failed to verify certificate: x509: certificate signed by unknown authority",
            "a certificate that does not match the webhook's caBundle",
        ),
        ('service "hook-service" not found', "its operator was removed, but its webhook remained"),
        ("the server rejected our request", "did not respond"),
    ],
)
def test_a_webhook_that_does_not_serve_is_named_with_its_service_and_its_pods(said: str, means: str) -> None:
    cause = explain(CALL + said)
    assert cause is not None and "webhook mspinapp.kb.io" in cause.why and means in cause.why
    assert "delete the configuration that names this Service" in cause.remedy
    # pods do not help a Service that does not exist, or whose certificate is wrong
    first = (
        "If the operator of this Service is not needed"
        if "not found" in said
        else f"Run {HOOKS} -o yaml, and read clientConfig.caBundle"
        if "x509" in said
        else "Run kubectl -n ops get endpointslices,pods -o wide, and restore the pods that Service hook-service"
    )
    assert cause.remedy.startswith(first)


def test_a_webhook_at_an_address_of_its_own() -> None:
    cause = explain('failed calling webhook "x.y": failed to call webhook: Post "https://hooks.example.org/x": EOF')
    assert (
        cause is not None
        and "for each such object, and the webhook did not respond." in cause.why
        and "validatingwebhookconfigurations" in cause.remedy
    )


def test_a_webhook_that_has_judged_is_another_thing() -> None:
    assert explain('admission webhook "x.y" denied the request: no supported NIC is selected') is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            (
                "failed to create typed patch object (/nic-cluster-policy; mellanox.com/v1alpha1,"
                " Kind=NicClusterPolicy): .spec.x: field not declared in schema"
            ),
            "of NicClusterPolicy (mellanox.com/v1alpha1) in the cluster does not have the field .spec.x",
        ),
        (
            (
                "failed to create typed patch object (rook-ceph/myfs; ceph.rook.io/v1, Kind=CephFilesystem):"
                " .spec.dataPools[0].name: field not declared in schema"
            ),
            "does not have the field .spec.dataPools[0].name",
        ),
        ('strict decoding error: unknown field "spec.foo"', "does not have the field spec.foo"),
    ],
)
def test_a_definition_of_another_version(text: str, says: str) -> None:
    cause = explain(text)
    assert cause is not None and says in cause.why and "kubectl apply --server-side --force-conflicts" in cause.remedy


def test_fields_that_were_dropped() -> None:
    assert unknown_fields(('unknown field "spec.a"', "v1beta1 is deprecated", 'unknown field "spec.b"')) == (
        "spec.a",
        "spec.b",
    )
    assert unknown_fields(()) == ()


def test_whoever_raises_the_error_has_the_next_step() -> None:
    error = ApiError(500, "InternalError", CALL + "EOF", "PATCH /x")
    assert "webhook mspinapp.kb.io" in str(error) and "describe service hook-service" in str(error)


@hypothesis.given(st.text())
def test_any_text_is_explained_or_not(text: str) -> None:
    for words in (text, CALL + text, f'unknown field "{text}"'):
        cause = explain(words)
        assert cause is None or (cause.why.endswith(".") and cause.remedy)
