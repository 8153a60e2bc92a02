"""`python -m train evaluate --pictures DIR`: reliability, risk against coverage, and confusion as SVG files.

Written by hand: three plots of a few shapes need no library. Same figures, same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from fsdpclassify.evaluation import Evaluation
from fsdpclassify.evaluation_curve import CalibrationBin, CurvePoint

_SIDE, _LEFT, _TOP, _RIGHT, _BOTTOM = 360, 64, 40, 24, 52
_INK, _FAINT, _LINE, _FILL = "#222222", "#cccccc", "#1f5fa8", "#a9c8ea"
_CELL, _NAMES, _SLANT = 64, 150, 70
_TICKS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


def write(result: Evaluation, folder: Path, title: str) -> list[Path]:
    """Write the three pictures into `folder`, which is made if need be; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    pictures = {
        "reliability.svg": reliability(result.calibration, title),
        "risk_coverage.svg": risk_coverage(result.curve, title),
        "confusion.svg": confusion(result.confusion, title),
    }
    for name, text in pictures.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in pictures]


def reliability(bins: Sequence[CalibrationBin], title: str) -> str:
    """How often first labels are right, by their mean probability; on the diagonal both agree."""
    marks = [_line(_at(0, 0), _at(1, 1), _FAINT, "4 4")]
    for item in bins:
        x, y = _at(item.mean_probability, item.right)
        marks.append(_line(_at(item.mean_probability, item.mean_probability), (x, y), _FILL))
        marks.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{_LINE}"/>')
        marks.append(_text(x + 8, y + 4, str(item.count), 11))
    return _plot(f"Reliability: {title}", "probability of the first label", "share right", marks)


def risk_coverage(curve: Sequence[CurvePoint], title: str) -> str:
    """The share of wrong causes among those named, against the share of incidents named, as the threshold falls."""
    points = [_at(point.coverage, 1.0 - point.precision) for point in curve]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    marks = [f'<polyline points="{path}" fill="none" stroke="{_LINE}" stroke-width="2"/>'] if points else []
    return _plot(f"Risk and coverage: {title}", "share of incidents named", "share of those wrong", marks)


def confusion(rows: dict[str, dict[str, int]], title: str) -> str:
    """Labels down, conclusions across; the darker a cell, the larger its share of the row."""
    columns = sorted({name for row in rows.values() for name in row} | set(rows))
    width = _NAMES + _CELL * len(columns) + _SLANT
    height = _TOP + _NAMES + _CELL * len(rows) + _RIGHT
    body = [_text(12, 24, f"Confusion: {title}", 15)]
    for i, name in enumerate(columns):
        x, y = _NAMES + _CELL * (i + 0.5), _TOP + _NAMES - 10
        body.append(_text(x, y, name, 12, turn=f"rotate(-50 {x:.1f} {y:.1f})"))
    for j, (label, row) in enumerate(rows.items()):
        y = _TOP + _NAMES + _CELL * j
        body.append(_text(_NAMES - 10, y + _CELL / 2 + 4, label, 12, anchor="end"))
        body += [_cell(_NAMES + _CELL * i, y, row.get(name, 0), sum(row.values())) for i, name in enumerate(columns)]
    return _svg(width, height, body)


def _cell(x: float, y: float, count: int, total: int) -> str:
    opacity = count / total if total else 0.0
    box = f'<rect x="{x}" y="{y}" width="{_CELL}" height="{_CELL}" fill="{_LINE}" fill-opacity="{opacity:.3f}"'
    ink = "#ffffff" if opacity > 0.5 else _INK
    number = _text(x + _CELL / 2, y + _CELL / 2 + 5, str(count), 14, anchor="middle", ink=ink) if count else ""
    return f'{box} stroke="{_FAINT}"/>{number}'


def _at(x: float, y: float) -> tuple[float, float]:
    """A point of the unit square in the picture, whose y grows downwards."""
    return _LEFT + _SIDE * x, _TOP + _SIDE * (1.0 - y)


def _plot(title: str, across: str, up: str, marks: Iterable[str]) -> str:
    body = [_text(12, 24, title, 15)]
    for tick in _TICKS:
        x, bottom = _at(tick, 0)
        left, y = _at(0, tick)
        body += [_line((x, bottom), (x, bottom + 5), _INK), _text(x, bottom + 19, f"{tick:.1f}", 11, anchor="middle")]
        body += [_line((left - 5, y), (left, y), _INK), _text(left - 9, y + 4, f"{tick:.1f}", 11, anchor="end")]
    body.append(f'<rect x="{_LEFT}" y="{_TOP}" width="{_SIDE}" height="{_SIDE}" fill="none" stroke="{_INK}"/>')
    middle = _TOP + _SIDE / 2
    body.append(_text(_LEFT + _SIDE / 2, _TOP + _SIDE + 42, across, 13, anchor="middle"))
    body.append(_text(18, middle, up, 13, anchor="middle", turn=f"rotate(-90 18 {middle:.1f})"))
    return _svg(_LEFT + _SIDE + _RIGHT, _TOP + _SIDE + _BOTTOM, [*body, *marks])


def _line(start: tuple[float, float], end: tuple[float, float], ink: str, dashes: str = "") -> str:
    (x1, y1), (x2, y2) = start, end
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{ink}" stroke-width="1.5"{dashed}/>'


def _text(x: float, y: float, words: str, size: int, *, anchor: str = "start", ink: str = _INK, turn: str = "") -> str:
    turned = f' transform="{turn}"' if turn else ""
    place = f'x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{ink}"'
    return f"<text {place}{turned}>{escape(words)}</text>"


def _svg(width: float, height: float, body: Iterable[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif">'
    back = f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    return "\n".join([head, back, *body, "</svg>"]) + "\n"
