"""`Report` -> plain values for JSON, schema 1: every key is always present, absent facts are null.

The shape is held by `schema.json` beside this file. Times become ISO 8601 strings without a zone,
because the log prints the wall clock of a host and not where that host stands; they are null
unless the log also printed a date. Numbers that JSON cannot hold (NaN, infinities) become null.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from fsdpclassify.records import (
    Collective,
    Diagnosis,
    Evidence,
    FatalError,
    GroupCounters,
    InputRow,
    LedgerRow,
    ModelInfo,
    Remedy,
    Report,
)

SCHEMA_VERSION = 1
MAX_TEXT_CHARACTERS = 500
_EPOCH = datetime(1970, 1, 1)

Json = dict[str, Any]


def report_as_dict(report: Report) -> Json:
    """The whole report as the documented object; `json.dumps` of it validates against the schema."""
    incidents = [_diagnosis(diagnosis) for diagnosis in report.incidents]
    fatal = None if incidents else report.first_fatal_error
    return {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "fsdpclassify", "version": report.tool_version},
        "model": model_as_dict(report.model),
        "inputs": [input_as_dict(row) for row in report.inputs],
        "incidents": incidents,
        "first_fatal_error": None if fatal is None else fatal_as_dict(fatal),
        "elapsed_ms": report.elapsed_ms,
    }


def score_as_dict(probabilities: Mapping[str, float]) -> Json:
    """The answer of `score`: the likeliest label (null when there is no incident) and all probabilities."""
    label = max(probabilities, key=lambda name: probabilities[name]) if probabilities else None
    return {"schema_version": SCHEMA_VERSION, "label": label, "probabilities": dict(probabilities)}


def to_json(value: Mapping[str, Any]) -> str:
    """JSON text ending in a newline; all but ASCII is escaped, so that no log text can drive a terminal."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False, indent=1) + "\n"


def load_schema() -> Json:
    """The JSON Schema (draft 2020-12) of `classify --json`, as shipped with the package."""
    schema: Json = json.loads(Path(__file__).with_name("schema.json").read_text(encoding="utf-8"))
    return schema


def one_line(text: str) -> str:
    """Printed text as it goes into JSON: one line, no lone surrogates, at most 500 characters."""
    joined = " ".join(text.split("\n")).encode("utf-8", "replace").decode("utf-8")
    return joined[:MAX_TEXT_CHARACTERS]


def iso(seconds: float | None, *, dated: bool) -> str | None:
    """Seconds on a host's wall clock as ISO text to the millisecond, or null when there is no date."""
    if seconds is None or not dated or not math.isfinite(seconds):
        return None
    try:
        moment = _EPOCH + timedelta(milliseconds=round(seconds * 1000))
    except OverflowError:
        return None
    return moment.isoformat(timespec="milliseconds" if moment.microsecond else "seconds")


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def model_as_dict(model: ModelInfo) -> Json:
    """Which bundle answered."""
    return {"name": model.name, "version": model.version, "sha256": model.sha256}


def input_as_dict(row: InputRow) -> Json:
    """One row of `inputs`."""
    return {
        "path": row.path,
        "kind": None if row.kind is None else str(row.kind),
        "bytes": row.bytes,
        "lines": row.lines,
        "status": str(row.status),
        "message": row.message,
    }


def fatal_as_dict(fatal: FatalError) -> Json:
    """The first fatal error of an input without an incident."""
    return {"path": fatal.path, "line": fatal.line, "rank": fatal.rank, "text": one_line(fatal.text)}


def collective_as_dict(call: Collective) -> Json:
    """The call that was waited in."""
    return {
        "op": call.op,
        "meaning": call.meaning,
        "group": call.group,
        "seq": call.seq,
        "timeout_s": _finite(call.timeout_s),
        "onset": iso(call.onset, dated=call.dated),
        "detected": iso(call.detected, dated=call.dated),
    }


def ledger_row_as_dict(row: LedgerRow, *, dated: bool) -> Json:
    """One rank of the ledger."""
    return {
        "rank": row.rank,
        "node": row.node,
        "last_step": row.last_step,
        "enqueued": row.enqueued,
        "completed": row.completed,
        "role": str(row.role),
        "groups": [_group(counters) for counters in row.groups],
        "step_time_s": _finite(row.step_time_s),
        "step_trend": _finite(row.step_trend),
        "first_error": None if row.first_error is None else one_line(row.first_error),
        "exit_code": row.exit_code,
        "dump": row.dump,
        "log_end": iso(row.log_end, dated=dated),
    }


def _group(counters: GroupCounters) -> Json:
    return {
        "group": counters.group,
        "enqueued": counters.enqueued,
        "completed": counters.completed,
        "op": counters.op,
        "seq": counters.seq,
        "numel_in": counters.numel_in,
        "numel_out": counters.numel_out,
    }


def _diagnosis(found: Diagnosis) -> Json:
    call = found.collective
    dated = call is not None and call.dated
    return {
        "verdict": found.verdict,
        "cause": found.cause,
        "probability": found.probability,
        "probabilities": dict(found.probabilities),
        "model_label": found.model_label,
        "abstained_because": None if found.abstained_because is None else str(found.abstained_because),
        "collective": None if call is None else collective_as_dict(call),
        "world_size": found.world_size,
        "initiating_ranks": sorted(found.initiating_ranks),
        "initiating_nodes": list(found.initiating_nodes),
        "waiting_ranks": sorted(found.waiting_ranks),
        "failed_ranks": sorted(found.failed_ranks),
        "evidence": [_evidence(item) for item in found.evidence],
        "alternatives": [
            {"label": rival.label, "probability": rival.probability, "separate_by": rival.separate_by}
            for rival in found.alternatives
        ],
        "remedy": _remedy(found.remedy),
        "collect_next": list(found.collect_next),
        "ledger": [ledger_row_as_dict(row, dated=dated) for row in found.ledger],
    }


def _evidence(item: Evidence) -> Json:
    return {
        "path": item.path,
        "line": item.line,
        "rank": item.rank,
        "text": one_line(item.text),
        "supports": item.supports,
        "weight": item.weight,
        "why": item.why,
    }


def _remedy(remedy: Remedy) -> Json:
    return {
        "summary": remedy.summary,
        "steps": list(remedy.steps),
        "longer_timeout_helps": remedy.longer_timeout_helps,
        "verify": list(remedy.verify),
        "ops_request": remedy.ops_request,
    }
