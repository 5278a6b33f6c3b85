# SPDX-License-Identifier: GPL-3.0-or-later

"""The error counters of a soak: what can't show growth is no proof that nothing grew."""

from __future__ import annotations

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._analysis.measurement.hca_errors import compare_readings
from ansible_collections.linerate.rdma.plugins.module_utils._check.collectives.soak import judge_soak_errors
from ansible_collections.linerate.rdma.plugins.module_utils._model.infiniband.counters import BITS

Counters = dict[str, int]
QUIET: Counters = {"link_downed": 3, "symbol_error": 9, "packet_seq_err": 0}


def judged(before: Counters, after: Counters) -> tuple[str, str, str]:
    found = compare_readings("node-1", "mlx5_4", {"mlx5_4": before}, {"mlx5_4": after}, 1800.0)
    (finding,) = judge_soak_errors("soak", [("node-1", "mlx5_4")], [found])
    assert finding.status == "pass" or finding.remedy
    assert ("maximum" in finding.measured) == (
        "run perfquery -C mlx5_4 -P PORT -R as root on node-1, " in finding.remedy
    )
    return finding.status, finding.measured, finding.why


@pytest.mark.parametrize(
    ("before", "after", "status", "measured", "why"),
    [
        (QUIET, QUIET, "pass", "no error counter of 1 of 1 HCA increased", ""),
        (QUIET, {**QUIET, "packet_seq_err": 5}, "warn", "packet_seq_err +5", "10 packet_seq_err per hour"),
        (QUIET, {**QUIET, "link_downed": 4}, "fail", "link_downed +1", ""),
        (QUIET, {**QUIET, "symbol_error": 8}, "unknown", "counters reset", "lower after the measurement than before"),
        # at the maximum, where they stay
        (
            {**QUIET, "link_downed": 255},
            {**QUIET, "link_downed": 255},
            "unknown",
            "counters at their maximum: link_downed",
            "stays",
        ),
        (
            {**QUIET, "symbol_error": 65535},
            {**QUIET, "symbol_error": 65535},
            "unknown",
            "counters at their maximum",
            "stays",
        ),
        ({"excessive_buffer_overrun_errors": 15}, {"excessive_buffer_overrun_errors": 15}, "unknown", "maximum", ""),
        # of more bits than the port of the specification
        ({"symbol_error": 70000}, {"symbol_error": 70000}, "pass", "", ""),
        ({"packet_seq_err": 65535}, {"packet_seq_err": 65535}, "pass", "", ""),
        # read at one time only
        (
            QUIET,
            {"symbol_error": 9},
            "unknown",
            "counters read only once: link_downed, packet_seq_err",
            "only before the soak or only after it",
        ),
        (
            {"symbol_error": 9},
            QUIET,
            "unknown",
            "counters read only once: link_downed, packet_seq_err",
            "only before the soak or only after it",
        ),
        # what is known to be a fault is told as one, and a warning does not hide what is not known
        ({**QUIET, "symbol_error": 65535}, {"link_downed": 4, "symbol_error": 65535}, "fail", "link_downed +1", ""),
        (
            QUIET,
            {"link_downed": 3, "symbol_error": 12},
            "unknown",
            "counters read only once: packet_seq_err; symbol_error +3",
            "",
        ),
    ],
)
def test_counters_that_cannot_show_growth_are_unknown(
    before: Counters, after: Counters, status: str, measured: str, why: str
) -> None:
    found = judged(before, after)
    assert (found[0], measured in found[1], why in found[2]) == (status, True, True), found


def test_the_maximum_of_each_counter_of_a_port_is_known() -> None:
    names = {
        "symbol_error": "SymbolErrorCounter",
        "link_error_recovery": "LinkErrorRecoveryCounter",
        "link_downed": "LinkDownedCounter",
        "port_rcv_errors": "PortRcvErrors",
        "port_rcv_remote_physical_errors": "PortRcvRemotePhysicalErrors",
        "port_xmit_discards": "PortXmitDiscards",
        "port_xmit_constraint_errors": "PortXmitConstraintErrors",
        "port_rcv_constraint_errors": "PortRcvConstraintErrors",
        "local_link_integrity_errors": "LocalLinkIntegrityErrors",
        "excessive_buffer_overrun_errors": "ExcessiveBufferOverrunErrors",
    }
    for name, counter in names.items():
        most = (1 << BITS[counter]) - 1
        assert judged({name: most}, {name: most})[0] == "unknown", name
        assert judged({name: most - 1}, {name: most - 1})[0] == "pass", name
