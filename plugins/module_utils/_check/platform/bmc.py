# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare the BIOS settings that the BMC of a node reports with their effects on the node, and check that the BMC
belongs to the node. Check ids: ``platform.bios``, ``platform.bmc_identity``, and additional text for
``platform.iommu``.

The effects that the node shows have precedence over the report of its BMC. The BMC decides if they are not known, and
names the setting if they show a failure.
"""

from __future__ import annotations

import dataclasses
import typing

from ..._analysis.fleet.bios import Wanted, in_words, list_states
from ..._model.base.phrases import format_clause
from ..._model.node.bios import BiosState, Key, NodeBios, ObservedBios
from ..._model.node.identity import Claims, Verdict
from ..._model.run.findings import FAIL, PASS, UNKNOWN, WARN, Finding, Status, build_pass
from .bios_texts import HARMS, describe_bios_remedy, describe_expected_setting

#: without which there are no VFs: they need the switch, memory for their BARs, and bus numbers
_FOR_FUNCTIONS: tuple[Key, ...] = ("sriov", "above_4g", "ari")
#: what a fabric with VFs wants of each BIOS; all other keys are advice
_NEEDED: Wanted = dict.fromkeys((*_FOR_FUNCTIONS, "iommu"), (True,))
#: findings that tell what the BMC says where they are no pass
_TELLING = ("platform.bios", "platform.iommu")
#: of what is judged by the BMC's word alone
_BY_BMC = "by its BMC: "
#: what is measured of a setting for which the BIOS has no attribute
_ABSENT = "not found"
_BAD = ("wrong", "read_only", "pending")


@dataclasses.dataclass(frozen=True)
class BmcReport:
    """The BIOS settings that the BMC of a node reports, or the reason why it reports none.

    :ivar error: why the BMC reported nothing about the node; empty if it did
    :ivar bios: BIOS settings that the BMC reports
    :ivar states: comparison of each setting with its desired value, by key
    :ivar wishes: keys that the intent sets
    :ivar verdict: whether the BMC belongs to the node; None if it did not answer
    """

    error: str = ""
    bios: NodeBios = dataclasses.field(default_factory=lambda: NodeBios("", "", ""))
    states: typing.Mapping[Key, BiosState] = dataclasses.field(default_factory=dict)
    wishes: frozenset[Key] = frozenset()
    verdict: typing.Optional[Verdict] = None

    def bad(self, *keys: Key) -> list[BiosState]:
        """Return those of the given settings that certainly differ from the desired value.

        :param keys: keys of the settings
        """
        return [self.states[key] for key in keys if key in self.states and self.states[key].state in _BAD]


def find_report(
    name: str, observed: typing.Optional[ObservedBios], claims: Claims, wishes: Wanted, functions: bool
) -> typing.Optional[BmcReport]:
    """Return the report of the BMC of a node; None if the inventory names no BMC.

    If the machine behind the BMC is not proven to be the node, the report has this error, and no setting is compared.

    :param name: name of the node
    :param observed: answer of the BMC; None if the inventory names no BMC
    :param claims: identities that the nodes and the BMCs report
    :param wishes: BIOS settings in the intent
    :param functions: whether the node must create VFs
    """
    if observed is None:
        return None
    if observed.error is not None or observed.value is None:
        return BmcReport(format_clause(observed.error, "the BMC returned no data"), wishes=frozenset(wishes))
    verdict = claims.judge(name, observed.value.identity, observed.value.asserted)
    if verdict.refused:
        return BmcReport(verdict.why, observed.value, wishes=frozenset(wishes), verdict=verdict)
    # a wish for a BIOS without VFs proves none
    wanted = {**_NEEDED, **wishes, **{key: _NEEDED[key] for key in _FOR_FUNCTIONS}} if functions else wishes
    return BmcReport(
        "",
        observed.value,
        {state.key: state for state in list_states(observed.value, wanted)},
        frozenset(wishes),
        verdict,
    )


def decide(finding: Finding, said: typing.Optional[BmcReport]) -> Finding:
    """Return a finding of status unknown on an HCA as the BIOS settings that the BMC reports decide it: failed if a
    setting that VFs need is wrong, passed if SR-IOV is on. Otherwise its status stays, and the cause is extended.

    Use this only if the node shows too little. If the node contradicts itself, the BMC must not decide.

    :param finding: finding on an HCA
    :param said: report of the BMC; None leaves the finding unchanged
    """
    if said is None:
        return finding
    if said.error:
        return dataclasses.replace(
            finding,
            why=f"{finding.why} The BMC of the node reports no settings: {format_clause(said.error)}.",
            remedy="On the controller, run curl -k https://ADDRESS/redfish/v1 with rdma_bmc_address of the node as"
            f" ADDRESS: the BMC must respond. {finding.remedy}",
        )
    bad, switch = said.bad(*_FOR_FUNCTIONS), said.states.get("sriov")
    if bad:
        return dataclasses.replace(
            finding,
            status=FAIL,
            measured=_join_measured_values(bad),
            expected=", ".join(describe_expected_setting(said.bios, state) for state in bad),
            why=_describe_reasons(bad),
            remedy=_collect_remedies(said, bad),
        )
    if switch is not None and switch.state == "ok":
        return build_pass(finding.check, finding.subject, f"{_BY_BMC}{switch.measured}", finding.expected)
    why = switch.why.rstrip(".") if switch else "SR-IOV is not desired"
    return dataclasses.replace(
        finding, why=f"{finding.why} The BMC does not determine it either: {format_clause(why)}."
    )


def explain(finding: Finding, said: typing.Optional[BmcReport], *keys: Key) -> Finding:
    """Return the finding with the BIOS settings that the BMC reports added to its cause. A passed finding is returned
    unchanged.

    :param said: report of the BMC; None leaves the finding unchanged
    :param keys: settings that can cause the failure; by default those that VFs need
    """
    if said is None or finding.status == PASS:
        return finding
    if said.error:
        return dataclasses.replace(
            finding, why=f"{finding.why} The BMC of the node reports no settings: {format_clause(said.error)}."
        )
    keys = keys or _FOR_FUNCTIONS
    shown = [
        state for key, state in said.states.items() if key in keys and state.measured and state.measured != _ABSENT
    ]
    if not shown:
        return finding
    bad = said.bad(*keys)
    remedy = (
        f"{_collect_remedies(said, bad)} If the finding remains, follow these steps. {finding.remedy}"
        if bad
        else finding.remedy
    )
    right = [state for state in shown if state.state == "ok"]
    others = [state for state in shown if state.state != "ok"]
    parts = (
        f" The BMC reports: {_join_measured_values(others)}." if others else "",
        f" The BMC reports as required: {_join_measured_values(right)}." if right else "",
    )
    return dataclasses.replace(finding, why=finding.why + "".join(parts), remedy=remedy)


def list_proven_keys(findings: typing.Iterable[Finding], ari: bool) -> frozenset[Key]:
    """Return the keys of BIOS settings that are certainly on because the node shows their effects, whatever the BMC
    reports.

    :param findings: findings on the node and its HCAs
    :param ari: whether ARI is on in all functions of the node
    """
    of_iommu = [finding.status for finding in findings if finding.check == "platform.iommu"]
    of_functions = [
        finding.status == PASS and not finding.measured.startswith(_BY_BMC)
        for finding in findings
        if finding.check == "platform.bios"
    ]
    keys: list[Key] = ["sriov", "above_4g"] if of_functions and all(of_functions) else []
    if keys and ari:
        keys.append("ari")
    if of_iommu and set(of_iommu) == {PASS}:
        keys.append("iommu")
    return frozenset(keys)


def check(
    name: str, said: typing.Optional[BmcReport], wishes: Wanted, findings: typing.Sequence[Finding], ari: bool = False
) -> typing.Iterator[Finding]:
    """Yield the findings on the BMC of a node: its identity, the BIOS settings that the intent asks for, and those that
    contradict the effects on the node.

    :param name: name of the node
    :param said: report of the BMC; None if the inventory names no BMC
    :param wishes: BIOS settings in the intent
    :param findings: findings on the node and its HCAs. A setting that they report is not reported again
    :param ari: whether ARI is on in all functions of the node
    """
    subject, expected = f"{name} BMC", "BIOS settings as desired, reported by the BMC"
    # what VFs need and the intent asks for is to be known, by the BMC or by the node
    unread: Status = UNKNOWN if {key for key in wishes if key in _NEEDED} - list_proven_keys(findings, ari) else WARN
    if said is None:
        if wishes:
            why = (
                f"The intent requires BIOS settings (rdma_cluster.bios: {', '.join(wishes)}). The inventory names no"
                " BMC for the node, so its BIOS settings were not read."
            )
            remedy = (
                "Set rdma_bmc_address, rdma_bmc_user and rdma_bmc_password of the node in the inventory, or remove"
                " rdma_cluster.bios from the intent. Then run stage platform again."
            )
            yield Finding("platform.bios", subject, unread, "not read: no BMC in the inventory", expected, why, remedy)
        return
    if said.verdict is not None:
        yield _check_identity(subject, said.bios, said.verdict)
        if said.verdict.refused:
            return
    if said.error:
        yield Finding(
            "platform.bios",
            subject,
            unread,
            "not read",
            expected,
            f"The BMC reported no BIOS settings: {format_clause(said.error)}.",
            "On the controller, run curl -k https://ADDRESS/redfish/v1 with rdma_bmc_address of the node as"
            " ADDRESS. If the BMC does not respond, correct the address or the network to the BMC. If it responds,"
            " correct rdma_bmc_user and rdma_bmc_password in the inventory. Then run stage platform again.",
        )
        return
    told_of = {
        "iommu" if finding.check == "platform.iommu" else "sriov"
        for finding in findings
        if finding.check in _TELLING and finding.status != PASS
    }
    by_node = [
        state
        for state in said.states.values()
        if state.key in list_proven_keys(findings, ari) and _is_left_open(state, said)
    ]
    wrong = [
        (state, status)
        for state in said.states.values()
        for status in [_choose_status(state, said, told_of, state in by_node)]
        if status
    ]
    for state, status in wrong:
        yield Finding(
            "platform.bios",
            f"{subject} {state.key}",
            status,
            state.measured,
            describe_expected_setting(said.bios, state),
            _describe_reasons([state]),
            _collect_remedies(said, [state]),
        )
    if not wrong:
        shown = [state for state in said.states.values() if state.state == "ok"]
        system = " ".join(part for part in (said.bios.vendor, said.bios.model, said.bios.version) if part)
        asked = [
            f"{state.key} verified on the node ({_ABSENT} in its BIOS)" for state in by_node if state.key in said.wishes
        ]
        measured = ", ".join(part for part in (_join_measured_values(shown), *asked) if part)
        yield build_pass(
            "platform.bios",
            subject,
            ": ".join(part for part in (system, measured) if part) or "the BMC responded",
            expected,
        )


def _check_identity(subject: str, bios: NodeBios, verdict: Verdict) -> Finding:
    check, expected = "platform.bmc_identity", "the identity of this node, reported by the BMC"
    if verdict.state == "proven":
        return build_pass(check, subject, str(bios.identity), expected)
    why = f"{verdict.why[0].upper()}{verdict.why[1:]}."
    if verdict.state == "asserted":
        remedy = (
            "Let Ansible read the node as root, so that the DMI data of the node can be compared with the BMC. Then"
            " remove rdma_bmc_identity from the inventory and run stage platform again."
        )
        return Finding(check, subject, WARN, f"asserted, not verified: {bios.identity}", expected, why, remedy)
    status: Status = FAIL if verdict.state == "other" else UNKNOWN
    return Finding(
        check,
        subject,
        status,
        str(bios.identity),
        expected,
        f"{why} The BIOS settings that this BMC reports are ignored.",
        f"{verdict.remedy}. Then run stage platform again.",
    )


def _choose_status(
    state: BiosState, said: BmcReport, told_of: typing.Container[str], by_node: bool
) -> typing.Optional[Status]:
    """Return the status of a finding on a BIOS setting. Return None if the setting is right, or another finding reports
    it.

    :param state: comparison of the BIOS setting with its desired value
    :param said: report of the BMC
    :param told_of: ``iommu`` and ``sriov``, if a finding of the node reports the BMC's settings for it
    :param by_node: whether the node proves the setting to be on, and the BIOS does not report it
    """
    if state.state == "ok":
        return None
    asked, needed = state.key in said.wishes, state.key in _NEEDED
    if asked and by_node:
        return None if state.measured == _ABSENT else WARN
    if asked:
        return WARN if not needed else UNKNOWN if state.state == "unknown" else FAIL
    # not every BIOS has each of them
    silent = state.measured == _ABSENT or ("iommu" if state.key == "iommu" else "sriov") in told_of
    return None if silent else WARN


def _is_left_open(state: BiosState, said: BmcReport) -> bool:
    """Return whether the BMC leaves open if a desired BIOS setting is on, because the BIOS has no such attribute or its
    value is ``Auto``. The result is False for a setting that waits for a reset.

    :param state: comparison of the BIOS setting with its desired value
    :param said: report of the BMC
    """
    waits = any(
        one.pending is not None
        for setting in said.bios.settings
        if setting.key == state.key
        for one in setting.attributes
    )
    return (
        state.state == "unknown"
        and state.wanted == (True,)
        and (state.measured == _ABSENT or not (waits or said.bios.pending_error))
    )


def _join_measured_values(shown: typing.Iterable[BiosState]) -> str:
    return ", ".join(state.measured for state in shown)


def _describe_reasons(bad: typing.Sequence[BiosState]) -> str:
    """Return the sentence with the reasons why BIOS settings are not as desired.

    :param bad: states of the BIOS settings that are not as desired
    """
    if all(state.measured == _ABSENT for state in bad):
        keys = ", ".join(f"rdma_cluster.bios.{state.key}" for state in bad)
        return f"The BIOS of the node has no setting that linerate.rdma knows for {keys}. {_join_reasons(bad)}."
    off = [state for state in bad if state.wanted == (True,) and state.state != "unknown"]
    harms = dict.fromkeys(HARMS[state.key] for state in off if state.key in HARMS)
    # a reason that only repeats the measured and the expected value is left out
    told = [state for state in bad if not _has_only_values(state)]
    asked = [state for state in bad if state not in told and not (state in off and state.key in HARMS)]
    names = ", ".join(f"rdma_cluster.bios.{state.key}" for state in asked)
    sentences = [
        *([f"The BIOS reports {_join_reasons(told)}."] if told else []),
        *([f"The intent requires another value than the BIOS has: {names}."] if asked else []),
    ]
    return " ".join([*sentences, *harms])


def _has_only_values(state: BiosState) -> bool:
    """Return whether the reason of a BIOS state contains nothing but the present value and the desired value.

    :param state: comparison of the BIOS setting with its desired value
    """
    return all(part.endswith(f", not {in_words(state.wanted)}") for part in state.why.split("; "))


def _join_reasons(bad: typing.Iterable[BiosState]) -> str:
    return "; ".join(state.why.rstrip(".") for state in bad)


def _collect_remedies(said: BmcReport, bad: typing.Iterable[BiosState]) -> str:
    return " ".join(dict.fromkeys(describe_bios_remedy(said.bios, state) for state in bad))
