# SPDX-License-Identifier: GPL-3.0-or-later

"""Parse the JSON document that a program of nccl-tests writes with option -J."""

from __future__ import annotations

import json
import typing

from ...._model.base.errors import ParseError
from ...._model.job.nccl_tests import NcclTestFigure, NcclTestRank, NcclTestRow, NcclTests
from .tests_run import MOST_RANKS, MOST_ROWS, ROOT, TYPE, NcclTestsRun

#: characters of a JSON document
_LONGEST_JSON = 1 << 22


def parse_json(text: str) -> NcclTests:
    """Parse the run in a JSON document that a program of nccl-tests writes with option -J. The list of environment
    variables in it is ignored.

    :raises ParseError: the text is not a complete JSON object, is too long, or is not from nccl-tests
    """
    try:
        data = json.loads(text) if len(text) <= _LONGEST_JSON else None
    except (ValueError, RecursionError):
        data = None
    if (
        not isinstance(data, dict)
        or not isinstance(data.get("results"), list)
        or not isinstance(data.get("config"), dict)
    ):
        raise ParseError("nccl-tests", text, "a whole JSON object of option -J, with config and results")
    config, run = data["config"], NcclTestsRun()
    program = data.get("args")
    run.set_program(_read_text(program[0]) if isinstance(program, list) and program else "")
    run.set_library(_read_integer(data.get("nccl_version")) or 0)
    devices = config.get("devices")
    run.ranks = list(filter(None, map(_parse_json_rank, devices[:MOST_RANKS] if isinstance(devices, list) else ())))
    least, most, factor, step = (
        _read_integer(config.get(name)) for name in ("minimum_bytes", "maximum_bytes", "step_factor", "step_bytes")
    )
    if least is not None and most is not None and (factor or step):
        run.span = (least, most, factor or step or 0, bool(factor))
    for item in data["results"][: MOST_ROWS + 1]:
        run.cpu_time = run.cpu_time or (
            isinstance(item, dict) and any("cpu_time" in part for part in item.values() if isinstance(part, dict))
        )
        run.add_row(_parse_json_row(item))
    # misspelt before 2.17.9
    bounds, average = data.get("out_of_bounds"), data.get("average_bus_bandwidth", data.get("average_bus_bandwidith"))
    count = _read_integer(bounds.get("count")) if isinstance(bounds, dict) else None
    run.bounds = {count} if count is not None else set()
    mean = _read_number(average.get("bandwidth", average.get("bandwidith"))) if isinstance(average, dict) else None
    run.averages = {mean} if mean is not None else set()
    run.starting, run.concluded = True, bool(_read_text(data.get("end_time")))
    for error in data["errors"] if isinstance(data.get("errors"), list) else ():
        run.add_error(_read_text(error))
    return run.build_run()


def _read_text(value: typing.Any) -> str:
    return value[:300] if isinstance(value, str) else ""


def _read_integer(value: typing.Any) -> typing.Optional[int]:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**15 else None


def _read_number(value: typing.Any) -> typing.Optional[float]:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value < 1e15 else None


def _parse_json_rank(item: typing.Any) -> typing.Optional[NcclTestRank]:
    """Return a rank of nccl-tests from JSON. Return None if a required value is missing or has another type."""
    if not isinstance(item, dict):
        return None
    rank, group, pid, gpu = (_read_integer(item.get(name)) for name in ("rank", "group", "pid", "device"))
    host, bus_id, model = (_read_text(item.get(name)) for name in ("hostname", "device_hex", "device_info"))
    return (
        NcclTestRank(rank, group or 0, pid, host, gpu, bus_id, model)
        if rank is not None and pid is not None and gpu is not None and host
        else None
    )


def _parse_json_row(item: typing.Any) -> typing.Optional[NcclTestRow]:
    """Return a row of nccl-tests from JSON. Return None if a value is missing or has another form."""
    if not isinstance(item, dict):
        return None
    size, count = _read_integer(item.get("size")), _read_integer(item.get("count"))
    kind, operation, root = (_read_text(item.get(name)).strip() for name in ("type", "redop", "root"))
    if (
        size is None
        or count is None
        or not TYPE.fullmatch(kind)
        or not TYPE.fullmatch(operation)
        or not ROOT.fullmatch(root)
    ):
        return None
    out, into = (_parse_json_figure(item.get(name)) for name in ("out_of_place", "in_place"))
    if into is None or (out is None and item.get("out_of_place") is not None):
        return None
    return NcclTestRow(
        size, count, kind, "" if operation == "none" else operation, int(root) if int(root) >= 0 else None, out, into
    )


def _parse_json_figure(item: typing.Any) -> typing.Optional[NcclTestFigure]:
    """Return the figures of a row from JSON. Return None if one of them is missing or is no number."""
    if not isinstance(item, dict):
        return None
    time, algorithm, bus = (
        _read_number(item.get("time", item.get("cpu_time"))),
        _read_number(item.get("alg_bw")),
        _read_number(item.get("bus_bw")),
    )
    wrong = _read_number(item.get("nwrong"))
    if time is None or algorithm is None or bus is None or (wrong is None and item.get("nwrong") is not None):
        return None
    return NcclTestFigure(time, algorithm, bus, None if wrong is None else int(wrong))
