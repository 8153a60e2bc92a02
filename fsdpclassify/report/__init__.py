"""The last stage: a `Report` in, text for people or JSON for programs out. Sees only `records`."""

from __future__ import annotations

from fsdpclassify.report.structured import report_as_dict, score_as_dict, to_json
from fsdpclassify.report.terminal import render_report

__all__ = ["render_report", "report_as_dict", "score_as_dict", "to_json"]
