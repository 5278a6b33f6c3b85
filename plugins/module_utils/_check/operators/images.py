# SPDX-License-Identifier: GPL-3.0-or-later

"""Check that the nodes can pull the images of the pods of a run. Check id: ``operators.image``.

OpenShift's machine config operator writes the mirror rules and registry lists of the cluster to two files on each node.
CRI-O follows both:

- registries.conf has an entry for each source of a rule and each host of a list. Only the longest entry that matches
  the name applies; mirrors of a shorter one are not tried. A source with NeverContactSource is blocked for names with a
  tag and with a digest. [openshift/runtime-utils pkg/registries/registries.go EditRegistriesConfig; containers/image
  pkg/sysregistriesv2 refMatchingPrefix, PullSourcesFromReference, docker/docker_image_src.go]
- policy.json rejects images that are blocked or not allowed, by the name in the pod. A mirror does not change that.
  [openshift/machine-config-operator pkg/controller/container-runtime-config/helpers.go updatePolicyJSON;
  containers/image docker/policyconfiguration]

Clusters of other kinds have neither file. There, the behavior of the container runtime can't be predicted from the API
server.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._model.base.phrases import describe_read_remedy, describe_rerun, format_clause
from ..._model.intent.intent import Intent
from ..._model.intent.mirror import on_mirror
from ..._model.kubernetes.images.pull_rules import ImageFacts, ImageReference, MirrorRule
from ..._model.run.findings import FAIL, UNKNOWN, WARN, Finding, build_pass
from ..._parse.kubernetes.images import parse_reference
from ..._parse.kubernetes.resource import ResourceError

_EXPECTED = "an image from a registry that the nodes may use"
_CONFIG = "Image cluster (config.openshift.io)"
_EDIT = "have an admin of the cluster change spec.registrySources: oc edit image.config.openshift.io cluster"


_AGAIN = "Then run stage operators again."


@dataclasses.dataclass(frozen=True)
class PullPath:
    """The registries from which a node pulls an image.

    :ivar mirrors: names of the image on the mirrors that are tried, in order
    :ivar source: whether the registry of the image itself is tried after the mirrors
    :ivar scope: host, namespace or repository of the entry of registries.conf that applies; empty if no entry matches
    :ivar rules: all rules that match the name, for tags and for digests
    """

    mirrors: tuple[str, ...]
    source: bool
    scope: str
    rules: tuple[MirrorRule, ...]


def check(intent: Intent, seen: typing.Optional[ImageFacts]) -> tuple[Finding, ...]:
    """Check for each image of the intent that the mirror rules of the cluster and its lists of allowed and blocked
    registries let nodes pull it. If the rules were not read, return a single finding with the reason.

    :param seen: mirror rules and registry lists of the cluster; None if they were not read
    """
    if seen is None or seen.errors:
        why = (
            "The mirror rules and the lists of allowed registries were not read from the API server:"
            f" {format_clause('; '.join(seen.errors[:5]))}."
            if seen
            else "The run ended before it read the mirror rules and the lists of allowed registries from the API"
            " server."
        )
        remedy = describe_rerun("operators")
        if seen:
            remedy = describe_read_remedy("Then run stage operators again.")
        return (
            Finding(
                "operators.image",
                "cluster",
                UNKNOWN,
                "mirror rules not read",
                "mirror rules (ImageDigestMirrorSet, ImageTagMirrorSet) and lists of allowed registries (Image cluster)"
                " read",
                why,
                remedy,
            ),
        )
    return tuple(_check_image(image, keys, seen) for image, keys in sorted(_collect_users(intent, seen).items()))


def _collect_users(intent: Intent, seen: ImageFacts) -> dict[str, list[str]]:
    """Return the images that nodes pull, each with the variables and keys of the intent that name it.

    :param seen: mirror rules and registry lists of the cluster
    """
    found: dict[str, list[str]] = {}
    for fabric in intent.fabrics:
        if fabric.pods.image_pull_policy != "Never":
            found.setdefault(fabric.pods.image, []).append(f"pods.image of fabric {fabric.name}")
    if intent.cluster.collectives is not None:
        found.setdefault(intent.cluster.collectives.image, []).append("rdma_cluster.collectives.image")
    for key, image in seen.named.items():
        if image:
            found.setdefault(on_mirror(image, intent.cluster.mirror), []).append(key)
    return found


def _check_image(image: str, keys: typing.Sequence[str], seen: ImageFacts) -> Finding:
    subject, named = f"image {image}", ", ".join(keys)
    try:
        name = parse_reference(image)
    except ResourceError as error:
        remedy = (
            f"Write {named} as registry/path:tag or, better, registry/path@sha256:..., then run stage operators again."
        )
        return Finding(
            "operators.image",
            subject,
            FAIL,
            "not a valid image name",
            _EXPECTED,
            f"{error}. The kubelet would reject this name.",
            remedy,
        )
    if not name.host and seen.rules + seen.registries.allowed + seen.registries.blocked:
        why = (
            "The image name contains no registry. The nodes try their configured registries one after the other, so"
            " it is unknown which mirror rule applies to the image."
        )
        return Finding(
            "operators.image",
            subject,
            WARN,
            "no registry in the name",
            _EXPECTED,
            why,
            f"Write {named} with the host of the registry at the start of the name. Then run stage operators again.",
        )
    return _report_rejected(subject, named, name, seen) or _check_pulled(
        subject, named, name, find_pull_path(name, seen)
    )


def _report_rejected(subject: str, named: str, name: ImageReference, seen: ImageFacts) -> typing.Optional[Finding]:
    lists = seen.registries
    blocked = [scope for scope in lists.blocked if is_in_scope(scope, name)]
    if blocked:
        why = (
            f"blockedRegistries of {_CONFIG} contains {', '.join(blocked)}. The nodes reject the image name, even if a"
            " mirror has the image."
        )
        remedy = f"Set {named} to an image of another registry, or {_EDIT}. Then run stage operators again."
        return Finding("operators.image", subject, FAIL, f"blocked: {', '.join(blocked)}", _EXPECTED, why, remedy)
    if lists.allowed and not any(is_in_scope(scope, name) for scope in lists.allowed):
        why = (
            f"allowedRegistries of {_CONFIG} contains only {', '.join(lists.allowed[:10])}. The nodes reject any other"
            " image name, even if a mirror has the image."
        )
        remedy = f"Set {named} to an image of one of these registries, or {_EDIT}. Then run stage operators again."
        return Finding("operators.image", subject, FAIL, f"not allowed: {name.host}", _EXPECTED, why, remedy)
    return None


def _check_pulled(subject: str, named: str, name: ImageReference, seen: PullPath) -> Finding:
    own, mirrors = name.host or "a registry that the node searches", ", else ".join(seen.mirrors)
    if seen.mirrors:
        return build_pass(
            "operators.image", subject, f"from {mirrors}{f', else {own} itself' if seen.source else ''}", _EXPECTED
        )
    why, remedy = _explain_unused_mirrors(named, name, seen)
    if not seen.source:
        why = (
            f"The configuration of the cluster forbids the nodes to contact {own} for this image"
            " (NeverContactSource or blockedRegistries), and no"
            f" mirror can be used. {why}".strip()
        )
        return Finding(
            "operators.image", subject, FAIL, f"no permitted registry: {seen.scope} is blocked", _EXPECTED, why, remedy
        )
    if seen.rules:
        why = (
            f"{why} The nodes therefore pull the image from {own} itself. Nodes of a disconnected site cannot reach"
            " this registry."
        )
        return Finding(
            "operators.image", subject, WARN, f"from {own} itself, although mirrors exist", "from a mirror", why, remedy
        )
    return build_pass("operators.image", subject, f"from {own} itself, no mirror rule applies", _EXPECTED)


def _explain_unused_mirrors(named: str, name: ImageReference, seen: PullPath) -> tuple[str, str]:
    """Return the reason why no mirror of an image is tried although a mirror rule matches its repository, and the
    remedy. The reason is empty if no mirror rule matches.

    :param named: keys and variables of the intent that name the image, as text
    :param name: parsed name of the image
    :param seen: registries from which the nodes pull the image
    """
    fitting = [rule for rule in seen.rules if rule.form == name.form]
    other = "tag" if name.form == "digest" else "digest"
    kind = "ImageDigestMirrorSet" if name.form == "digest" else "ImageTagMirrorSet"
    add = f"Have an admin of the cluster add mirrors for {name.repository} to an {kind}"
    if fitting and max(len(rule.source) for rule in fitting) < len(seen.scope):
        rule = max(fitting, key=lambda item: len(item.source))
        return (
            (
                f"{rule.owner} has mirrors for {rule.source}. The nodes use only the more specific entry {seen.scope},"
                f" which has no mirrors for a name with a {name.form}."
            ),
            f"{add}. {_AGAIN}",
        )
    if fitting:
        return "The mirrors are also blocked.", f"{add}. These mirrors must not be blocked. Or {_EDIT}. {_AGAIN}"
    if not seen.rules:
        return "", f"{add}. {_AGAIN}"
    why = (
        f"The image is named by its {name.form}, but the mirrors of"
        f" {', '.join(dict.fromkeys(rule.owner for rule in seen.rules))} apply only to a {other}."
    )
    if name.form == "tag":
        return (
            why,
            (
                f"Run skopeo inspect --format '{{{{.Name}}}}@{{{{.Digest}}}}' docker://{name.identity} to print the"
                f" name with the digest, and set {named} to it. {_AGAIN}"
            ),
        )
    return why, f"{add}. {_AGAIN}"


def find_pull_path(name: ImageReference, seen: ImageFacts) -> PullPath:
    """Return the mirrors and the source from which nodes pull an image, as registries.conf defines them.

    :param name: the parsed name of the image
    :param seen: mirror rules and registry lists of the cluster
    """
    lists = seen.registries
    # one whose mirrors are its source is no rule
    rules = [rule for rule in seen.rules if set(rule.mirrors) - {rule.source}]
    # in the order in which they are written: of two that are of one length the first one counts
    scopes = (
        *(source for _form, source in sorted((rule.form, rule.source) for rule in rules)),
        *lists.blocked,
        *lists.insecure,
    )

    def entry(repository: str) -> str:
        return max((scope for scope in scopes if count_matched(scope, repository)), key=len, default="")

    def shut(scope: str) -> bool:
        never = any(rule.never for rule in rules if rule.source == scope)
        return bool(scope) and (never or any(_is_inside_scope(scope, blocked) for blocked in lists.blocked))

    scope = entry(name.repository)
    rest = name.repository[count_matched(scope, name.repository) :]
    mirrors = [
        f"{mirror}{rest}"
        for rule in rules
        if rule.source == scope and rule.form == name.form
        for mirror in rule.mirrors
        if mirror != scope
    ]
    usable = (mirror for mirror in dict.fromkeys(mirrors) if not shut(entry(mirror)))
    return PullPath(
        tuple(usable),
        not shut(scope),
        scope,
        tuple(rule for rule in rules if count_matched(rule.source, name.repository)),
    )


def count_matched(scope: str, repository: str) -> int:
    """Return how many characters of a repository name an entry of registries.conf matches; 0 if the entry does not
    apply. The entry with the most characters takes precedence.

    :param scope: the entry: host, namespace or repository, or ``*.`` and a domain
    :param repository: repository of the image, with the host of the registry
    """
    if scope.startswith("*."):
        host = repository.partition("/")[0].partition(":")[0]
        return len(host) if host.endswith(scope[1:]) else 0
    # a host without its port fits as well, which containers/image calls an error of its own
    return len(scope) if repository == scope or (repository.startswith(scope) and repository[len(scope)] in ":/") else 0


def is_in_scope(scope: str, name: ImageReference) -> bool:
    """Return whether an entry of policy.json applies to an image.

    :param scope: entry: host, namespace, repository or image, or ``*.`` and a domain
    :param name: parsed name of the image
    """
    if scope.startswith("*."):
        return count_matched(scope, name.repository) > 0
    return scope == name.identity or name.repository == scope or name.repository.startswith(f"{scope}/")


def _is_inside_scope(scope: str, outer: str) -> bool:
    """Return whether an entry of registries.conf is equal to another entry or lies inside it. [runtime-utils
    ScopeIsNestedInsideScope]

    :param scope: the entry: host, namespace or repository, or ``*.`` and a domain
    :param outer: entry that may contain the first one
    """
    if outer.startswith("*.") and not scope.startswith("*."):
        return count_matched(outer, scope) > 0
    return scope == outer or scope.startswith(f"{outer}/") or (outer.startswith("*.") and scope.endswith(outer[1:]))
