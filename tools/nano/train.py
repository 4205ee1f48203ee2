"""Train, export and check the Nano models.

    train.py prepare  --work DIR --models DIR
    train.py train    --work DIR --model nano-k3 (--until HH:MM | --steps N)
    train.py export   --work DIR --models DIR --model nano-k3 [--oracle FILE]
    train.py sample   --models DIR --model nano-k3 [--prompt TEXT] [--chat]
"""
import argparse
import datetime
import importlib.util
import time
from pathlib import Path

import torch

import configs
import data
import export
import model as nano
import optim
import tokenizer

WARMUP = 40
BIAS_RATE = 1e-2


def schedule(step, progress):
    """Share of the full learning rate: warm-up by steps, then constant, then a line down to the end."""
    return min((step + 1) / WARMUP, 1.0, max(0.02, (1 - progress) / 0.6))


def balance(model, scale):
    """Move the selection bias of each expert towards an even load."""
    worst = 0.0
    for moe in model.experts():
        mean = moe.load.mean()
        worst = max(worst, float(moe.load.max() / mean))
        moe.gate.e_score_correction_bias += BIAS_RATE * scale * torch.sign(mean - moe.load)
        moe.load.zero_()
    return worst


@nano.fused
def loss_of(logits, target):
    return torch.nn.functional.cross_entropy(logits.float(), target)


def deadline(clock):
    hour, minute = map(int, clock.split(":"))
    end = datetime.datetime.now().replace(hour=hour, minute=minute, second=0)
    if end < datetime.datetime.now():
        end += datetime.timedelta(days=1)
    return end.timestamp()


def save(path, content):
    """Write beside, then rename: a stop in between leaves the older state whole."""
    torch.save(content, path.with_suffix(".part"))
    path.with_suffix(".part").rename(path)


