# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse resources of a BMC that were decoded from JSON: systems, Bios, its settings object, managers, jobs. DMTF
DSP0266 and DSP0268, and extensions of the vendors.
"""

from __future__ import annotations

import dataclasses
import math
import re
import typing

from ..._model.base.errors import ParseError
from ..._model.boundary.paths import Path
from ..._model.node.bios import BiosJob
from ..._model.node.identity import Identity, make_identity
from .resource import MOST_LETTERS, Data, get_inner, get_last_part, get_mapping, get_rows, is_path, parse_link, text_at

#: of jobs that are over: DMTF's Job.JobState, and iDRAC's
_ENDED = re.compile(r"completed|failed|exception|cancel|invalid|expired", re.IGNORECASE)
#: of those, the ones that did not do their work
_FAILED = re.compile(r"failed|exception|errors", re.IGNORECASE)
_BIOS_JOB = "BIOSConfiguration"
#: attributes of a BIOS. The largest have some three thousand, most of them for each slot and each port
_MOST_ATTRIBUTES = 16_384
#: texts of a job, beside its link
_ASKED_OF_JOBS = ("Id", "JobState", "JobType", "Name", "Message", "CompletionTime")


@dataclasses.dataclass(frozen=True)
class System:
    """A ComputerSystem of a BMC. A text that the system does not report is empty.

    :ivar vendor: manufacturer of the system
    :ivar model: model of the system
    :ivar version: version of the BIOS
    :ivar serial: serial number
    :ivar bios: path of its Bios; empty if it has none, as a baseboard of GPUs
    :ivar manager: path of its BMC; empty if the system does not name one
    :ivar reset: path of its reset action; empty if it has none
    :ivar resets: supported kinds of reset; empty if the system does not list them
    :ivar reset_info: path of the ActionInfo that lists the kinds of reset, if ``resets`` does not; empty if there is
        none
    :ivar path: path from which the system itself was read
    :ivar identity: UUID and serial numbers from the BMC
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
    """A Bios resource of a BMC.

    :ivar attributes: current value of each attribute
    :ivar registry: name of its registry, which may be wrong; empty if the property is missing
    :ivar settings: path of the settings object that accepts new values; empty if there is none
    :ivar apply_times: times at which the BMC can apply new values, such as ``OnReset``; empty if it does not list them
    :ivar refused: messages with which the BIOS rejected the values that were applied last; empty if there are none
    """

    attributes: typing.Mapping[str, typing.Any]
    registry: str
    settings: Path
    apply_times: tuple[str, ...]
    refused: str = ""


@dataclasses.dataclass(frozen=True)
class Manager:
    """A Manager resource: the BMC itself.

    :ivar jobs: path of the collection of its jobs; empty if it has no jobs that block the BIOS
    :ivar lockdown: path of the resource with its lockdown mode, in which it rejects changes; empty if it has no such
        mode
    """

    jobs: Path
    lockdown: Path


def list_members(data: Data, source: str) -> tuple[str, ...]:
    """Return the paths of the members of a collection. Members without a valid path are left out.

    :param source: name of the collection in messages
    :raises ParseError: the data is not a collection
    """
    found = get_mapping(data, source).get("Members")
    if not isinstance(found, list):
        raise ParseError(source, str(found), "a list of members")
    return tuple(path for path in map(parse_link, found) if path)


def is_partial(data: Data, source: str) -> bool:
    """Return whether an answer contains only a part of the members of a collection. In this case it has a link to a
    further page, or it reports a larger number of members than it lists [DMTF DSP0266 1.22, 7.6 and 12.4.3].

    :param source: name of the collection in messages
    :raises ParseError: the data is not a collection
    """
    listed, count = len(list_members(data, source)), data.get("Members@odata.count")
    return bool(data.get("Members@odata.nextLink")) or (isinstance(count, int) and count > listed)


