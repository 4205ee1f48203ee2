"""Turns encoders/<name>.json of the npm package `tiktoken` into a rank file.

Usage: npm_ranks.py o200k_base.json tiktoken.model
"""
import base64
import json
import sys

import kimi

tokens = {}
for line in json.load(open(sys.argv[1]))["bpe_ranks"].splitlines():
    _, first, *row = line.split()
    for offset, token in enumerate(row):
        tokens[int(first) + offset] = base64.b64decode(token)
assert sorted(tokens) == list(range(len(tokens)))
kimi.write_ranks(sys.argv[2], [tokens[rank] for rank in range(len(tokens))])
