"""The published layout: write a trained model as a checkpoint folder, read it back, and write the reference values."""
import json
import math
import shutil

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

import configs
import data
import model as nano
import quant
import tokenizer

NAMES = {"nano-k3": tokenizer.K3_NAMES, "nano-k2": tokenizer.K2_NAMES}
PROJECTIONS = {"block_sparse_moe": ("w1", "w3", "w2"), "mlp": ("gate_proj", "up_proj", "down_proj")}
FLOAT32 = ("conv1d.weight", "A_log", "dt_bias", "o_norm.weight", "e_score_correction_bias")
PROMPT = ("And it came to pass in those days, that there went out a man of the house of Levi, and his wife with him, and "
          "they came unto a city which was called Bethlehem. \"My dear Miss Woodhouse,\" said he, \"you are very good; "
          "but I am not at all certain that")
WINDOW = 512
GREEDY = 12


def packed(name, module, weight):
    """The stored tensors of one expert matrix."""
    if name == "nano-k3":
        codes, scale = quant.mxfp4_pack(weight)
        return {f"{module}.weight_packed": codes, f"{module}.weight_scale": scale}
    codes, scale = quant.int4_pack(weight)
    return {f"{module}.weight_packed": codes, f"{module}.weight_scale": scale,
            f"{module}.weight_shape": torch.tensor(weight.shape, dtype=torch.int32)}


def write(name, state, folder):
    """model.safetensors, config.json and generation_config.json. `state` is a Decoder's state_dict."""
    prefix = "language_model." if name == "nano-k3" else ""
    out = {}
    for key, value in state.items():
        module, _, last = key.rpartition(".")
        if last in ("experts_in", "experts_out"):
            gate, up, down = PROJECTIONS[module.rpartition(".")[2]]
            for e, w in enumerate(value):
                parts = zip((gate, up), w.chunk(2)) if last == "experts_in" else [(down, w)]
                for projection, matrix in parts:
                    out.update(packed(name, f"{prefix}{module}.experts.{e}.{projection}", matrix.contiguous()))
            continue
        if last == "A_log":
            value = F.pad(value, (0, -len(value) % 32))     # as published: zeros up to a multiple of 32
        out[prefix + key] = value.float() if key.endswith(FLOAT32) else value.bfloat16()
    folder.mkdir(parents=True, exist_ok=True)
    save_file({k: v.contiguous() for k, v in out.items()}, folder / "model.safetensors", {"format": "pt"})
    _, top = configs.SHAPES[name](data.RANKS)
    text = top.get("text_config", top)
    (folder / "config.json").write_text(json.dumps(top, indent=2) + "\n")
    ends = [data.RANKS + 2, data.RANKS + 1]
    generation = {"max_length": text["max_position_embeddings"], "eos_token_id": ends}
    (folder / "generation_config.json").write_text(json.dumps(generation, indent=2) + "\n")


def read(name, folder):
    """A float32 Decoder that holds exactly the stored values."""
    text, _ = configs.SHAPES[name](data.RANKS)
    prefix = "language_model." if name == "nano-k3" else ""
    stored = load_file(folder / "model.safetensors")
    decoder = nano.Decoder(text).eval()
    state = decoder.state_dict()
    unpack = quant.mxfp4_unpack if name == "nano-k3" else quant.int4_unpack
    for key, value in state.items():
        module, _, last = key.rpartition(".")
        if last in ("experts_in", "experts_out"):
            gate, up, down = PROJECTIONS[module.rpartition(".")[2]]
            for e in range(len(value)):
                parts = [unpack(stored[f"{prefix}{module}.experts.{e}.{p}.weight_packed"],
                                stored[f"{prefix}{module}.experts.{e}.{p}.weight_scale"])
                         for p in ((gate, up) if last == "experts_in" else (down,))]
                value[e] = torch.cat(parts)
        elif last == "A_log":
            value.copy_(stored[prefix + key][:len(value)])
        else:
            value.copy_(stored[prefix + key].float())
    for moe in decoder.experts():
        moe.exact = True
    return decoder


def windows(tok, text, size):
    """Input and target ids [windows, size]: each window is predicted from [BOS] and its own tokens only."""
    ids = tok.encode(text)
    count = -(-len(ids) // size)
    target = np.full((count, size), -100, np.int64)
    target.reshape(-1)[:len(ids)] = ids
    source = np.where(target < 0, tok.bos, target)
    source = np.concatenate([np.full((count, 1), tok.bos), source[:, :-1]], 1)
    return torch.from_numpy(source), torch.from_numpy(target)


@torch.no_grad()
def bits_per_byte(decoder, tok, text, size=WINDOW):
    source, target = windows(tok, text, size)
    bits = 0.0
    for i in range(0, len(source), 4):
        logits = decoder(source[i:i + 4]).float().flatten(0, 1)
        bits += F.cross_entropy(logits, target[i:i + 4].flatten(), ignore_index=-100, reduction="sum").item() / math.log(2)
    return bits / len(text.encode())


def logits_of(decoder, ids):
    pad = -len(ids) % nano.CHUNK
    with torch.no_grad():
        return decoder(torch.tensor([list(ids) + [0] * pad]))[0, :len(ids)].float()


def sample(decoder, ids, count, temperature=0.0, seed=0, stop=()):
    """Plain sampling without a cache, each token from a full pass; enough for a look at a small model."""
    rng = torch.Generator().manual_seed(seed)
    ids = list(ids)
    start = len(ids)
    for _ in range(count):
        row = logits_of(decoder, ids[-1008:])[-1]
        if temperature:
            token = int(torch.multinomial(torch.softmax(row / temperature, -1), 1, generator=rng))
        else:
            token = int(row.argmax())
        ids.append(token)
        if token in stop:
            break
    return ids[start:]


def reference(name, folder, heldout, oracle=None, sizes=(WINDOW,)):
    """expected/: logits and a greedy continuation of a prompt, and the bits per byte of the held-out text.

    `oracle` is a float64 implementation (a class with forward and greedy); without it the float32 model stands in.
    Returns the largest difference of any logit between the two.
    """
    decoder = read(name, folder)
    tok = tokenizer.Tokenizer.read(folder / "tiktoken.model", NAMES[name])
    ids = [tok.bos, *tok.encode(PROMPT)]
    logits, gap = logits_of(decoder, ids).double().numpy(), 0.0
    if oracle is None:
        greedy = sample(decoder, ids, GREEDY)
    else:
        exact = oracle(str(folder))
        want = exact.forward(ids)
        gap = float(np.abs(want - logits).max())
        logits, greedy = want, exact.greedy(ids, GREEDY)[0]
    out = folder / "expected"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    save_file({"ids": torch.tensor(ids, dtype=torch.int32), "greedy": torch.tensor(greedy, dtype=torch.int32),
               "logits": torch.from_numpy(logits.astype(np.float32))}, out / "expected.safetensors")
    text = heldout.read_text()
    values = {"heldout": heldout.name, "bytes": len(text.encode()), "tokens": len(tok.encode(text)), "window": WINDOW}
    for size in sizes:
        key = "bits_per_byte" if size == WINDOW else f"bits_per_byte_window_{size}"
        values[key] = round(bits_per_byte(decoder, tok, text, size), 6)
    (out / "reference.json").write_text(json.dumps(values, indent=2) + "\n")
    return values, gap
