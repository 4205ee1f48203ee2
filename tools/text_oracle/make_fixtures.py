"""Writes the tokenizer fixtures: a small rank file trained on the corpus and on the files given, and the ids that the
tiktoken package gives with it.

Usage: make_fixtures.py OUTDIR TRAINING_FILE...
"""
import collections
import json
import pathlib
import sys

import regex
import tiktoken

import corpus
import kimi

TOKENS = 3000
SLOTS = 256


def train(texts, size):
    """Plain byte pair encoding: the most frequent pair, the smallest bytes of equally frequent ones."""
    words = collections.Counter()
    for text in texts:
        words.update(regex.findall("(?V1)" + kimi.PATTERN, text))
    # every 256 bytes have a rank, not in the order of their values
    tokens = [bytes([i]) for i in list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))]
    tokens += [bytes([i]) for i in range(256) if bytes([i]) not in set(tokens)]
    known = set(tokens)
    split = [([bytes([b]) for b in word.encode()], count) for word, count in words.items()]
    while len(tokens) < size:
        pairs = collections.Counter()
        for parts, count in split:
            for a, b in zip(parts, parts[1:]):
                pairs[a, b] += count
        pair = min(pairs, key=lambda p: (-pairs[p], p))
        joined = pair[0] + pair[1]
        if joined not in known:
            tokens.append(joined)
            known.add(joined)
        for parts, _ in split:
            i = 0
            while i + 1 < len(parts):
                if (parts[i], parts[i + 1]) == pair:
                    parts[i : i + 2] = [joined]
                i += 1
    return tokens


def main():
    out = pathlib.Path(sys.argv[1])
    training = list(corpus.TEXTS.values()) + [pathlib.Path(p).read_text(errors="replace") for p in sys.argv[2:]]
    model = out / "tiktoken.model"
    if sys.argv[2:]:
        tokens = train(training, TOKENS)
        # ranks out of the order of merging: a merge must go by rank alone
        tokens[-40:] = tokens[-40:][::-1]
        kimi.write_ranks(model, tokens)
    ranks = kimi.read_ranks(model)
    oracle = kimi.Oracle(ranks)
    cases = [{"name": name, "text": text, "ids": oracle.encode(text)} for name, text in corpus.TEXTS.items()]
    runs = []
    for text, times in corpus.RUNS:
        ids = oracle.encode(text * times)
        runs.append({"text": text, "times": times, "count": len(ids), "digest": corpus.digest(ids)})
    random = []
    for seed in range(1, 21):
        ids = oracle.encode(corpus.random_text(seed, 5000))
        random.append({"seed": seed, "characters": 5000, "count": len(ids), "digest": corpus.digest(ids)})
    rough = []
    for seed in range(1, 11):
        ids = oracle.encode(corpus.random_bytes(seed, 5000).decode(errors="replace"))
        rough.append({"seed": seed, "bytes": 5000, "count": len(ids), "digest": corpus.digest(ids)})
    fixture = {"origin": f"tiktoken {tiktoken.__version__} with tiktoken.model of this folder; see tools/text_oracle",
               "cases": cases, "runs": runs, "random": random, "bytes": rough}
    rows = ",\n".join(f'"{key}": [\n' + ",\n".join(json.dumps(c) for c in value) + "]"
                      for key, value in fixture.items() if key != "origin")
    (out / "encode_cases.json").write_text('{"origin": ' + json.dumps(fixture["origin"]) + ",\n" + rows + "}\n")


main()
