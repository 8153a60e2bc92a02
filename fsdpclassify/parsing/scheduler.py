"""Daemons of Slurm about a node or a step, where they do not say why a rank died (that is `launchers`)."""

from __future__ import annotations

from fsdpclassify.parsing.signs import Sign, signs_rule

_SIGNS = (
    Sign(
        name="cancelled",
        pattern=r"\*\*\* (?:STEP|JOB) \S{1,40} ON \S{1,80} CANCELLED AT \S{10,30} \*\*\*",
        meaning="the scheduler ended the step on somebody's request: all of its ranks were stopped",
    ),
    Sign(
        name="host_memory",
        pattern=r"hit memory(?:\+swap)? limit at least once",
        meaning="the step reached its memory limit: its pages were reclaimed while it ran",
    ),
    Sign(
        name="node_health",
        pattern=r"Health check failed: {0,9}check_\w{1,60}|Reason=NHC: ",
        meaning="the node's health check failed",
    ),
    Sign(
        name="node_health",
        pattern=r"Nodes \S{1,200} not responding(?!, setting DOWN)",
        meaning="the scheduler could not reach a node",
    ),
    Sign(
        name="host_memory",
        pattern=r"low memory! at or below \S{1,20} limits|due to memory pressure for \S",
        meaning="a daemon of the node ended processes because memory ran short",
    ),
)

RULES = (
    signs_rule(
        "scheduler_said",
        r" CANCELLED AT |limit at least once|Health check failed|Reason=NHC|not responding|low memory! at or below"
        r"|due to memory pressure for",
        _SIGNS,
    ),
)
