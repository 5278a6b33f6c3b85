# SPDX-License-Identifier: GPL-3.0-or-later

"""Check the tuning values that the intent expects on the nodes: known rows and valid rules. Part of stage validate.
Check id: ``validate.tuning``.
"""

from __future__ import annotations

import re
import typing

from ..._model.base.load_error import Hints
from ..._model.base.rules import run_rule, run_rules
from ..._model.intent.intent import Fabric, Intent
from ..._model.intent.profiles import is_infiniband, owns_rdma
from ..._model.node.tuning import Tuning
from ..._model.node.tuning_rows.gpu import LEAST_DRIVER
from ..._model.node.tuning_rows.row import choose_setting, rule_of
from ..._model.node.tuning_rows.table import BY_NAME
from ..._model.run.findings import FAIL, Finding, build_pass
from .refusal import format_value

_CHECK, _PATH = "validate.tuning", "rdma_cluster.tuning"
#: what goes into a profile of TuneD, which runs commands by ${f:exec:...}
_PLAIN = re.compile(r"[A-Za-z0-9_+.-]{1,64}", re.ASCII)
_CUDA = re.compile(r"([0-9]{1,2})(\.[0-9]{1,2})?", re.ASCII)


def check(intent: Intent) -> list[Finding]:
    """Check ``rdma_cluster.tuning`` and the key ``roce`` of each fabric: the names of the tuning rows exist, their
    values are valid, and values to be set can be set. Return one failed finding for each mistake, or one pass."""
    findings = run_rules((_check_expected, _check_set_values, _check_cuda), intent.cluster.tuning)
    for index, fabric in enumerate(intent.fabrics):
        findings += run_rule(_check_roce, fabric, f"rdma_fabrics[{index}].roce")
    return findings or [
        build_pass(_CHECK, _PATH, f"profile {intent.cluster.tuning.profile}", "known rows and valid values")
    ]


def _check_expected(tuning: Tuning) -> typing.Iterator[Finding]:
    hints = Hints()
    for name, written in tuning.expected.items():
        if name not in BY_NAME:
            expected = f"the name of a setting in the README of role tuning{hints.nearest(name, BY_NAME)}"
            why = "No setting has this name, so this expectation would apply to no node."
            yield Finding(
                _CHECK,
                f"{_PATH}.expected.{name}",
                FAIL,
                f"'{name}'",
                expected,
                why,
                f"Replace {name} in {_PATH}.expected by a name from the README of role tuning. Then run"
                " stage validate again.",
            )
        elif written is not None and rule_of(written) is None:
            expected = "text or an integer, several values separated by |, >=N, <=N, or null"
            why = "No setting of a node can have a value of this type or form."
            remedy = (
                f"Set {_PATH}.expected.{name} to a value in quotes: YAML reads on or off without quotes as a"
                " boolean. Then run stage validate again."
            )
            yield Finding(_CHECK, f"{_PATH}.expected.{name}", FAIL, format_value(written), expected, why, remedy)


def _check_set_values(tuning: Tuning) -> typing.Iterator[Finding]:
    for name, written in tuning.expected.items() if tuning.set else ():
        row, rule = BY_NAME.get(name), rule_of(written)
        if row is None or row.setting is None or rule is None:
            continue
        _bound, value = choose_setting(rule, row.setting.best)
        if not _PLAIN.fullmatch(value):
            why = "Stage tuning would write the value into a profile of TuneD, which would interpret it differently."
            expected = "a number or a word, since rdma_cluster.tuning.set is true"
            yield Finding(
                _CHECK,
                f"{_PATH}.expected.{name}",
                FAIL,
                f"'{value}'",
                expected,
                why,
                f"Set {_PATH}.expected.{name} to the value in the form in which the kernel shows it, without"
                " blanks. Then run stage validate again.",
            )


def _check_cuda(tuning: Tuning) -> typing.Iterator[Finding]:
    if tuning.cuda is None:
        return
    match = _CUDA.fullmatch(tuning.cuda)
    if not match or int(match.group(1)) not in LEAST_DRIVER:
        known = ", ".join(str(major) for major in sorted(LEAST_DRIVER))
        why = "linerate.rdma does not know which GPU driver this version of CUDA requires."
        remedy = (
            f"Set {_PATH}.cuda to one of these versions as MAJOR.MINOR in quotes, for example '13.0'. For another"
            f" version of CUDA, remove {_PATH}.cuda, and set {_PATH}.expected.gpu_driver to the driver version that"
            " this CUDA requires, for example '>=580'. Then run stage validate again."
        )
        yield Finding(
            _CHECK,
            f"{_PATH}.cuda",
            FAIL,
            f"'{tuning.cuda}'",
            f"MAJOR.MINOR of a version of CUDA {known}: '13.0'",
            why,
            remedy,
        )


def _check_roce(fabric: Fabric, path: str) -> typing.Iterator[Finding]:
    if fabric.roce is None:
        return
    if is_infiniband(fabric) or not owns_rdma(fabric):
        why = "The settings of roce apply only to RDMA over Ethernet."
        yield Finding(
            _CHECK,
            path,
            FAIL,
            "a mapping",
            f"no roce with {fabric.profile}",
            why,
            f"Remove {path}, or set the profile of this fabric to one with RDMA over Ethernet, such as"
            " sriov_ethernet. Then run stage validate again.",
        )
        return
    for key, value, most in (("dscp", fabric.roce.dscp, 63), ("priority", fabric.roce.priority, 7)):
        if not 0 <= value <= most:
            yield Finding(
                _CHECK,
                f"{path}.{key}",
                FAIL,
                str(value),
                f"0 to {most}",
                "The field in the packet header cannot hold this number.",
                f"Set {path}.{key} to a number in this range. Then run stage validate again.",
            )
