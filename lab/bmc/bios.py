# SPDX-License-Identifier: GPL-3.0-or-later

"""The BIOS behind a BMC of the lab: its values, what waits for a reset, and the jobs of both."""

from __future__ import annotations

import copy
import hashlib
import json
import time
import typing

Tree = dict[str, typing.Any]
Headers = tuple[tuple[str, str], ...]

#: kinds of reset after which the BIOS runs; of DMTF's Resource.ResetType
RESTARTS = ("On", "ForceOn", "ForceRestart", "GracefulRestart", "PowerCycle")
STOPS = ("ForceOff", "GracefulShutdown")

_JOB = {"JobType": "BIOSConfiguration", "Name": "Configure: BIOS.Setup.1-1", "JobState": "Scheduled"}


class Answer(typing.NamedTuple):
    """:ivar body: what it says, before it is JSON; None for nothing"""

    status: int
    body: typing.Any = None
    headers: Headers = ()


class Bios:
    """The BIOS of one system in a tree: its values, and what waits for a reset.

    :ivar forgets: it says yes to new values, and keeps none
    :ivar stubborn: attributes that keep their value at a reset
    :ivar contended: before each write somebody else changes what waits, and takes it back
    """

    def __init__(self, answers: Tree) -> None:
        self.answers = answers
        self.forgets = False
        self.stubborn: frozenset[str] = frozenset()
        self.contended = False
        systems = [
            path
            for path, resource in answers.items()
            if isinstance(resource, dict) and "SystemType" in resource and "Bios" in resource
        ]
        self.system = systems[0] if systems else ""
        self.path = strip_slash(answers[self.system]["Bios"]["@odata.id"]) if self.system else ""
        self.settings = (
            strip_slash(self._bios.get("@Redfish.Settings", {}).get("SettingsObject", {}).get("@odata.id", ""))
            if self.system
            else ""
        )
        # of a full copy or of what waits alone; absent where the settings object shows no attributes while nothing
        # waits
        self._shown = copy.deepcopy(answers.get(self.settings, {}).get("Attributes"))

    def call(self, uuid: str, serial: str) -> None:
        """Give the system the identity of the machine that it is."""
        self.answers[self.system].update(UUID=uuid, SerialNumber=serial)

    @property
    def _bios(self) -> Tree:
        found: Tree = self.answers.get(self.path, {})
        return found

    @property
    def attributes(self) -> Tree:
        """The attributes with which the BIOS runs."""
        found: Tree = self._bios["Attributes"]
        return found

    @property
    def etag(self) -> str:
        """The ETag of the settings object; empty where the vendor has no such object."""
        return str(self.answers.get(self.settings, {}).get("@odata.etag", ""))

    @property
    def jobs(self) -> str:
        """Path of the queue of jobs; empty where the vendor has none."""
        managers = [
            resource.get("Links", {}).get("Oem", {}).get("Dell", {})
            for resource in self.answers.values()
            if isinstance(resource, dict)
        ]
        return next((strip_slash(manager["Jobs"]["@odata.id"]) for manager in managers if "Jobs" in manager), "")

    @property
    def is_locked(self) -> bool:
        """Return whether lockdown is on, by the attribute of Dell or that of Supermicro."""
        resources = [resource for resource in self.answers.values() if isinstance(resource, dict)]
        dell = any(
            one.get("Attributes", {}).get("Lockdown.1.SystemLockdown") == "Enabled"
            for one in resources
            if isinstance(one.get("Attributes"), dict)
        )
        return dell or any(one.get("SysLockdownEnabled") is True for one in resources)

    def job(self) -> typing.Optional[Tree]:
        """The one that holds the BIOS."""
        members = self.answers.get(self.jobs, {}).get("Members", ())
        found = [self.answers[strip_slash(member["@odata.id"])] for member in members]
        return next(
            (
                one
                for one in found
                if one.get("JobType") == _JOB["JobType"] and one.get("JobState") in ("Scheduled", "New", "Running")
            ),
            None,
        )

    def write(self, body: typing.Any, match: typing.Optional[str]) -> Answer:
        """New values.

        :param match: the header If-Match
        """
        attributes = body.get("Attributes") if isinstance(body, dict) else None
        if not isinstance(attributes, dict) or not attributes:
            return make_refusal(
                "PropertyMissing", "The property Attributes is a required property and must be included in the request."
            )
        if self.contended:
            self._touch()
        if self.etag and match is None:
            return make_refusal("PreconditionRequired", "The request requires an If-Match header.", 428)
        if match is not None and match != self.etag:
            return make_refusal(
                "PreconditionFailed", "The ETag supplied did not match the ETag required to change this resource.", 412
            )
        if self.is_locked:
            return make_refusal(
                "ServerInLockdown", "Unable to complete the operation because the system is in lockdown mode."
            )
        held = self.job()
        if held:
            return make_refusal(
                "PendingJob",
                "Pending configuration values are already committed, unable to perform another set operation:"
                f" {held['Id']}.",
            )
        wrong = self._wrong(attributes)
        if wrong:
            return wrong
        if self.forgets:
            return Answer(200, {})
        settings = self.answers[self.settings]
        settings["Attributes"] = {**(settings.get("Attributes") or {}), **attributes}
        self._touch()
        time_ = body.get("@Redfish.SettingsApplyTime", {}).get("ApplyTime")
        return self._schedule() if self.jobs and time_ == "OnReset" else Answer(200, {})

    def lock(self, on: bool) -> None:
        """Switch lockdown on or off, in Dell's words and in Supermicro's."""
        for one in self.answers.values():
            if isinstance(one, dict) and "Lockdown.1.SystemLockdown" in (one.get("Attributes") or {}):
                one["Attributes"]["Lockdown.1.SystemLockdown"] = "Enabled" if on else "Disabled"
            elif isinstance(one, dict) and "SysLockdownEnabled" in one:
                one["SysLockdownEnabled"] = on

    def hold(self) -> None:
        """A job of somebody else waits, and holds the BIOS."""
        self._schedule()

    def release(self) -> None:
        """The job that holds the BIOS is given up."""
        held = self.job()
        if held:
            held["JobState"] = "Failed"

    def reset(self) -> None:
        """Apply the pending settings, except those that the BIOS rejects. A BMC with jobs needs a job for it."""
        job = self.job()
        if self.jobs and not job:
            return
        settings = self.answers.get(self.settings, {})
        waiting = {
            name: value for name, value in (settings.get("Attributes") or {}).items() if name not in self.stubborn
        }
        current = self._bios["Attributes"]
        current.update(waiting)
        if self._shown is None:
            settings.pop("Attributes", None)
        else:
            settings["Attributes"] = {name: current[name] for name in self._shown if name in current}
        refused = {
            "MessageId": "BIOS.1.0.SettingNotApplied",
            "Message": f"The BIOS did not take {', '.join(sorted(self.stubborn))}.",
        }
        self._bios.setdefault("@Redfish.Settings", {})["Messages"] = (
            [refused] if self.stubborn else [{"MessageId": "Base.1.0.Success"}]
        )
        if job:
            job.update(
                JobState="Failed" if self.stubborn else "Completed",
                CompletionTime=time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()),
            )
        self._touch()

    def changed(self) -> Tree:
        """All resources that writes and resets change."""
        members = self.answers.get(self.jobs, {}).get("Members", ())
        paths = (
            self.path,
            self.settings,
            *([self.jobs] if self.jobs else []),
            *(strip_slash(member["@odata.id"]) for member in members),
        )
        return {path: self.answers[path] for path in paths if path in self.answers}

    def _touch(self) -> None:
        settings = self.answers.get(self.settings, {})
        if "@odata.etag" in settings:
            digest = hashlib.sha256(
                json.dumps([settings.get("Attributes"), settings["@odata.etag"]]).encode()
            ).hexdigest()
            settings["@odata.etag"] = f'"{digest[:12]}"'

    def _wrong(self, attributes: typing.Mapping[str, typing.Any]) -> typing.Optional[Answer]:
        rows = {row["AttributeName"]: row for row in self._registry()}
        for name, value in attributes.items():
            row = rows.get(name, {})
            if name not in self._bios["Attributes"]:
                return make_refusal(
                    "PropertyUnknown", f"The property {name} is not in the list of valid properties for the resource."
                )
            if row.get("ReadOnly"):
                return make_refusal(
                    "PropertyNotWritable",
                    f"The property {name} is a read only property and cannot be assigned a value.",
                )
            allowed = {
                word for one in row.get("Value") or () for word in (one.get("ValueName"), one.get("ValueDisplayName"))
            }
            if allowed and value not in allowed:
                return make_refusal(
                    "PropertyValueNotInList",
                    f"The value {value} for the property {name} is not in the list of acceptable values.",
                )
        return None

    def _registry(self) -> list[Tree]:
        found = [
            one["RegistryEntries"]["Attributes"]
            for one in self.answers.values()
            if isinstance(one, dict) and "RegistryEntries" in one
        ]
        return list(found[0]) if found else []

    def _schedule(self) -> Answer:
        queue = self.answers[self.jobs]
        name = f"JID_{len(queue['Members']) + 1:012}"
        path = f"{self.jobs}/{name}"
        self.answers[path] = {**_JOB, "@odata.id": path, "Id": name}
        queue["Members"].append({"@odata.id": path})
        return Answer(202, None, (("Location", path),))


def strip_slash(path: str) -> str:
    return path.rstrip("/")


def make_message(name: str, text: str) -> Tree:
    told = {"MessageId": f"Base.1.12.{name}", "Message": text}
    return {"error": {"code": told["MessageId"], "message": text, "@Message.ExtendedInfo": [told]}}


def make_refusal(name: str, text: str, status: int = 400) -> Answer:
    return Answer(status, make_message(name, text))
