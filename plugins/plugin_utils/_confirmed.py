# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection linerate.rdma: no other code may import this.

"""Asks for the Lease right before a module writes on a node, in the process that runs that module: no API server would refuse the write."""

from __future__ import annotations

import typing

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.linerate.rdma.plugins.module_utils._cluster import cluster_spec, connect
from ansible_collections.linerate.rdma.plugins.module_utils._lease import LEASE_SPEC, assure
from ansible_collections.linerate.rdma.plugins.module_utils._model.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.guard import LONGEST, START
from ansible_collections.linerate.rdma.plugins.plugin_utils._controller import Caller

#: options of who confirms: the run, and what leads to its cluster
CONFIRM_SPEC: typing.Dict[str, typing.Any] = cluster_spec(**LEASE_SPEC, facts_dir={"type": "path"}, run={"type": "str"})


def confirm(name: str, given: typing.Mapping[str, typing.Any], check_mode: bool) -> None:
    """See that the run holds the Lease, and that nobody else can take it while the write may last. In check mode nothing is written.

    :param name: of the action, without that of the collection
    :param given: options; those of CONFIRM_SPEC count
    :raises RdmaError: it does not, or nobody knows
    """
    if check_mode:
        return
    checked = ArgumentSpecValidator(CONFIRM_SPEC).validate({option: given[option] for option in CONFIRM_SPEC if given.get(option) is not None})
    if checked.error_messages:
        raise RdmaError("; ".join(checked.error_messages), "Correct the option")
    caller = typing.cast(typing.Any, Caller(name, checked.validated_parameters, False))
    assure(caller, connect(caller), LONGEST + START)
