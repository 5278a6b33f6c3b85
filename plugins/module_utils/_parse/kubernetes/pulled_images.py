# SPDX-License-Identifier: GPL-3.0-or-later

r"""Find the images that nodes pull for an object: the images of its containers, of variables in an operator's
container, and of fields in the policies of NVIDIA's operators.

Sources: sriov-network-operator v1.6.0 deployment/sriov-network-operator-chart/templates/operator.yaml (variables
\*_IMAGE), gpu-operator api/nvidia/v1/clusterpolicy_types.go imagePath (repository, image, version),
internal/state/driver.go and controllers/object_controls.go (the system of the node in the tags of driver, gds, gdrcopy
and vgpuManager), network-operator pkg/state/state_ofed.go (the same for ofedDriver).
"""

from __future__ import annotations

import typing

from ..._model.kubernetes.images.pulls import ImageSeen
from .resource import Resource

#: sections of NVIDIA's policies to whose tags their operators add the system of the node
_BY_SYSTEM = {"driver", "ofedDriver", "gds", "gdrcopy", "vgpuManager"}
#: sections of a ClusterPolicy that count where pods get virtual machines alone
_SANDBOX = {
    "vgpuManager",
    "vgpuDeviceManager",
    "vfioManager",
    "sandboxDevicePlugin",
    "kataSandboxDevicePlugin",
    "kataManager",
}
_POLICIES = ("ClusterPolicy", "NVIDIADriver", "NicClusterPolicy")


def pulled_images(resource: Resource) -> tuple[ImageSeen, ...]:
    """Return the images that nodes pull for an object, each once, sorted by name. Components of a policy that are not
    enabled are left out. The result is empty for a CustomResourceDefinition, whose schema may have fields with the same
    names, and for a value that is not an object.
    """
    kind = resource.get("kind") if isinstance(resource, dict) else None
    if kind == "CustomResourceDefinition":
        return ()
    policy = kind in _POLICIES
    sandbox = policy and _enabled_sandbox(resource)
    found: set[ImageSeen] = set()
    # the key under which a mapping lies; an operator's driver has its own kind, and lies under spec
    open_items: list[tuple[str, typing.Any]] = [("", resource)]
    while open_items:
        key, item = open_items.pop()
        if isinstance(item, (list, tuple)):
            open_items += [(key, part) for part in item]
        elif isinstance(item, dict):
            if policy and (item.get("enabled") is False or (key in _SANDBOX and not sandbox)):
                continue
            name = _read_image_reference(item)
            if name:
                found.add(
                    ImageSeen(
                        name,
                        policy
                        and (key in _BY_SYSTEM or (kind == "NVIDIADriver" and key == "spec"))
                        and "@" not in name,
                    )
                )
            open_items += [(str(part), value) for part, value in item.items()]
    return tuple(sorted(found, key=lambda image: (image.name, image.by_system)))


def _read_image_reference(item: typing.Mapping[str, typing.Any]) -> str:
    """Return the image that a mapping names, by its parts, as a whole, or as the value of a variable whose name ends
    with ``IMAGE``. Return an empty text if it names none.
    """
    image, repository, version = (_read_text(item, key) for key in ("image", "repository", "version"))
    if image and repository and version:
        return f"{repository}/{image}{'@' if version.startswith('sha256:') else ':'}{version}"
    # a variable of a container; a name without a path is another one's: IMAGE_PULL_SECRETS, a port
    value = _read_text(item, "value")
    return image or (value if _read_text(item, "name").endswith("IMAGE") and "/" in value else "")


def _enabled_sandbox(resource: Resource) -> bool:
    spec = resource.get("spec")
    workloads = spec.get("sandboxWorkloads") if isinstance(spec, dict) else None
    return isinstance(workloads, dict) and workloads.get("enabled") is True


def _read_text(item: typing.Mapping[str, typing.Any], key: str) -> str:
    value = item.get(key)
    return value.strip() if isinstance(value, str) else ""
