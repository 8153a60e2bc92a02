"""`python -m train evaluate --pictures DIR`: reliability, risk against coverage, and confusion as SVG files.

Written by hand: three plots of a few shapes need no library. Same figures, same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from fsdpclassify.evaluation import Count, Evaluation
from fsdpclassify.evaluation_curve import PRECISIONS, CalibrationBin, CurvePoint, coverage_at
from fsdpclassify.evaluation_outcome import NOT_CAUSES, as_conclusion

_SIDE, _LEFT, _TOP, _RIGHT, _BOTTOM = 360, 64, 40, 24, 52
_INK, _FAINT, _LINE, _FILL = "#222222", "#cccccc", "#1f5fa8", "#a9c8ea"
_CELL, _NAMES, _SLANT = 56, 170, 70
#: From this probability on a number stands left of its mark.
_FAR_RIGHT = 0.75
#: So near the frame a number stands below its mark, or above it, and not on the line.
_NEAR = 0.97
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
    """How often first labels are right, by their mean probability, with 95 % intervals; on the diagonal both agree."""
    marks = [_line(_at(0, 0), _at(1, 1), _FAINT, "4 4")]
    for item in bins:
        count = Count(hits=round(item.right * item.count), total=item.count)
        low, high = count.interval
        x, y = _at(item.mean_probability, item.right)
        marks.append(_line(_at(item.mean_probability, low), _at(item.mean_probability, high), _FILL))
        marks.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{_LINE}"/>')
        # Towards the middle, so that no number leaves the frame.
        side, anchor = (-9, "end") if item.mean_probability > _FAR_RIGHT else (9, "start")
        down = 16 if item.right > _NEAR else -9 if item.right < 1 - _NEAR else 4
        marks.append(_text(x + side, y + down, f"{count.hits} of {count.total}", 11, anchor=anchor))
    return _plot(f"Reliability: {title}", "probability of the first label", "share right (95 % interval)", marks)


def risk_coverage(curve: Sequence[CurvePoint], title: str) -> str:
    """The share of wrong causes among those named, against the share of incidents named, as the threshold falls.

    The axis of risk ends where the curve does, at a quarter, a half or one. A dashed line and a mark stand for each
    precision of `PRECISIONS`: how much may be named at it.
    """
    top = _top([1.0 - point.precision for point in curve])
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (_at(p.coverage, (1.0 - p.precision) / top) for p in curve))
    marks = []
    for precision in PRECISIONS:
        height, covered = (1.0 - precision) / top, coverage_at(curve, precision)
        x, y = _at(covered, height)
        marks.append(_line(_at(0, height), _at(1, height), _FAINT, "4 4"))
        marks.append(_line((x, y), _at(covered, 0), _FAINT))
        words = f"precision {precision:.2f}: {covered:.2f} named"
        marks.append(_text(_LEFT + 6, y - 4, words, 11))
    if curve:
        marks.append(f'<polyline points="{path}" fill="none" stroke="{_LINE}" stroke-width="2"/>')
    return _plot(f"Risk and coverage: {title}", "share of incidents named", "share of those wrong", marks, top)


def _top(risks: Sequence[float]) -> float:
    return next(top for top in (0.25, 0.5, 1.0) if max(risks, default=1.0) <= top)


def confusion(rows: dict[str, dict[str, int]], title: str) -> str:
    """Labels down, conclusions across; the darker a cell, the larger its share of the row; right ones have a frame.

    Causes come first. `other` is a label and never a conclusion: it is answered by `undetermined`.
    """
    labels = sorted(rows, key=_place)
    columns = sorted(
        {name for row in rows.values() for name in row} | {as_conclusion(name) for name in rows}, key=_place
    )
    width = _NAMES + _CELL * len(columns) + _SLANT
    height = _TOP + _NAMES + _CELL * len(rows) + _RIGHT
    body = [_text(12, 24, f"Confusion: {title}", 15), _text(12, _TOP + _NAMES - 10, "label, concluded:", 12)]
    for i, name in enumerate(columns):
        x, y = _NAMES + _CELL * (i + 0.5), _TOP + _NAMES - 10
        body.append(_text(x, y, name, 12, turn=f"rotate(-50 {x:.1f} {y:.1f})"))
    for j, label in enumerate(labels):
        y, total = _TOP + _NAMES + _CELL * j, sum(rows[label].values())
        body.append(_text(_NAMES - 10, y + _CELL / 2 + 4, f"{label} ({total})", 12, anchor="end"))
        body += [_cell(_NAMES + _CELL * i, y, rows[label].get(name, 0), total) for i, name in enumerate(columns)]
    frames = [
        _frame(_NAMES + _CELL * columns.index(as_conclusion(label)), _TOP + _NAMES + _CELL * j)
        for j, label in enumerate(labels)
    ]
    return _svg(width, height, [*body, *frames])


def _place(name: str) -> tuple[bool, str]:
    """Causes by name, then what is no cause."""
    return name in NOT_CAUSES, name


def _frame(x: float, y: float) -> str:
    return f'<rect x="{x}" y="{y}" width="{_CELL}" height="{_CELL}" fill="none" stroke="{_INK}" stroke-width="2"/>'


def _cell(x: float, y: float, count: int, total: int) -> str:
    opacity = count / total if total else 0.0
    box = f'<rect x="{x}" y="{y}" width="{_CELL}" height="{_CELL}" fill="{_LINE}" fill-opacity="{opacity:.3f}"'
    ink = "#ffffff" if opacity > 0.5 else _INK
    number = _text(x + _CELL / 2, y + _CELL / 2 + 5, str(count), 14, anchor="middle", ink=ink) if count else ""
    return f'{box} stroke="{_FAINT}"/>{number}'


def _at(x: float, y: float) -> tuple[float, float]:
    """A point of the unit square in the picture, whose y grows downwards."""
    return _LEFT + _SIDE * x, _TOP + _SIDE * (1.0 - y)


def _plot(title: str, across: str, up: str, marks: Iterable[str], top: float = 1.0) -> str:
    """A frame with ticks from 0 to 1 across and from 0 to `top` up."""
    body = [_text(12, 24, title, 15)]
    for tick in _TICKS:
        x, bottom = _at(tick, 0)
        left, y = _at(0, tick)
        body += [_line((x, bottom), (x, bottom + 5), _INK), _text(x, bottom + 19, f"{tick:.1f}", 11, anchor="middle")]
        body += [_line((left - 5, y), (left, y), _INK), _text(left - 9, y + 4, f"{tick * top:.3g}", 11, anchor="end")]
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
