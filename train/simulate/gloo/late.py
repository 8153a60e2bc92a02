"""Ranks that come late: stragglers, offload, uneven work. Their own log says why, or it just ends."""

from __future__ import annotations

from dataclasses import dataclass, replace

from train.simulate.gloo import waits
from train.simulate.gloo.phrases import OFFLOAD, STRAGGLER, Phrases, fill, usable
from train.simulate.gloo.run import Run, ready, start
from train.simulate.gloo.side import from_inventory
from train.simulate.gloo.stepping import steps
from train.simulate.gloo.voices import LOADS

_NOTHING = Phrases(place="compute", begins=())
#: How much a late rank tells: begin and notes, one of them, only numbers, nothing.
_MODES = {"both": 30, "begin": 30, "notes": 22, "numbers": 8, "silent": 5}


@dataclass(slots=True, kw_only=True)
class Lateness:
    """Who is late, where, and what is printed of it; `ramp` seconds more in each of the last `length` steps."""

    rank: int
    place: str
    phrases: Phrases
    mode: str
    ramp: float
    length: int
    first: int


def act(run: Run, label: str, cause: str) -> None:
    """A straggler or a slow offload: one rank is in something long when the others meet."""
    table = STRAGGLER if label == "straggler" else OFFLOAD
    late = _lateness(run, table.get(cause), cause)
    run.story.initiating = (late.rank,)
    before = len(run.story.records)
    start(run)
    if late.place != "start":
        ready(run)
        _go(run, late)
        _enter(run, late)
    _begin(run, late)
    known = run.story.records[before:]
    spoken = any(record.strength >= 2 for record in known)
    if late.mode != "silent" and not run.blind and (run.rng.random() < (0.25 if spoken else 0.9)):
        from_inventory(run, label, cause, (late.rank,))
    if cause in {"host_pause", "host_hang"} or run.rng.random() < 0.12:
        run.unrecorded.add(late.rank)
    hint = cause in {"host_pause", "host_hang"} and run.voice.everyone and run.rng.random() < 0.5
    if hint and not run.blind:
        _mark_last(run, late.rank)
    call = waits.call_for(run, late.place)
    waits.expire(run, dict.fromkeys(run.rest((late.rank,)), call))
    waits.agents(run)


def _lateness(run: Run, phrases: Phrases | None, cause: str) -> Lateness:
    rng = run.rng
    mode = "silent" if run.blind else rng.choices(list(_MODES), list(_MODES.values()))[0]
    found = phrases or replace(_NOTHING, place=rng.choice(("data", "compute", "compute", "optim", "start")))
    if mode == "notes" and (found.place == "start" or not found.notes):
        mode = "begin"
    main = found.main or rng.random() < 0.25
    quiet = mode in {"silent", "numbers"}
    return Lateness(
        rank=0 if main and (found.main or rng.random() < 0.5) else rng.choice(run.ranks),
        place="compute" if quiet and found.place in {"save", "eval", "metrics"} else found.place,
        phrases=found,
        mode=mode,
        ramp=run.world.timeout_s * rng.uniform(0.015, 0.06),
        length=rng.randrange(1, 3 if found.place in {"save", "eval"} else 9)
        if rng.random() < 0.65 or mode in {"notes", "numbers"}
        else 0,
        first=rng.randrange(3, 45) if run.voice.everyone else rng.randrange(4, 120),
    )


def _go(run: Run, late: Lateness) -> None:
    """Regular steps, then slower and slower ones (or one slow one)."""
    rng, steady = run.rng, run.rng.random() < 0.75
    steps(run, late.first)
    begin = run.step

    def extra(rank: int, step: int) -> float:
        if rank != late.rank:
            return 0.0
        return late.ramp * (step - begin) if steady else late.ramp * 4 * (step == begin + 1)

    def note(step: int) -> None:
        spent = extra(late.rank, step)
        words = {"save": run.voice.save_words, "eval": run.voice.eval_words}.get(late.place)
        if spent and words and late.rank in run.speakers:
            run.say(late.rank, words[0].format(step=step, loss=0.0), time=run.now - spent)
        if spent and speaks and late.mode in {"notes", "both"} and texts:
            form = texts[step % len(texts)]
            text = fill(form, rng, step=step, rank=late.rank, seconds=spent)
            run.say(late.rank, text, strength=2, origin=f"phrase:{form}")

    texts = usable(late.phrases.notes, run.train)
    texts = rng.sample(texts, 1) if texts else []
    speaks = late.rank in run.speakers or rng.random() < 0.8
    shown = run.voice.everyone and late.place == "data" and "data" in run.voice.step and late.mode != "silent"

    def mark(rank: int, step: int) -> int:
        return 3 * (shown and rank == late.rank and extra(rank, step) > run.world.step_s and not run.blind)

    steps(run, late.length, extra=extra, data=late.place == "data", note=note, strength=mark)


