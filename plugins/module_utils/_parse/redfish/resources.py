# SPDX-License-Identifier: GPL-3.0-or-later

"""Resources of a BMC, decoded from JSON: systems, Bios, its settings object, managers, jobs. DMTF DSP0266 and DSP0268,
and the vendors' own parts."""

from __future__ import annotations

import dataclasses
import math
import re
import typing

from ..._model.base.errors import ParseError
from ..._model.boundary.paths import Path
from ..._model.node.bios import BiosJob
from ..._model.node.identity import Identity, make_identity
from .resource import MOST_LETTERS, Data, get_inner, get_mapping, get_rows, is_path, last, link, text_at

#: of jobs that are over: DMTF's Job.JobState, and iDRAC's
_ENDED = re.compile(r"completed|failed|exception|cancel|invalid|expired", re.IGNORECASE)
#: of those, the ones that did not do their work
_FAILED = re.compile(r"failed|exception|errors", re.IGNORECASE)
_BIOS_JOB = "BIOSConfiguration"
#: texts of a job, beside its link
_ASKED_OF_JOBS = ("Id", "JobState", "JobType", "Name", "Message", "CompletionTime")


@dataclasses.dataclass(frozen=True)
class System:
    """:ivar bios: path of its Bios; empty where it has none, as a baseboard of GPUs
    :ivar manager: path of its BMC; empty where it does not say
    :ivar reset: path of the action that resets it; empty where it has none
    :ivar resets: kinds of reset that it takes; empty where it does not say
    :ivar reset_info: path of what tells them in their place; empty where nothing does
    :ivar path: of the system itself, by which it was read
    :ivar identity: what the BMC calls it
    """

    vendor: str
    model: str
    version: str
    serial: str
    bios: Path
    manager: Path
    reset: Path = ""
    resets: tuple[str, ...] = ()
    reset_info: Path = ""
    path: Path = ""
    identity: Identity = dataclasses.field(default_factory=Identity)


@dataclasses.dataclass(frozen=True)
class Bios:
    """:ivar refused: what went wrong when values were applied last, in the words of the BIOS
    :ivar registry: name of its registry, which need not be one; empty where the property is missing
    :ivar settings: path of the object that takes new values; empty where there is none
    """

    attributes: typing.Mapping[str, typing.Any]
    registry: str
    settings: Path
    apply_times: tuple[str, ...]
    refused: str = ""


@dataclasses.dataclass(frozen=True)
class Manager:
    """:ivar jobs: path of the collection of its jobs; empty where it has none that hold a BIOS
    :ivar lockdown: path of the resource that tells whether it is locked down; empty where it has no such mode
    """

    jobs: Path
    lockdown: Path


def list_members(data: Data, source: str) -> tuple[str, ...]:
    """Paths of the members of a collection.

    :raises ParseError: no collection
    """
    found = get_mapping(data, source).get("Members")
    if not isinstance(found, list):
        raise ParseError(source, str(found), "a list of members")
    return tuple(path for path in map(link, found) if path)


def parse_system(data: Data) -> System:
    """Parse a ComputerSystem.

    :raises ParseError: it is none
    """
    data = get_mapping(data, "the system")
    managers = get_rows(get_inner(data, "Links").get("ManagedBy"))
    action = get_inner(data, "Actions", "#ComputerSystem.Reset")
    # the serial number of Dell's DMI is the service tag, which an iDRAC calls SKU; SerialNumber is that of the board.
    # To others SKU is a number of the model
    tags = (
        data.get("SerialNumber"),
        data.get("SKU") if text_at(data, "Manufacturer").lower().startswith("dell") else "",
    )
    return System(
        vendor=text_at(data, "Manufacturer"),
        model=text_at(data, "Model"),
        version=text_at(data, "BiosVersion"),
        serial=text_at(data, "SKU"),
        bios=link(data.get("Bios")),
        manager=link(managers[0]) if managers else "",
        reset=link({"@odata.id": action.get("target")}),
        resets=_list_texts(action.get("ResetType@Redfish.AllowableValues")),
        reset_info=link({"@odata.id": action.get("@Redfish.ActionInfo")}),
        identity=make_identity(data.get("UUID"), tags),
    )


