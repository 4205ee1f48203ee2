"""Checks of the parts that training rests on. Exits with an assertion when one fails.

    python tools/nano/check.py [--models DIR]
"""
import argparse
from pathlib import Path

import torch

import export
import model as nano
import quant
import tokenizer


def chunked(x):
    batch, t, heads = x.shape[:3]
    x = x.view(batch, t // nano.CHUNK, nano.CHUNK, heads, -1).permute(1, 0, 3, 2, 4)
    return x.reshape(t // nano.CHUNK, batch * heads, nano.CHUNK, -1)


def check_kda():
    """Outputs and gradients of the chunked form, at mild decays and at the bound."""
    torch.manual_seed(0)
    batch, t, heads, dim = 2, 64, 3, 32
    for strength in (0.05, 1.0):
        q, k, v = torch.randn(3, batch, t, heads, dim, dtype=torch.float64)
        k = k / k.norm(dim=-1, keepdim=True)
        g = -5 * torch.rand(batch, t, heads, dim, dtype=torch.float64) * strength
        if strength == 1:
            g[:, :32] = -4.999
        inputs = [x.requires_grad_() for x in (q, k, v, g, torch.rand(batch, t, heads, 1, dtype=torch.float64))]
        want = nano.kda_recurrent(*inputs)
        probe = torch.randn_like(want)
        slopes = torch.autograd.grad((want * probe).sum(), inputs)
        for kind, limit in ((torch.float64, 1e-12), (torch.float32, 1e-5)):
            copies = [x.detach().to(kind).requires_grad_() for x in inputs]
            got = nano.kda_chunks(*map(chunked, copies))
            got = got.view(-1, batch, heads, nano.CHUNK, dim).permute(1, 0, 3, 2, 4).reshape(want.shape)
            found = torch.autograd.grad((got * probe).sum(), copies)
            for a, b in zip((want, *slopes), (got, *found)):
                assert (a - b).abs().max() <= limit * a.abs().max(), (strength, kind)
    print("KDA: chunks equal the recurrence")


def check_quant():
    """What is packed unpacks to what training saw."""
    torch.manual_seed(0)
    w = torch.randn(64, 96) * torch.logspace(-3, 1, 64)[:, None]
    w[0] = 0
    assert torch.equal(quant.mxfp4_unpack(*quant.mxfp4_pack(w)), quant.mxfp4_round(w))
    assert torch.equal(quant.int4_unpack(*quant.int4_pack(w)), quant.int4_round(w))
    error = (quant.mxfp4_round(w) - w).norm() / w.norm(), (quant.int4_round(w) - w).norm() / w.norm()
    assert max(error) < 0.15, error
    print("4-bit formats: packed bytes hold the rounded weights")


def check_tokenizer(folder, text):
    """Equal ids from the tiktoken package with the same pattern and ranks."""
    import tiktoken
    tok = tokenizer.Tokenizer.read(folder / "tiktoken.model", export.NAMES[folder.name])
    other = tiktoken.Encoding("nano", pat_str=tokenizer.PATTERN, mergeable_ranks=tok.rank_of,
                              special_tokens=tok.special)
    hard = ("HelloWorld HTTPServer don't DON'T  two  spaces\n\n\ttab 12345 \u6f22\u5b57\u304b\u306a e\u0301 \u01c5 (x) ..."
            "\r\n end ")
    for sample in (text, hard, "", " ", "\n"):
        assert tok.encode(sample) == other.encode_ordinary(sample)
        assert tok.decode(tok.encode(sample)) == sample
    print(f"tokenizer: {len(tok.encode(text))} tokens of the text equal tiktoken's")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=Path, default=Path("models"))
    a = parser.parse_args()
    torch.set_num_threads(1)
    check_kda()
    check_quant()
    for name in export.NAMES:
        check_tokenizer(a.models / name, (a.models / "heldout.txt").read_text())


if __name__ == "__main__":
    main()