def parse_system(data: Data) -> System:
    """Return the identity and the links of a ComputerSystem. The field ``path`` remains empty.

    :param data: JSON data of the resource
    :raises ParseError: the data is not a mapping
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
        bios=parse_link(data.get("Bios")),
        manager=parse_link(managers[0]) if managers else "",
        reset=parse_link({"@odata.id": action.get("target")}),
        resets=_list_texts(action.get("ResetType@Redfish.AllowableValues")),
        reset_info=parse_link({"@odata.id": action.get("@Redfish.ActionInfo")}),
        identity=make_identity(data.get("UUID"), tags),
    )


def reset_types(data: Data) -> tuple[str, ...]:
    """Return the kinds of reset in an ActionInfo, such as ``ForceRestart`` (DSP0266, 7.13). Return an empty tuple if it
    lists none.

    :raises ParseError: the data is not a mapping
    """
    told = [
        row
        for row in get_rows(get_mapping(data, "the ActionInfo of the reset").get("Parameters"))
        if row.get("Name") == "ResetType"
    ]
    return _list_texts(told[0].get("AllowableValues")) if told else ()


def parse_bios(data: Data) -> Bios:
    """Return the attributes of a Bios resource, the links to its registry and its settings object, the times at which
    it can apply values, and the errors of the values that were applied last.

    :param data: JSON data of the resource
    :raises ParseError: it has no attributes, or more than a BIOS has
    """
    attributes = get_mapping(data, "Bios").get("Attributes")
    if not isinstance(attributes, dict):
        raise ParseError("Bios", str(attributes), "the attributes of a BIOS")
    if len(attributes) > _MOST_ATTRIBUTES:
        raise ParseError("Bios", f"{len(attributes)} attributes", f"at most {_MOST_ATTRIBUTES}")
    settings = get_inner(data, "@Redfish.Settings")
    times = settings.get("SupportedApplyTimes")
    return Bios(
        attributes=_filter_valid_attributes(attributes),
        registry=text_at(data, "AttributeRegistry"),
        settings=parse_link(settings.get("SettingsObject")),
        apply_times=tuple(time for time in times if isinstance(time, str)) if isinstance(times, list) else (),
        refused=_describe_refused_settings(settings),
    )


def parse_pending(data: Data, current: typing.Mapping[str, typing.Any]) -> dict[str, typing.Any]:
    """Return the values that become active at the next reset, from a settings object, by name of the attribute. The
    result is empty if there are none.

    The settings object of some BMCs is a full copy of the attributes, so values that equal the current ones are left
    out. The settings object of other BMCs contains only the pending values, or no attributes.

    :param data: JSON data of the settings object
    :param current: current values of the attributes
    :raises ParseError: the attributes are not a mapping
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
    """Parse a Manager. Paths of jobs are known only for Dell, and paths of the lockdown mode only for Dell and
    Supermicro. Both are empty for any other vendor.

    :raises ParseError: the data is not a mapping
    """
    dell = get_inner(get_mapping(data, "the manager"), "Links", "Oem", "Dell")
    supermicro = get_inner(data, "Oem", "Supermicro")
    own = [
        path
        for path in map(parse_link, get_rows(dell.get("DellAttributes")))
        if get_last_part(path).startswith("iDRAC.")
    ]
    return Manager(
        jobs=parse_link(dell.get("Jobs")), lockdown=own[0] if own else parse_link(supermicro.get("SysLockdown"))
    )


def is_locked_down(data: Data) -> bool:
    """Return whether the BMC is in lockdown mode, in which it rejects changes, from the attributes of an iDRAC or from
    Supermicro's SysLockdown.

    :raises ParseError: the resource does not report the mode
    """
    data = get_mapping(data, "lockdown mode")
    found = get_inner(data, "Attributes").get("Lockdown.1.SystemLockdown", data.get("SysLockdownEnabled"))
    if found is True or found == "Enabled":
        return True
    if found is False or found == "Disabled":
        return False
    raise ParseError("lockdown mode", str(found), "Enabled or Disabled")


def list_expanded_members(data: Data, source: str) -> typing.Optional[list[Data]]:
    """Return the members of a collection that was requested with ``$expand``. Return None if the BMC ignored
    ``$expand`` and returned only links to the members.

    :param source: name of the collection in messages
    :raises ParseError: the data is not a collection
    """
    list_members(data, source)
    found = get_rows(data["Members"])
    return None if any("JobState" not in member for member in found) else found


