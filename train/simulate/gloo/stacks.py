"""Tracebacks of ranks that stand in a gloo operation: user frames that fit the phase, then the wrapper's."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from train.simulate import tracebacks
from train.simulate.tracebacks import Frame
from train.simulate.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The names that one script uses for its functions and files."""

    helper: str
    main: str
    step: str
    evaluate: str
    save: str
    log: str
    prepare: str


def pick_names(world: World, rng: Random) -> Names:
    """Draw the names of a script."""
    return Names(
        helper=f"{world.root}/{rng.choice(('job.py', 'engine.py', 'loop.py', 'lib/steps.py', 'core.py'))}",
        main=rng.choice(("main", "run", "train", "fit")),
        step=rng.choice(("train_step", "forward", "training_step", "step", "run_batch")),
        evaluate=rng.choice(("evaluate", "validate", "run_eval", "eval_epoch")),
        save=rng.choice(("save_checkpoint", "save", "save_state", "write_checkpoint")),
        log=rng.choice(("log_metrics", "reduce_metrics", "report", "gather_stats")),
        prepare=rng.choice(("build_dataset", "prepare_data", "setup", "load_data")),
    )


def _c10d(world: World, name: str, *, logged: bool = True) -> list[Frame]:
    root = f"{world.site}/torch/distributed"
    frames: list[Frame] = [(f"{root}/distributed_c10d.py", name, "work.wait()")]
    return [(f"{root}/c10d_logger.py", "wrapper", "return func(*args, **kwargs)"), *frames] if logged else frames


def _module(world: World) -> list[Frame]:
    file = f"{world.site}/torch/nn/modules/module.py"
    return [
        (file, "_wrapped_call_impl", "return self._call_impl(*args, **kwargs)"),
        (file, "_call_impl", "return forward_call(*args, **kwargs)"),
    ]


#: From this release on, gathers and scatters of a single tensor have names of their own.
_SINGLE = 13


def _gathers(world: World) -> str:
    return "all_gather_single" if world.torch.rank >= _SINGLE else "all_gather_into_tensor"


def _scatters(world: World) -> str:
    return "reduce_scatter_single" if world.torch.rank >= _SINGLE else "reduce_scatter_tensor"


def _wrapped(world: World, file: str) -> list[Frame]:
    """The frames that newer releases put around each hook, so that it is not traced."""
    if world.torch.rank < _SINGLE:
        return []
    return [
        (file, "wrapper", "return torch._dynamo.disable("),
        (f"{world.site}/torch/_dynamo/eval_frame.py", "_fn", "return fn(*args, **kwargs)"),
    ]


def _gather(world: World) -> list[Frame]:
    """From the wrapper's unshard down to the all-gather of the parameters."""
    fsdp, no_grad = f"{world.site}/torch/distributed/fsdp", f"{world.site}/torch/utils/_contextlib.py"
    if world.framework == "FSDP":
        return [
            (f"{fsdp}/_runtime_utils.py", "_unshard", "handle.unshard()"),
            (f"{fsdp}/_flat_param.py", "unshard", "padded = self._all_gather_flat_param(unsharded_flat_param)"),
            (f"{fsdp}/_flat_param.py", "_all_gather_flat_param", "dist.all_gather(tensor_list, shard, group=pg)"),
            *_c10d(world, "all_gather"),
        ]
    new = f"{fsdp}/_fully_shard"
    return [
        (f"{new}/_fsdp_param_group.py", "unshard", "self._all_gather_result = foreach_all_gather("),
        (no_grad, "decorate_context", "return func(*args, **kwargs)"),
        (f"{new}/_fsdp_collectives.py", "foreach_all_gather", "all_gather_work = all_gather_comm("),
        *([(f"{new}/_fsdp_collectives.py", "__call__", f"return dist.{_gathers(world)}(")] * (world.torch.rank >= 11)),
        *_c10d(world, _gathers(world)),
    ]


