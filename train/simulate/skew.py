"""Numbers per rank that differ by what a rank holds, as load lines, tables and reports print them."""

from __future__ import annotations

from dataclasses import replace

from train.simulate.record import Record
from train.simulate.scene import Scene

_SKEWS = ("load", "memory", "util", "times", "params")


def skew(scene: Scene, cause: str, heavy: tuple[int, ...], onset: float, detection: float) -> bool:
    """Load lines of each step, tables of memory or utilisation, stage times, or parameter counts."""
    kinds = [kind for kind in _SKEWS if scene.lines.usable(f"skew:{kind}")]
    fits = {
        "memory_skew": "memory",
        "util_split": "util",
        "param_imbalance": "params",
        "pipeline_imbalance": "times",
        "sequence_imbalance": "load",
        "expert_imbalance": "load",
        "uneven_wrap": "params",
    }
    kind = fits.get(cause) or scene.rng.choice(_SKEWS)
    if kind not in kinds:
        return False
    makers = {
        "load": _load_lines,
        "memory": _memory_table,
        "util": _util_table,
        "times": _stage_times,
        "params": _param_lines,
    }
    before = len(scene.story.records)
    makers[kind](scene, heavy, onset, detection)
    scene.story.records[before:] = [replace(r, origin=f"skew:{kind}") for r in scene.story.records[before:]]
    return True


def _load_lines(scene: Scene, heavy: tuple[int, ...], onset: float, detection: float) -> None:
    rng, world = scene.rng, scene.world
    base, more = rng.randrange(3000, 30000), rng.uniform(1.8, 4)
    form = rng.choice(
        (
            "rank {r} step {s} tokens={n} fwd_bwd={t:.2f}s",
            "[r{r}] s{s}: {n} tok, {t:.2f} s",
            "step {s} | rank {r} | seq tokens {n} | time {t:.2f}",
            "dp_rank={r} it={s} packed_tokens={n} compute_ms={ms:.0f}",
        )
    )
    for back in range(rng.randrange(1, 5), 0, -1):
        for rank in range(min(world.size, 16)):
            scale = more if rank in heavy else rng.uniform(0.85, 1.1)
            text = form.format(
                r=rank,
                s=world.step - back,
                n=int(base * scale),
                t=world.step_s * scale,
                ms=world.step_s * scale * 1000,
            )
            scene.story.add(
                Record(
                    time=onset - back * world.step_s + 0.01 * rank,
                    lines=(text,),
                    role="evidence",
                    rank=rank,
                    node=world.node_of(rank),
                    strength=2 if rank in heavy else 1,
                )
            )


def _memory_table(scene: Scene, heavy: tuple[int, ...], onset: float, detection: float) -> None:
    rng, world = scene.rng, scene.world
    total, low = rng.choice((40960, 81559, 24564, 143771)), rng.uniform(0.1, 0.5)
    rows = [
        f"{rank % 8}, {int(total * (0.97 if rank in heavy else low * rng.uniform(0.95, 1.05)))} MiB, {total} MiB"
        for rank in range(min(world.size, 8))
    ]
    header = "index, memory.used [MiB], memory.total [MiB]"
    if not any(rank < 8 for rank in heavy):
        rows[-1] = f"7, {int(total * 0.97)} MiB, {total} MiB"
    scene.story.add(
        Record(time=onset - 5, lines=(header, *rows), role="evidence", channel="tool", file="gpu_mem", strength=2)
    )


def _util_table(scene: Scene, heavy: tuple[int, ...], onset: float, detection: float) -> None:
    """Idle cards against busy ones: the ends of a pipeline, or those that hold little and sit apart."""
    rng, world = scene.rng, scene.world
    count = min(world.size, 8)
    ends = {0, count - 1} if rng.random() < 0.5 else set(range(count // 2))
    idle = ends if count > 3 and rng.random() < 0.7 else {rank for rank in heavy if rank < count}
    rows = [
        f"{rank}, {rng.choice((0, 0, 1)) if rank in idle else rng.choice((100, 100, 99))} %" for rank in range(count)
    ]
    if not any(row.endswith((", 0 %", ", 1 %")) for row in rows):
        rows[0] = "0, 0 %"
    scene.story.add(
        Record(
            time=onset + (detection - onset) / 2,
            lines=("index, utilization.gpu [%]", *rows),
            role="evidence",
            channel="tool",
            file="gpu_util",
            strength=2,
        )
    )


def _stage_times(scene: Scene, heavy: tuple[int, ...], onset: float, detection: float) -> None:
    rng, world = scene.rng, scene.world
    stages = rng.choice((2, 4, 8))
    slow = stages - 1 if 0 not in heavy else 0
    base = rng.uniform(150, 900)
    times = [base * (rng.uniform(2, 4) if stage == slow else rng.uniform(0.95, 1.05)) for stage in range(stages)]
    text = rng.choice(
        (
            "forward time per stage (ms): " + " ".join(f"{time:.0f}" for time in times),
            "stage times: " + ", ".join(f"s{i}={time:.1f}ms" for i, time in enumerate(times)),
            "pipeline balance -> " + " | ".join(f"stage {i}: {time / 1000:.2f}s" for i, time in enumerate(times)),
        )
    )
    for back in range(rng.randrange(1, 4), 0, -1):
        scene.story.add(
            Record(
                time=onset - back * world.step_s,
                lines=(text,),
                role="evidence",
                rank=0,
                channel="main",
                prefix="user",
                strength=3,
            )
        )


def _param_lines(scene: Scene, heavy: tuple[int, ...], onset: float, detection: float) -> None:
    rng, world = scene.rng, scene.world
    base = rng.randrange(10**7, 2 * 10**9)
    form = rng.choice(
        (
            "rank {r}: {n:,} parameters",
            "[rank {r}] local params {m:.1f}M",
            "> number of parameters on (tensor, pipeline) model parallel rank (0, {r}): {n}",
            "shard {r} holds {m:.0f} M params",
        )
    )
    for rank in range(min(world.size, 8)):
        number = int(base * (rng.uniform(1.9, 4) if rank in heavy else rng.uniform(0.99, 1.01)))
        scene.story.add(
            Record(
                time=onset - min(world.step * world.step_s, 900) - 20 + rank * 0.01,
                lines=(form.format(r=rank, n=number, m=number / 1e6),),
                role="evidence",
                rank=rank,
                node=world.node_of(rank),
                strength=2 if rank in heavy else 1,
            )
        )