def train(a):
    torch.set_num_threads(a.threads)
    torch.manual_seed(a.seed)
    nano.FUSE = not a.plain
    text, _ = configs.SHAPES[a.model](data.RANKS)
    model = nano.Decoder(text)
    optimizer = optim.Optimizer(model, a.muon_lr, a.adam_lr)
    batches = data.Batches(a.work, a.model, a.seed, a.tokens, 512, a.long)
    path = a.work / f"{a.model}.pt"
    step, begin, end = 0, time.time(), deadline(a.until) if a.until else None
    if path.exists() and not a.fresh:
        kept = torch.load(path, weights_only=True)
        model.load_state_dict(kept["model"])
        optimizer.restore(kept["optimizer"])
        step, begin = kept["step"], kept["begin"]
    tok = tokenizer.Tokenizer.read(a.models / a.model / "tiktoken.model", export.NAMES[a.model])
    heldout = (a.models / "heldout.txt").read_text()
    saved, losses, last, used = time.time(), [], time.time(), time.process_time()
    while True:
        progress = (time.time() - begin) / (end - begin) if end else step / a.steps
        if progress >= 1:
            break
        ids = torch.from_numpy(batches.batch(step))
        with torch.autocast("cpu", torch.bfloat16):
            logits = model(ids[:, :-1])
        loss = loss_of(logits.flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        scale = schedule(step, progress)
        optimizer.step(scale)
        for p in model.parameters():
            p.grad = None
        worst = balance(model, max(0.05, 1 - progress))
        step += 1
        value = loss.item()
        if value != value:
            raise FloatingPointError(f"the loss is not a number at step {step}")
        losses.append(value)
        if step % 10 == 0:
            now = time.time()
            print(f"step {step} progress {progress:.3f} loss {sum(losses) / len(losses):.4f} worst load {worst:.2f} "
                  f"{(now - last) / 10:.2f} s/step, {time.process_time() - used:.0f} s of CPU", flush=True)
            last, losses = now, []
        if step % a.check == 0:
            model.eval()
            with torch.autocast("cpu", torch.bfloat16):
                bpb = export.bits_per_byte(model, tok, heldout)
            model.train()
            print(f"step {step} held-out bits per byte {bpb:.4f}", flush=True)
            last = time.time()
        if time.time() - saved > 120:
            keep(path, model, optimizer, step, begin)
            saved = time.time()
    keep(path, model, optimizer, step, begin)
    print(f"done after {step} steps", flush=True)


def keep(path, model, optimizer, step, begin):
    save(path, {"model": model.state_dict(), "optimizer": optimizer.state(), "step": step, "begin": begin})


def oracle_class(path):
    spec = importlib.util.spec_from_file_location("oracle", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Model


def run_export(a):
    torch.set_num_threads(a.threads)
    kept = torch.load(a.work / f"{a.model}.pt", weights_only=True)
    folder = a.models / a.model
    export.write(a.model, kept["model"], folder)
    if a.bare:
        print(f"step {kept['step']}: {folder}, without reference values")
        return
    values, gap = export.reference(a.model, folder, a.models / "heldout.txt", oracle_class(a.oracle) if a.oracle else None,
                                   sizes=[export.WINDOW, *a.windows])
    print(f"step {kept['step']}: {values}, largest logit difference to the oracle {gap:.2e}")


def run_sample(a):
    decoder = export.read(a.model, a.models / a.model)
    tok = tokenizer.Tokenizer.read(a.models / a.model / "tiktoken.model", export.NAMES[a.model])
    if a.chat and a.model == "nano-k3":
        ids = tok.segments(["<|open|>", "message", " role", '="', "user", '"', "<|sep|>", a.prompt, "<|close|>", "message",
                            "<|sep|>", "<|end_of_msg|>", "<|open|>", "message", " role", '="', "assistant", '"', "<|sep|>",
                            "<|open|>", "response", "<|sep|>"])
    elif a.chat:
        ids = tok.segments(["<|im_user|>", "user", "<|im_middle|>", a.prompt, "<|im_end|>", "<|im_assistant|>",
                            "assistant", "<|im_middle|>"])
    else:
        ids = [tok.bos, *tok.encode(a.prompt)]
    print(tok.decode(export.sample(decoder, ids, a.count, a.temperature, a.seed, (tok.eos, tok.end))))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=("prepare", "train", "export", "sample"))
    parser.add_argument("--work", type=Path, default=Path("build/nano"), help="downloads, token streams, training state")
    parser.add_argument("--models", type=Path, default=Path("models"), help="where the checkpoint folders are")
    parser.add_argument("--model", choices=sorted(configs.SHAPES), default="nano-k3")
    parser.add_argument("--until", help="end of training by the clock, HH:MM; the schedule fits itself to it")
    parser.add_argument("--steps", type=int, default=1500, help="length of training, if no clock is given")
    parser.add_argument("--tokens", type=int, default=4096, help="tokens in a step")
    parser.add_argument("--long", type=int, default=512, help="row length of every eighth step; rotary positions are to "
                        "be seen before they are used")
    parser.add_argument("--muon-lr", type=float, default=0.02)
    parser.add_argument("--adam-lr", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--check", type=int, default=200, help="steps between two looks at the held-out text")
    parser.add_argument("--plain", action="store_true", help="no compilation of the fused operations")
    parser.add_argument("--fresh", action="store_true", help="ignore a saved state")
    parser.add_argument("--oracle", help="Python file with the float64 reference")
    parser.add_argument("--bare", action="store_true", help="export without the reference values")
    parser.add_argument("--windows", type=int, nargs="*", default=[], help="further window sizes for the bits per byte")
    parser.add_argument("--prompt", default="And it came to pass")
    parser.add_argument("--chat", action="store_true")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--temperature", type=float, default=0.7)
    a = parser.parse_args()
    if a.task == "prepare":
        a.work.mkdir(parents=True, exist_ok=True)
        print(data.prepare(a.work, a.models))
    else:
        {"train": train, "export": run_export, "sample": run_sample}[a.task](a)


if __name__ == "__main__":
    main()
