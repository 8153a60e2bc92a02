"""Builds the shipped bundle from `data/`. Never installed; imports fsdpclassify, nothing imports it."""
