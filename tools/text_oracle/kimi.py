"""The published tokenizers' behaviour on top of the tiktoken package: pattern, cuts, special tokens."""
import base64

import tiktoken

WORD = r"[^\r\n\p{L}\p{N}]?"
UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
PATTERN = "|".join([
    r"[\p{Han}]+",
    WORD + UPPER + "*" + LOWER + "+" + CONTRACTION,
    WORD + UPPER + "+" + LOWER + "*" + CONTRACTION,
    r"\p{N}{1,3}",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*",
    r"\s*[\r\n]+",
    r"\s+(?!\S)",
    r"\s+",
])
SLICE, RUN = 400_000, 25_000


def read_ranks(path):
    with open(path, "rb") as file:
        return {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in file)}


def write_ranks(path, tokens):
    with open(path, "wb") as file:
        for rank, token in enumerate(tokens):
            file.write(base64.b64encode(token) + b" %d\n" % rank)


def cut(text):
    """Parts of a text that are encoded on their own."""
    for start in range(0, len(text), SLICE):
        part = text[start : start + SLICE]
        begin, run, space = 0, 0, part[0].isspace()
        for i, char in enumerate(part):
            if char.isspace() != space:
                space, run = not space, 1
            else:
                run += 1
                if run > RUN:
                    yield part[begin:i]
                    begin, run = i, 1
        yield part[begin:]


class Oracle:
    def __init__(self, ranks, specials=None):
        self.encoding = tiktoken.Encoding("kimi", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens=specials or {})

    def encode(self, text):
        return [i for part in cut(text) for i in self.encoding.encode_ordinary(part)]

    def encode_markup(self, text):
        return [i for part in cut(text) for i in self.encoding.encode(part, allowed_special="all")]
