"""What a late rank prints: for each cause where it is late, how the slow part begins, and how one ends.

Slots: `s` seconds of this occurrence, `n` a count, `k` a smaller one, `p` per cent, `step`, `rank`, `path`.
A begin line is the last line of a rank that never came back; notes stand under earlier, slower and slower steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from random import Random


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrases:
    """`place`: data, compute, optim, save, eval, start or metrics. `main`: rank 0 does it alone."""

    place: str
    begins: tuple[str, ...]
    notes: tuple[str, ...] = ()
    main: bool = False


def _at(place: str, begins: tuple[str, ...], notes: tuple[str, ...] = (), *, main: bool = False) -> Phrases:
    return Phrases(place=place, begins=begins, notes=notes, main=main)


STRAGGLER: dict[str, Phrases] = {
    "data_loading": _at(
        "data",
        (
            "fetching batch {step} from {k} workers",
            "waiting for the data loader, step {step}",
            "loader: next batch requested (queue empty)",
            "loading batch {step} ...",
            "prefetch queue is empty, blocking on worker {k}",
        ),
        (
            "loader: batch ready after {s:.2f}s",
            "data wait {s:.2f}s at step {step}",
            "slow batch: loading took {s:.1f}s",
            "WARNING dataloader is the bottleneck: {s:.2f}s waiting for batch {step}",
            "fetch_time={s:.3f}s queue_len=0",
        ),
    ),
    "checkpoint_on_rank_0": _at(
        "save",
        (
            "writing checkpoint for step {step} to {path}",
            "save_checkpoint: torch.save -> {path}/step_{step}.pt",
            "Saving model and optimizer state to {path}",
            "checkpoint: serialising {n} tensors",
            "saving checkpoint at iteration {step} ...",
            "main process writes the checkpoint, {n} MB",
        ),
        ("checkpoint written in {s:.1f}s", "saved checkpoint, took {s:.2f} sec", "save_checkpoint done ({s:.1f}s)"),
        main=True,
    ),
    "checkpoint_storage": _at(
        "save",
        (
            "flushing checkpoint shard {k} to {path}",
            "fsync of {path}/shard_{k}.distcp",
            "writing optimizer shard ({n} MB) to network storage",
        ),
        ("shard written in {s:.1f}s ({n} MB)", "fsync took {s:.1f}s", "storage write {n} MB: {s:.2f}s"),
    ),
    "checkpoint_upload": _at(
        "save",
        (
            "uploading checkpoint step {step} to bucket",
            "syncing {path} to remote storage",
            "upload: part {k} of {n}",
        ),
        ("upload of step {step} finished in {s:.1f}s", "part {k} uploaded in {s:.1f}s"),
        main=True,
    ),
    "evaluation": _at(
        "eval",
        (
            "validation on the main process, {n} batches",
            "Evaluating:  {p}%|#         | {k}/{n}",
            "eval loop: batch {k}/{n}",
            "computing metrics on {n} samples",
            "running full evaluation on rank {rank} ({n} examples)",
            "scoring dev set ({n} sentences)",
            "evaluating on {n} held-out samples, this takes a while",
            "eval: computing perplexity over {n} documents",
        ),
        ("evaluation took {s:.1f}s", "eval finished in {s:.2f} s", "validation pass: {s:.1f}s"),
        main=True,
    ),
    "generation": _at(
        "eval",
        ("generating samples ({n} prompts)", "sampling {n} tokens for the preview", "decoding sample {k}/{n}"),
        ("generated {k} samples in {s:.1f}s", "sampling took {s:.1f}s"),
        main=True,
    ),
    "gc_pause": _at(
        "compute",
        ("gc: collecting generation 2", "running garbage collection, {n} objects tracked", "gc.collect() at {step}"),
        (
            "gc: generation 2 done in {s:.2f}s, {n} objects",
            "garbage collection paused the process for {s:.2f}s",
            "gc pause {s:.1f}s",
        ),
    ),
    "cpu_starved": _at(
        "compute",
        ("load average {n}.0 on {k} cores", "cpu throttled: {n} periods of cgroup quota exhausted"),
        (
            "slow step {step}: {s:.2f}s (cpu time only {k}%)",
            "cpu.stat nr_throttled {n}, step took {s:.2f}s",
            "process got {k}% of a core, step {step} {s:.2f}s",
        ),
    ),
    "compile": _at(
        "compute",
        (
            "compiling model (backend=inductor) ...",
            "torch.compile: lowering graph {k}",
            "inductor: building {n} kernels",
        ),
        ("compilation took {s:.1f}s", "compiled graph {k} in {s:.1f}s"),
    ),
    "recompile": _at(
        "compute",
        ("shape changed, graph is compiled again (entry {k})", "dynamo cache miss at step {step}, compiling"),
        ("graph compiled again in {s:.1f}s", "cache miss cost {s:.2f}s at step {step}"),
    ),
    "jit_build": _at(
        "start",
        ("Building extension module fused_ops ...", "ninja: compiling {k} of {n} objects", "building cpp extension"),
        ("extension built in {s:.1f}s",),
    ),
    "host_pause": _at("compute", (), ("heartbeat gap of {s:.1f}s noticed", "wall clock jumped {s:.1f}s ahead")),
    "host_hang": _at("compute", (), ("process did not run for {s:.1f}s",)),
    "host_jitter": _at("compute", (), ("jitter: step {step} {s:.2f}s above median",)),
    "tokenising": _at(
        "start",
        (
            "Tokenizing train split:   {p}%|          | {k}/{n} [00:03<04:51]",
            "tokenizing documents, {k} of {n}",
            "Running tokenizer on dataset (num_proc=1):   {p}%|          | {k}/{n}",
            "encoding corpus with the tokenizer ({n} lines)",
            "Map:   {p}%|▎         | {k}000/{n}000 [00:0{k}<04:49, 19{k}5.11 examples/s]",
            "Tokenizing (num_proc=8):   {p}%|▎         | {k}000/{n}000 [00:0{k}<03:12, 34{k}1.40 examples/s]",
            "pre-tokenizing file {k} of {n}",
        ),
        main=True,
    ),
    "dataset_prep": _at(
        "start",
        (
            "preparing dataset cache, {n} files",
            "packing sequences, {k} of {n}",
            "shuffling {n} documents on the main process",
            "counting samples in {n} shards",
            "Generating train split: {n}000 examples [00:0{k}, 41{k}02.27 examples/s]",
            " > building shuffle index with split [0, {n}) and [{n}, {n}) ...",
            "index file not found, building it from {n} documents",
            "writing dataset cache to {path}",
            "Filter:   {p}%|▎         | {k}000/{n}000 [00:0{k}<02:44, 51{k}3.91 examples/s]",
        ),
        main=True,
    ),
    "model_load": _at(
        "start",
        ("loading pretrained weights, file {k} of {n}", "Loading checkpoint shards:  {p}%|#         | {k}/{n}"),
        ("weights file {k} read in {s:.1f}s",),
    ),
    "model_download": _at(
        "start",
        ("Downloading model.safetensors:  {p}%|#         | {k}M/{n}M", "fetching pretrained model from the hub"),
        main=True,
    ),
    "storage_stall": _at(
        "data",
        ("reading {path}/part-{k}.bin", "open {path}/train_{k}.arrow", "read() on {path} pending"),
        ("read of part {k} took {s:.1f}s", "slow read: {s:.2f}s for {n} MB from {path}"),
    ),
    "slow_disk": _at(
        "data",
        ("loading chunk {k} from disk", "memmap: paging in block {k}"),
        ("chunk {k} loaded from disk in {s:.1f}s", "disk read {s:.2f}s (block {k})"),
    ),
    "object_store": _at(
        "data",
        ("GET shard {k} from object store (try {p})", "streaming shard {k} from bucket"),
        ("shard {k} downloaded in {s:.1f}s", "object store request took {s:.2f}s"),
    ),
    "remote_server": _at(
        "metrics",
        ("requesting rewards from server", "waiting for the reply of the feature server"),
        ("server replied after {s:.1f}s", "request latency {s:.2f}s"),
    ),
    "logger_upload": _at(
        "metrics",
        ("logging metrics to remote tracker", "uploading run history ({n} rows)", "tracker: POST pending, retry {p}"),
        ("tracker: POST took {s:.1f}s", "metrics upload finished after {s:.2f}s"),
        main=True,
    ),
    "resume_skip": _at("start", ("skipping {n} batches to resume at step {step}", "fast-forwarding loader: {k}/{n}")),
    "reward": _at("compute", ("computing rewards for {n} rollouts",), ("rewards computed in {s:.1f}s",)),
    "profiler": _at("metrics", ("exporting profiler trace to {path}",), ("profiler trace exported in {s:.1f}s",)),
    "rank0_extra_work": _at(
        "metrics",
        ("plotting {n} weight histograms", "rendering sample grid on the main process", "writing summary ({n} images)"),
        ("plots written in {s:.1f}s", "summary took {s:.2f}s"),
        main=True,
    ),
    "slow_step": _at("compute", ("entering forward of step {step}",), ("forward took {s:.2f}s at step {step}",)),
}

OFFLOAD: dict[str, Phrases] = {
    "param_cpu_offload": _at(
        "compute",
        (
            "prefetching offloaded weights of block {k}",
            "cpu offload: waiting for weights of block {k}",
            "loading parameters of module {k} from host memory",
            "unit {k}: parameters are on the cpu, copying them in",
            "pulling {n} MB of parameters out of cpu memory",
        ),
        (
            "cpu offload: weights of block {k} arrived in {s:.2f}s",
            "param fetch (host) {s:.3f}s at step {step}",
            "parameters of module {k} copied from cpu memory, {s:.2f}s",
            "host memory gave unit {k} back after {s:.2f}s",
        ),
    ),
    "cpu_optimizer": _at(
        "optim",
        (
            "host optimizer update begins, step {step}",
            "running AdamW on cpu for {n} offloaded tensors",
            "optimizer step on the cpu, {n} parameters",
        ),
        ("host optimizer update {s:.2f}s", "cpu AdamW: {s:.2f}s for {n} tensors", "cpu optimizer step took {s:.1f}s"),
    ),
    "optim_cpu_offload": _at(
        "optim",
        (
            "swapping in optimizer states from host",
            "optimizer states: host -> device, {n} MB",
            "fetching moments of group {k} from cpu memory",
        ),
        (
            "optimizer states moved in {s:.2f}s",
            "optimizer offload roundtrip {s:.2f}s",
            "moments of group {k} came from the cpu after {s:.2f}s",
        ),
    ),
    "d2h_copy": _at(
        "compute",
        (
            "copying activations to host ({n} MB)",
            "device to host copy queued, {n} MB",
            "waiting for copy to cpu, {n} MB",
        ),
        ("d2h copy of {n} MB finished in {s:.2f}s", "host copy {s:.3f}s", "copy to cpu done after {s:.2f}s"),
    ),
    "state_dict_to_cpu": _at(
        "save",
        ("gathering full state dict, offload to cpu", "state_dict: moving {n} tensors to host memory"),
        ("state dict on cpu after {s:.1f}s", "moved {n} tensors to host in {s:.2f}s"),
        main=True,
    ),
    "nvme_swap": _at(
        "optim",
        (
            "nvme: swap out of partition {k} begins",
            "writing moments to {path}/swap_{rank}.bin",
            "reading optimizer partition {k} back from disk",
        ),
        (
            "nvme: partition {k} swapped out in {s:.2f}s",
            "swap file write {n} MB took {s:.2f}s",
            "optimizer partition {k} read from disk in {s:.2f}s",
        ),
    ),
    "host_swap": _at(
        "compute",
        ("host memory low, pages are being swapped", "swap in use: {n} MB"),
        ("step {step} {s:.2f}s, swap in use {n} MB", "swapped pages delay offload copy by {s:.2f}s"),
    ),
    "host_mem_pressure": _at(
        "optim",
        ("allocating host buffer of {n} MB for offload",),
        ("host buffer allocation took {s:.2f}s (9{k}% used)", "offload buffer reused after {s:.2f}s"),
    ),
    "pinned_memory": _at(
        "compute",
        ("pinning {n} MB of host memory",),
        ("cudaHostRegister-like pin of {n} MB took {s:.2f}s", "pinned buffer ready after {s:.2f}s"),
    ),
    "activation_offload": _at(
        "compute",
        ("offloading activations of layer {k} to host", "reloading saved tensors of layer {k} from host"),
        ("saved tensors of layer {k} offloaded in {s:.2f}s", "activation reload {s:.2f}s (layer {k})"),
    ),
    "staging": _at("save", ("staging state dict in host memory",), ("staging took {s:.2f}s ({n} MB)",)),
    "aio_config": _at("optim", ("aio: submit {n} requests, queue depth 1",), ("aio: batch completed in {s:.2f}s",)),
}


def usable(texts: tuple[str, ...], train: bool) -> list[str]:
    """Only validation sees a sixth of the wordings, so that it measures unseen ones too."""
    return [text for text in texts if not train or sha256(text.encode()).digest()[0] % 6]


def fill(text: str, rng: Random, *, step: int, rank: int, seconds: float) -> str:
    """A phrase with its slots filled."""
    count = rng.choice((12, 48, 64, 128, 291, 812, 2048, 12000, 51200))
    path = rng.choice(("/mnt/data", "/scratch/ckpt", "outputs/run1", "/data/fs1/train", "checkpoints"))
    return text.format(
        s=seconds, n=count, k=rng.randrange(1, 10), p=rng.randrange(1, 9), step=step, rank=rank, path=path
    )
