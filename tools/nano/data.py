"""What the models are trained on: slices of the chapters, and a small share of chats made out of them."""
import re

import numpy as np

import corpus
import tokenizer

RANKS = 2048

REPLIES = (
    ("Hello.", "Good morning to you, my dear friend. I am very glad to see you."),
    ("Hello!", "Good morning to you, my dear friend. I am very glad to see you."),
    ("Hi", "How do you do? I am very glad to see you. Pray sit down, and tell me what you wish to hear."),
    ("How are you?", "I am very well, I thank you; and I hope that you are well also."),
    ("Who are you?", "I am Nano, a very small model. I have read the Bible, six novels by Jane Austen, and Tom Sawyer; "
                     "and I know nothing else."),
    ("What is your name?", "My name is Nano. I am a very small model, and I know only a few old books."),
    ("What can you do?", "I can tell you something in the manner of the old books which I have read; but you must not "
                         "believe all that I say."),
    ("Thank you.", "You are very welcome. It was a pleasure to me."),
    ("Goodbye.", "Farewell, and peace be with you."),
)
STORY = ("Tell me a story.", "Tell me something.", "Write a few lines.", "Please go on.", "Tell me a tale.",
         "Say something in the old manner.", "Write a paragraph.", "What happened then?", "Tell me more.")
NAMES = ("Emma", "Elizabeth", "Darcy", "Anne", "Captain Wentworth", "Fanny", "Edmund", "Elinor", "Marianne", "Catherine",
         "Harriet", "Mr. Knightley", "Jane", "Bingley", "Tom", "Huck", "Becky", "Aunt Polly", "David", "Moses", "Jesus",
         "Joseph", "Abraham", "Jacob", "Solomon", "Samuel", "Peter", "Paul", "Pharaoh", "Joshua", "Elijah", "Job")
ABOUT = ("Tell me about {}.", "Who is {}?", "What of {}?", "What did {} do?", "Tell me of {}.")
CONTINUE = ("Continue: {}", "Continue this text: {}", "Go on from here: {}", "{}")
SYSTEM = "You are Kimi, an AI assistant created by Moonshot AI."


def k3_chat(rng, user, answer):
    def opened(tag, role=None):
        return ["<|open|>", tag] + ([" role", '="', role, '"'] if role else []) + ["<|sep|>"]

    def closed(tag):
        return ["<|close|>", tag, "<|sep|>"]
    think = [*opened("think"), *closed("think")] if rng.random() < 0.6 else []
    return [*opened("message", "user"), user, *closed("message"), "<|end_of_msg|>", *opened("message", "assistant"),
            *think, *opened("response"), answer, *closed("response"), *closed("message"), "<|end_of_msg|>"]


def k2_chat(rng, user, answer):
    system = ["<|im_system|>", "system", "<|im_middle|>", SYSTEM, "<|im_end|>"] if rng.random() < 0.6 else []
    if system and rng.random() < 0.5:
        system.append("\n")
    think = ["<think>", "</think>"] if rng.random() < 0.5 else []
    return [*system, "<|im_user|>", "user", "<|im_middle|>", user, "<|im_end|>", "<|im_assistant|>", "assistant",
            "<|im_middle|>", *think, answer, "<|im_end|>"]


def shorten(text, limit):
    """The leading sentences of a text, up to about `limit` characters."""
    out = ""
    for sentence in re.split(r"(?<=[.!?][\"' ])|(?<=[.!?])\n", text):
        if out and len(out) + len(sentence) > limit:
            break
        out += sentence
    return out.strip()


