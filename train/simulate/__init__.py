"""The incident simulator: labelled incidents whose logs look like those that people report.

A world (ranks, nodes, clocks, groups, versions) runs; a cause acts on it; everything printed becomes a story;
a reporter keeps some of it. Input: the line inventory in `data/`. Output:
`OUT/<split>/<id>/incident.json` and `OUT/<split>/<id>/logs/*`, the same bytes for the same seed.
Nothing here is read by the features: they come from the rendered files alone.
"""

from train.simulate.emit import corpus

__all__ = ["corpus"]
