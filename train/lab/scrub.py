"""Names of the recording machine off: its paths, host name and user."""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

APP = "/opt/app"
VENV = "/opt/venv"


class Scrubber:
    """Replaces paths of this machine by those of an ordinary installation, and its host name by `host`."""

    def __init__(self, work: Path, host: str = "gpu-node0") -> None:
        self.host = host
        prefix = Path(sys.prefix).resolve()
        pairs: Sequence[tuple[str, str]] = (
            (str(work / "app"), APP),
            (str(work / "scratch"), f"{APP}/output"),
            (str(work / "logs"), f"{APP}/logs"),
            (str(work), "/opt"),
            (str(prefix), VENV),
            (sys.prefix, VENV),
            (sys.base_prefix, "/usr"),
        )
        self._paths = pairs
        self._host = re.compile(rf"(?<![\w.-]){re.escape(socket.gethostname())}(?![\w-])(?!\.py)")

    def clean(self, text: str) -> str:
        """`text` without names of this machine."""
        for old, new in self._paths:
            text = text.replace(old, new)
        text = re.sub(r"/(?:home|root|Users|tmp)/[^\s:\"']*?/(?=site-packages|lib/python)", f"{VENV}/lib/", text)
        return self._host.sub(self.host, text)

    def leaks(self, text: str) -> list[str]:
        """Names of this machine that are still in `text`."""
        suspects = ["/tmp/", "/work/", "/root/", socket.gethostname() + ":"]
        return [s for s in suspects if s in text]
