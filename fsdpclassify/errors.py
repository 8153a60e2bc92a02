"""Errors that a user can act on: one base, one subclass per stage."""

from __future__ import annotations


class FsdpClassifyError(Exception):
    """Base of every error this package raises on purpose; its message is shown to the user.

    `exit_code` is the status with which the command line ends when the error reaches it.
    """

    exit_code = 70


class UsageError(FsdpClassifyError):
    """The call itself is wrong: a bad option, or a missing optional dependency."""

    exit_code = 2


class SourceError(FsdpClassifyError):
    """No input could be read at all."""

    exit_code = 3


class BundleError(FsdpClassifyError):
    """A model bundle is missing, damaged, or of a schema this version does not know."""

    exit_code = 4


class LabelledIncidentError(FsdpClassifyError):
    """A folder given as a labelled incident does not follow the documented form."""

    exit_code = 2


class WorseModelError(FsdpClassifyError):
    """A retrained bundle scores below the one it came from, so it was not written; the message holds the figures."""

    exit_code = 5
