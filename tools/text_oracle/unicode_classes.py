"""Writes src/text/unicode.def: the character classes of the splitter as ranges.

The classes are asked of the tiktoken package itself, so that they are those of the Unicode version that its regex engine
has. Usage: unicode_classes.py > src/text/unicode.def
"""
import sys

import tiktoken

BYTES = {bytes([i]): i for i in range(256)}


def members(pattern):
    """Code points that `pattern` matches; text that does not match yields no token."""
    encoding = tiktoken.Encoding("probe", pat_str=pattern, mergeable_ranks=BYTES, special_tokens={})
    found = set()
    for start in range(0, 0x110000, 0x4000):
        text = "".join(chr(c) for c in range(start, start + 0x4000) if not 0xD800 <= c < 0xE000)
        found.update(ord(c) for c in encoding.decode(encoding.encode_ordinary(text)))
    return found


UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
classes = [
    ("HAN", members(r"\p{Han}")),
    ("UPPER", members(UPPER)),
    ("LOWER", members(LOWER)),
    ("LETTER", members(r"\p{L}")),
    ("NUMBER", members(r"\p{N}")),
    ("SPACE", members(r"\s")),
    ("NEWLINE", members(r"[\r\n]")),
    ("STRSPACE", {c for c in range(0x110000) if chr(c).isspace()}),
]


def newest_version():
    for version, code in (("17.0", 0x16EA0), ("16.0", 0x10D4A), ("15.1", 0x2EBF0), ("15.0", 0x11F04)):
        if code in classes[3][1]:
            return version
    return "before 15"


codes = [sum(1 << bit for bit, (_, set_) in enumerate(classes) if code in set_) for code in range(0x110000)]
out = ["/* Written by tools/text_oracle/unicode_classes.py: classes of code points by Unicode " + newest_version() + ".",
       " * PRG_RANGE(first, last, even, odd): the classes, as in char_class.h, of the code points at an even and at an odd",
       " * distance from the first (cased letters alternate); what is in no range has no class. */"]
start = 0
while start < 0x110000:
    end = start + 1  # the longest stretch from here that repeats with period two
    while end < 0x110000 and codes[end] == codes[start + (end - start) % 2 if end - start > 1 else end]:
        end += 1
    flat = start + 1
    while flat < 0x110000 and codes[flat] == codes[start]:
        flat += 1
    if flat - start > 1 or end - start < 4:
        end, odd = flat, codes[start]
    else:
        odd = codes[start + 1]
    if codes[start] or odd:
        out.append(f"PRG_RANGE(0x{start:X}, 0x{end - 1:X}, 0x{codes[start]:X}, 0x{odd:X})")
    start = end
print("\n".join(out))
print(len(out) - 3, "ranges", file=sys.stderr)
