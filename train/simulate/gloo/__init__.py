"""Whole logs of small runs under `torchrun`: every rank's streams, the agent's report, at times the ranks' dumps.

Where the rest of the simulator prints what people paste, this part prints what a run leaves behind: each rank
from its first line to its last, so that the late rank is known by what it says last, or by its silence. Three in
four talk through gloo, whose exceptions end a wait; in the others NCCL's watchdog does.
"""
