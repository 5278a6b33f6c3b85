# Copyright: (c) 2026, The linerate.rdma authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Faults of a worker as a machine: its power, its BIOS, its BMC and its kernel. Each is injected for real, and has its
way back."""

from __future__ import annotations

import signal

from .bmc import bios
from .fault import Action, Fault, Target, on_worker
from .planes import Lab

#: seconds for each answer of a slow BMC
_SLOW_BMC = 30.0


def _power_off(lab: Lab, target: Target) -> str:
    lab.processes.stop(lab.worker(target.worker).name)
    return f"{target.worker} has no power"


def _power_on(lab: Lab, target: Target) -> str:
    lab.boot(target.worker)
    return f"{target.worker} has booted"


def _iommu(on: bool) -> Action:
    def act(lab: Lab, target: Target) -> str:
        lab.switch_iommu(target.worker, on)
        return f"{target.worker} has booted {'with' if on else 'without'} an IOMMU"

    return act


def _bmc_off(lab: Lab, target: Target) -> str:
    lab.bmc(target.worker).stop()
    return f"the BMC of {target.worker} is dead"


def _change_password(lab: Lab, target: Target) -> str:
    lab.bmc(target.worker).change_password()
    return f"the BMC of {target.worker} has another password"


def _slow_bmc(lab: Lab, target: Target) -> str:
    lab.bmc(target.worker).slow_down(_SLOW_BMC)
    return f"the BMC of {target.worker} takes {_SLOW_BMC:.0f} s for each answer"


def _expire_bmc(lab: Lab, target: Target) -> str:
    lab.bmc(target.worker).expire(lab.authority)
    return f"the certificate of the BMC of {target.worker} has expired"


def _lock_bmc(on: bool) -> Action:
    def act(lab: Lab, target: Target) -> str:
        lab.bmc(target.worker).alter(lambda bios: bios.lock(on))
        return f"the BMC of {target.worker} is {'locked' if on else 'unlocked'}"

    return act


def _contend(on: bool) -> Action:
    def act(lab: Lab, target: Target) -> str:
        lab.bmc(target.worker).contend(on)
        return f"{'somebody else changes' if on else 'nobody else changes'} what waits in the BIOS of {target.worker}"

    return act


def _hold_bios(lab: Lab, target: Target) -> str:
    lab.bmc(target.worker).alter(lambda bios: bios.hold())
    return f"a job holds the BIOS of {target.worker}"


def _release_bios(lab: Lab, target: Target) -> str:
    lab.bmc(target.worker).alter(lambda bios: bios.release())
    return f"no job holds the BIOS of {target.worker}"


def _sriov(on: bool) -> Action:
    def act(lab: Lab, target: Target) -> str:
        bmc = lab.bmc(target.worker)

        def switch(bios: bios.Bios) -> None:
            bios.attributes[bmc.worker.bmc.sriov] = "Enabled" if on else "Disabled"

        bmc.alter(switch)
        return f"SR-IOV is {'on' if on else 'off'} in the BIOS of {target.worker}"

    return act


def _stubborn_bios(lab: Lab, target: Target) -> str:
    bmc = lab.bmc(target.worker)
    bmc.keep_settings((bmc.worker.bmc.sriov,))
    return f"the BIOS of {target.worker} says yes to {bmc.worker.bmc.sriov}, and does not take it"


def _willing_bios(lab: Lab, target: Target) -> str:
    lab.bmc(target.worker).keep_settings(())
    return f"the BIOS of {target.worker} takes what it is given"


def _huge_pages(mode: str) -> Action:
    def act(lab: Lab, target: Target) -> str:
        on_worker(lab, target.worker, f"echo {mode} > /sys/kernel/mm/transparent_hugepage/enabled")
        return f"{target.worker}: transparent hugepages are {mode}"

    return act


def _bmc_on(lab: Lab, target: Target) -> str:
    bmc = lab.bmc(target.worker)
    bmc.stop()
    bmc.start()
    return f"the BMC of {target.worker} serves"


def _freeze(lab: Lab, target: Target) -> str:
    lab.processes.signal(lab.worker(target.worker).name, signal.SIGSTOP)
    return f"{target.worker} hangs"


def _thaw(lab: Lab, target: Target) -> str:
    lab.processes.signal(lab.worker(target.worker).name, signal.SIGCONT)
    return f"{target.worker} goes on"


MACHINE_FAULTS = (
    Fault("worker-off", "a worker loses power; taken back, it boots anew", ("worker",), _power_off, _power_on),
    Fault(
        "iommu-off",
        "the IOMMU of a worker is switched off in its BIOS, and its BMC resets it",
        ("worker",),
        _iommu(False),
        _iommu(True),
    ),
    Fault("bmc-dead", "the BMC of a worker is dead", ("worker",), _bmc_off, _bmc_on),
    Fault("bmc-password", "the BMC of a worker has another password", ("worker",), _change_password, _bmc_on),
    Fault("bmc-slow", f"the BMC of a worker takes {_SLOW_BMC:.0f} s for each answer", ("worker",), _slow_bmc, _bmc_on),
    Fault("bmc-expired", "the certificate of a worker's BMC has expired", ("worker",), _expire_bmc, _bmc_on),
    Fault("bmc-locked", "the BMC of a worker is in lockdown", ("worker",), _lock_bmc(True), _lock_bmc(False)),
    Fault(
        "bmc-job",
        "a job of somebody else holds the BIOS of a worker, and never ends",
        ("worker",),
        _hold_bios,
        _release_bios,
    ),
    Fault(
        "bmc-contended",
        "somebody else changes the settings of a worker's BMC before each write",
        ("worker",),
        _contend(True),
        _contend(False),
    ),
    Fault("sriov-off", "SR-IOV is switched off in the BIOS of a worker", ("worker",), _sriov(False), _sriov(True)),
    Fault(
        "bios-stubborn",
        "the BIOS of a worker says yes to SR-IOV, and does not take it at a reset",
        ("worker",),
        _stubborn_bios,
        _willing_bios,
    ),
    Fault("thp", "transparent hugepages of a worker are off", ("worker",), _huge_pages("never"), _huge_pages("always")),
    Fault("worker-frozen", "a worker hangs: its links are up, it does not answer", ("worker",), _freeze, _thaw),
)
