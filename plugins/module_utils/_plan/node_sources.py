# SPDX-License-Identifier: GPL-3.0-or-later

"""What differs on a node from what is wanted of it, by each source that a reset brings into force. Pure."""

from __future__ import annotations

import typing

from .._check.fleet.bios import Wanted, in_words, states
from .._model.bios import NodeBios
from .._model.kernel_arguments import ObservedKernelArguments
from .._model.node_roll import Difference, Needs, Seen
from .bios import plan as plan_bios

KERNEL = "kernel argument"


def of_bios(bios: NodeBios, wanted: Wanted) -> Seen:
    """What of a BIOS is not as wanted, and what of that nobody can set."""
    planned = plan_bios(bios, wanted)
    waits_not = {key for key in wanted if all(not write.reset_required for write in planned.writes if write.key == key)}
    found = []
    for state in states(bios, wanted):
        if state.state in ("wrong", "pending"):
            written = any(write.key == state.key for write in planned.writes)
            needs: Needs = "nothing" if state.state == "wrong" and written and state.key in waits_not else "reboot"
            how = "set by its BMC" if written else "waits for a reset"
            found.append(Difference("BIOS", state.key, state.measured, in_words(state.wanted), needs, how))
    return Seen(tuple(found), tuple(f"BIOS {one.key}: {one.why.rstrip('.')}. {one.remedy.rstrip('.')}." for one in planned.refusals))


def of_kernel(observed: ObservedKernelArguments, wanted: typing.Sequence[str]) -> Seen:
    """Which of the wanted kernel arguments the node runs without. They were written for the next boot before, by the node itself."""
    value = observed.value
    if value is None or observed.error is not None:
        return Seen(error=f"its kernel arguments are not known: {observed.error or 'empty answer'}") if wanted else Seen()
    missing = [argument for argument in wanted if argument in value.missing]
    refusals = (f"Kernel arguments {', '.join(missing)}: {value.refusal}",) if missing and value.refusal else ()
    differences = tuple(Difference(KERNEL, argument, "absent", "set", how="by its boot loader") for argument in missing)
    return Seen(differences, refusals, boots=(value.boot,))