def _enter(run: Run, late: Lateness) -> None:
    """The phase in which the rank is late begins with the words that it always begins with."""
    words = {"save": run.voice.save_words, "eval": run.voice.eval_words}.get(late.place)
    run.now += run.rng.uniform(0.01, 0.2)
    if not words:
        return
    for rank in run.speakers:
        if rank == late.rank or late.place == "eval" or run.rng.random() < 0.5:
            run.say(rank, words[0].format(step=run.step, loss=0.0), strength=2 * (rank == late.rank and not run.blind))
            if rank != late.rank and late.phrases.main and late.place == "save":
                run.say(rank, words[1].format(step=run.step, loss=1.0), time=run.now + 0.05)
    run.now += 0.01


def _begin(run: Run, late: Lateness) -> None:
    rng = run.rng
    run.now += rng.uniform(0.001, 0.1)
    if late.mode not in {"both", "begin"} or not late.phrases.begins:
        return
    if late.rank not in run.speakers and rng.random() < 0.2:
        return
    begins = usable(late.phrases.begins, run.train)
    if not begins:
        return
    text = rng.choice(begins)
    for i in range(rng.choice((1, 1, 1, 2, 3)) if "{k}" in text and "%|" not in text else 1):
        line, at, origin = (
            fill(text, rng, step=run.step + 1, rank=late.rank, seconds=1.0),
            run.now + i * 0.4,
            f"phrase:{text}",
        )
        if "%|" in line and run.voice.head != "json":
            run.add(late.rank, at, (line,), role="evidence", strength=3, out="stderr", origin=origin)
        else:
            run.say(late.rank, line, time=at, strength=3, origin=origin)


def _mark_last(run: Run, rank: int) -> None:
    """Silence after a regular step of its own says a little."""
    records = run.story.records
    places = [i for i, record in enumerate(records) if record.rank == rank]
    if places:
        records[places[-1]] = replace(records[places[-1]], strength=1)


_COLUMN = {"memory_skew": "mem_mb", "param_imbalance": "params", "sequence_imbalance": "seq_len"}


def uneven(run: Run, cause: str) -> None:
    """One rank has more to do in every step, in proportion to numbers that it may print."""
    rng, world = run.rng, run.world
    heavy = rng.choice(run.ranks)
    run.story.initiating, run.story.alt_label = (heavy,), "straggler"
    rows = any(word in run.voice.step for word in ("rows", "tokens", "mem"))
    if not rows and not run.voice.load and rng.random() < 0.8:
        run.voice = replace(run.voice, load=_COLUMN.get(cause, rng.choice(LOADS)))
    factor = rng.uniform(1.7, 6)
    growth = rng.choice((1.0, 1.0, rng.uniform(1.1, 1.6)))
    told = run.voice.everyone and not run.blind and (rows or run.voice.load != "")

    def load(rank: int, step: int) -> float:
        return factor * growth ** min(step, 30) if rank == heavy else rng.uniform(0.92, 1.08)

    def extra(rank: int, step: int) -> float:
        return min(world.timeout_s * 0.7, world.step_s * load(rank, step)) if rank == heavy else 0.0

    def note(step: int) -> None:
        if notes and (step % notes == 0):
            _load_note(run, heavy, load(heavy, step), extra(heavy, step))

    notes = 0 if run.blind or rng.random() < (0.7 if told else 0.35) else rng.choice((1, 2, 4))
    start(run)
    ready(run)
    count = rng.randrange(4, 30)
    last = run.step + count
    steps(
        run,
        count,
        extra=extra,
        load=load,
        note=note,
        strength=lambda rank, step: 3 if told and rank == heavy and step > last - 2 else 0,
    )
    if not run.blind and rng.random() < (0.15 if told or notes else 0.8):
        from_inventory(run, "uneven_sharding", cause, (heavy,))
    run.now += 0.05
    waits.expire(run, dict.fromkeys(run.rest((heavy,)), waits.call_for(run, "compute")))
    waits.agents(run)


def _load_note(run: Run, rank: int, load: float, spent: float) -> None:
    rows = round(24 * load)
    texts = (
        f"batch of {rows} rows on rank {rank}, 24 on the others",
        f"rank {rank} holds {rows * 512} tokens (mean {24 * 512})",
        f"longest sequence {rows * 21}, forward {spent:.2f}s",
        f"shard size {rows * 1000} samples (others 24000)",
        f"local work {load:.1f}x of the mean, step {spent:.2f}s",
        f"expert load: {min(97, round(18 * load))}% of tokens routed here",
        f"stage holds {rows} of {rows + 24} layers",
    )
    run.say(rank, texts[int(run.world.start) % len(texts)], strength=2)
