# SPDX-License-Identifier: GPL-3.0-or-later

"""Programs that print without end, and charts whose YAML costs more than a chart does: Helm prints what a chart
repository wants."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import typing

import pytest

from ansible_collections.linerate.rdma.plugins.module_utils._model.base.errors import RdmaError
from ansible_collections.linerate.rdma.plugins.module_utils._model.operators.operators import OperatorChart
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes import yaml_documents
from ansible_collections.linerate.rdma.plugins.module_utils._observe.kubernetes.yaml_documents import (
    MOST_CHART,
    MOST_VALUES,
    read_documents,
)
from ansible_collections.linerate.rdma.plugins.module_utils._observe.operators import helm
from ansible_collections.linerate.rdma.plugins.module_utils._observe.process import command
from ansible_collections.linerate.rdma.plugins.module_utils._parse.limits import MIB
from ansible_collections.linerate.rdma.tests.unit.limit import bounded
from lab.processes import wait_until

UTILS = "ansible_collections.linerate.rdma.plugins.module_utils"
CHART = OperatorChart("oci://registry.example/chart", "1", "ops", "release")
#: texts of which many cost much, with the values in one of them; # stands for a number
WORST = [
    pytest.param("- [a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a]\n", 20, id="lists"),
    pytest.param("- {a: b}\n", 3, id="mappings", marks=pytest.mark.thorough),
    pytest.param("- {}\n", 1, id="empty mappings", marks=pytest.mark.thorough),
    pytest.param("- &a# {}\n", 1, id="anchors", marks=pytest.mark.thorough),
    pytest.param("- 2001-01-01\n", 1, id="dates", marks=pytest.mark.thorough),
]


def program(folder: pathlib.Path, script: str) -> str:
    path = folder / "helm"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def is_alive(pid: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


@pytest.mark.parametrize("stream", ["1", "2"])
def test_a_program_that_prints_without_end_is_ended_at_the_limit(tmp_path: pathlib.Path, stream: str) -> None:
    path = program(tmp_path, f"sleep 600 & echo $! >{tmp_path}/child; yes words >&{stream}")
    finished = command.run([path, "-x"], 60, most_bytes=MIB)
    assert finished.rc is None and finished.overflowed
    assert (
        "helm -x printed more than 1048576 bytes, and was terminated: words" in finished.failure
        and len(finished.failure) < 2000
    )
    assert len(finished.stdout) + len(finished.stderr) <= MIB
    # it was killed, and a busy machine takes a moment to end it
    assert wait_until(lambda: not is_alive(int((tmp_path / "child").read_text())), 20)


def test_output_within_the_limit_comes_whole_from_both_streams(tmp_path: pathlib.Path) -> None:
    path = program(tmp_path, "head -c 600000 /dev/zero | tr '\\0' a; head -c 400000 /dev/zero | tr '\\0' b >&2; exit 4")
    finished = command.run([path], 60, most_bytes=MIB)
    assert (finished.rc, finished.stdout, finished.stderr, finished.overflowed) == (
        4,
        "a" * 600_000,
        "b" * 400_000,
        False,
    )


def test_a_program_that_closes_its_streams_is_waited_for_and_ended_in_time(tmp_path: pathlib.Path) -> None:
    assert command.run([program(tmp_path, "exec >&- 2>&-; sleep 0.3; exit 3")], 60).rc == 3
    began = time.monotonic()
    assert (
        command.run([program(tmp_path, "exec >&- 2>&-; exec sleep 600")], 0.5).rc is None
        and time.monotonic() - began < 20
    )


def test_a_process_that_left_the_session_with_a_stream_holds_nothing_up(tmp_path: pathlib.Path) -> None:
    began = time.monotonic()
    finished = command.run(
        [program(tmp_path, f"setsid sleep 30 & echo $! >{tmp_path}/child; echo said; exec sleep 600")], 0.5
    )
    try:
        assert (finished.rc, finished.stdout) == (None, "said\n") and time.monotonic() - began < 15
    finally:
        os.kill(int((tmp_path / "child").read_text()), signal.SIGKILL)


def measured(tmp_path: pathlib.Path, code: str) -> dict[str, typing.Any]:
    """What a process of its own says of itself: its answer, seconds of CPU, and by how many MiB its memory has
    grown."""
    script = tmp_path / "measured.py"
    body = "\n".join(f"    {line}" for line in code.splitlines())
    script.write_text(
        "import json, resource, time\n"
        f"from {UTILS}._observe.kubernetes import yaml_documents\n"
        f"from {UTILS}._observe.operators import helm\n"
        f"from {UTILS}._observe.process import command\n"
        f"from {UTILS}._model.operators.operators import OperatorChart\n"
        f"def work():\n{body}\n"
        "before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()\n"
        "answer = work()\n"
        "grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024\n"
        "print(json.dumps({'answer': answer, 'seconds': time.process_time() - began, 'grown': grown}))\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        check=True,
    )
    return typing.cast(dict[str, typing.Any], json.loads(done.stdout))


def test_memory_stays_near_the_limit_of_the_output(tmp_path: pathlib.Path) -> None:
    path = program(tmp_path, "head -c 300000000 /dev/zero | tr '\\0' '#'")
    found = measured(
        tmp_path,
        "chart = OperatorChart('oci://r/x', '1', 'ns', 'rel')\n"
        f"return helm.read_charts({path!r}, {{'a': (chart, {{}})}})['a'].error",
    )
    assert f"printed more than {MOST_CHART} bytes" in found["answer"] and found["grown"] < 64


def test_a_failure_of_many_short_lines_costs_little(tmp_path: pathlib.Path) -> None:
    path = program(tmp_path, "seq 1000000; echo cause >&2; exit 3")
    found = measured(tmp_path, f"return command.run([{path!r}], 60).failure")
    assert found["answer"].endswith("cause") and len(found["answer"]) < 1000 and found["grown"] < 64


def test_an_endless_chart_is_an_error_of_its_own_with_what_to_do(tmp_path: pathlib.Path) -> None:
    path = program(
        tmp_path,
        'case "$*" in *good*) echo "{kind: Pod, spec: {containers: [{image: r.example/i:1}]}}";; *) exec yes "#";;'
        " esac",
    )
    seen = helm.read_charts(path, {"bad": (CHART, {}), "good": (OperatorChart("good", "1", "ops", "release"), {})})
    assert seen["good"].error == "" and [image.name for image in seen["good"].images] == ["r.example/i:1"]
    error = seen["bad"].error
    assert f"helm template release {CHART.reference}" in error and f"printed more than {MOST_CHART} bytes" in error
    assert "operators_charts" in error and len(error) < 2000


@pytest.mark.parametrize(("unit", "values"), WORST)
def test_the_worst_chart_costs_seconds_and_a_bounded_memory(tmp_path: pathlib.Path, unit: str, values: int) -> None:
    """The largest text that is taken, and one that has twice as much."""
    code = (
        f"taken = []\nfor count in ({(MOST_VALUES - 10) // values}, {2 * MOST_VALUES // values}):\n    try:\n       "
        f" taken.append(len(yaml_documents.read_documents('kind: X\\nspec:\\n' + ''.join({unit!r}.replace('#', str(n))"
        " for n in range(count)))))\n    except Exception as error:\n        taken.append(str(error)[:200])\nreturn"
        " taken"
    )
    found = measured(tmp_path, code)
    assert found["answer"][0] == 1 and f"more than {MOST_VALUES} values" in found["answer"][1]
    assert found["grown"] < 300 and found["seconds"] < (60 if yaml_documents.has_libyaml() else 180)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("".join(f"%TAG !{number}! x\n" for number in range(100_000)) + "--- a\n", "more than 64 %TAG directives"),
        ("---\n" * 300_000, f"more than {MOST_VALUES} values"),
        ("a: !" + "x" * MIB + " b\n", "not valid YAML"),
        ("a: [&" + "x" * MIB + " 1\n", "not valid YAML"),
        ("a: &a 1\nb: &a [*a]\n", r"the alias \*a refers to no anchor, or to the node that contains the alias"),
    ],
    ids=["tags", "documents", "long tag", "long anchor", "anchor twice"],
)
def test_odd_texts_are_refused_at_once_and_in_few_words(text: str, seen: str) -> None:
    with bounded(15), pytest.raises(RdmaError, match=seen) as refused:
        read_documents(text)
    assert len(str(refused.value)) < 1500
