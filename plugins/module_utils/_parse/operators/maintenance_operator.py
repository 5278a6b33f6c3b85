# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the configuration of NVIDIA's maintenance operator, which gives the NIC configuration operator the nodes that
it may reboot: MaintenanceOperatorConfig of maintenance.nvidia.com/v1alpha1 [maintenance-operator
api/v1alpha1/maintenanceoperatorconfig_types.go].
"""

from __future__ import annotations

from ..kubernetes.resource import Resource, ResourceError, excerpt_of, mapping_at, name_of

#: name of the only object that the operator reads [internal/controller/maintenanceoperatorconfig_controller.go]
NAME = "default"


def parse_parallel_operations(resource: Resource) -> str:
    """Return maxParallelOperations of a MaintenanceOperatorConfig as written, such as ``4`` or ``10%``. Return an empty
    text if it is not set.

    :raises ResourceError: the value is neither a number nor a text
    """
    value = mapping_at(resource, "spec").get("maxParallelOperations")
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise ResourceError(f"MaintenanceOperatorConfig {name_of(resource)}: maxParallelOperations is not a number")
    return excerpt_of(str(value)) or "''"
