"""Byte-level BPE with the splitter of the Kimi family: training, encoding, and the two files of a checkpoint."""
import base64
import json
from collections import Counter, defaultdict

import regex

UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
LEAD = r"[^\r\n\p{L}\p{N}]?"
SUFFIX = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
PATTERN = "|".join((
    r"[\p{Han}]+",
    f"{LEAD}{UPPER}*{LOWER}+{SUFFIX}",
    f"{LEAD}{UPPER}+{LOWER}*{SUFFIX}",
    r"\p{N}{1,3}",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*",
    r"\s*[\r\n]+",
    r"\s+(?!\S)",
    r"\s+"))
SLOTS = 256

COMMON = {0: "[BOS]", 1: "[EOS]", 9: "[EOT]", 18: "<|media_begin|>", 19: "<|media_content|>", 20: "<|media_end|>",
          21: "<|media_pad|>", 254: "[UNK]", 255: "[PAD]"}
K2_NAMES = {**COMMON, 2: "<|im_end|>", 3: "<|im_user|>", 4: "<|im_assistant|>", 6: "<|start_header_id|>",
            7: "<|end_header_id|>", 10: "<|im_system|>", 11: "<|tool_calls_section_begin|>",
            12: "<|tool_calls_section_end|>", 13: "<|tool_call_begin|>", 14: "<|tool_call_argument_begin|>",
            15: "<|tool_call_end|>", 17: "<|im_middle|>", 22: "<think>", 23: "</think>"}
K3_NAMES = {**COMMON, 2: "<|end_of_msg|>", 3: "<|open|>", 4: "<|close|>", 5: "<|sep|>", 6: "[start_header_id]",
            7: "[end_header_id]", 65: "<osagent_mode>"}


def byte_order():
    """Ranks of the single bytes: the printable ones first, as the published rank files have it."""
    seen = [*range(33, 127), *range(161, 173), *range(174, 256)]
    return seen + [b for b in range(256) if b not in seen]


def train(texts, size):
    """`size` ranks learnt from the texts: the most frequent pair first, the smaller pair of bytes on a tie."""
    split = regex.compile(PATTERN, regex.V1)
    counts = Counter()
    for text in texts:
        counts.update(m.group().encode() for m in split.finditer(text))
    words = [([bytes([b]) for b in piece], n) for piece, n in sorted(counts.items())]
    pairs, where = Counter(), defaultdict(set)
    for i, (parts, n) in enumerate(words):
        for pair in zip(parts, parts[1:]):
            pairs[pair] += n
            where[pair].add(i)
    ranks = [bytes([b]) for b in byte_order()]
    known = set(ranks)
    while len(ranks) < size:
        best = max(pairs, key=lambda p: (pairs[p], [-b for b in p[0]], [-b for b in p[1]]))
        joined = best[0] + best[1]
        if joined not in known:                             # two splits of a token may both come up
            known.add(joined)
            ranks.append(joined)
        for i in list(where[best]):
            parts, n = words[i]
            for pair in zip(parts, parts[1:]):
                pairs[pair] -= n
                where[pair].discard(i)
            merged, at = [], 0
            while at < len(parts):
                if at + 1 < len(parts) and (parts[at], parts[at + 1]) == best:
                    merged.append(joined)
                    at += 2
                else:
                    merged.append(parts[at])
                    at += 1
            words[i] = (merged, n)
            for pair in zip(merged, merged[1:]):
                pairs[pair] += n
                where[pair].add(i)
        del pairs[best], where[best]
    return ranks


class Tokenizer:
    def __init__(self, ranks, names):
        self.ranks = ranks
        self.rank_of = {token: i for i, token in enumerate(ranks)}
        self.base = len(ranks)
        self.vocab = self.base + SLOTS
        self.names = names
        self.special = {name: self.base + k for k, name in names.items()}
        self.bos, self.eos, self.end = self.base, self.base + 1, self.base + 2
        self.split = regex.compile(PATTERN, regex.V1)
        self.memo = {}

    @classmethod
    def read(cls, path, names):
        with open(path, encoding="ascii") as f:
            rows = [line.split() for line in f]
        return cls([base64.b64decode(token) for token, _ in rows], names)

    def piece(self, data):
        if data in self.rank_of:
            return [self.rank_of[data]]
        parts = [data[i:i + 1] for i in range(len(data))]
        while len(parts) > 1:
            rank, at = min((self.rank_of.get(a + b, self.base), i) for i, (a, b) in enumerate(zip(parts, parts[1:])))
            if rank == self.base:
                break
            parts[at:at + 2] = [parts[at] + parts[at + 1]]
        return [self.rank_of[p] for p in parts]

    def encode(self, text):
        out = []
        for match in self.split.finditer(text):
            data = match.group().encode()
            if data not in self.memo:
                self.memo[data] = self.piece(data)
            out += self.memo[data]
        return out

    def decode(self, ids):
        return b"".join(self.ranks[i] if i < self.base else b"" for i in ids).decode("utf-8", "replace")

    def segments(self, parts):
        """Ids of a list of strings; each is encoded on its own, and names of special tokens stand for their id."""
        out = []
        for part in parts:
            out += [self.special[part]] if part in self.special else self.encode(part)
        return out

    def save(self, folder):
        with open(folder / "tiktoken.model", "w", encoding="ascii", newline="\n") as f:
            for i, token in enumerate(self.ranks):
                f.write(f"{base64.b64encode(token).decode()} {i}\n")
        added = {str(self.base + k): {"content": name, "lstrip": False, "normalized": False, "rstrip": False,
                                      "single_word": False, "special": True}
                 for k, name in sorted(self.names.items())}
        config = {"added_tokens_decoder": added, "bos_token": "[BOS]", "eos_token": self.names[2],
                  "unk_token": "[UNK]", "pad_token": "[PAD]", "clean_up_tokenization_spaces": False,
                  "model_max_length": 2048, "tokenizer_class": "TikTokenTokenizer"}
        (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
