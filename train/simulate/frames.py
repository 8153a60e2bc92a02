"""Frames of a waiting rank that tell in which phase it waits: often all that a report shows."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from train.simulate.record import Story
from train.simulate.tracebacks import Frame
from train.simulate.world import World

#: By cause: (file below the site or, with a leading dot, below the root; function; source line).
_PHASES: dict[str, tuple[tuple[str, str, str], ...]] = {
    "checkpoint_on_rank_0": (
        ("transformers/trainer.py", "_save_checkpoint", "self.save_model(output_dir, _internal_call=True)"),
        ("accelerate/accelerator.py", "save_state", "self.wait_for_everyone()"),
        ("./checkpointing/consolidate.py", "consolidate_shards_on_every_rank", "dist.barrier()"),
        ("./utils/checkpoint.py", "save_checkpoint", "dist.barrier()  # wait for rank 0"),
        ("./engine/saver.py", "consolidate", "torch.distributed.barrier(group=self.cpu_group)"),
        ("torch/distributed/checkpoint/state_dict_saver.py", "save", "central_plan = distW.reduce_scatter("),
        ("pytorch_lightning/strategies/ddp.py", "save_checkpoint", 'self.barrier("save_checkpoint")'),
    ),
    "checkpoint_storage": (
        ("torch/distributed/checkpoint/utils.py", "all_reduce", "all_data = self.gather_object(local_data)"),
        ("./utils/checkpoint.py", "write_shards", "dist.barrier()"),
        ("./megatron/training/checkpointing.py", "save_checkpoint", "torch.distributed.barrier()"),
    ),
    "checkpoint_upload": (
        ("./callbacks/uploader.py", "upload_and_wait", "dist.barrier()"),
        ("./utils/hub.py", "push_checkpoint", "accelerator.wait_for_everyone()"),
    ),
    "evaluation": (
        ("./evaluate.py", "evaluate", "dist.broadcast(score, src=0)"),
        ("transformers/trainer.py", "evaluation_loop", "logits = self.gather_function((logits))"),
        ("./engine/validate.py", "validate", "dist.barrier()"),
        ("./tasks/eval_harness.py", "run_eval_on_main", "accelerator.wait_for_everyone()"),
        ("./trainer.py", "maybe_validate", "stop = broadcast_flag(stop)"),
    ),
    "generation": (
        ("./workers/rollout_worker.py", "generate_sequences", "dist.all_gather(buf, value)"),
        ("./rl/sampler.py", "sample_completions", "gather_object(completions)"),
        (
            "trl/trainer/grpo_trainer.py",
            "_generate_and_score_completions",
            "all_prompts = gather_object(prompts)",
        ),
        ("./workers/actor.py", "generate", "torch.distributed.barrier()"),
    ),
    "reward": (
        ("./rl/reward.py", "score_responses", "rewards = gather(rewards)"),
        ("trl/trainer/grpo_trainer.py", "_calculate_rewards", "rewards_per_func = gather(rewards_per_func)"),
    ),
    "remote_server": (
        ("./rl/weight_sync.py", "broadcast_weights", "dist.broadcast(param.data, src=0, group=self.group)"),
        ("./rl/broadcast/nccl.py", "send_state_dict", "self.communicator.broadcast(buffer, src=0)"),
        ("trl/extras/vllm_client.py", "update_named_param", "self.communicator.group.barrier()"),
    ),
    "tokenising": (
        ("accelerate/state.py", "main_process_first", "self.wait_for_everyone()"),
        ("transformers/training_args.py", "main_process_first", "dist.barrier()"),
        ("trl/trainer/sft_trainer.py", "_prepare_dataset", "with PartialState().main_process_first():"),
        ("./data/tokenize.py", "tokenize_dataset", "torch.distributed.barrier()"),
    ),
    "dataset_prep": (
        ("accelerate/state.py", "main_process_first", "self.wait_for_everyone()"),
        ("./data/indexed_dataset.py", "build_index_mappings", "torch.distributed.barrier()"),
        (
            "./megatron/core/datasets/gpt_dataset.py",
            "_build_document_sample_shuffle_indices",
            "torch.distributed.barrier()",
        ),
        ("./data/prepare.py", "load_prepared_dataset", "with zero_first(is_main_process()):"),
    ),
    "model_load": (
        ("./models/load.py", "load_checkpoint", "dist.barrier()"),
        (
            "torch/distributed/fsdp/_init_utils.py",
            "_sync_module_params_and_buffers",
            "_sync_params_and_buffers(",
        ),
        ("./models/factory.py", "from_pretrained_on_rank0", "broadcast_state_dict(model, src=0)"),
    ),
    "model_download": (
        ("./models/hub.py", "download_once_per_node", "dist.barrier()"),
        ("accelerate/state.py", "local_main_process_first", "self.wait_for_everyone()"),
    ),
    "rank0_extra_work": (
        ("./analysis/stats.py", "statistics_on_main", "dist.barrier()"),
        ("./index/cluster.py", "fit_codebook", "dist.broadcast(centroids, src=0)"),
    ),
    "logger_upload": (("./callbacks/logging.py", "log_artifacts", "dist.barrier()"),),
    "state_dict_to_cpu": (
        (
            "torch/distributed/checkpoint/state_dict.py",
            "_get_full_state_dict",
            "full = value.full_tensor().cpu()",
        ),
        ("./utils/fsdp.py", "gather_full_state_dict", "state = model.state_dict()"),
    ),
    "optim_cpu_offload": (
        (
            "./megatron/core/optimizer/cpu_offloading/hybrid_optimizer.py",
            "step",
            "torch.distributed.barrier()",
        ),
        ("./workers/actor.py", "offload_optimizer_to_cpu", "torch.distributed.barrier()"),
    ),
    "param_cpu_offload": (("./utils/fsdp_utils.py", "offload_model_to_cpu", "torch.distributed.barrier()"),),
    "rank0_only_collective": (
        ("./trainer.py", "save_if_main", "state = accelerator.get_state_dict(model)"),
        ("./callbacks/ckpt.py", "on_main_process_only", "full = model.state_dict()  # rank 0 only"),
        ("./engine/validate.py", "validate_on_rank_0", "loss = reduce_mean(loss)"),
    ),
    "fewer_batches_on_one_rank": (
        ("./engine/validate.py", "reduce_after_loop", "dist.all_reduce(total_loss)"),
        ("./train_loop.py", "on_epoch_end", "dist.barrier()"),
    ),
    "early_stop_on_one_rank": (("./train_loop.py", "leave_loop_and_finalise", "dist.barrier()"),),
}
#: Frames around a first meeting that name no phase of their own: harmless wherever they show.
_NEUTRAL: tuple[tuple[str, str, str], ...] = (
    ("accelerate/accelerator.py", "wait_for_everyone", "wait_for_everyone()"),
    ("./utils/dist.py", "synchronize", "dist.barrier()"),
    ("./utils/dist.py", "setup", "dist.barrier(device_ids=[local_rank])"),
    ("contextlib.py", "__enter__", "return next(self.gen)"),
)


def phase_frames(world: World, rng: Random, cause: str | None) -> list[Frame]:
    """One or two frames of the phase that `cause` holds up; empty if none is known."""
    known = [row for row in _PHASES.get(cause or "", ()) if _fits(row[0], world)]
    if not known:
        return []
    file, function, code = rng.choice(known)
    found = [(_path(world, file), function, code)]
    if "wait_for_everyone" in code:
        found.append((f"{world.site}/accelerate/state.py", "wait_for_everyone", "torch.distributed.barrier()"))
    if function.endswith("process_first") and rng.random() < 0.6:
        found.insert(0, (f"{world.site.rsplit('/', 1)[0]}/contextlib.py", "__enter__", "return next(self.gen)"))
    return found


def neutral_frames(world: World, rng: Random) -> list[Frame]:
    """A frame that says only that ranks meet here, or none."""
    if rng.random() < 0.6:
        return []
    file, function, code = rng.choice([row for row in _NEUTRAL if _fits(row[0], world)])
    return [(_path(world, file), function, code)]


def _fits(file: str, world: World) -> bool:
    wanted = {
        "transformers": "hf",
        "trl": "hf",
        "accelerate": "hf",
        "pytorch_lightning": "lightning",
        "megatron": "megatron",
    }
    for name, tag in wanted.items():
        if f"{name}/" in file and tag not in world.tags:
            return False
    return "fsdp" not in file.lower() or "fsdp" in world.tags


def _path(world: World, file: str) -> str:
    return f"{world.root}{file[1:]}" if file.startswith("./") else f"{world.site}/{file}"


def mark(story: Story, told: list[Frame], start: int, most: int = 2) -> bool:
    """Make the first records since `start` that show one of the frames evidence; whether any does."""
    names = [function for _, function, _ in told]
    marked = 0
    for i in range(start, len(story.records)):
        record = story.records[i]
        shown = any(f"{name} " in f"{line} " or f"in {name}" in line for line in record.lines for name in names)
        if shown and marked < most and record.role in {"wait", "stack"}:
            story.records[i] = replace(record, strength=2)
            marked += 1
    return marked > 0
