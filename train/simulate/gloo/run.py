"""One run while it is simulated: who has printed what until now, and how it begins."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random

from train.simulate import clock
from train.simulate.combos import FRAMEWORKS
from train.simulate.gloo.decoys import distract
from train.simulate.gloo.stacks import Names, pick_names
from train.simulate.gloo.voices import Voice, pick_voice
from train.simulate.lines import Lines
from train.simulate.record import Record, Story
from train.simulate.versions import pick_release
from train.simulate.world import Group, World, make_world


@dataclass(slots=True, kw_only=True)
class Run:
    """`now` is the true time, `step` the last finished step; `codes` are exit codes in the agent's order.

    With `nccl` the watchdog ends a wait, else gloo's exception. `stands` says for each rank whose wait ran out in
    which call it stands, and how far past collective `number`; `unrecorded` ranks leave no dump even if `recorded`.
    """

    world: World
    story: Story
    lines: Lines
    rng: Random
    train: bool
    blind: bool
    voice: Voice
    names: Names
    now: float
    total: int
    every: int
    eval_every: int
    save_every: int
    step: int = 0
    codes: dict[int, int] = field(default_factory=dict)
    ended: dict[int, float] = field(default_factory=dict)
    lost: frozenset[int] = frozenset()
    distracted: bool = False
    nccl: bool = False
    recorded: bool = False
    number: int = 1
    stands: dict[int, tuple[str, int]] = field(default_factory=dict)
    unrecorded: set[int] = field(default_factory=set)

    @property
    def ranks(self) -> tuple[int, ...]:
        """All global ranks."""
        return tuple(range(self.world.size))

    def rest(self, ranks: tuple[int, ...]) -> tuple[int, ...]:
        """All others."""
        return tuple(rank for rank in self.ranks if rank not in ranks)

    def add(
        self,
        rank: int,
        time: float,
        lines: tuple[str, ...],
        *,
        role: str = "chat",
        strength: int = 0,
        out: str = "stderr",
        tie: str = "",
        origin: str = "",
        said: str = "",
        speaks: str = "",
    ) -> None:
        """Print lines as they are on a stream of a rank."""
        self.story.add(
            Record(
                time=time,
                lines=lines,
                role=role,
                rank=rank,
                node=self.world.node_of(rank),
                strength=strength,
                file=out,
                tie=tie,
                origin=origin,
                said=said,
                speaks=speaks,
            )
        )

    def say(
        self,
        rank: int,
        text: str,
        *,
        time: float | None = None,
        strength: int = 0,
        tie: str = "",
        origin: str = "",
        said: str = "",
        speaks: str = "",
    ) -> None:
        """Print a text in the script's voice; tie `uncited` if it tells by its numbers or place, not by words.

        `speaks` makes it a decoy for that label.
        """
        at = self.now if time is None else time
        shown = self.world.shown(self.world.node_of(rank), at)
        lines = tuple(self.voice.wrap(rank, shown, line) for line in text.split("\n"))
        role = "evidence" if strength else "decoy" if speaks else "chat"
        node, out = self.world.node_of(rank), self.voice.stream
        self.story.add(
            Record(
                time=at,
                lines=lines,
                role=role,
                rank=rank,
                node=node,
                strength=strength,
                file=out,
                tie=tie,
                origin=origin,
                said=said,
                speaks=speaks,
            )
        )

    def raise_(
        self,
        rank: int,
        time: float,
        lines: tuple[str, ...],
        *,
        role: str = "wait",
        strength: int = 0,
        cited: frozenset[str] = frozenset(),
        origin: str = "",
    ) -> None:
        """Print a traceback on standard error; newer releases put the rank before each line.

        `cited` are the lines that tell, where it is not the last one.
        """
        head = f"[rank{rank}]: " if self.world.hooked else ""
        tie = "\n".join(head + line for line in lines if line in cited)
        said = tuple(head + line for line in lines)
        self.add(
            rank, time, said, role=role, strength=strength, tie=tie, origin=origin, said=lines[-1] if origin else ""
        )

    @property
    def speakers(self) -> tuple[int, ...]:
        """The ranks that print steps."""
        return self.ranks if self.voice.everyone else (0,)


def make_run(
    rng: Random,
    lines: Lines,
    story: Story,
    *,
    train: bool,
    blind: bool,
    nodes: int,
    everyone: float,
    least: int = 2,
    nccl: bool = False,
) -> Run:
    """Draw a run: its world, script and voice; `everyone` is the chance that all ranks print."""
    world = _world(rng, nodes, least, nccl)
    voice = pick_voice(rng, train, rng.random() < everyone)
    return Run(
        world=world,
        story=story,
        lines=lines,
        rng=rng,
        train=train,
        blind=blind,
        voice=voice,
        names=pick_names(world, rng),
        now=world.start,
        total=rng.choice((20, 40, 60, 100, 200, 500, 1000)),
        every=1 if voice.everyone else rng.choice((1, 1, 2, 2, 5, 10)),
        eval_every=rng.choice((0, 0, 5, 8, 12)),
        save_every=rng.choice((0, 0, 6, 10, 15)),
        nccl=nccl,
        recorded=rng.random() < _RECORDED,
    )


#: How many runs keep a flight recorder and write it out when nothing moves.
_RECORDED = 0.4


def _world(rng: Random, nodes: int, least: int, nccl: bool) -> World:
    base = make_world(rng)
    size = rng.choices((2, 3, 4, 6, 8), (2, 1, 7, 1, 2))[0]
    while size < least or size % nodes:
        size = rng.choice((4, 4, 6, 8))
    torch = pick_release(rng)
    while torch.rank < (8 if rng.random() < 0.6 else 2):
        torch = pick_release(rng)
    framework = rng.choice(("FSDP2", "FSDP", "DDP") if torch.rank >= 4 else ("FSDP", "DDP"))
    host = rng.choice(("localhost", "localhost", *base.hosts[:1]))
    net = rng.choice(("10.0.3.", "10.77.0.", "192.168.50.", "172.18.0."))
    first = rng.randrange(2, 4_000_000)
    return replace(
        base,
        framework=framework,
        tags=FRAMEWORKS[framework][1],
        launcher="torchrun",
        torch=torch,
        python=rng.choice(torch.python),
        size=size,
        nodes=nodes,
        hosts=(host,) if nodes == 1 else tuple(rng.choice(("node{}", "w{}")).format(i) for i in range(nodes)),
        ips=("127.0.0.1",) if nodes == 1 else tuple(f"{net}{i + 1}" for i in range(nodes)),
        skews=(0.0,) * nodes,
        agents=tuple(first + 5000 * node for node in range(nodes)),
        pids=tuple(first + 5000 * (rank // (size // nodes)) + 65 + rank for rank in range(size)),
        groups=(Group(name="0", desc="default_pg", ident=0, members=tuple(range(size))),),
        step_s=rng.choice((0.05, 0.12, 0.25, 0.5, 1.0, 2.0)) * rng.uniform(0.7, 1.4),
        timeout_s=rng.choice((10, 30, 60, 120, 300, 600, 600, 1800) if nccl else (8, 8, 8, 10, 12, 15, 20, 30, 30, 60)),
        backend="nccl" if nccl else "gloo",
        ngc=False,
        hooked=torch.rank >= 3 and rng.random() < 0.92,
    )


def start(run: Run) -> None:
    """What every rank prints before its first step."""
    rng, world, voice = run.rng, run.world, run.voice
    run.now += rng.uniform(1, 4)
    gloo, sock = rng.random() < 0.4 and not run.nccl, rng.random() < 0.35
    for rank in run.ranks:
        at = run.now + rng.random() * 0.2
        if gloo:
            peers = world.size - 1
            text = f"[Gloo] Rank {rank} is connected to {peers} peer ranks. Expected number of connected peer ranks is"
            run.add(rank, at, (f"{text} : {peers}",), out="stdout")
        if sock:
            stamp = f"[W{clock.c10(world.shown(world.node_of(rank), at), rng)} socket.cpp:207]"
            run.add(rank, at, (f"{stamp} [c10d] The hostname of the client socket cannot be retrieved. err=-3",))
    for rank in run.speakers:
        wrapper = {"FSDP": "fsdp1", "FSDP2": "fsdp2"}.get(world.framework, "ddp")
        run.say(rank, voice.hello.format(world=world.size, rank=rank, wrapper=wrapper, backend=world.backend))
    run.now += rng.uniform(0.5, 4)


def ready(run: Run) -> None:
    """What the script prints when its model stands."""
    if run.rng.random() < 0.7:
        run.say(0, run.voice.ready.format(n=run.rng.choice((16865, 67457, 124439808)), total=run.total))
    run.now += run.rng.uniform(0.1, 1)
    if run.rng.random() < 0.3:
        distract(run)
