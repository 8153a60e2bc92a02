import pytest

from fsdpclassify.sources.hints import RULES, hint_nodes, hint_ranks


@pytest.mark.parametrize(
    ("label", "rank"),
    [
        ("rank3.log", 3),
        ("logs/rank_3.txt", 3),
        ("Rank-12.out", 12),
        ("trainer_rank1.log", 1),
        ("rank1_steps.log", 1),
        ("run_rank00003_20260305.log", 3),
        ("rank7/stderr.log", 7),
        ("a.tar!out/rank5.log", 5),
        ("rank2/rank3.log", 3),
    ],
)
def test_rank_in_name(label: str, rank: int) -> None:
    assert RULES["rank_in_name"]([label]) == {0: rank}
    assert hint_ranks([label]) == {0: rank}


@pytest.mark.parametrize(
    "label",
    [
        "local_rank3.log",
        "local-rank-3.log",
        "node_rank_1.log",
        "group_rank0.log",
        "role_rank_2.log",
        "tp_rank_1.log",
        "dp_rank1.log",
        "rank0-7.log",
        "rank0_rank1.log",
        "franks3.log",
        "ranks3.log",
        "rank.log",
        "rank3b.log",
        "frank3.log",
    ],
)
def test_names_that_name_no_global_rank(label: str) -> None:
    assert hint_ranks([label]) == {}


def test_torchrun_tree_of_one_node() -> None:
    labels = [f"none_x1/attempt_0/{local}/std{kind}.log" for local in range(4) for kind in ("err", "out")]
    assert hint_ranks(labels) == {index: index // 2 for index in range(8)}


def test_torchrun_trees_of_two_nodes_give_local_ranks_only() -> None:
    labels = [f"node{node}/job_x/attempt_0/{local}/stderr.log" for node in range(2) for local in range(4)]
    assert hint_ranks(labels) == {}
    assert hint_nodes(labels) == {index: f"node{index // 4}" for index in range(8)}


@pytest.mark.parametrize("locals_", [[0], [1, 2], [0, 2]])
def test_torchrun_tree_that_is_not_complete(locals_: list[int]) -> None:
    assert hint_ranks([f"attempt_0/{local}/stdout.log" for local in locals_]) == {}


def test_slurm_tasks() -> None:
    labels = ["job-4711-0.out", "job-4711-1.out", "job-4711-2.out", "job-4711.out"]
    assert hint_ranks(labels) == {0: 0, 1: 1, 2: 2}


@pytest.mark.parametrize(
    "labels",
    [
        ["slurm-4711.out"],
        ["slurm-4711.out", "slurm-4712.out"],
        ["job-3.out"],
        ["job-1.out", "job-2.out"],
        ["job_0.out", "job_1.out"],
        ["a/job-0.out", "b/job-1.out"],
    ],
)
def test_numbers_that_are_no_slurm_tasks(labels: list[str]) -> None:
    assert hint_ranks(labels) == {}


def test_ray_workers_name_no_rank() -> None:
    assert hint_ranks([f"ray/logs/worker-ab12-01000000-{pid}.out" for pid in range(3)]) == {}
    assert hint_ranks([f"worker-{number}.out" for number in range(3)]) == {}


@pytest.mark.parametrize(
    ("label", "node"),
    [
        ("node1.log", "node1"),
        ("node01.txt", "node01"),
        ("host-7.log", "host-7"),
        ("gpu-node-12.log", "gpu-node-12"),
        ("node3/rank24.log", "node3"),
        ("logs_node2.txt", "node2"),
    ],
)
def test_node_in_name(label: str, node: str) -> None:
    assert hint_nodes([label]) == {0: node}


@pytest.mark.parametrize(
    "label",
    ["main_node.log", "node0_node1_interleaved.log", "nodes2.log", "node0-3.log", "ghost1x.log", "x.log"],
)
def test_names_that_name_no_node(label: str) -> None:
    assert hint_nodes([label]) == {}
