"""What a healthy run prints: start-up, step lines in the voice of each framework, progress bars."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from train.simulate import clock
from train.simulate.record import Record, Story
from train.simulate.world import World

#: Writes one step line: the world, a source of chance, the step, and how long it took against the usual.
Voice = Callable[[World, Random, int, float], str]

_BLOCKS = " ▏▎▍▌▋▊▉█"


def bar(desc: str, done: int, total: int, elapsed: float, unit: str = "it", width: int = 10, extra: str = "") -> str:
    """A tqdm bar at `done` of `total` after `elapsed` seconds."""
    share = done / max(total, 1)
    cells = int(share * width * 8)
    filled = "█" * (cells // 8) + (_BLOCKS[cells % 8] if cells % 8 and cells // 8 < width else "")
    rate = done / elapsed if elapsed > 0 and done else 0.0
    left = clock.span((total - done) / rate) if rate else "?"
    speed = (
        f"{rate:.2f}{' ' if len(unit) > 3 else ''}{unit}/s"
        if rate >= 1
        else f"{1 / rate:.2f}s/{unit}"
        if rate
        else f"?{' ' if len(unit) > 3 else ''}{unit}/s"
    )
    speed = speed if rate >= 1 or rate == 0 else f" {speed}" if len(speed) < 9 else speed
    return (
        f"{desc}{': ' if desc else ''}{share * 100:3.0f}%|{filled.ljust(width)}| {done}/{total} "
        f"[{clock.span(elapsed)}<{left}, {speed}{extra}]"
    )


def _metrics(rng: Random, world: World, step: int) -> tuple[float, float, float]:
    loss = 0.3 + 9.0 / (1 + step / 300) ** 0.5 + rng.gauss(0, 0.05)
    return abs(loss), abs(rng.gauss(0.8, 0.4)) + 0.02, 3e-4 * max(0.02, 1 - step / max(world.steps, 1))


def _hf(world: World, rng: Random, step: int, jitter: float) -> str:
    loss, norm, rate = _metrics(rng, world, step)
    epoch = round(step / max(world.steps, 1) * 3, 2)
    if world.torch.rank >= 10:
        return (
            f"{{'loss': '{loss:.4g}', 'grad_norm': '{norm:.4g}', 'learning_rate': '{rate:.4g}', "
            f"'epoch': '{epoch:.4g}'}}"
        )
    return (
        f"{{'loss': {loss:.4f}, 'grad_norm': {norm}, 'learning_rate': {rate}, 'epoch': {epoch}}}"
        if world.torch.rank > 2
        else f"{{'loss': {loss:.4f}, 'learning_rate': {rate}, 'epoch': {epoch}}}"
    )


def _megatron(world: World, rng: Random, step: int, jitter: float) -> str:
    loss, norm, rate = _metrics(rng, world, step)
    batch = 32 * world.size
    tflops = f" throughput per GPU (TFLOP/s/GPU): {rng.uniform(90, 420):.1f} |" if world.shift == 0 else ""
    return (
        f" [{{stamp}}] iteration {step:8d}/{world.steps:8d} | consumed samples: {step * batch:12d} "
        f"| elapsed time per iteration (ms): {world.step_s * jitter * 1000:.1f} |{tflops} "
        f"learning rate: {rate:.6E} | global batch size: {batch:5d} | lm loss: {loss:.6E} | loss "
        f"scale: 1.0 | grad norm: {norm:.3f} | number of skipped iterations:   0 | number of nan "
        "iterations:   0 |"
    )


def _titan(world: World, rng: Random, step: int, jitter: float) -> str:
    loss, norm, _ = _metrics(rng, world, step)
    return (
        f"[titan] {{comma}} - root - INFO - step: {step:2d}  loss: {loss:7.4f}  grad_norm: {norm:7.4f}  "
        f"memory: {rng.uniform(60, 62):5.2f}GiB(77.{rng.randrange(10, 99)}%)  tps: "
        f"{int(7000 / jitter):,}  tflops: {380 / jitter:.2f}  mfu: {38 / jitter:.2f}%"
    )


def _deepspeed(world: World, rng: Random, step: int, jitter: float) -> str:
    _, _, rate = _metrics(rng, world, step)
    return (
        rng.choice(
            (
                f"[{{comma}}] [INFO] [logging.py:96:log_dist] [Rank 0] step={step}, skipped=0, "
                f"lr=[{rate}], mom=[(0.9, 0.95)]",
                f"[{{comma}}] [INFO] [timer.py:215:stop] epoch=0/micro_step={step * 2}/"
                f"global_step={step}, RunningAvgSamplesPerSec={8 / world.step_s:.6f}, "
                f"CurrSamplesPerSec={8 / world.step_s / jitter:.6f}, "
                f"MemAllocated={rng.uniform(12, 14):.2f}GB, "
                f"MaxMemAllocated={rng.uniform(31, 33):.2f}GB",
            )
        )
        if rng.random() < 0.6
        else _hf(world, rng, step, jitter)
    )


def _verl(world: World, rng: Random, step: int, jitter: float) -> str:
    loss, norm, _ = _metrics(rng, world, step)
    return (
        f"step:{step} - global_seqlen/mean:{rng.uniform(3e4, 9e4):.1f} - actor/"
        f"entropy:{rng.uniform(0.1, 0.9):.4f} - actor/pg_loss:{loss / 30:.5f} - actor/"
        f"grad_norm:{norm:.3f} - critic/score/mean:{rng.uniform(0.1, 0.9):.3f} - timing_s/"
        f"gen:{world.step_s * jitter * 0.6 + 9:.2f} - timing_s/step:{world.step_s * jitter + 20:.2f} - "
        f"perf/throughput:{900 / jitter:.1f}"
    )


def _lightning(world: World, rng: Random, step: int, jitter: float) -> str:
    loss, _, _ = _metrics(rng, world, step)
    total = max(10, world.steps // 4)
    done = step % total
    return bar(
        f"Epoch {step // total}",
        done,
        total,
        done * world.step_s,
        extra=f", v_num={rng.randrange(9)}, train_loss={loss:.3f}",
    )


def _nemo(world: World, rng: Random, step: int, jitter: float) -> str:
    loss, _, rate = _metrics(rng, world, step)
    return (
        f"Training epoch 0, iteration {step}/{world.steps} | lr: {rate:.4g} | global_batch_size: "
        f"{8 * world.size} | global_step: {step} | reduced_train_loss: {loss:.4g} | train_step_timing "
        f"in s: {world.step_s * jitter:.4g} | consumed_samples: {8 * world.size * (step + 1)}"
    )


_FORMS = (
    "step {s} | loss {l:.4f} | lr {r:.2e} | {ms:.0f} ms/step",
    "step={s} loss={l:.4f} lr={r:.3g} gnorm={n:.3f} dt={dt:.3f}s",
    "Epoch: [{e}][{i}/{t}]\tTime {dt:.3f} ({dt2:.3f})\tLoss {l:.4e} ({l:.4e})",
    "epoch {e} iter {i} loss {l:.4f} ({dt:.2f} s)",
    "[{e}/{et}] step {s}: train loss {l:.4f}, tok/s {tok}",
    "iter {s}: loss {l:.4f}, time {ms:.2f}ms, mfu {mfu:.2f}%",
    "  step={s:>6} ep={e} ce={l:.4f} gn={n:.4f}",
    "Train Epoch: {e} [{i}/{t} ({p:.0f}%)]\tLoss: {l:.6f}",
    "loss: {l:.4f}  lr: {r:.6f}  step: {s}  throughput: {tok} tokens/s  mem: {mem:.1f} GB",
    "{s:7d}  {l:.5f}  {n:.4f}  {dt:.3f}s",
    "eta: {eta}  iter: {s}  total_loss: {l:.4f}  time: {dt:.4f}  last_time: {dt2:.4f}  data_time: "
    "0.00{p:.0f}  lr: {r:.6f}  max_mem: {mib}M",
    '{{"step": {s}, "loss": {l:.4f}, "lr": {r:.3g}, "step_time": {dt:.3f}}}',
    "global_step {s} loss {l:.3f} grad_norm {n:.2f} tokens_per_sec {tok}",
    "[train] it={s} l={l:.4f} t={dt:.2f}",
    "epoch {e} step_in_epoch {i} global_step {s} loss {l:.4f} lr {r:.2e}",
)


def _plain(form: str) -> Voice:
    def line(world: World, rng: Random, step: int, jitter: float) -> str:
        loss, norm, rate = _metrics(rng, world, step)
        epoch_len = max(10, world.steps // 8)
        dt = world.step_s * jitter
        return form.format(
            s=step,
            l=loss,
            r=rate,
            n=norm,
            ms=dt * 1000,
            dt=dt,
            dt2=world.step_s,
            e=step // epoch_len,
            et=8,
            i=step % epoch_len,
            t=epoch_len,
            tok=f"{int(90000 / dt):d}",
            mfu=40 / jitter,
            p=100 * (step % epoch_len) / epoch_len,
            mem=41.2,
            eta=clock.span((world.steps - step) * dt),
            mib=41822,
        )

    return line


def step_voice(world: World, rng: Random) -> Voice:
    """The function that writes this run's step lines."""
    named: dict[str, Voice] = {
        "HF Trainer": _hf,
        "Megatron": _megatron,
        "torchtitan": _titan,
        "verl": _verl,
        "Lightning": _lightning,
        "NeMo": _nemo,
    }
    if world.framework in named:
        return named[world.framework]
    if world.framework.startswith("DeepSpeed") and rng.random() < 0.7:
        return _deepspeed
    if world.framework == "Accelerate" and rng.random() < 0.4:
        return _hf
    return _plain(rng.choice(_FORMS))


