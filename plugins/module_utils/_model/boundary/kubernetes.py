# SPDX-License-Identifier: GPL-3.0-or-later

"""Formats of Kubernetes names. [k8s.io/apimachinery pkg/util/validation/validation.go,
pkg/api/validation/path/name.go]
"""

from __future__ import annotations

import re
import typing

from .form import Form, make_pattern

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
_DEVICE_POOL = re.compile(r"[a-z0-9]([a-z0-9./-]{0,251}[a-z0-9])?", re.ASCII)
_REQUEST_NAME = re.compile(rf"{_LABEL.pattern}(/{_LABEL.pattern})?", re.ASCII)
#: of a label key or a qualified name behind the '/', and of a label value
_WORD = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", re.ASCII)
#: a name of any object: roles and their bindings have colons
_OBJECT = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.:@-]{0,251}[A-Za-z0-9])?", re.ASCII)
_GROUP = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ./+_-]{0,99}", re.ASCII)
_UID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}", re.ASCII)


def _is_subdomain(text: str) -> bool:
    """Return whether a text is an RFC 1123 subdomain: labels separated by dots. Kubernetes limits the whole to 253
    characters and does not limit a single label.
    """
    return (
        len(text) <= 253
        and all(part and part.strip("-") and part[0] != "-" and part[-1] != "-" for part in text.split("."))
        and bool(_SIGNS.fullmatch(text))
    )


_SIGNS = re.compile(r"[a-z0-9.-]{1,253}", re.ASCII)


def _parse_subdomain(text: str) -> typing.Optional[str]:
    return text if _is_subdomain(text) else None


def _parse_qualified_name(text: str) -> typing.Optional[str]:
    """Return the text unchanged if it is a qualified name of Kubernetes: a name, or a DNS subdomain, a slash and a
    name. Return None otherwise.
    """
    domain, slash, word = text.rpartition("/")
    return text if _WORD.fullmatch(word) and (not slash or _is_subdomain(domain)) else None


def _in_domain(text: str) -> typing.Optional[str]:
    return _parse_qualified_name(text) if "/" in text else None


def _in_namespace(text: str) -> typing.Optional[str]:
    namespace, slash, name = text.rpartition("/")
    return text if (not slash or _LABEL.fullmatch(namespace)) and _is_subdomain(name) else None


LABEL = Form("lowercase letters, digits and '-', up to 63 characters", "gpu-jobs", 63, make_pattern(_LABEL))
SUBDOMAIN = Form(
    "lowercase letters, digits, '-' and '.', up to 253 characters", "worker-1.example.com", 253, _parse_subdomain
)
OBJECT_NAME = Form("the name of a Kubernetes object", "worker-1", 253, make_pattern(_OBJECT))
REQUEST_NAME = Form(
    "the name of a request of a claim, optionally followed by '/' and the name of one of its subrequests",
    "nic/vf",
    127,
    make_pattern(_REQUEST_NAME),
)
DEVICE_POOL = Form("the name of a device pool", "worker-1", 253, make_pattern(_DEVICE_POOL))
LABEL_KEY = Form("a label key", "example.com/rack", 317, _parse_qualified_name)
#: an empty value is one, and needs no form
LABEL_VALUE = Form("a label value", "hall-2", 63, make_pattern(_WORD))
RESOURCE = Form("a resource name with its domain", "openshift.io/mlx_compute", 317, _in_domain)
NAMESPACED = Form("a name, optionally preceded by its namespace and '/'", "test/sriov-ib-compute", 317, _in_namespace)
#: of an operating system, a model or a place, behind the kind of a group
GROUP_WORD = Form(
    "a name of letters, digits, spaces and ./+_-, up to 100 characters", "Debian GNU/Linux", 100, make_pattern(_GROUP)
)
UID = Form("the UID of an object", "6e3f9f0c-5a0e-4d0c-8f0b-0e8c1f6d2a11", 128, make_pattern(_UID))

Label = typing.Annotated[str, LABEL]
Namespace = typing.Annotated[str, LABEL]
DevicePool = typing.Annotated[str, DEVICE_POOL]
RequestName = typing.Annotated[str, REQUEST_NAME]
LabelKey = typing.Annotated[str, LABEL_KEY]
LabelValue = typing.Annotated[str, LABEL_VALUE]
GroupWord = typing.Annotated[str, GROUP_WORD]
Subdomain = typing.Annotated[str, SUBDOMAIN]
ObjectName = typing.Annotated[str, OBJECT_NAME]
Resource = typing.Annotated[str, RESOURCE]
Namespaced = typing.Annotated[str, NAMESPACED]
Uid = typing.Annotated[str, UID]
