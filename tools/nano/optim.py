"""Muon for the hidden matrices, Adam for the rest."""
from collections import defaultdict

import torch

SLOW_NAMES = ("gate.weight", "b_proj")     # few outputs over a wide input: a full Adam step would swing them
ADAM_NAMES = ("embed_tokens", "lm_head", "gate.weight", "b_proj", "res_proj", "conv1d")


def orthogonal(m, steps=5):
    """Newton-Schulz iteration towards the nearest semi-orthogonal matrix, for a stack [n, rows, columns]."""
    flip = m.shape[-2] > m.shape[-1]
    x = (m.transpose(-1, -2) if flip else m).bfloat16()
    x = x / (x.float().norm(dim=(-2, -1), keepdim=True).bfloat16() + 1e-7)
    for _ in range(steps):
        a = x @ x.transpose(-1, -2)
        x = torch.baddbmm(x, torch.baddbmm(a, a, a, beta=-4.7750, alpha=2.0315), x, beta=3.4445)
    return (x.transpose(-1, -2) if flip else x).float()


class Optimizer:
    def __init__(self, model, muon_lr=0.02, adam_lr=3e-3, decay=0.02):
        self.muon_lr, self.adam_lr, self.decay = muon_lr, adam_lr, decay
        self.groups, self.adam, self.slow = defaultdict(list), [], []
        for name, p in model.named_parameters():
            if p.dim() < 2 or any(n in name for n in ADAM_NAMES):
                (self.slow if any(n in name for n in SLOW_NAMES) else self.adam).append(p)
            else:
                self.groups[p.shape].append(p)
        self.fast_count = len(self.adam)
        self.adam += self.slow
        self.momentum = {shape: torch.zeros(len(ps), *shape) for shape, ps in self.groups.items()}
        self.first = [torch.zeros_like(p) for p in self.adam]
        self.second = [torch.zeros_like(p) for p in self.adam]
        self.count = 0

    def state(self):
        return {"momentum": self.momentum, "first": self.first, "second": self.second, "count": self.count}

    def restore(self, state):
        self.momentum, self.first, self.second, self.count = (state[k] for k in ("momentum", "first", "second", "count"))

    @torch.no_grad()
    def step(self, scale):
        self.count += 1
        for shape, ps in self.groups.items():
            grad = torch.stack([p.grad for p in ps])
            m = self.momentum[shape].lerp_(grad, 0.05)
            update = orthogonal(grad.lerp_(m, 0.95).view(-1, *shape[-2:])).view_as(grad)
            lr = self.muon_lr * scale
            update *= lr * max(1.0, shape[-2] / shape[-1]) ** 0.5
            for p, u in zip(ps, update):
                p.mul_(1 - lr * self.decay * 5).sub_(u)
        # Nothing is banked before the first layer's attention, so its residual weights have no gradient.
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.adam]
        torch._foreach_lerp_(self.first, grads, 0.1)
        torch._foreach_mul_(self.second, 0.95)
        torch._foreach_addcmul_(self.second, grads, grads, 0.05)
        fix1, fix2 = 1 - 0.9 ** self.count, 1 - 0.95 ** self.count
        down = torch._foreach_div(self.second, fix2)
        torch._foreach_sqrt_(down)
        torch._foreach_add_(down, 1e-8)
        n, lr = self.fast_count, self.adam_lr * scale / fix1
        torch._foreach_addcdiv_(self.adam[:n], self.first[:n], down[:n], -lr)
        torch._foreach_addcdiv_(self.adam[n:], self.first[n:], down[n:], -lr / 10)
