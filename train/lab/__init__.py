"""The fault lab: real `torchrun` runs on CPU that fail for a known cause, recorded as labelled incidents.

Facts of a recording come from its log alone wherever the log can say them; the injected cause gives only the label.
"""

from train.lab.command import main

__all__ = ["main"]