def reset_types(data: Data) -> tuple[str, ...]:
    """Kinds of reset that an ActionInfo tells; none where it tells none. DSP0266, 7.13.

    :raises ParseError: it is none
    """
    told = [
        row
        for row in get_rows(get_mapping(data, "the ActionInfo of the reset").get("Parameters"))
        if row.get("Name") == "ResetType"
    ]
    return _list_texts(told[0].get("AllowableValues")) if told else ()


def parse_bios(data: Data) -> Bios:
    """Parse a Bios.

    :raises ParseError: it has no attributes
    """
    attributes = get_mapping(data, "Bios").get("Attributes")
    if not isinstance(attributes, dict):
        raise ParseError("Bios", str(attributes), "the attributes of a BIOS")
    settings = get_inner(data, "@Redfish.Settings")
    times = settings.get("SupportedApplyTimes")
    return Bios(
        attributes=_filter_valid_attributes(attributes),
        registry=text_at(data, "AttributeRegistry"),
        settings=link(settings.get("SettingsObject")),
        apply_times=tuple(time for time in times if isinstance(time, str)) if isinstance(times, list) else (),
        refused=_describe_refused_settings(settings),
    )


def parse_pending(data: Data, current: typing.Mapping[str, typing.Any]) -> dict[str, typing.Any]:
    """Values of a settings object that wait for a reset. Some BMCs hold a full copy there, some only what waits, some
    no attributes at all.

    :raises ParseError: its attributes are none
    """
    attributes = get_mapping(data, "the settings object of Bios").get("Attributes")
    if attributes is None:
        return {}
    if not isinstance(attributes, dict):
        raise ParseError("the settings object of Bios", str(attributes), "the attributes of a BIOS")
    return {
        name: value
        for name, value in _filter_valid_attributes(attributes).items()
        if value is not None and value != current.get(name)
    }


def parse_manager(data: Data) -> Manager:
    """Parse a Manager of Dell or Supermicro; any other has nothing that holds a BIOS.

    :raises ParseError: it is none
    """
    dell = get_inner(get_mapping(data, "the manager"), "Links", "Oem", "Dell")
    supermicro = get_inner(data, "Oem", "Supermicro")
    own = [path for path in map(link, get_rows(dell.get("DellAttributes"))) if last(path).startswith("iDRAC.")]
    return Manager(jobs=link(dell.get("Jobs")), lockdown=own[0] if own else link(supermicro.get("SysLockdown")))


def lockdown(data: Data) -> bool:
    """Return whether the BMC refuses changes: attributes of an iDRAC, or Supermicro's SysLockdown.

    :raises ParseError: it does not say
    """
    data = get_mapping(data, "lockdown mode")
    found = get_inner(data, "Attributes").get("Lockdown.1.SystemLockdown", data.get("SysLockdownEnabled"))
    if found is True or found == "Enabled":
        return True
    if found is False or found == "Disabled":
        return False
    raise ParseError("lockdown mode", str(found), "Enabled or Disabled")


def expanded(data: Data, source: str) -> typing.Optional[list[Data]]:
    """Return the members of a collection that was asked for with ``$expand``; None where the BMC gave links all the
    same.

    :raises ParseError: no collection
    """
    list_members(data, source)
    found = get_rows(data["Members"])
    return None if any("JobState" not in member for member in found) else found


def next_page(data: Data) -> str:
    """Return the path of the next part of a collection; empty where this is the last one.

    :raises ParseError: it is somewhere else
    """
    found = get_mapping(data, "a collection").get("Members@odata.nextLink")
    if found is not None and not is_path(found):
        raise ParseError("the next page of a collection", str(found), "a path on this BMC")
    return found or ""


def cut_jobs(jobs: typing.Iterable[Data]) -> list[Data]:
    """Keep of jobs what is asked of them, and none but those of the BIOS: a job may have as many bytes as an answer."""
    return [
        {**{key: text_at(job, key) for key in _ASKED_OF_JOBS}, "@odata.id": link(job)}
        for job in jobs
        if isinstance(job, dict) and text_at(job, "JobType") == _BIOS_JOB
    ]


def parse_bios_jobs(jobs: typing.Iterable[Data]) -> tuple[BiosJob, ...]:
    """Return those jobs that hold the BIOS, and are not over. A job without a state is not taken for one that is
    over."""
    return tuple(
        BiosJob(text_at(job, "Id") or last(link(job)), text_at(job, "JobState"), text_at(job, "Name"))
        for job in get_rows(list(jobs))
        if text_at(job, "JobType") == _BIOS_JOB and not _ENDED.search(text_at(job, "JobState"))
    )