def _unshard(world: World) -> list[Frame]:
    fsdp = f"{world.site}/torch/distributed/fsdp"
    if world.framework == "FSDP":
        return [
            (f"{fsdp}/fully_sharded_data_parallel.py", "forward", "args, kwargs = _pre_forward("),
            (f"{fsdp}/_runtime_utils.py", "_pre_forward", "unshard_fn(state, handle)"),
            *_gather(world),
        ]
    new = f"{fsdp}/_fully_shard"
    return [
        *_wrapped(world, f"{new}/_fsdp_common.py"),
        (f"{new}/_fsdp_state.py", "_pre_forward", "args, kwargs = group.pre_forward(module, args, kwargs)"),
        (f"{new}/_fsdp_param_group.py", "pre_forward", "self.unshard(self.unshard_async_op)"),
        *_gather(world),
    ]


def _prefetch(world: World) -> list[Frame]:
    """Backward gathers the parameters of the next block ahead of time."""
    fsdp = f"{world.site}/torch/distributed/fsdp"
    if world.framework == "FSDP":
        file = f"{fsdp}/_runtime_utils.py"
        return [
            (file, "_pre_backward_hook", "_prefetch_handle(state, handle, _PrefetchMode.BACKWARD)"),
            (file, "_prefetch_handle", "_unshard(state, handle, state._unshard_stream, state._pre_unshard_stream)"),
            *_gather(world),
        ]
    new = f"{fsdp}/_fully_shard"
    return [
        *_wrapped(world, f"{new}/_fsdp_common.py"),
        (f"{new}/_fsdp_state.py", "_pre_backward", "fsdp_param_group.pre_backward(default_prefetch)"),
        (f"{new}/_fsdp_param_group.py", "pre_backward", "self._backward_prefetch()"),
        (f"{new}/_fsdp_param_group.py", "_backward_prefetch", 'self._prefetch_unshard(target, "backward")'),
        (f"{new}/_fsdp_param_group.py", "_prefetch_unshard", "target_fsdp_param_group.unshard(async_op)"),
        *_gather(world),
    ]


def _reduce(world: World) -> list[Frame]:
    """Backward reduces the gradients of a block."""
    fsdp = f"{world.site}/torch/distributed/fsdp"
    if world.framework == "FSDP":
        hook = (f"{fsdp}/_runtime_utils.py", "_reduce_grad", f"dist.{_scatters(world)}(")
        return [(f"{fsdp}/_runtime_utils.py", "_post_backward_hook", "_reduce_grad(state, handle)"), hook]
    new = f"{fsdp}/_fully_shard"
    return [
        (f"{new}/_fsdp_param_group.py", "backward", "ctx.param_group.post_backward()"),
        *_wrapped(world, f"{new}/_fsdp_common.py"),
        (f"{new}/_fsdp_param_group.py", "post_backward", ") = foreach_reduce("),
        (f"{new}/_fsdp_collectives.py", "foreach_reduce", "reduce_scatter_comm("),
    ]


def _forward(world: World, names: Names, rng: Random) -> list[Frame]:
    user: list[Frame] = [(names.helper, names.step, rng.choice(("out = self.model(batch)", "loss = model(x, y)")))]
    if world.framework == "DDP":
        ddp = f"{world.site}/torch/nn/parallel/distributed.py"
        inside: list[Frame] = [
            (ddp, "forward", "inputs, kwargs = self._pre_forward(*inputs, **kwargs)"),
            (ddp, "_pre_forward", "self._sync_buffers()"),
            (ddp, "_distributed_broadcast_coalesced", "dist._broadcast_coalesced("),
        ]
        return [*user, *_module(world), *inside]
    deeper = _module(world) if rng.random() < 0.5 else []
    block: list[Frame] = [(f"{world.root}/model.py", "forward", "x = block(x)"), *_module(world)] if deeper else []
    return [*user, *_module(world), *block, *_unshard(world)]


def _backward(world: World, names: Names, rng: Random, *, ahead: bool = False) -> list[Frame]:
    """Backward up to a reduction of gradients, or with `ahead` to a gather of parameters."""
    torch = f"{world.site}/torch"
    frames: list[Frame] = [
        (names.helper, rng.choice((names.step, "backward")), "loss.backward()"),
        (f"{torch}/_tensor.py", "backward", "torch.autograd.backward("),
        (f"{torch}/autograd/__init__.py", "backward", "_engine_run_backward("),
        (f"{torch}/autograd/graph.py", "_engine_run_backward", "return Variable._execution_engine.run_backward("),
    ]
    if world.framework == "DDP":
        return frames
    if ahead:
        return [*frames, *_prefetch(world)]
    return [*frames, *_reduce(world), *_c10d(world, _scatters(world))]


