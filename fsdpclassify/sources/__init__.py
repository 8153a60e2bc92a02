"""The first stage: paths, streams and text become numbered lines and one row an input.

`collect` and `from_text` find the inputs, `read` reads them. Input: paths or text. Output: `Reading`.
"""

from fsdpclassify.sources.collecting import collect, from_text
from fsdpclassify.sources.interface import Anchor, Gap, Reading, Source
from fsdpclassify.sources.reading import read

__all__ = ["Anchor", "Gap", "Reading", "Source", "collect", "from_text", "read"]
