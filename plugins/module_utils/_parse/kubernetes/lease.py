# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the Lease (coordination.k8s.io/v1) of the run that changes the cluster."""

from __future__ import annotations

import datetime
import email.utils
import re
import typing

from ..._model.base.text import cut_plain
from ..._model.boundary.kubernetes import UID
from ..._model.boundary.words import WORD
from ..._model.run.lease import BETWEEN, Holder, Lease
from .resource import Resource, mapping_at, moment_of, normalize_known

#: annotations: who holds it, in more words than spec.holderIdentity has
RUN, HOST, PROCESS, DOING = (f"linerate.rdma/{name}" for name in ("run", "host", "process", "module"))
#: annotation: monotonic time of the holder's machine at the renewal, in seconds
CLOCK = "linerate.rdma/clock"
_CLOCK = re.compile(r"([0-9]{1,10})\.([0-9]{3})")
#: characters of each name that a Lease contains; those of runs are shorter
_MOST_WORDS = 256


def parse_lease(resource: Resource) -> Lease:
    """Parse the Lease of the run that changes the cluster, whichever client wrote it. An invalid field gets its
    default. Long names are cut, because each message about the Lease contains them. The Lease is free only if
    spec.holderIdentity is empty. If the annotations of linerate.rdma are missing, spec.holderIdentity is used as the
    name of the holder.

    :raises ResourceError: the object has an unexpected form
    """
    metadata, spec = mapping_at(resource, "metadata"), mapping_at(resource, "spec")
    annotations, identity = mapping_at(metadata, "annotations"), str(spec.get("holderIdentity") or "")
    told = {key: cut_plain(str(annotations.get(key) or ""), _MOST_WORDS) for key in (RUN, HOST, PROCESS, DOING)}
    clock = _CLOCK.fullmatch(str(annotations.get(CLOCK) or ""))
    seconds, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    return Lease(
        # an empty identity is a Lease that was let go, whatever its annotations say
        (Holder(told[RUN] or cut_plain(identity, _MOST_WORDS), told[HOST], told[PROCESS]) if identity else Holder("")),
        moment_of(spec.get("acquireTime")),
        moment_of(spec.get("renewTime")),
        seconds if isinstance(seconds, int) and seconds > 0 else BETWEEN,
        transitions if isinstance(transitions, int) else 0,
        told[DOING],
        normalize_known(UID, metadata.get("uid")),
        normalize_known(WORD, metadata.get("resourceVersion")),
        float(clock.group()) if clock else None,
    )


def http_date(text: str) -> typing.Optional[datetime.datetime]:
    """Parse the header Date of a response (RFC 9110, 5.6.7) and return it in UTC. Return None if the header is missing
    or not a date.
    """
    try:
        found = email.utils.parsedate_to_datetime(text)
    except (TypeError, ValueError, IndexError):
        return None
    return found.replace(tzinfo=found.tzinfo or datetime.timezone.utc).astimezone(datetime.timezone.utc)