def _clip(world: World, names: Names) -> list[Frame]:
    torch = f"{world.site}/torch"
    file = (
        f"{torch}/distributed/fsdp/fully_sharded_data_parallel.py"
        if world.framework == "FSDP"
        else f"{torch}/nn/utils/clip_grad.py"
    )
    return [
        (names.helper, names.step, "norm = clip_grad_norm_(model.parameters(), 1.0)"),
        (file, "clip_grad_norm_", "dist.all_reduce(total_norm, group=self.process_group)"),
        *_c10d(world, "all_reduce"),
    ]


def _init(world: World, names: Names, rng: Random) -> list[Frame]:
    if rng.random() < 0.5 or world.framework == "FSDP2":
        return [(names.helper, names.prepare, "dist.barrier()"), *_c10d(world, "barrier")]
    if world.framework == "DDP":
        file = f"{world.site}/torch/nn/parallel/distributed.py"
        return [
            (names.helper, "build_model", "model = DDP(model)"),
            (file, "__init__", "_verify_param_shape_across_processes(self.process_group, parameters)"),
        ]
    fsdp = f"{world.site}/torch/distributed/fsdp"
    return [
        (names.helper, "build_model", "model = FSDP(model, sync_module_states=True)"),
        (f"{fsdp}/_init_utils.py", "_sync_module_params_and_buffers", "_sync_params_and_buffers("),
        (f"{world.site}/torch/distributed/utils.py", "_sync_params_and_buffers", "dist._broadcast_coalesced("),
    ]


#: Where a rank can stand, and the collective that it stands in.
OPS = {
    "forward": "ALLGATHER",
    "backward": "ALLREDUCE",
    "prefetch": "ALLGATHER",
    "clip": "ALLREDUCE",
    "barrier": "BARRIER",
    "final": "BARRIER",
    "evaluate": "ALLREDUCE",
    "gather": "ALLGATHER",
    "save": "BARRIER",
    "metrics": "ALLREDUCE",
    "init": "BARRIER",
    "extra": "ALLREDUCE",
}


def frames(world: World, names: Names, rng: Random, call: str) -> list[Frame]:
    """The frames of a rank that stands in `call`, outermost first."""
    script = f"{world.root}/{world.script}"
    code = {
        "forward": f"loss = {names.step}(batch)",
        "backward": f"loss = {names.step}(batch)",
        "prefetch": f"loss = {names.step}(batch)",
        "clip": f"loss = {names.step}(batch)",
        "evaluate": f"score = {names.evaluate}(step)",
        "gather": f"score = {names.evaluate}(step)",
        "save": f"{names.save}(step)",
        "metrics": f"{names.log}(stats)",
        "init": "job = setup(args)",
        "extra": "count = dist.all_reduce(found)",
    }.get(call, "dist.barrier()")
    head: list[Frame] = [(script, "<module>", f"{names.main}()"), (script, names.main, code)]
    return head + _inner(world, names, rng, call)


def _inner(world: World, names: Names, rng: Random, call: str) -> list[Frame]:
    if call == "forward":
        return _forward(world, names, rng)
    if call in {"backward", "prefetch"}:
        return _backward(world, names, rng, ahead=call == "prefetch")
    if call == "clip":
        return _clip(world, names)
    if call == "init":
        return _init(world, names, rng)
    user: dict[str, tuple[Frame, str]] = {
        "evaluate": ((names.helper, names.evaluate, "dist.all_reduce(total)"), "all_reduce"),
        "gather": ((names.helper, names.evaluate, "dist.all_gather(parts, mine)"), "all_gather"),
        "save": ((names.helper, names.save, "dist.barrier()"), "barrier"),
        "metrics": ((names.helper, names.log, "dist.all_reduce(stats)"), "all_reduce"),
    }
    if call in user:
        return [user[call][0], *_c10d(world, user[call][1])]
    return _c10d(world, "all_reduce" if call == "extra" else "barrier")


def render(world: World, stack: list[Frame], final: str) -> tuple[str, ...]:
    """The traceback's lines: the same code has the same line numbers in all ranks of a run."""
    return tracebacks.render(world, Random(f"{world.start}/{stack[-1][1]}/{len(stack)}"), stack, final)
