"""Python tracebacks and the exceptions that ranks die of, as each interpreter and library prints them."""

from __future__ import annotations

from random import Random

from train.simulate.world import World

Frame = tuple[str, str, str]


def user_file(world: World, rng: Random) -> str:
    """A source file of the training code."""
    names = (
        "trainer.py",
        "engine.py",
        "train_utils.py",
        "loop.py",
        "data/loader.py",
        "models/model.py",
        "utils/dist.py",
        "core/runner.py",
        "tasks/base.py",
    )
    return f"{world.root}/{rng.choice(names)}"


def render(world: World, rng: Random, frames: list[Frame], final: str) -> tuple[str, ...]:
    """A traceback whose last line is `final`; Python 3.11+ marks columns under some frames."""
    lines = ["Traceback (most recent call last):"]
    marks = world.python >= "3.11" and len(world.python) == 4 and rng.random() < 0.5
    for file, function, code in frames:
        lines.append(f'  File "{file}", line {rng.randrange(20, 1900)}, in {function}')
        lines.append(f"    {code}")
        if marks and "(" in code:
            lines.append("    " + " " * rng.randrange(0, 9) + "^" * min(len(code), rng.randrange(6, 40)))
    return (*lines, *final.split("\n"))


def outer(world: World, rng: Random) -> list[Frame]:
    """The frames from the script's top to the training loop."""
    script = f"{world.root}/{world.script}"
    main = rng.choice(
        (
            ("main()", "main"),
            ("run(args)", "run"),
            ("cli()", "cli"),
            ("fit(cfg)", "fit"),
            ("main(parse_args())", "main"),
        )
    )
    found: list[Frame] = [(script, "<module>", main[0])]
    if "hf" in world.tags and rng.random() < 0.7:
        found.append((script, main[1], "trainer.train()"))
        found.append(
            (
                f"{world.site}/transformers/trainer.py",
                "_inner_training_loop",
                "tr_loss_step = self.training_step(model, inputs)",
            )
        )
    elif "lightning" in world.tags:
        found.append((script, main[1], "trainer.fit(model, datamodule=dm)"))
        found.append(
            (
                f"{world.site}/pytorch_lightning/loops/fit_loop.py",
                "advance",
                "self.epoch_loop.run(self._data_fetcher)",
            )
        )
    elif "megatron" in world.tags:
        found.append(
            (
                f"{world.root}/megatron/training/training.py",
                "train",
                "loss_dict, skipped_iter, grad_norm = train_step(forward_step_func, data_iterator, model, optimizer)",
            )
        )
    else:
        found.append(
            (
                script,
                main[1],
                rng.choice(
                    (
                        "train_one_epoch(model, loader, opt, epoch)",
                        "trainer.fit()",
                        "loss = step(batch)",
                        "engine.run()",
                        "train(model, loader)",
                    )
                ),
            )
        )
    return found


_WAITS: tuple[tuple[str, str, str], ...] = (
    ("barrier", "torch/distributed/distributed_c10d.py", "work = group.barrier(opts=opts)"),
    ("all_reduce", "torch/distributed/distributed_c10d.py", "work = group.allreduce([tensor], opts)"),
    (
        "all_gather_into_tensor",
        "torch/distributed/distributed_c10d.py",
        "work = group._allgather_base(output_tensor, input_tensor, opts)",
    ),
    ("broadcast", "torch/distributed/distributed_c10d.py", "work = group.broadcast([tensor], opts)"),
    (
        "reduce_scatter_tensor",
        "torch/distributed/distributed_c10d.py",
        "work = group._reduce_scatter_base(output, input, opts)",
    ),
    (
        "all_gather",
        "torch/distributed/distributed_c10d.py",
        "work = group.allgather([tensor_list], [tensor], opts)",
    ),
)
_FUNCTION = {"ALLREDUCE": 1, "_ALLGATHER_BASE": 2, "BROADCAST": 3, "_REDUCE_SCATTER_BASE": 4, "ALLGATHER": 5}


