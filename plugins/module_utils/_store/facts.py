# SPDX-License-Identifier: GPL-3.0-or-later

"""Read and write the facts of a run, ``<report>/facts/<kind>/<node>.json``, and its start record,
``<report>/run.json``.

Observers write facts, and checks read them. A file is written completely or not at all, and contains no secrets.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import typing
from urllib.parse import quote

from .._model.base.errors import wrap_unforeseen
from .._model.base.load import to_data
from .._model.base.redact import MOST_SUSPECT, is_free, is_suspect, redact
from .._model.base.text import cut_text, cut_texts
from .._model.node.hca import MOST_FUNCTIONS
from .._model.run.facts import CLUSTER, Fact, RunStart, find_contradiction
from .._parse.limits import MOST_ANSWER, MOST_OF_A_TEXT, describe_excess, longest_text
from .fact_file import ANEW, format_now, load_fact_file
from .fact_limits import (
    MOST_FOR_A_NODE,
    MOST_OF_CLUSTER,
    MOST_OF_EACH,
    MOST_OF_EACH_HCAS,
    choose_largest,
    count_functions,
    largest_part,
    limit_of_node,
)
from .files import MOST_BYTES, FileError, json_of, list_names_in, read_json, remove_file, write_text
from .run_start import MOST_OF_A_START, describe_start_excess, read_start

Data = dict[str, typing.Any]

#: characters of a text that a node shows, and of why it shows nothing. The longest that is kept by right is the
#: configuration space of a PCI function, 5,464
MOST_TEXT, MOST_WORDS = 65536, 8192
#: what may be a longer one; texts with quotes in them are not found so, and do no more harm than that
_LONG = re.compile(rf'"[^"]{{{MOST_TEXT + 1}}}')
#: characters that are appended to a text that is cut
_MORE = 100
#: kinds of facts in a folder, some ten times those that a run has
_MOST_KINDS = 500
_FEWER = "Select fewer of them; nodes can be read in several runs, each with its own folder"
_RENAME = "Give this host another name in the inventory"
_KIND = re.compile(r"\A[a-z][a-z0-9_]{0,63}\Z")


def file_name(node: str) -> str:
    """Return the file name for the facts of a node. Characters that would lead out of the folder are escaped.

    >>> file_name("worker-1.example"), file_name("../etc")
    ('worker-1.example.json', '%2E.%2Fetc.json')
    """
    # surrogatepass: a name in the inventory may hold what is no character
    name = quote(node, safe="", errors="surrogatepass")
    return f"{'%2E' + name[1:] if name.startswith('.') else name}.json"


class FactFolder:
    """The folder of the facts of one run, below its report folder, with methods that read and write facts.

    :param report_dir: path of the report folder
    :param run: id of the run. Facts of other runs are ignored
    :ivar refused: errors of the facts that exist but could not be read so far
    """

    def __init__(self, report_dir: str, run: str) -> None:
        self.report_dir = report_dir
        self.run = run
        self.refused: list[str] = []
        self._nodes = 0

    def path(self, kind: str, node: str = CLUSTER) -> str:
        """Return the path of the file of a fact.

        :param kind: kind of the fact
        :param node: name of the node; by default the whole cluster
        :raises FileError: the kind is not a valid name
        """
        if not _KIND.match(kind):
            raise FileError(
                f"'{kind}' is not a valid kind of fact; expected lower-case letters, digits and underscores"
            )
        return os.path.join(self.report_dir, "facts", kind, file_name(node))

    def limit(self, kind: str, node: str = CLUSTER) -> tuple[int, str]:
        """Return the limit in bytes of a fact, and a text for messages that names the facts to which it applies. The
        limit of a fact about the cluster grows with the number of nodes.
        """
        if node != CLUSTER:
            return limit_of_node(kind)
        nodes = self._count_nodes()
        most = min(MOST_OF_CLUSTER + MOST_FOR_A_NODE * nodes, MOST_BYTES)
        return most, f"a fact of the cluster in a run of {nodes} nodes"

    def _count_nodes(self) -> int:
        """Return the number of nodes with which the run began. Return 0 if run.json cannot be read or is of another
        run.
        """
        if not self._nodes:
            with contextlib.suppress(FileError):
                start = read_start(self.report_dir)
                self._nodes = len(start.nodes) if start is not None and start.run == self.run else 0
        return self._nodes

    def write(
        self, kind: str, node: str = CLUSTER, value: typing.Any = None, error: typing.Optional[str] = None
    ) -> str:
        """Write a fact: a value, or the error that prevented it. A value that JSON cannot represent, or that ``read``
        would refuse for its size or depth, is replaced by an error.

        :param kind: kind of the fact
        :param node: name of the node; without one the fact is about the cluster
        :param value: plain data or dataclasses; None if there is an error
        :param error: reason why there is no value; None if there is one
        :returns: path of the file
        :raises FileError: the file cannot be written, or there is not exactly one of value and error
        """
        path = self.path(kind, node)
        try:
            text = self._serialize_fact(kind, node, value, error)
        except (RecursionError, MemoryError, ValueError, TypeError, OverflowError) as raised:
            text = self._serialize_fact(kind, node, None, f"failed: {wrap_unforeseen(raised, f'fact {kind}')}")
        most, of_what = self.limit(kind, node)
        excess = describe_excess(text, most - 1)
        if excess:
            what = f"it could not be stored: it has {excess} for {of_what}{largest_part(to_data(value))}"
            text = self._serialize_fact(kind, node, None, what)
        write_text(path, f"{text}\n", self.report_dir)
        return path

    def _serialize_fact(self, kind: str, node: str, value: typing.Any, error: typing.Optional[str]) -> str:
        """Return the JSON text of a fact, with secrets redacted.

        :param value: plain data or dataclasses; None if there is an error
        :param error: reason why there is no value; None if there is one
        :raises FileError: there is not exactly one of value and error
        """
        fact = Fact(
            self.run, format_now(), node, kind, to_data(value), None if error is None else cut_text(error, MOST_WORDS)
        )
        wrong = find_contradiction(fact)
        if wrong:
            raise FileError(f"fact {kind} of {node}: {wrong}")
        if node != CLUSTER and count_functions(fact.value) > MOST_FUNCTIONS:
            return self._serialize_fact(
                kind, node, None, f"its response was not stored: it has more than {MOST_FUNCTIONS} functions"
            )
        # its value is plain by now, and a second walk through it costs as much as all the rest; so does one that looks
        # for secrets
        text = json_of(vars(fact), nan=False)
        # what is made of the facts of all nodes, such as objects to apply, has longer texts by right
        if node != CLUSTER and _LONG.search(text):
            fact = dataclasses.replace(fact, value=cut_texts(fact.value, MOST_TEXT))
            text = json_of(vars(fact))
        kept = vars(fact)
        if not is_free(text):
            if node != CLUSTER and is_suspect(fact.value):
                what = f"texts in it that may contain secrets have more than {MOST_SUSPECT} characters"
                return self._serialize_fact(kind, node, None, f"its response was not stored: {what}")
            kept = redact(kept)
            text = json_of(kept)
        # a half of a surrogate pair becomes six characters
        most = (MOST_OF_A_TEXT - _MORE) // (6 if "\\ud" in text else 1)
        if len(text) > MOST_OF_A_TEXT and longest_text(kept["value"]) > most:
            # or no reader would take this fact, with the parts of all other nodes in it
            text = json_of({**kept, "value": cut_texts(kept["value"], most)})
        return text

    def read(self, kind: str, node: str = CLUSTER) -> typing.Optional[Fact]:
        """Read a fact of this run. Return None if it does not exist, or belongs to another run.

        :raises FileError: the file cannot be read, or is not a valid fact
        """
        path = self.path(kind, node)
        try:
            return self._load_fact(path, kind, node)
        except FileError as error:
            self.refused.append(str(error))
            raise

    def _load_fact(self, path: str, kind: str, node: str) -> typing.Optional[Fact]:
        data = read_json(path, self.report_dir, *self.limit(kind, node))
        if data is None:
            return None
        fact: Fact = load_fact_file(Fact, data, path, lambda fact: (fact.time,))
        if (fact.kind, fact.node) != (kind, node):
            raise FileError(f"{path} contains the fact {fact.kind} of {fact.node}", ANEW)
        wrong = find_contradiction(fact)
        if wrong:
            raise FileError(f"{path}: {wrong}", ANEW)
        return fact if fact.run == self.run else None

    def holds(self, kind: str, node: str) -> bool:
        """Return whether the folder contains a fact of a node, from any run."""
        return os.path.lexists(self.path(kind, node))

    def has(self, kind: str, node: str = CLUSTER) -> bool:
        """Return whether this run has written the fact. The file of the fact must not be older than run.json. The fact
        itself is not read, because the facts of a thousand nodes have a hundred megabytes.

        :param kind: kind of the fact
        :param node: name of the node; by default the whole cluster
        """
        try:
            return (
                os.lstat(self.path(kind, node)).st_mtime >= os.lstat(os.path.join(self.report_dir, "run.json")).st_mtime
            )
        except OSError:
            return False

    def of_nodes(self, kind: str, nodes: typing.Iterable[str]) -> dict[str, Data]:
        """Return one fact of each node, by node, as a dictionary with ``value`` and ``error``. At least one of the two
        is None. A node whose fact does not exist, or could not be read, has an error.

        :param kind: kind of the fact
        """
        nodes = list(nodes)
        refused = self.find_excess(kind, nodes)
        self.refused += refused.values()
        return {
            node: {"value": None, "error": refused[node]} if node in refused else self._read_observed_value(kind, node)
            for node in nodes
        }

    def find_excess(self, kind: str, nodes: typing.Iterable[str]) -> dict[str, str]:
        """Return the facts of a kind that are too large to be read, by node, each with the reason. The largest facts
        are chosen, so that the remaining ones together fit into a limit that grows with the number of nodes. Return an
        empty dict if all of them fit.

        :param kind: kind of the facts
        """
        sizes: dict[str, int] = {}
        most, each = limit_of_node(kind)[0], MOST_OF_EACH_HCAS if kind.startswith("hcas") else MOST_OF_EACH
        for node in nodes:
            with contextlib.suppress(OSError, ValueError, FileError):
                size = os.lstat(self.path(kind, node)).st_size
                # a larger one is refused without being read
                sizes[node] = size if size <= most else 0
        found = choose_largest(sizes, most + each * len(sizes), f"the facts {kind} of {len(sizes)} nodes")
        return {node: f"{self.path(kind, node)} was not read: {why}" for node, why in found.items()}

    def all_of(self, node: str) -> tuple[Data, dict[str, str]]:
        """Return all facts of this run for a node: values by kind, and errors by kind. If all facts together are too
        large for the memory, the largest ones are not read and get an error.

        :raises FileError: the folder cannot be read, or has more kinds of facts than any run
        """
        values: Data = {}
        path = os.path.join(self.report_dir, "facts")
        names = list_names_in(path, self.report_dir)
        if len(names) > _MOST_KINDS:
            raise FileError(
                f"{path} has {len(names)} kinds of facts; the limit is {_MOST_KINDS}",
                "Check the source of the folder",
            )
        kinds = list(filter(_KIND.match, names))
        errors = self._find_excess_of_kinds(kinds, node)
        for kind in kinds:
            if kind in errors:
                continue
            try:
                fact = self.read(kind, node)
            except FileError as error:
                errors[kind] = str(error)
                continue
            if fact is not None and fact.error is not None:
                errors[kind] = fact.error
            elif fact is not None:
                values[kind] = fact.value
        return values, errors

    def _find_excess_of_kinds(self, kinds: typing.Iterable[str], node: str) -> dict[str, str]:
        """Return the facts of a node or of the cluster that are too large to be read, by kind, each with the reason.
        The largest facts are chosen, so that the remaining ones together do not exceed the limit of a single fact.
        Return an empty dict if all of them fit.

        :param kinds: kinds of the facts
        :param node: name of the node, or the name that stands for the cluster
        """
        sizes: dict[str, int] = {}
        most = 0
        for kind in kinds:
            with contextlib.suppress(OSError, ValueError, FileError):
                size, limit = os.lstat(self.path(kind, node)).st_size, self.limit(kind, node)[0]
                # a larger one is refused without being read
                sizes[kind] = size if size <= limit else 0
                most = max(most, limit)
        # the kinds whose facts are large are few
        most = most if node == CLUSTER else most + MOST_ANSWER
        found = choose_largest(sizes, most, f"the facts of {len(sizes)} kinds of {node}")
        return {kind: f"{self.path(kind, node)} was not read: {why}" for kind, why in found.items()}

    def value(self, kind: str) -> typing.Any:
        """Return the value of a fact of the cluster. Return None if this run has not written the fact.

        :param kind: kind of the fact
        :raises FileError: the fact cannot be read, or contains an error instead of a value
        """
        fact = self.read(kind)
        if fact is not None and fact.error is not None:
            raise FileError(fact.error)
        return None if fact is None else fact.value

    def begin(self, start: RunStart) -> str:
        """Write the start record of this run, which contains its intent, nodes and versions.

        :returns: path of the file
        :raises FileError: the file cannot be written, or exceeds the limits of reading
        """
        path = os.path.join(self.report_dir, "run.json")
        text = json_of(redact(to_data(start)), 1) + "\n"
        wrong = describe_start_excess(start)
        if wrong or len(text) > MOST_OF_A_START:
            raise FileError(
                f"{path} was not written:"
                f" {wrong or f'it would have {len(text)} bytes; the limit is {MOST_OF_A_START}'}",
                _RENAME if "has the name" in wrong else _FEWER,
            )
        write_text(path, text, self.report_dir)
        return path

    def resume(self, start: RunStart, kept: typing.Container[str]) -> None:
        """Continue this run: write its start record, and remove the facts of the stages that run again.

        :param start: start record of the run, with the note that it was resumed
        :param kept: kinds of facts that remain
        :raises FileError: the folder cannot be read or written
        """
        path, folder = os.path.join(self.report_dir, "run.json"), os.path.join(self.report_dir, "facts")
        try:
            for kind in list_names_in(folder, self.report_dir):
                if _KIND.match(kind) and kind not in kept:
                    for name in list_names_in(os.path.join(folder, kind), self.report_dir):
                        remove_file(os.path.join(folder, kind, name), self.report_dir)
            # it is the time of this file that tells the facts of the run from those of an older one
            time = os.stat(path).st_mtime_ns
            self.begin(start)
            os.utime(path, ns=(time, time))
        except OSError as error:
            raise FileError(
                f"{folder} could not be cleaned: {error}", "Check that this user may write there"
            ) from error

    def start(self) -> RunStart:
        """Return the start record of this run.

        :raises FileError: this run was not begun in this folder, or the file cannot be read
        """
        found = read_start(self.report_dir)
        if found is None or found.run != self.run:
            there = f"it belongs to run {found.run}" if found else "the file does not exist"
            raise FileError(
                f"{os.path.join(self.report_dir, 'run.json')} does not belong to run {self.run}: {there}",
                "Set a separate folder for each run of ansible-playbook",
            )
        return found

    def _read_observed_value(self, kind: str, node: str) -> Data:
        try:
            fact = self.read(kind, node)
        except FileError as error:
            return {"value": None, "error": str(error)}
        if fact is None:
            return {"value": None, "error": f"was not asked: this run has no fact {kind} of it (left out by --limit?)"}
        return {"value": fact.value, "error": fact.error}
