"""Flight-recorder dumps: bytes -> what each rank had enqueued, started and completed, and whom the others wait for.

Nothing here is imported before an input is recognised as a dump.
"""
