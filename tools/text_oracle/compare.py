"""Compares ids and speed with the tiktoken package in one run.

Usage: compare.py BENCH_TEXT TIKTOKEN_MODEL TEXT_FILE
"""
import array
import pathlib
import subprocess
import sys
import tempfile
import time

import corpus
import kimi

bench, model, path = sys.argv[1:]
oracle = kimi.Oracle(kimi.read_ranks(model))


def ids_of(file):
    """Ids of the library."""
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run([bench, model, file, out.name], check=True)
        return array.array("i", pathlib.Path(out.name).read_bytes()).tolist()


text = pathlib.Path(path).read_text()
best = min(
    (lambda start: (oracle.encoding.encode_ordinary(text), time.process_time() - start)[1])(time.process_time())
    for _ in range(5)
)
subprocess.run([bench, model, path], check=True)
print(f"tiktoken  {len(text.encode()) / 1e6 / best:.1f} MB/s")
assert ids_of(path) == oracle.encode(text), "ids differ"

texts = list(corpus.TEXTS.values()) + [unit * times for unit, times in corpus.RUNS]
texts += [corpus.random_bytes(seed, 50000).decode(errors="replace") for seed in range(200, 210)]
texts += [corpus.random_text(seed, 20000) for seed in range(100, 140)]
for number, text in enumerate(texts):
    with tempfile.NamedTemporaryFile("wb") as file:
        file.write(text.encode())
        file.flush()
        if text:
            assert ids_of(file.name) == oracle.encode(text), f"ids differ in text {number}"
print(f"ids equal: the text and {len(texts)} others")
