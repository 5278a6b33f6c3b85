# SPDX-License-Identifier: GPL-3.0-or-later

"""Objects of the lab's API server: read from files, applied server-side."""

from __future__ import annotations

import base64
import contextlib
import pathlib
import string
import typing

import kubernetes
import kubernetes.config
import kubernetes.dynamic
import kubernetes.dynamic.exceptions
import yaml

from dev.steps import StepError

from .processes import wait_until

FIELD_MANAGER = "linerate-lab"
SERVED_SECONDS, GONE_SECONDS = 120, 120
Object = dict[str, typing.Any]


def client(kubeconfig: pathlib.Path) -> kubernetes.dynamic.DynamicClient:
    api = kubernetes.config.new_client_from_config(str(kubeconfig))
    return kubernetes.dynamic.DynamicClient(api)


def read(path: pathlib.Path, values: typing.Optional[typing.Mapping[str, str]] = None) -> list[Object]:
    """The objects of a YAML file, those of a List one by one, with ``$NAME`` replaced by ``values``."""
    text = path.read_text()
    return parse(text if values is None else string.Template(text).substitute(values))


def parse(text: str) -> list[Object]:
    """The objects of YAML documents, those of a List one by one."""
    documents = [document for document in yaml.safe_load_all(text) if document]
    return [
        item for document in documents for item in (document["items"] if document["kind"] == "List" else [document])
    ]


def apply(dynamic: kubernetes.dynamic.DynamicClient, documents: typing.Iterable[Object]) -> None:
    """Server-side apply; a field that someone else owns is taken over, since the lab is its own."""
    for document in documents:
        resource = dynamic.resources.get(api_version=document["apiVersion"], kind=document["kind"])
        dynamic.server_side_apply(
            resource,
            document,
            name=document["metadata"]["name"],
            namespace=document["metadata"].get("namespace"),
            field_manager=FIELD_MANAGER,
            force_conflicts=True,
        )


def await_served(dynamic: kubernetes.dynamic.DynamicClient, api_version: str, kind: str) -> None:
    """Wait until the API server serves a kind, whose definition it has just taken.

    :raises StepError: not in time
    """

    def served() -> bool:
        dynamic.resources.invalidate_cache()
        try:
            dynamic.resources.get(api_version=api_version, kind=kind)
        except kubernetes.dynamic.exceptions.ResourceNotFoundError:
            return False
        return True

    if not wait_until(served, SERVED_SECONDS):
        raise StepError(
            f"the API server does not serve {kind}", "look into kube-apiserver.log in the folder log of the lab"
        )


def remove(resource: typing.Any, names: typing.Optional[typing.Collection[str]] = None) -> list[str]:
    """Delete objects of a kind, and wait until they are gone.

    :param names: None means all of them; those that are not there are left out
    :returns: names of those that were there
    :raises StepError: not all are gone in time
    """

    def there() -> list[typing.Any]:
        return [item for item in resource.get().items if names is None or item.metadata.name in names]

    found = there()
    for item in found:
        # one that others own may go with them meanwhile
        with contextlib.suppress(kubernetes.dynamic.exceptions.NotFoundError):
            resource.delete(name=item.metadata.name, namespace=item.metadata.namespace)
    if not wait_until(lambda: not there(), GONE_SECONDS):
        left = ", ".join(sorted(item.metadata.name for item in there()))
        raise StepError(
            f"{resource.kind}: {left} do not go",
            "see which of them, or of their objects, has a finalizer, with lab/kubectl",
        )
    return [item.metadata.name for item in found]


def encoded(path: pathlib.Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
