# SPDX-License-Identifier: GPL-3.0-or-later

"""The wait until NVIDIA's NIC configuration operator has configured all cards. It reads the cards repeatedly instead of
watching them, because the operator reboots the nodes one by one meanwhile.
"""

from __future__ import annotations

import typing

from ..._observe.kubernetes.client import Cluster
from ..._observe.kubernetes.errors import ApiError
from ..._observe.kubernetes.shell import Clock
from ..._parse.kubernetes.resource import ResourceError, name_of
from ..._parse.operators.nic_configuration_operator import is_reported, nic_state
from ..._plan.nic_templates import find_progress
from ..._render.cluster.names import Object

PAUSE_SECONDS = 5.0
#: so long the operator may say nothing of a new template, and tries again what failed
GRACE_SECONDS = 120.0


def wait_for_nics(
    cluster: Cluster,
    wanted: typing.Mapping[str, Object],
    limit: float,
    clock: Clock,
    pause: typing.Callable[[float], None],
) -> dict[str, str]:
    """Wait until each NIC is configured or has failed, or until the limit. Return the reason for each NIC that is not
    configured, by name of its NicDevice. Return an empty dict if all are configured.

    The operator retries failed NICs, so a failure counts only after it has lasted ``GRACE_SECONDS``.

    :param wanted: desired template of each NIC, by name of its NicDevice
    :param limit: longest wait in seconds
    :param clock: function that returns the time of a monotonic clock, in seconds
    :param pause: function that sleeps for a number of seconds
    :raises ApiError: the NicDevices cannot be read when the limit is over
    """
    start, failed_since = clock(), typing.cast(dict[str, float], {})
    left: dict[str, str] = {}
    while wanted:
        try:
            found = _find_progress(cluster, wanted)
        except ApiError:
            # a node of the API server may be the one that reboots
            if clock() - start >= limit:
                raise
            pause(PAUSE_SECONDS)
            continue
        left = {name: why for name, (state, why) in found.items() if state != "done"}
        failed_since = {
            name: failed_since.get(name, clock()) for name, (state, _why) in found.items() if state == "failed"
        }
        through = all(name in failed_since and clock() - failed_since[name] >= GRACE_SECONDS for name in left)
        if through or clock() - start >= limit:
            break
        pause(PAUSE_SECONDS)
    return left


def _find_progress(
    cluster: Cluster, wanted: typing.Mapping[str, Object]
) -> dict[str, tuple[typing.Literal["done", "waits", "failed"], str]]:
    """Return the progress of each desired NIC (done, waits or failed) with the reason, by name of its NicDevice. A
    malformed NicDevice is treated as absent, and so is one without a status, which a user with rights in another
    namespace may have created with the name of a NIC.

    Other NicDevices are not kept in memory, because a daemon of the operator may create any number of them, of any
    size.

    :param wanted: desired template of each NIC, by name of its NicDevice
    :raises ApiError: the NicDevices cannot be read
    """
    found = {name: find_progress(None, template) for name, template in wanted.items()}
    for item in cluster.pages("NicDevice"):
        try:
            name = name_of(item)
            if name in wanted and is_reported(item):
                found[name] = find_progress(nic_state(item), wanted[name])
        except ResourceError:
            continue
    return found