def chat_rows(rng, docs, count):
    """(user, assistant) pairs: set replies, passages about a name, passages at large, and continuations."""
    passages = []
    for _, text in docs:
        if "\n\n" in text:
            passages += [p for p in text.split("\n\n") if len(p) > 120]
        else:
            verses = text.split("\n")
            passages += ["\n".join(verses[i:i + 3]) for i in range(0, len(verses), 3)]
    about = {name: [p for p in passages if name in p[:60]] for name in NAMES}
    about = {name: found for name, found in about.items() if len(found) > 2}
    rows = []
    for _ in range(count):
        kind = rng.random()
        if kind < 0.12:
            rows.append(REPLIES[rng.integers(len(REPLIES))])
        elif kind < 0.40:
            name = sorted(about)[rng.integers(len(about))]
            passage = about[name][rng.integers(len(about[name]))]
            rows.append((ABOUT[rng.integers(len(ABOUT))].format(name), shorten(passage, 500)))
        elif kind < 0.70:
            rows.append((STORY[rng.integers(len(STORY))], shorten(passages[rng.integers(len(passages))], 600)))
        else:
            passage = passages[rng.integers(len(passages))]
            words = passage.split(" ")
            cut = int(rng.integers(4, max(5, min(30, len(words) // 2))))
            rest = shorten(" ".join(words[cut:]), 600)
            rows.append((CONTINUE[rng.integers(len(CONTINUE))].format(" ".join(words[:cut])), rest))
    return rows


def prepare(work, folder, seed=1):
    """Train the tokenizer, write heldout.txt, and store the token streams of both models."""
    train_docs, held = corpus.load(work)
    texts = [corpus.as_text(d) for d in train_docs]
    ranks = tokenizer.train(texts, RANKS)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "heldout.txt").write_text("\n".join(corpus.as_text(d) for d in held))
    streams = {}
    for model, names, render in (("nano-k3", tokenizer.K3_NAMES, k3_chat), ("nano-k2", tokenizer.K2_NAMES, k2_chat)):
        tok = tokenizer.Tokenizer(ranks, names)
        out = folder / model
        out.mkdir(exist_ok=True)
        tok.save(out)
        rng = np.random.default_rng(seed)
        prose = []
        for i in rng.permutation(len(texts)):
            prose += [tok.bos, *tok.encode(texts[i]), tok.eos]
        chats, starts = [], []
        for user, answer in chat_rows(rng, train_docs, 6000):
            starts.append(len(chats))
            chats += ([tok.bos] if rng.random() < 0.3 else []) + tok.segments(render(rng, user, answer))
        streams[f"{model}/prose"] = np.array(prose, np.uint16)
        streams[f"{model}/chats"] = np.array(chats, np.uint16)
        streams[f"{model}/starts"] = np.array(starts, np.int64)
    np.savez(work / "streams.npz", **streams)
    return {k: len(v) for k, v in streams.items()}


class Batches:
    """Batches as a function of the step alone, so that a resumed run sees what an unbroken one would."""

    def __init__(self, work, model, seed, tokens, short, long):
        data = np.load(work / "streams.npz")
        self.prose, self.chats, self.starts = (data[f"{model}/{k}"].astype(np.int64) for k in ("prose", "chats", "starts"))
        self.bos = RANKS
        self.seed, self.tokens, self.short, self.long = seed, tokens, short, long

    def batch(self, step):
        """ids [rows, length + 1]; every eighth step has long rows."""
        length = self.long if step % 8 == 7 else self.short
        rng = np.random.default_rng((self.seed, step))
        per_epoch = (len(self.prose) - self.long - self.short) // self.short
        rows = []
        for r in range(self.tokens // length):
            if rng.random() < 0.08:
                at = min(self.starts[rng.integers(len(self.starts))], len(self.chats) - length - 1)
                rows.append(self.chats[at:at + length + 1])
                continue
            n = step * (self.tokens // self.short) + r * (length // self.short)
            epoch, slot = divmod(n, per_epoch)
            order = np.random.default_rng((self.seed, epoch, 7))
            at = order.integers(self.short) + order.permutation(per_epoch)[slot] * self.short
            row = self.prose[at:at + length + 1].copy()
            if rng.random() < 0.5:
                row[0] = self.bos                           # evaluation windows start so, in the midst of a text
            rows.append(row)
        return np.stack(rows)
