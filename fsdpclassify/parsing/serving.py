"""Whether a file shows training or an inference server: what such a server prints about collectives is no incident.

A rollout engine beside a trainer is training, and a server's log may mention trained weights; so only
lines that a training loop alone prints count as training.
"""

from __future__ import annotations

import re

from fsdpclassify.parsing.rule import Rule, simple
from fsdpclassify.records import EventKind

_VLLM = (
    r"openai_server|EngineCore|RayWorkerWrapper|VllmWorker|APIServer pid=|vllm\.|\bvLLM\b|Avg prompt throughput"
    r"|api_server\.py"
)
_SGLANG = r"\bsglang\b|SGLang|[ \[]TP\d{1,3}\]|(?:Prefill|Decode) batch[.,\[]"
_OTHERS = (
    r"text_generation_launcher|text_generation_router|text-generation-server|\btritonserver\b|triton_server"
    r"|Started (?:GRPCInferenceService|HTTPService)"
    r"|tensorrt_llm|trtllm-serve|TRT-LLM.{0,40}executor|lmdeploy"
)
_HTTP = (
    r"Uvicorn running|/v\d/(?:chat/)?completions|/generate HTTP|Application startup complete|\[server\]"
    r"|\bPOST /(?:generate|predict|v\d)\b"
)

#: Names of training's own processes, scripts and libraries.
_NAMES = (
    r"\btrain(?:er)?\w{0,20}\.py\b|\bpretrain\w{0,20}\.py\b|\bfinetun\w{0,20}\.py\b|[/ ]fsdp_workers\.py"
    r"|WorkerDict|ActorModel|TrainActor|actor_rollout|ActorRollout"
    r"|\bfsdp\w*|\bFSDP\w*|[Dd]eep[Ss]peed|[Mm]egatron|PolicyWorker|\bDistributedDataParallel\b|\bDDP\b|Lightning"
    r"|torchtitan|\[titan\]|LLaMA-?Factory"
)
#: What a training loop says of itself.
_LOOP = (
    r"\b[Tt]rain(?:er|ing)\b(?![ -](?:data|set|cutoff|compute))|\b(?:train|lm|total|val"
    r"|eval)?_?loss['\"]?\s{0,3}[:=|]|\boptimizer\b|\bgrad(?:ient)?[_ ]norm\b|\bgnorm\b"
    r"|\b[Ee]poch\b|\blearning[_ ]rate\b|\blr['\"]?[:=]|\btrain_|\bbackward\b|micro_step=|consumed samples"
    r"|reduce_scatter|_REDUCE_SCATTER_BASE"
    r"|\bsav(?:e|ed|ing) checkpoint|\bdataloader\b|DataLoader|\bglobal_step\b"
)

RULES = (
    Rule(
        name="inference_server",
        anchor=r"openai_server|EngineCore|RayWorkerWrapper|VllmWorker|APIServer pid=|vllm\.|vLLM"
        r"|Avg prompt throughput|api_server\.py"
        r"|sglang|SGLang|TP\d+\]|(?:Prefill|Decode) batch|text_generation_|text-generation-server|tritonserver"
        r"|triton_server|Started (?:GRPC|HTTP)"
        r"|tensorrt_llm|trtllm-serve|TRT-LLM|lmdeploy|Uvicorn running|/v\d/|/generate HTTP"
        r"|Application startup complete|\[server\]|POST /",
        pattern=re.compile(f"{_VLLM}|{_SGLANG}|{_OTHERS}|{_HTTP}"),
        build=simple(EventKind.SERVER),
        once=True,
        prefixes=True,
    ),
    Rule(
        name="trainer",
        anchor=r"[Tt]rain|finetun|loss|optimizer|WorkerDict|ActorModel|ActorRollout|actor_rollout|fsdp|FSDP"
        r"|[Dd]eep[Ss]peed|[Mm]egatron|PolicyWorker|DDP|Distributed"
        r"DataParallel|Lightning|titan|LLaMA|gr?norm|grad|[Ee]poch|learning|lr|backward|micro_step|consumed"
        r"|reduce_scatter|REDUCE_SCATTER|checkpoint|ata[Ll]oader|global_step",
        pattern=re.compile(f"{_NAMES}|{_LOOP}"),
        build=simple(EventKind.TRAINER),
        once=True,
        prefixes=True,
    ),
)
