"""Whole logs of small CPU runs under `torchrun` with gloo: every rank's streams and the agent's report.

Where the rest of the simulator prints what people paste, this part prints what a run leaves behind: each rank
from its first line to its last, so that the late rank is known by what it says last, or by its silence.
"""
