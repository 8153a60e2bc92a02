"""Encoders compared: each candidate becomes a graph and a tokenizer, and the heads are refitted on its vectors.

`candidates` builds them, `judge` refits and scores, `compare` is the command. The released encoder is made by
`train.encoders.distil`; nothing here writes into a bundle.
"""
