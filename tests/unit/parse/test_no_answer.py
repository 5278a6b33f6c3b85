# SPDX-License-Identifier: GPL-3.0-or-later

"""What kept a request from its server, out of the words of urllib3."""

from __future__ import annotations

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.errors import ApiError
from ansible_collections.linerate.rdma.plugins.module_utils._parse.kubernetes.no_answer import cause_of

POOL = "HTTPSConnectionPool(host='api.example', port=6443): Max retries exceeded with url: /version (Caused by "


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            (
                "HTTPSConnectionPool(host='127.0.0.1', port=1): Max retries exceeded with url: /version (Caused by"
                " NewConnectionError(\"HTTPSConnection(host='127.0.0.1', port=1): Failed to establish a new connection:"
                ' [Errno 111] Connection refused"))'
            ),
            "connection refused by https://127.0.0.1:1",
        ),
        (
            (
                f"{POOL}NameResolutionError(\"... Failed to resolve 'api.example' ([Errno -2] Name or service not"
                ' known)"))'
            ),
            "the name of {} cannot be resolved",
        ),
        (
            (
                f"{POOL}SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify"
                " failed: self-signed certificate (_ssl.c:992)')))"
            ),
            "the certificate of {} is not trusted: self-signed certificate",
        ),
        (
            f"{POOL}SSLError(SSLError(1, '[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1000)')))",
            "{} does not support TLS",
        ),
        (
            (
                f"{POOL}ConnectTimeoutError(<HTTPSConnection(host='api.example', port=6443)>, 'Connection to"
                " api.example timed out.'))"
            ),
            "{} did not respond in time",
        ),
        (
            f"{POOL}SSLError(SSLError(524297, '[SSL] PEM lib (_ssl.c:3905)')))",
            "a certificate or key in the kubeconfig cannot be read, so {} was not asked",
        ),
        (
            (
                f"{POOL}SSLError(SSLError(136, '[X509: NO_CERTIFICATE_OR_CRL_FOUND] no certificate or crl found"
                " (_ssl.c:4154)')))"
            ),
            "a certificate or key in the kubeconfig cannot be read, so {} was not asked",
        ),
        (f"{POOL}NewConnectionError('[Errno 113] No route to host'))", "no route to {}"),
        (
            f"{POOL}ProxyError('Unable to connect to proxy', NewConnectionError('[Errno 111] Connection refused')))",
            "{} cannot be reached through the proxy",
        ),
        (
            f"{POOL}ProxyError('Tunnel connection failed: 407 certificate verify failed: take mine')))",
            "the proxy refused the connection to {}",
        ),
        ("('Connection aborted.', ConnectionResetError(104))", ""),
        ("", ""),
        (f"{POOL}SomethingNew('x'))", ""),
    ],
)
def test_the_cause_is_named_in_a_few_words(text: str, said: str) -> None:
    assert cause_of(text) == said.replace("{}", "https://api.example:6443")


def test_credentials_that_cannot_be_read_have_their_own_remedy() -> None:
    text = cause_of(f"{POOL}SSLError(SSLError(524297, '[SSL] PEM lib (_ssl.c:3905)')))")
    remedy = ApiError(0, "", text, "GET /version").remedy
    assert "client-key-data" in remedy and "API server runs" not in remedy


def test_a_certificate_that_is_not_trusted_has_its_own_remedy() -> None:
    error = ApiError(
        0,
        "Unreachable",
        "the API server did not respond: the certificate of https://x:1 is not trusted",
        "kubeconfig k",
    )
    assert (
        "The kubeconfig does not trust this server. Set the certificate authority of"
        " this cluster or the correct server address in the kubeconfig"
    ) in error.remedy