def explain_failed_job(jobs: typing.Iterable[Data]) -> str:
    """Return why the last job that was to write BIOS attributes failed, with its id; empty where it did not fail, or
    there was none."""
    over = [
        job
        for job in get_rows(list(jobs))
        if text_at(job, "JobType") == _BIOS_JOB and _ENDED.search(text_at(job, "JobState"))
    ]
    # ids count up on an iDRAC; a time may be TIME_NA
    over.sort(key=lambda job: (_normalize_timestamp(text_at(job, "CompletionTime")), text_at(job, "Id")))
    if not over or not _FAILED.search(text_at(over[-1], "JobState")):
        return ""
    job = over[-1]
    words = text_at(job, "Message")
    return (
        f"the job {text_at(job, 'Id') or last(link(job))} ended as"
        f" {text_at(job, 'JobState')}{f' ({words})' if words else ''}"
    )


def parse_message_id(data: typing.Any) -> str:
    """Return why a BMC refused, by the id of its message (``Base.1.12.InsufficientPrivilege``); empty where it gave
    none. Its text may repeat what it was sent."""
    error = get_inner({"": data}, "", "error")
    told = [row.get("MessageId") for row in get_rows(error.get("@Message.ExtendedInfo"))]
    found = (told or [error.get("code")])[0]
    return (
        found
        if isinstance(found, str)
        and re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z0-9_]+){1,5}", found)
        and len(found) <= 100
        else ""
    )


def said(data: typing.Any) -> str:
    """Return why a BMC refused, in its own words: up to three messages in one line. Its errors, and those at the
    properties that it refused (DSP0266, 6.5.7)."""
    top = data if isinstance(data, dict) else {}
    of_properties = [
        row for name, value in top.items() if str(name).endswith("@Message.ExtendedInfo") for row in get_rows(value)
    ]
    told = [
        text_at(row, "Message")
        for row in (*get_rows(get_inner(top, "error").get("@Message.ExtendedInfo")), *of_properties)
    ]
    return " ".join([text for text in dict.fromkeys(told) if text][:3]) or text_at(get_inner(top, "error"), "message")


def etag(data: typing.Any, header: str) -> str:
    """Return the ETag by which a change of a resource is detected; empty where the BMC gives none, or one that a header
    can't hold."""
    found = header or get_inner({"": data}, "").get("@odata.etag")
    return found if isinstance(found, str) and found.isascii() and found.isprintable() and len(found) <= 200 else ""


def job_of(path: str) -> str:
    """Return the id of a job, by where it is to be found: a path, or a URL; empty where there is none."""
    found = last(path.partition("?")[0])
    return found if re.fullmatch(r"[A-Za-z0-9_.-]{1,100}", found) else ""


def _describe_refused_settings(settings: Data) -> str:
    """Return the messages of the annotation @Redfish.Settings that are not a success (DSP0266, 9.10)."""
    told = [
        row
        for row in get_rows(settings.get("Messages"))
        if "OK" not in (row.get("Severity"), row.get("MessageSeverity"))
    ]
    named = [(text_at(row, "MessageId"), text_at(row, "Message")) for row in told]
    bad = [
        f"{words} ({name})" if words else name
        for name, words in named
        if name and name.rpartition(".")[2] not in ("Success", "NoOperation")
    ]
    return "; ".join(list(dict.fromkeys(bad))[:3])


def _normalize_timestamp(text: str) -> str:
    return text if text[:4].isdigit() else ""


def _list_texts(data: typing.Any) -> tuple[str, ...]:
    return tuple(one for one in data if isinstance(one, str)) if isinstance(data, list) else ()


def _filter_valid_attributes(attributes: Data) -> dict[str, typing.Any]:
    """Return the attributes whose value is one.

    An infinite number is none, nor is a text that no screen of a BIOS shows: the reason why an attribute can't be
    written repeats the values of others.
    """
    return {name: value for name, value in attributes.items() if _is_value(value)}


def _is_value(value: typing.Any) -> bool:
    if isinstance(value, str):
        return len(value) <= MOST_LETTERS
    return value is None or isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
