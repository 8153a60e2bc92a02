"""Privacy: hides secrets, and on request identities, in texts and reports before they are shown."""

from __future__ import annotations

from fsdpclassify.masking.credentials import MASK, mask_secrets
from fsdpclassify.masking.masker import Masker, MaskLevel, mask_report, mask_text, mask_values

__all__ = ["MASK", "MaskLevel", "Masker", "mask_report", "mask_secrets", "mask_text", "mask_values"]
