"""`python -m fsdpclassify` is the same as the `fsdpclassify` script."""

from __future__ import annotations

from fsdpclassify.entry import main

if __name__ == "__main__":
    main()
