"""The two 4-bit weight formats of the published checkpoints: rounding for training, packing for the files.

Both work on groups of 32 consecutive values of a row. `*_parts` gives codes and scales; the rounded weight that
training sees and the bytes that are stored both come from it, so that they cannot differ.
"""
import torch

GROUP = 32


def grouped(w):
    return w.reshape(*w.shape[:-1], w.shape[-1] // GROUP, GROUP)


def mxfp4_parts(w):
    """E2M1 magnitudes with signs [..., groups, 32] and the power of two of each group [..., groups, 1]."""
    g = grouped(w)
    top = g.abs().amax(-1, keepdim=True).clamp_min(2.0 ** -100)
    exponent = torch.frexp(top).exponent - 3                # the top value lands in [4, 8), and 6 is the largest code
    scaled = torch.ldexp(g, -exponent)
    a = scaled.abs().clamp_max(6.0)
    step = torch.where(a < 2, 0.5, torch.where(a < 4, 1.0, 2.0))
    return torch.copysign(torch.round(a / step) * step, scaled), exponent


def mxfp4_round(w):
    value, exponent = mxfp4_parts(w)
    return torch.ldexp(value, exponent).reshape(w.shape)


def mxfp4_pack(w):
    """weight_packed U8 [rows, cols/2], low nibble first, and weight_scale U8 [rows, cols/32]."""
    value, exponent = mxfp4_parts(w)
    levels = torch.tensor([0, .5, 1, 1.5, 2, 3, 4, 6])
    code = torch.searchsorted(levels, value.abs()) | (torch.signbit(value).long() << 3)
    code = code.reshape(w.shape).to(torch.uint8)
    return code[..., 0::2] | (code[..., 1::2] << 4), (exponent.squeeze(-1) + 127).to(torch.uint8)


def int4_parts(w):
    """Integers in [-8, 7] and the bfloat16 scale of each group."""
    g = grouped(w)
    scale = (g.abs().amax(-1, keepdim=True).clamp_min(1e-8) / 7).bfloat16().float()
    return torch.round(g / scale).clamp(-8, 7), scale


def int4_round(w):
    q, scale = int4_parts(w)
    return (q * scale).reshape(w.shape)


def int4_pack(w):
    """weight_packed I32 [rows, cols/8], lowest bits first, weight_scale BF16 [rows, cols/32]."""
    q, scale = int4_parts(w)
    code = (q.reshape(w.shape).to(torch.int64) + 8).reshape(*w.shape[:-1], -1, 8)
    word = (code << (4 * torch.arange(8))).sum(-1)
    word = torch.where(word >= 2 ** 31, word - 2 ** 32, word)
    return word.to(torch.int32), scale.squeeze(-1).bfloat16()


def mxfp4_unpack(packed, scale):
    table = torch.tensor([0, .5, 1, 1.5, 2, 3, 4, 6, -0.0, -.5, -1, -1.5, -2, -3, -4, -6])
    value = table[torch.stack([packed & 15, packed >> 4], -1).flatten(-2).long()]
    return torch.ldexp(grouped(value), scale.int().unsqueeze(-1) - 127).reshape(value.shape)


def int4_unpack(packed, scale):
    code = (packed.unsqueeze(-1) >> (4 * torch.arange(8))) & 15
    value = code.flatten(-2).float() - 8
    return (grouped(value) * scale.float().unsqueeze(-1)).reshape(value.shape)


ROUND = {"mxfp4": mxfp4_round, "int4": int4_round}
