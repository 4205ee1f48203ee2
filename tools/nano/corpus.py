"""The training text of the Nano models: public-domain English prose out of Debian packages.

Each source becomes a list of documents (a chapter each) with a title line, paragraphs on one line, and ASCII
punctuation. A few whole chapters are kept out of the training and become the held-out text.
"""
import gzip
import re
import struct
import subprocess
import zlib
from pathlib import Path

PACKAGES = ("bible-kjv", "bible-kjv-text", "r-cran-janeaustenr", "golang-github-klauspost-compress-dev")

NOVELS = {"emma": "Emma", "mansfieldpark": "Mansfield Park", "northangerabbey": "Northanger Abbey",
          "persuasion": "Persuasion", "prideprejudice": "Pride and Prejudice",
          "sensesensibility": "Sense and Sensibility"}

BOOKS = (
    "Genesis:50 Exodus:40 Leviticus:27 Numbers:36 Deuteronomy:34 Joshua:24 Judges:21 Ruth:4 1_Samuel:31 2_Samuel:24 "
    "1_Kings:22 2_Kings:25 1_Chronicles:29 2_Chronicles:36 Ezra:10 Nehemiah:13 Esther:10 Job:42 Psalms:150 "
    "Proverbs:31 Ecclesiastes:12 Song_of_Solomon:8 Isaiah:66 Jeremiah:52 Lamentations:5 Ezekiel:48 Daniel:12 Hosea:14 "
    "Joel:3 Amos:9 Obadiah:1 Jonah:4 Micah:7 Nahum:3 Habakkuk:3 Zephaniah:3 Haggai:2 Zechariah:14 Malachi:4 "
    "Matthew:28 Mark:16 Luke:24 John:21 Acts:28 Romans:16 1_Corinthians:16 2_Corinthians:13 Galatians:6 Ephesians:6 "
    "Philippians:4 Colossians:4 1_Thessalonians:5 2_Thessalonians:3 1_Timothy:6 2_Timothy:4 Titus:3 Philemon:1 "
    "Hebrews:13 James:5 1_Peter:5 2_Peter:3 1_John:5 2_John:1 3_John:1 Jude:1 Revelation:22")

HELD_OUT = {"Ruth 1", "Ruth 2", "Ruth 3", "Ruth 4", "James 1", "James 2", "James 3",
            "Persuasion, Chapter 24", "Emma, Chapter 55", "Pride and Prejudice, Chapter 61",
            "Tom Sawyer, Chapter 35"}

PLAIN = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2014": "--",
                       "\u00e9": "e", "\u00e8": "e", "\u00ea": "e", "\u00e0": "a", "\u00e2": "a", "\u00f4": "o",
                       "\u00ef": "i", "\u00eb": "e", "\u00fc": "u", "\u00e7": "c", "\u00a3": "L", "_": None})


def fetch(work):
    """Unpack the Debian packages under `work`, with apt's ordinary client."""
    root = work / "debian"
    if not (root / "done").exists():
        root.mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", *PACKAGES], cwd=root, check=True)
        for deb in sorted(root.glob("*.deb")):
            subprocess.run(["dpkg-deb", "-x", deb.name, "."], cwd=root, check=True)
        (root / "done").touch()
    return root


def paragraphs(lines):
    """Join wrapped lines; an empty line ends a paragraph."""
    out, now = [], []
    for line in [*lines, ""]:
        line = re.sub(r"\s+", " ", line.translate(PLAIN)).strip()
        if line:
            now.append(line)
        elif now:
            out.append(" ".join(now))
            now = []
    return out


def kjv(root):
    """One document a chapter, one verse a line, without the numbers."""
    names, asked = [], []
    for item in BOOKS.split():
        name, count = item.split(":")
        for chapter in range(1, int(count) + 1):
            names.append(f"{name.replace('_', ' ')} {chapter}")
            asked.append(f"{name.replace('_', '').lower()}{chapter}:1-{chapter}:200")
    data = root / "usr/lib"
    docs = []
    for title, reference in zip(names, asked):
        text = subprocess.run([str(root / "usr/bin/bible"), "-f", "-p", str(data), reference], check=True,
                              capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout
        verses = re.findall(r"^[1-3]?[A-Za-z]+\d+:(\d+) (.*)$", text, re.M)
        kept = []
        for number, verse in verses:
            if kept and int(number) != len(kept) + 1:
                break                                       # the range ran on into the next chapter
            kept.append(re.sub(r"\s+", " ", verse).strip())
        docs.append((title, "\n".join(kept)))
    return docs


def r_strings(blob):
    """The character vector in one record of an R lazy-load database (XDR serialisation)."""
    raw = zlib.decompress(blob[4:])
    at = 2 + 12
    size, = struct.unpack_from(">i", raw, at)
    at += 4 + size
    flags, count = struct.unpack_from(">ii", raw, at)
    if flags & 255 != 16:
        raise ValueError("not a character vector")
    at += 8
    out = []
    for _ in range(count):
        _, size = struct.unpack_from(">ii", raw, at)
        at += 8
        out.append(raw[at:at + max(size, 0)].decode())
        at += max(size, 0)
    return out


def austen(root):
    """One document a chapter, chapters counted through the volumes of a novel."""
    folder = root / "usr/lib/R/site-library/janeaustenr/data"
    index = gzip.decompress((folder / "Rdata.rdx").read_bytes())
    spans = [struct.unpack(">ii", m) for m in re.findall(rb"\0\0\0\x0d\0\0\0\x02(.{8})", index, re.S)]
    data = (folder / "Rdata.rdb").read_bytes()
    docs = []
    for (key, title), (start, size) in zip(NOVELS.items(), spans):
        lines = r_strings(data[start:start + size])
        marks = [i for i, s in enumerate(lines) if re.match(r"\s*chapter\s+[\divxlc]+\.?\s*$", s, re.I)]
        for n, (a, b) in enumerate(zip(marks, [*marks[1:], len(lines)]), 1):
            body = [s for s in lines[a + 1:b] if not re.match(r"\s*(volume\s+[ivx]+|finis|the end)\.?\s*$", s, re.I)]
            docs.append((f"{title}, Chapter {n}", "\n\n".join(paragraphs(body))))
    return docs


def sawyer(root):
    copies = root.rglob("Mark.Twain-Tom.Sawyer.txt")          # one of them is only the first pages
    text = max(copies, key=lambda p: p.stat().st_size).read_text(encoding="latin-1").replace("\r", "")
    parts = re.split(r"^CHAPTER [IVXLC]+$", text, flags=re.M)[1:]
    parts[-1] = re.split(r"^\s*CONCLUSION\s*$|^\s*End of (the )?Project", parts[-1], flags=re.M)[0]
    return [(f"Tom Sawyer, Chapter {n}", "\n\n".join(paragraphs(p.split("\n")))) for n, p in enumerate(parts, 1)]


def load(work):
    """(training documents, held-out documents), each a list of (title, text)."""
    root = fetch(Path(work))
    docs = kjv(root) + austen(root) + sawyer(root)
    missing = HELD_OUT - {title for title, _ in docs}
    if missing:
        raise ValueError(f"held-out chapters not found: {sorted(missing)}")
    return [d for d in docs if d[0] not in HELD_OUT], [d for d in docs if d[0] in HELD_OUT]


def as_text(doc):
    return f"{doc[0]}\n\n{doc[1]}\n"
