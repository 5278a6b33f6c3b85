# SPDX-License-Identifier: GPL-3.0-or-later

"""Why an image cannot be pulled, by the words of CRI-O, containerd and the kubelet."""

from __future__ import annotations

import typing

import hypothesis
import hypothesis.strategies as some
import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.controllers.image_pull import (
    Kind,
    explain,
    find_kind,
    is_image_pull_message,
    names_cause,
    of_pods,
)

CRIO = 'Failed to pull image "quay.io/site/tools:1": initializing source docker://quay.io/site/tools:1: '
CONTAINERD = (
    'Failed to pull image "quay.io/site/tools:1": failed to pull and unpack image "quay.io/site/tools:1": failed to'
    " resolve reference: "
)
LOOKUP = (
    'pinging container registry quay.io: Get "https://quay.io/v2/": dial tcp: lookup quay.io on 10.0.0.2:53: no such'
    " host"
)


def mirrored(words: str) -> str:
    return f"{CRIO}(Mirrors also failed: [mirror.example:5000/site/tools:1: {words}]): quay.io/site/tools:1: {LOOKUP}"


@pytest.mark.parametrize(
    ("words", "kind", "remedy"),
    [
        (
            (
                f"{CRIO}reading manifest 1 in quay.io/site/tools: unauthorized: access to the requested resource is not"
                " authorized"
            ),
            "right",
            "pods.image_pull_secrets",
        ),
        (
            f"{CRIO}reading manifest 1 in quay.io/site/tools: authentication required",
            "right",
            "oc set data secret/pull-secret -n openshift-config",
        ),
        (
            (
                f"{CONTAINERD}pull access denied, repository does not exist or may require authorization: server"
                " message: insufficient_scope"
            ),
            "right",
            "-n training",
        ),
        (
            f"{CONTAINERD}failed to authorize: failed to fetch oauth token: unexpected status: 403 Forbidden",
            "right",
            "kubectl create secret docker-registry",
        ),
        (f"{CRIO}reading manifest 1 in quay.io/site/tools: manifest unknown", "absent", "skopeo copy"),
        (f"{CONTAINERD}quay.io/site/tools:1: not found", "absent", "kubectl -n training describe pod p"),
        (f"{CRIO}{LOOKUP}", "network", "oc edit proxy.config.openshift.io cluster"),
        (f'{CRIO}Get "https://quay.io/v2/": dial tcp 192.0.2.1:443: i/o timeout', "network", "spec.noProxy"),
        (
            f'{CRIO}Get "https://quay.io/v2/": dial tcp 192.0.2.1:443: connect: connection refused',
            "network",
            "ImageDigestMirrorSet",
        ),
        (
            (
                f'{CONTAINERD}Head "https://quay.io/v2": proxyconnect tcp: dial tcp 192.0.2.9:3128: connect: no route'
                " to host"
            ),
            "network",
            "spec.noProxy",
        ),
        (f'{CRIO}Get "https://quay.io/v2/": Proxy Authentication Required', "network", "spec.noProxy"),
        (
            f"{CRIO}tls: failed to verify certificate: x509: certificate signed by unknown authority",
            "certificate",
            "spec.additionalTrustedCA",
        ),
        (
            f'{CRIO}Get "https://m:5000/v2/": http: server gave HTTP response to HTTPS client',
            "plain",
            "insecureRegistries",
        ),
        (
            "Source image rejected: Running image docker://quay.io/site/tools:1 is rejected by policy.",
            "policy",
            "allowedRegistries",
        ),
        (
            (
                f"{CRIO}registry quay.io is blocked in /etc/containers/registries.conf or"
                " /etc/containers/registries.conf.d"
            ),
            "policy",
            "blockedRegistries",
        ),
        (
            "SignatureValidationFailed: image pull failed: A signature was required, but no signature exists",
            "policy",
            "clusterimagepolicies",
        ),
        (
            (
                f"{CRIO}reading manifest 12 in docker.io/library/debian: toomanyrequests: You have reached your pull"
                " rate limit"
            ),
            "rate",
            "pods.image_pull_secrets",
        ),
        (f'{CRIO}no image found in image index for architecture "arm64"', "platform", "skopeo inspect --raw"),
        (f"{CONTAINERD}no match for platform in manifest: not found", "platform", "CPU architecture"),
        (f"{CONTAINERD}write /var/lib/containerd/x: no space left on device", "space", "crictl rmi"),
        (
            'short-name "tools:1" did not resolve to an alias and no unqualified-search registries are defined',
            "short",
            "host of the registry at the start",
        ),
        (
            'ErrImageNeverPull: Container image "x" is not present with pull policy of Never',
            "never",
            "pods.image_pull_policy: IfNotPresent",
        ),
        (
            "InvalidImageName: Failed to apply default image tag: couldn't parse image name: invalid reference format",
            "name",
            "Correct pods.image",
        ),
        (
            'ImagePullBackOff: Back-off pulling image "quay.io/site/tools:1"',
            "other",
            "kubectl -n training describe pod p",
        ),
        # where a disconnected site has mirrors, what they said is the cause
        (mirrored("reading manifest 1 in mirror.example:5000/site/tools: manifest unknown"), "absent", "skopeo copy"),
        (mirrored("unauthorized: authentication required"), "right", "pods.image_pull_secrets"),
        (mirrored("x509: certificate signed by unknown authority"), "certificate", "additionalTrustedCA"),
        (mirrored("something new"), "network", "noProxy"),
    ],
)
def test_each_cause_has_its_remedy(words: str, kind: Kind, remedy: str) -> None:
    assert find_kind(words) == kind
    cause, told = explain(words, of_pods("training", "p"))
    assert remedy in told, told
    assert ("mirrors" in cause) == ("Mirrors" in words)


def test_which_words_are_about_an_image() -> None:
    assert is_image_pull_message("the pod did not become ready: ErrImagePull: no such host")
    assert not is_image_pull_message("CrashLoopBackOff: back-off 5m0s restarting failed container")


def test_what_only_names_the_state_has_no_cause() -> None:
    messages = [
        "Error: ErrImagePull",
        "Error: ImagePullBackOff",
        'Back-off pulling image "x"',
        "",
        'Failed to pull image "x": unauthorized',
    ]
    assert [names_cause(message) for message in messages] == [False, False, False, False, True]


@hypothesis.given(some.text(), some.text())
def test_any_words_have_a_cause_and_a_remedy(before: str, after: str) -> None:
    for words in (before, f"{before}(Mirrors also failed: {after}"):
        assert find_kind(words) in typing.get_args(Kind)
        assert all(explain(words, of_pods(before, after)))
