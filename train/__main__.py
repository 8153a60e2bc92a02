"""`python -m train STEP`: builds the shipped bundle from `data/`, one step at a time, from the checkout's root."""

from __future__ import annotations

import importlib
import sys

STEPS = {
    "lines": ("train.inventory", "check the line inventory and print its counts"),
    "corpus": ("train.corpus", "write the simulated incidents to build/corpus; --freeze, --check: data/splits.json"),
    "encoder": ("train.encoders.release", "make encoder.onnx and tokenizer.json (slow; needs the extra encoder)"),
    "encoders": ("train.encoders.compare", "encoders compared on val and lab_val (slow; needs the extra encoder)"),
    "build": ("train.build", "fit the head and write models/default"),
    "realism": ("train.realism", "how well simulated and public incidents can be told apart"),
    "leaks": ("train.leaks", "what tells the label most on the train split, and whether it may"),
    "lab": ("train.lab", "record real runs that fail for a known cause (needs the extra lab)"),
    "reading": ("train.reading_score", "what reading alone gets right on the labelled incidents (no model)"),
    "card": ("train.card", "held-out figures of the bundle into its card and manifest"),
    "evaluate": ("train.evaluate", "figures and baselines on one split or several joined by +"),
    "ablate": ("train.ablate", "what text, ledger and real incidents each bring"),
    "foreign": ("train.foreign", "how often text of other origin beside a watchdog's sentence is given a cause"),
    "sanity": ("train.sanity", "verdicts without their decisive lines, and with one decoy more"),
    "contrast": ("train.contrast", "minimal pairs: what a line says against what it is about (never fitted on)"),
    "inhouse": ("train.inhouse", "retraining on made-up families of a house's own failures, measured"),
}


def main(argv: list[str]) -> int:
    """Run one step with the remaining arguments."""
    if not argv or argv[0] not in STEPS:
        names = "\n".join(f"  {name:<10} {what}" for name, (_, what) in STEPS.items())
        sys.stderr.write(f"usage: python -m train STEP [options]\n{names}\n")
        return 2
    module = importlib.import_module(STEPS[argv[0]][0])
    return int(module.main(argv[1:]) or 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
