# SPDX-License-Identifier: GPL-3.0-or-later

"""What is to be set of the host under the network: of each row for which there is a rule, and which needs no reboot,
the one value that fits the rule."""

from __future__ import annotations

import typing

from .._check.tuning.rows import wanted
from .._model.intent.intent import Intent
from .._model.node.node_tuning import Settings
from .._model.node.tuning_rows.row import TuningRow, chosen
from .._model.node.tuning_rows.table import ROWS

#: of all CPUs
_GOVERNOR = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"
_HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage"


def collect_settings(intent: Intent) -> Settings:
    """Nothing where the intent does not ask for it. What experts contradict each other about has no rule, unless the
    intent itself has one."""
    sections: dict[str, dict[str, str]] = {"cpu": {}, "vm": {}, "sysctl": {}, "modules": {}}
    rows: list[str] = []
    for row in ROWS if intent.cluster.tuning.set else ():
        value = _find_tuned_value(row, wanted(intent, row).rule)
        if row.setting is not None and value is not None:
            sections[row.setting.section][row.setting.key] = value
            rows.append(row.name)
    return Settings(**sections, rows=tuple(rows))


def _find_tuned_value(row: TuningRow, rule: str) -> typing.Optional[str]:
    """As TuneD writes it; None: it can't be set so. Of a sysctl a bound is one to TuneD as well: it never takes away
    what fits.

    [tuned/plugins/base.py _process_assignment_modifiers; TuneD's own profile openshift has kernel.pid_max=>4194304]
    """
    if row.setting is None or not rule:
        return None
    bound, value = chosen(rule, row.setting.best)
    if row.setting.word:
        return row.setting.word if value == row.setting.best else None
    return f"{bound}{value}" if row.setting.section == "sysctl" else value


def collect_kernel_settings(found: Settings) -> dict[str, dict[str, str]]:
    """Options of the module kernel_settings; none where nothing is to be set that it can set. It knows neither idle
    states nor modules of the kernel."""
    files = {
        _GOVERNOR: found.cpu.get("governor", ""),
        f"{_HUGE_PAGES}/enabled": found.vm.get("transparent_hugepages", ""),
        f"{_HUGE_PAGES}/defrag": found.vm.get("transparent_hugepage.defrag", ""),
    }
    options = {"sysctl": dict(found.sysctl), "sysfs": {path: value for path, value in files.items() if value}}
    return {name: values for name, values in options.items() if values}
