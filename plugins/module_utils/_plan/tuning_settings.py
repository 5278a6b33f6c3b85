# SPDX-License-Identifier: GPL-3.0-or-later

"""The tuning settings to write on hosts: a value for each row of the tuning table that has a rule and takes effect
without a reboot.
"""

from __future__ import annotations

import typing

from .._check.tuning.rows import get_expected_value
from .._model.intent.intent import Intent
from .._model.node.node_tuning import Settings
from .._model.node.tuning_rows.row import TuningRow, choose_setting
from .._model.node.tuning_rows.table import ROWS

#: of all CPUs
_GOVERNOR = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"
_HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage"


def collect_settings(intent: Intent) -> Settings:
    """Return the settings to write; empty if the intent does not enable them. A tuning row for which experts recommend
    different values has no rule, and therefore no setting, unless the intent sets its value.
    """
    sections: dict[str, dict[str, str]] = {"cpu": {}, "vm": {}, "sysctl": {}, "modules": {}}
    rows: list[str] = []
    for row in ROWS if intent.cluster.tuning.set else ():
        value = _find_tuned_value(row, get_expected_value(intent, row).rule)
        if row.setting is not None and value is not None:
            sections[row.setting.section][row.setting.key] = value
            rows.append(row.name)
    return Settings(**sections, rows=tuple(rows))


def _find_tuned_value(row: TuningRow, rule: str) -> typing.Optional[str]:
    """Return the value of a tuning row in the syntax of TuneD; None if TuneD cannot set it. A rule that is a bound,
    such as a minimum, is passed as a bound for sysctls, so that TuneD keeps a value that already satisfies it.

    [tuned/plugins/base.py _process_assignment_modifiers; TuneD's own profile openshift has kernel.pid_max=>4194304]

    :param row: tuning row (one observable property of a node)
    :param rule: rule that the value must satisfy; empty if no value is expected
    """
    if row.setting is None or not rule:
        return None
    bound, value = choose_setting(rule, row.setting.best)
    if row.setting.word:
        return row.setting.word if value == row.setting.best else None
    return f"{bound}{value}" if row.setting.section == "sysctl" else value


def collect_kernel_settings(found: Settings) -> dict[str, dict[str, str]]:
    """Return the options of the module kernel_settings: ``sysctl`` with values by name, and ``sysfs`` with values by
    path. An option without values is left out. The module supports neither CPU idle states nor kernel modules, so these
    settings are left out.

    :param found: settings of the intent in the sections of TuneD
    """
    files = {
        _GOVERNOR: found.cpu.get("governor", ""),
        f"{_HUGE_PAGES}/enabled": found.vm.get("transparent_hugepages", ""),
        f"{_HUGE_PAGES}/defrag": found.vm.get("transparent_hugepage.defrag", ""),
    }
    options = {"sysctl": dict(found.sysctl), "sysfs": {path: value for path, value in files.items() if value}}
    return {name: values for name, values in options.items() if values}