def inner_wait(world: World, rng: Random, op: str, barrier: bool) -> list[Frame]:
    """The frames of a rank that stands in a collective."""
    name, file, code = _WAITS[0 if barrier else _FUNCTION.get(op, 1)]
    frames: list[Frame] = []
    if world.torch.rank >= 1 and rng.random() < 0.55:
        logger = f"{world.site}/torch/distributed/" + (
            "c10d_logger.py" if world.torch.rank >= 1 else "distributed_c10d.py"
        )
        frames.append((logger, "wrapper", "return func(*args, **kwargs)"))
    return [*frames, (f"{world.site}/{file}", name, code if rng.random() < 0.7 else "work.wait()")]


def trace_frames(world: World, rng: Random, op: str, numel: int, told: list[Frame]) -> list[str]:
    """`#i function from file:line` of a hung call, innermost first; `told` are frames that name a phase."""
    name = _WAITS[0 if numel == 1 and op == "ALLREDUCE" else _FUNCTION.get(op, 1)]
    site = world.site
    rows = [(name[0], f"{site}/{name[1]}"), ("wrapper", f"{site}/torch/distributed/c10d_logger.py")]
    rows += [(function, file) for file, function, _ in reversed(told)]
    if "fsdp" in world.tags and not told and numel != 1:
        rows += (
            [
                ("_all_gather_flat_param", f"{site}/torch/distributed/fsdp/_flat_param.py"),
                ("_unshard", f"{site}/torch/distributed/fsdp/_runtime_utils.py"),
            ]
            if world.framework == "FSDP"
            else [
                ("foreach_all_gather", f"{site}/torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py"),
                ("unshard", f"{site}/torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py"),
            ]
        )
    rows.append((rng.choice(("train_step", "forward", "_call_impl", "step", "sync", "run")), user_file(world, rng)))
    rows.append(("<module>", f"{world.root}/{world.script}"))
    return [f"#{i} {function} from {file}:{rng.randrange(40, 4900)}" for i, (function, file) in enumerate(rows)]


def cuda_oom(world: World, rng: Random, gpu: int) -> str:
    """An out-of-memory error in the wording of the release."""
    total = rng.choice((23.64, 31.74, 39.39, 39.56, 44.39, 79.11, 79.15, 79.32, 139.8, 63.42))
    free = rng.uniform(3, 400)
    used = total - free / 1024 - 0.02
    alloc = used * rng.uniform(0.85, 0.97)
    ask = rng.choice((f"{rng.randrange(20, 990)}.00 MiB", f"{rng.uniform(1, 9):.2f} GiB"))
    name = (
        "torch.cuda.OutOfMemoryError"
        if 0 <= world.torch.rank < 5
        else "torch.OutOfMemoryError"
        if world.torch.rank >= 5
        else "RuntimeError"
    )
    if world.torch.rank < 2:
        return (
            f"{name}: CUDA out of memory. Tried to allocate {ask} (GPU {gpu}; {total:.2f} GiB total "
            f"capacity; {alloc:.2f} GiB already allocated; {free:.2f} MiB free; {used:.2f} GiB reserved "
            "in total by PyTorch) If reserved memory is >> allocated memory try setting "
            "max_split_size_mb to avoid fragmentation.  See documentation for Memory Management and "
            "PYTORCH_CUDA_ALLOC_CONF"
        )
    return (
        f"{name}: CUDA out of memory. Tried to allocate {ask}. GPU {gpu} has a total capacity of "
        f"{total:.2f} GiB of which {free:.2f} MiB is free. Including non-PyTorch memory, this process "
        f"has {used:.2f} GiB memory in use. Of the allocated memory {alloc:.2f} GiB is allocated by "
        f"PyTorch, and {rng.uniform(20, 990):.2f} MiB is reserved by PyTorch but unallocated. If "
        "reserved but unallocated memory is large try setting "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation "
        "for Memory Management  (https://pytorch.org/docs/stable/notes/"
        "cuda.html#environment-variables)"
    )


