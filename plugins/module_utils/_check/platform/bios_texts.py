# SPDX-License-Identifier: GPL-3.0-or-later

"""Texts on BIOS settings: the desired value of a setting, the change to it, the steps to it, and the effect
of a wrong value."""

from __future__ import annotations

from ..._analysis.fleet.bios import describe_way_out, in_words, is_right, select_concerned
from ..._model.node.bios import BiosState, Key, NodeBios

#: effects of settings that are off although they must be on, by key
HARMS: dict[Key, str] = {
    "sriov": "Without SR-IOV in the BIOS, VFs get no memory and no bus numbers, so the kernel cannot create them.",
    "above_4g": "Without memory above 4 GiB for PCI, the memory of the VFs may not fit, so the kernel creates none.",
    "ari": "Without ARI, VFs need bus numbers of their own, so the kernel may not create all of them.",
    "iommu": "Without an IOMMU, no pod can drive a VF itself (vfio-pci).",
}
_SETTLES = "With -e platform_settle=true, stage platform does this itself, one node after another."


def describe_expected_setting(bios: NodeBios, state: BiosState) -> str:
    """Return the desired value of a BIOS setting as text: the names and values of its attributes, if the BMC reports
    them, and the key and value of linerate.rdma.

    :param bios: BIOS settings that the BMC reports
    :param state: comparison of the BIOS setting with its desired value
    """
    wanted = f"{state.key}: {in_words(state.wanted)}"
    if bios.pending_error and bios.pending_error in state.why:
        return f"{state.measured} ({wanted}), also after the next reset"
    values = _list_desired_values(bios, state)
    return f"{', '.join(f'{name} {value}' for name, value in values)} ({wanted})" if values else wanted


def _list_desired_values(bios: NodeBios, state: BiosState) -> list[tuple[str, str]]:
    """Return the names of the BIOS attributes of a setting that are not as desired, each with the desired values that
    the attribute supports. Return an empty list if an attribute supports none, or the BMC does not report its values.

    :param bios: BIOS settings that the BMC reports
    :param state: comparison of the BIOS setting with its desired value
    """
    setting = next((one for one in bios.settings if one.key == state.key), None)
    found = []
    for attribute in select_concerned(setting, state.wanted) if setting is not None else ():
        later = attribute.current if attribute.pending is None else attribute.pending
        if all(is_right(state.key, attribute, value, state.wanted) for value in (attribute.current, later)):
            continue
        values = [one.value for one in attribute.allowed if is_right(state.key, attribute, one.value, state.wanted)]
        if not values:
            return []
        found.append((attribute.name, " or ".join(values)))
    return found


def name_change(bios: NodeBios, state: BiosState) -> str:
    """Return the change of a BIOS setting as text, such as ``SriovGlobalEnable to Enabled``.

    If the names or values of the BIOS are not known, use the key and value of linerate.rdma.

    :param bios: BIOS settings that the BMC reports
    :param state: comparison of the BIOS setting with its desired value
    """
    values = _list_desired_values(bios, state) or [(state.key, in_words(state.wanted))]
    return ", ".join(f"{name} to {value}" for name, value in values)


def format_option(state: BiosState) -> str:
    """Return the option of the module bios that sets a BIOS setting, such as ``wanted: {sriov: true}``."""
    value = state.wanted[0]
    return f"wanted: {{{state.key}: {str(value).lower() if isinstance(value, bool) else value}}}"


def describe_bios_remedy(bios: NodeBios, state: BiosState) -> str:
    """Return the steps that give a BIOS setting its desired value.

    :param bios: BIOS settings that the BMC reports
    :param state: comparison of the BIOS setting with its desired value
    """
    if state.state == "pending":
        if bios.jobs == ():
            return (
                "Run the module linerate.rdma.bios, so that a job of the BMC applies the setting, then drain and"
                f" reset the node. {_SETTLES} Then run stage platform again."
            )
        where = f"job {state.job} in the job queue of the BMC" if state.job else "the log of the BMC"
        return (
            f"Drain the node and reset it. If the setting is still not in effect after the reset, check {where}. Then"
            " run stage platform again."
        )
    if state.state == "read_only":
        return f"{describe_way_out(bios)}. Then run stage platform again."
    if state.state == "unknown" and bios.pending_error and bios.pending_error in state.why:
        return "Reset the BMC (Redfish action Manager.Reset, or its web page), then run stage platform again."
    if state.state == "unknown":
        return (
            "Check the setting on the BIOS setup screen, and set it there by its name. Alternatively remove"
            f" {state.key} from rdma_cluster.bios. Then run stage platform again."
        )
    if bios.last_apply:
        return (
            f"Set {name_change(bios, state)} on the BIOS setup screen, because the BIOS did not apply it."
            " Check the log of the BMC, and update the BIOS. Then run stage platform again."
        )
    return (
        f"Set {name_change(bios, state)} with the module linerate.rdma.bios ({format_option(state)}) or on the"
        f" BIOS setup screen. Then drain and reset the node. {_SETTLES} Then run stage platform again."
    )
