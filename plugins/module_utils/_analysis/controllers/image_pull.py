# SPDX-License-Identifier: GPL-3.0-or-later

"""Explain why a node cannot pull an image, by the messages of the kubelet and its container runtime, and give the
remedy. All stages use this explanation.

Messages of CRI-O and containerd: containers/image docker/docker_image_src.go and signature/policy_eval.go, containerd
core/remotes/docker, distribution registry/api/errcode, Go's net and crypto/x509.
"""

from __future__ import annotations

import re
import typing

from ..._parse.kubernetes.pod_state import IMAGE_REASONS

Kind = typing.Literal[
    "never",
    "name",
    "policy",
    "short",
    "platform",
    "space",
    "rate",
    "certificate",
    "plain",
    "network",
    "right",
    "absent",
    "other",
]


class Keys(typing.NamedTuple):
    """The settings by which a user changes the image of a pod, as they appear in a remedy.

    :ivar image: setting that names the image
    :ivar policy: setting of the pull policy
    :ivar secrets: setting of the pull secrets
    :ivar namespace: namespace of the pod
    :ivar show: command that shows all messages of the kubelet
    """

    image: str
    policy: str
    secrets: str
    namespace: str
    show: str


#: the first that fits counts: what is special stands before what a registry, or a proxy in front of one, may say of
#: anything
_WORDS: tuple[tuple[Kind, str], ...] = (
    ("never", r"ErrImageNeverPull|pull policy of Never"),
    ("name", r"InvalidImageName|invalid reference format|couldn't parse image"),
    (
        "policy",
        r"rejected by policy|Source image rejected|SignatureValidationFailed|signature was required|is blocked in /",
    ),
    ("short", r"short.name|unqualified.search"),
    ("platform", r"no image found in .{1,40} for architecture|no match for platform|no matching manifest"),
    ("space", r"no space left on device|disk quota exceeded"),
    ("rate", r"toomanyrequests|Too Many Requests|rate limit"),
    ("certificate", r"x509:|certificate verify failed|unknown certificate authority"),
    ("plain", r"server gave HTTP response to HTTPS client"),
    (
        "network",
        r"no such host|i/o timeout|connection refused|connection reset|no route to host|network is"
        r" unreachable|handshake timeout|deadline exceeded"
        r"|proxyconnect|Proxy Authentication|server misbehaving|temporary failure in name"
        r" resolution|Client\.Timeout|: EOF",
    ),
    (
        "right",
        (
            r"unauthorized|authentication required|authorization failed|insufficient_scope|denied|no basic auth|pull"
            r" access|forbidden|\b40[13]\b"
        ),
    ),
    ("absent", r"manifest unknown|name unknown|not found|NotFound|does not exist|\b404\b"),
)
_PATTERNS: tuple[tuple[Kind, typing.Pattern[str]], ...] = tuple(
    (kind, re.compile(text, re.IGNORECASE)) for kind, text in _WORDS
)
_MIRRORS = "(Mirrors also failed: "


def of_pods(namespace: str, name: str) -> Keys:
    """Return the names of the image settings of a measuring pod, which the intent sets under ``pods`` of its fabric.

    :param namespace: namespace of the pod
    :param name: name of the pod
    """
    return Keys(
        "pods.image",
        "pods.image_pull_policy",
        "pods.image_pull_secrets",
        namespace,
        f"kubectl -n {namespace} describe pod {name}",
    )


def is_image_pull_message(words: str) -> bool:
    """Return whether a message about a pod reports that its image cannot be pulled.

    :param words: message of the kubelet or of a pod's status
    """
    return any(reason in words for reason in IMAGE_REASONS)


def names_cause(message: str) -> bool:
    """Return whether the message of a kubelet event contains a cause. Messages that begin with ``Error:`` or
    ``Back-off`` only repeat the state, after the event that has the cause.
    """
    return bool(message) and not message.startswith(("Error: ", "Back-off "))


def find_kind(words: str) -> Kind:
    """Return the kind of failure that a message of the kubelet reports, ``other`` if the message is not known. Errors
    of mirrors take precedence over the error of the source registry, because a disconnected site can pull only from its
    mirrors.

    :param words: message of the kubelet about a failed pull
    """
    _before, mirrored, rest = words.partition(_MIRRORS)
    mirrors, _end, _source = rest.partition("]): ")
    return next(
        (
            kind
            for text in ((mirrors, words) if mirrored else (words,))
            for kind, pattern in _PATTERNS
            if pattern.search(text)
        ),
        "other",
    )


