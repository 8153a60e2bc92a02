"""One value that is made in a thread while its owner does something else."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Background(Generic[T]):
    """Begins to make a value at once; a call waits for it and returns it, or raises what making it raised."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._made: list[T] = []
        self._fault: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(make,), daemon=True)
        self._thread.start()

    def _run(self, make: Callable[[], T]) -> None:
        try:
            self._made.append(make())
        except BaseException as fault:  # it is raised again where the value is wanted
            self._fault = fault

    def __call__(self) -> T:
        """The value; safe to call from any thread, any number of times."""
        self._thread.join()
        if self._fault is not None:
            raise self._fault
        return self._made[0]