_ERRORS = (
    "ValueError: not enough values to unpack (expected {a}, got {b})",
    "KeyError: 'pixel_values'",
    "KeyError: 'labels'",
    "KeyError: {big}",
    "IndexError: list index out of range",
    "IndexError: index {big} is out of bounds for dimension 0 with size {big2}",
    "RuntimeError: stack expects each tensor to be equal size, but got [{big}] at entry 0 and [{big2}] at entry {a}",
    "FileNotFoundError: [Errno 2] No such file or directory: '{root}/data/part-{a:05d}.parquet'",
    "OSError: [Errno 5] Input/output error",
    "OSError: [Errno 116] Stale file handle",
    "OSError: [Errno 28] No space left on device",
    "PIL.UnidentifiedImageError: cannot identify image file <_io.BytesIO object at 0x7f1e2c0a{a:04x}>",
    "AssertionError: sequence length {big} exceeds {big2}",
    "ZeroDivisionError: float division by zero",
    "AttributeError: 'NoneType' object has no attribute 'shape'",
    "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
    "UnicodeDecodeError: 'utf-8' codec can't decode byte 0x{c:02x} in position {a}: invalid start byte",
    "TypeError: unsupported operand type(s) for /: 'NoneType' and 'int'",
    "pyarrow.lib.ArrowInvalid: Could not open Parquet input source '<Buffer>': Parquet magic bytes "
    "not found in footer.",
    "FloatingPointError: gradients are not finite at step {big}",
    "RuntimeError: CUDA error: an illegal memory access was encountered",
    "RuntimeError: CUDA error: device-side assert triggered",
    "RuntimeError: CUDA error: unspecified launch failure",
    "RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx`",
    "RuntimeError: cuDNN error: CUDNN_STATUS_INTERNAL_ERROR",
    "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
    "MemoryError",
    "EOFError: Ran out of input",
    "ConnectionResetError: [Errno 104] Connection reset by peer",
    "ModuleNotFoundError: No module named 'einops'",
    "RuntimeError: Error(s) in loading state_dict for Model:",
    "BrokenPipeError: [Errno 32] Broken pipe",
    "tarfile.ReadError: unexpected end of data",
)


def any_error(world: World, rng: Random) -> str:
    """The last line of some exception that user code dies of."""
    return rng.choice(_ERRORS).format(
        a=rng.randrange(2, 900),
        b=rng.randrange(0, 2),
        c=rng.randrange(128, 255),
        big=rng.randrange(900, 90000),
        big2=rng.randrange(900, 60000),
        root=world.root,
    )


def crash(world: World, rng: Random, final: str) -> tuple[str, ...]:
    """A traceback through the user's code that ends in `final`."""
    frames = outer(world, rng)
    deeper: tuple[Frame, ...] = (
        (
            user_file(world, rng),
            rng.choice(
                (
                    "forward",
                    "training_step",
                    "compute_loss",
                    "__getitem__",
                    "collate_fn",
                    "get_batch",
                    "process",
                )
            ),
            rng.choice(
                (
                    "out = self.model(**batch)",
                    "x = self.proj(x)",
                    "item = self.samples[idx]",
                    "loss = self.criterion(out, target)",
                    "return torch.stack(rows)",
                    "sample = self.decode(raw)",
                )
            ),
        ),
        (f"{world.site}/torch/nn/modules/module.py", "_call_impl", "return forward_call(*args, **kwargs)"),
        (
            user_file(world, rng),
            rng.choice(("forward", "attention", "load_sample", "pad", "encode")),
            rng.choice(
                (
                    "h = self.block(h, mask)",
                    "y = fn(x)",
                    "raise",
                    "out = F.scaled_dot_product_attention(q, k, v)",
                    "return next(self.stream)",
                )
            ),
        ),
    )
    return render(world, rng, frames + list(deeper[: rng.choice((1, 1, 1, 2, 3))]), final)
