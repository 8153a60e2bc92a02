"""Fitting and exporting a head. Needs the extra `train`; nothing outside `retrain` imports it at run time."""
