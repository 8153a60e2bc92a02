"""Evidence of the line inventory on the streams of a rank, or in a file beside them."""

from __future__ import annotations

from dataclasses import replace

from train.simulate.gloo.run import Run


def from_inventory(run: Run, label: str, cause: str, ranks: tuple[int, ...], count: int = 1) -> int:
    """Print inventory families that speak for a cause at the current time; returns the greatest strength."""
    rng, world, best = run.rng, run.world, 0
    found = run.lines.evidence(rng, label, cause, world, count, main=0 in ranks or label == "fabric_congestion")
    for family in found:
        for rank in ranks if label == "fabric_congestion" else ranks[:1]:
            at = run.now - rng.uniform(0, 0.05) if family.strength < 3 else run.now
            record = run.lines.record(
                family, rng, world, rank, at, "evidence", family.strength, rng.uniform(0.2, 0.8) * world.timeout_s
            )
            if record.channel in {"rank", "main"} and record.prefix == "user":
                run.say(
                    rank, "\n".join(record.lines), time=at, strength=family.strength, origin=family.id, said=record.said
                )
            elif record.channel in {"rank", "main"}:
                lines = record.lines
                if record.prefix == "exc" and world.hooked:
                    lines = tuple(f"[rank{rank}]: {line}" for line in lines)
                run.add(rank, at, lines, role="evidence", strength=family.strength, origin=family.id, said=record.said)
            else:
                name = record.file if "." in record.file else f"{record.file or record.channel}.txt"
                run.story.add(replace(record, file=name, channel="side"))
            best = max(best, family.strength)
    return best