def next_page(data: Data) -> str:
    """Return the path of the next page of a collection. Return an empty string for the last page.

    :raises ParseError: the value is not a path on this BMC
    """
    found = get_mapping(data, "a collection").get("Members@odata.nextLink")
    if found is not None and not is_path(found):
        raise ParseError("the next page of a collection", str(found), "a path on this BMC")
    return found or ""


def cut_jobs(jobs: typing.Iterable[Data]) -> list[Data]:
    """Return the jobs that change the BIOS, each reduced to the properties that are used here. A complete job may be as
    large as a whole response.
    """
    return [
        {**{key: text_at(job, key) for key in _ASKED_OF_JOBS}, "@odata.id": parse_link(job)}
        for job in jobs
        if isinstance(job, dict) and text_at(job, "JobType") == _BIOS_JOB
    ]


def parse_bios_jobs(jobs: typing.Iterable[Data]) -> tuple[BiosJob, ...]:
    """Return those jobs for the BIOS that have not ended, and so block changes. A job without a state has not ended."""
    return tuple(
        BiosJob(text_at(job, "Id") or get_last_part(parse_link(job)), text_at(job, "JobState"), text_at(job, "Name"))
        for job in get_rows(list(jobs))
        if text_at(job, "JobType") == _BIOS_JOB and not _ENDED.search(text_at(job, "JobState"))
    )


def explain_failed_job(jobs: typing.Iterable[Data]) -> str:
    """Return the reason why the last ended job for BIOS attributes failed, with its ID. Return an empty string if this
    job did not fail, or if there was no such job.

    :param jobs: JSON data of the jobs
    """
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
        f"the job {text_at(job, 'Id') or get_last_part(parse_link(job))} ended with state"
        f" {text_at(job, 'JobState')}{f' ({words})' if words else ''}"
    )


def parse_message_id(data: typing.Any) -> str:
    """Return the ID of the message with which a BMC rejected a request (``Base.1.12.InsufficientPrivilege``). Return an
    empty string if the response contains no valid ID. The text of the message is not used, because it may repeat the
    request.

    :param data: JSON data of the response
    """
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


def parse_refusal(data: typing.Any) -> str:
    """Return the text with which a BMC rejected a request: up to three messages in one line. They come from the error
    in the response, and from the annotations of the properties that the BMC rejected (DSP0266, 6.5.7). Return an empty
    string if the response contains no message.

    :param data: JSON data of the response
    """
    top = data if isinstance(data, dict) else {}
    of_properties = [
        row for name, value in top.items() if str(name).endswith("@Message.ExtendedInfo") for row in get_rows(value)
    ]
    told = [
        text_at(row, "Message")
        for row in (*get_rows(get_inner(top, "error").get("@Message.ExtendedInfo")), *of_properties)
    ]
    return " ".join([text for text in dict.fromkeys(told) if text][:3]) or text_at(get_inner(top, "error"), "message")


def parse_etag(data: typing.Any, header: str) -> str:
    """Return the ETag of a resource, by which changes to the resource are detected. Return an empty string if the BMC
    sends none, or one that is not valid in a header.

    :param data: JSON data of the resource
    :param header: value of the header ETag, which has precedence; empty if it is missing
    """
    found = header or get_inner({"": data}, "").get("@odata.etag")
    return found if isinstance(found, str) and found.isascii() and found.isprintable() and len(found) <= 200 else ""


def job_of(path: str) -> str:
    """Return the ID of a job from its path or URL. Return an empty string if the last segment of the path is not a
    valid ID.
    """
    found = get_last_part(path.partition("?")[0])
    return found if re.fullmatch(r"[A-Za-z0-9_.-]{1,100}", found) else ""


def _describe_refused_settings(settings: Data) -> str:
    """Return the error messages in the annotation @Redfish.Settings of a Bios (DSP0266, 9.10), at most three, joined by
    semicolons. Messages that report success are left out. Return an empty string if there are no errors.
    """
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
    """Return the attributes with valid values, by name.

    An infinite number is invalid, and so is a text that is longer than the screen of a BIOS can show. The length
    matters because the reason why an attribute is read-only repeats the values of other attributes.
    """
    return {name: value for name, value in attributes.items() if _is_value(value)}


def _is_value(value: typing.Any) -> bool:
    if isinstance(value, str):
        return len(value) <= MOST_LETTERS
    return value is None or isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