def explain(words: str, keys: Keys) -> tuple[str, str]:
    """Return the cause and the remedy of a failed pull of an image.

    :param words: message of the kubelet
    :param keys: settings of the intent that the remedy names: image, pull policy and pull secrets
    """
    kind = find_kind(words)
    cause = f"{_CAUSES[kind]} The mirrors of the registry returned this error." if _MIRRORS in words else _CAUSES[kind]
    return cause, _collect_remedies(keys)[kind]


_CAUSES: typing.Mapping[Kind, str] = {
    "never": "The image is not on the node, and the pull policy does not permit a pull.",
    "name": "The name of the image is invalid.",
    "policy": (
        "The image policy of the node rejects the image: its registry is blocked or not allowed, or a signature is"
        " missing."
    ),
    "short": "The name of the image contains no registry, and the node cannot determine the registry.",
    "platform": "The image is not available for the CPU architecture of the node.",
    "space": "The disk of the node is full.",
    "rate": "The registry currently allows no more pulls without an account (rate limit).",
    "certificate": "The node does not trust the certificate of the registry.",
    "plain": "The registry does not use TLS.",
    "network": "The node cannot reach the registry.",
    "right": (
        "The registry denies the node access to the image: the node has no pull secret for the registry, or the image"
        " does not exist."
    ),
    "absent": "The registry has no image with this name.",
    "other": "The image cannot be pulled.",
}


def _collect_remedies(keys: Keys) -> typing.Mapping[Kind, str]:
    space = keys.namespace
    secret = (
        f"kubectl create secret docker-registry NAME -n {space} --docker-server=REGISTRY --docker-username=USER"
        " --docker-password=PASSWORD"
    )
    cluster = "oc set data secret/pull-secret -n openshift-config --from-file=.dockerconfigjson=FILE"
    right = (
        f"Create a pull secret ({secret}) and name it in {keys.secrets}. On OpenShift, an administrator can add it to"
        f" the pull secret of the cluster instead: {cluster}"
    )
    return {
        "never": f"Load the image on the node, or allow the pull with {keys.policy}: IfNotPresent",
        "name": f"Correct {keys.image}: registry/path:tag or, better, registry/path@sha256:...",
        "policy": (
            "Ask an administrator of the cluster to allow the registry: oc edit image.config.openshift.io cluster"
            " (allowedRegistries, blockedRegistries), oc get clusterimagepolicies. Alternatively, name an image of a"
            f" different registry in {keys.image}"
        ),
        "short": f"Write the host of the registry at the start of {keys.image}",
        "platform": (
            f"Name an image for the CPU architecture of the nodes in {keys.image}. skopeo inspect --raw docker://IMAGE"
            " lists the architectures of an image"
        ),
        "space": (
            "Free disk space on the node (crictl rmi --prune), or give the node a larger disk. kubectl describe node"
            " shows the condition DiskPressure"
        ),
        "rate": right,
        "certificate": (
            "Make the nodes trust the certificate. On OpenShift, put the certificate of the authority into a ConfigMap"
            " in openshift-config, and name the ConfigMap in spec.additionalTrustedCA: oc edit"
            " image.config.openshift.io cluster. On other clusters, add the certificate to the container runtime of"
            " each node"
        ),
        "plain": (
            "Configure TLS for the registry, or allow the nodes to use the registry without TLS. On OpenShift:"
            " insecureRegistries (oc edit image.config.openshift.io cluster)"
        ),
        "network": (
            "Name a registry or a mirror that the nodes can reach. On OpenShift, use an ImageDigestMirrorSet or"
            " ImageTagMirrorSet (see finding operators.image). With a proxy, add the host of the registry to"
            f" spec.noProxy: oc edit proxy.config.openshift.io cluster. {keys.show} shows all messages"
        ),
        "right": right,
        "absent": (
            f"Correct {keys.image}, or copy the image to the registry from which the nodes pull: skopeo copy --all"
            f" docker://IMAGE docker://MIRROR/IMAGE. {keys.show} shows all messages"
        ),
        "other": (
            f"Correct {keys.image}, or copy the image to a registry that the nodes can reach. {keys.show} shows all"
            " messages"
        ),
    }