def printing_rank(world: World) -> int:
    """Who prints step lines: rank 0, and the last rank under Megatron."""
    return world.size - 1 if world.framework == "Megatron" else 0


def steps(
    story: Story,
    world: World,
    rng: Random,
    end: float,
    last: int,
    count: int,
    *,
    every_rank: bool = False,
    slow: tuple[int, ...] = (),
    factor: float = 1.0,
) -> None:
    """`count` step lines up to step `last` at `end`; `slow` ranks take `factor` times as long."""
    voice = step_voice(world, rng)
    stride = rng.choice((1, 1, 10, 10, 50, 100)) if world.step_s < 3 else 1
    usual = 0.65 if world.framework in {"HF Trainer", "Accelerate"} else 0.18
    show_bar = world.framework not in {"Lightning", "Megatron"} and rng.random() < usual
    title = rng.choice(("", "", "", "Train", "Training", f"Epoch {last % 7}"))
    width = rng.choice((10, 10, 10, 40, 80))
    channel = "rank" if every_rank or world.framework in {"Megatron", "torchtitan"} else "main"
    for i in range(count):
        step = last - (count - 1 - i) * stride
        if step < 0:
            continue
        at = end - (count - 1 - i) * stride * world.step_s
        who = range(world.size) if every_rank else (printing_rank(world),)
        for rank in who:
            jitter = max(0.5, rng.gauss(1.0, 0.02)) * (factor if rank in slow else 1.0)
            shown = world.shown(world.node_of(rank), at)
            text = (
                voice(world, rng, step, jitter)
                .replace("{stamp}", clock.plain(shown))
                .replace("{comma}", clock.comma(shown))
            )
            prefix = (
                "raw"
                if world.framework in {"Megatron", "torchtitan", "HF Trainer"}
                or text.startswith(("[", "{"))
                or "|" in text[:20]
                else "user"
            )
            story.add(
                Record(
                    time=at + rng.random() * 0.02,
                    lines=(text,),
                    role="chat",
                    rank=rank,
                    node=world.node_of(rank),
                    channel=channel,
                    prefix=prefix,
                )
            )
        if show_bar:
            text = bar(title, step, world.steps, step * world.step_s, width=width)
            story.add(Record(time=at + 0.03, lines=(text,), role="chat", rank=0, channel="main", open=True))
