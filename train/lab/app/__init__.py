"""The training programs that the lab starts: each folder copy runs as scripts, not as this package."""
