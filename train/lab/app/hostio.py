"""What the host does for a rank between collectives: reads, writes, copies, and how they go today.

`RUN_PROFILE` (JSON) describes the conditions of this run: on which ranks, from which step, at which point
of the loop. Without it everything is quick. Nothing here prints except through `note`, the script's own voice.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from typing import Any

from actions import ACTIONS

Note = Callable[[str], None]


class Host:
    """The conditions of one rank. `note(text)` prints as the script prints."""

    def __init__(self, rank: int, note: Note) -> None:
        self.profile: Mapping[str, Any] = json.loads(os.environ.get("RUN_PROFILE", "{}"))
        self.rank = rank
        self.note = note
        self.mine = rank in self.profile.get("ranks", ())
        self.first = int(self.profile.get("step", 1_000_000))

    def at(self, point: str, step: int) -> None:
        """Spend the time, or meet the end, that the conditions hold for `point` of `step`."""
        if not self.mine or point != self.profile.get("point"):
            return
        if step == self.first:
            self._say("before", step)
            ACTIONS[str(self.profile["do"])](self.profile)
            self._say("after", step)
        elif self.first - 5 <= step < self.first and "ramp" in self.profile:
            self._warm(step)

    def _warm(self, step: int) -> None:
        """A shorter form of the same wait in the steps before, as it often shows ahead of the long one."""
        seconds = float(self.profile["ramp"]) * (6 - (self.first - step))
        time.sleep(seconds)
        self._say("ramp_note", step, seconds)

    def _say(self, key: str, step: int, seconds: float = 0.0) -> None:
        if text := self.profile.get(key):
            self.note(str(text).format(step=step, rank=self.rank, seconds=seconds, shard=step * 7 + self.rank))

    def is_now(self, what: str, step: int) -> bool:
        """Whether this rank takes the branch `what` in this step."""
        return self.mine and self.profile.get("do") == what and step >= self.first

    def rows(self, step: int, usual: int) -> int:
        """How many rows the batch of `step` holds here."""
        if not self.mine or self.profile.get("do") != "grow":
            return usual
        return int(usual * float(self.profile["factor"]) ** min(step, self.first))

    def batches(self, usual: int) -> int:
        """How many batches the loader of this rank has."""
        return self.first if self.mine and self.profile.get("do") == "short" else usual


def resume_later(seconds: float) -> None:
    """Stop this process; something outside wakes it after `seconds`."""
    subprocess.Popen(["sh", "-c", f"sleep {seconds}; kill -CONT {os.getpid()}"], start_new_session=True)
    os.kill(os.getpid(), signal.SIGSTOP)


ACTIONS["stop"] = lambda profile: resume_later(float(profile["seconds"]))
