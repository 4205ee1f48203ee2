"""Kimi-shaped decoders in PyTorch, for training: K3 (KDA, gated MLA, attention residuals, latent MoE) and K2.

Parameters carry the published tensor names. Routed experts are held as stacks and rounded to their stored 4-bit form
in every forward pass; the gradient passes straight through.
"""
import math

import torch
import torch._dynamo
import torch.nn.functional as F
from torch import nn

from quant import ROUND

CHUNK = 16      # steps of decay between the middle of a chunk and its ends stay within exp(+-40): safe in float32
FUSE = False    # set by training; evaluation runs the plain operations


torch._dynamo.config.recompile_limit = 64


def fused(function, dynamic=False):
    """Compile for each shape: symbolic row lengths cost the vector code. Only the experts' row count may vary."""
    compiled = torch.compile(function, dynamic=dynamic)

    def call(*args):
        return (compiled if FUSE else function)(*args)
    return call


def unit_rms(x, eps):
    x = x.float()
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)


normalise = fused(unit_rms)


@fused
def mixed_unit_rms(dots, eps, *sources):
    """The normalised attention residual: sources weighted by a softmax of the scores of their normalised values."""
    scores = [dots[..., i] * torch.rsqrt(v.square().mean(-1) + eps) for i, v in enumerate(sources)]
    top = scores[0]
    for s in scores[1:]:
        top = torch.maximum(top, s)
    weights = [torch.exp(s - top.detach()) for s in scores]
    return unit_rms(sum((w / sum(weights)).unsqueeze(-1) * v for w, v in zip(weights, sources)), eps)


def plain_swiglu(both):
    gate, up = both.float().chunk(2, -1)
    return F.silu(gate) * up


def tanh(x):
    return 2 * torch.sigmoid(2 * x) - 1                     # several times faster than the vector tanh of the compiler


def plain_situ(both):
    gate, up = both.float().chunk(2, -1)
    return 4 * tanh(gate / 4) * torch.sigmoid(gate) * 25 * tanh(up / 25)


@fused
def swiglu(both):
    return plain_swiglu(both)


@fused
def situ(both):
    return plain_situ(both)


expert_swiglu, expert_situ = fused(plain_swiglu, None), fused(plain_situ, None)


@fused
def gated_unit_rms(out, gate, eps):
    return unit_rms(out, eps) * torch.sigmoid(gate.float())


@fused
def gated(out, gate):
    return out.float() * torch.sigmoid(gate.float())


@fused
def convolve(padded, taps):
    t = padded.shape[1] - taps.shape[1] + 1
    return sum(padded[:, i:i + t] * taps[:, i] for i in range(taps.shape[1]))


class Convolution(torch.autograd.Function):
    """Causal depthwise convolution over time, the last tap on the newest value. x [batch, time, channels]."""

    @staticmethod
    def forward(ctx, x, taps):
        padded = F.pad(x.to(taps.dtype), (0, 0, taps.shape[1] - 1, 0))
        ctx.save_for_backward(padded, taps)
        ctx.kind = x.dtype
        return convolve(padded, taps)

    @staticmethod
    def backward(ctx, dy):
        padded, taps = ctx.saved_tensors
        t, width = dy.shape[1], taps.shape[1]
        dx = convolve(F.pad(dy, (0, 0, 0, width - 1)), taps.flip(1))
        dtaps = [(padded[:, i:i + t] * dy).sum((0, 1)) for i in range(width)]
        return dx.to(ctx.kind), torch.stack(dtaps, 1)


@fused
def kda_inputs(qkv, f, b, heads, bound):
    """SiLU, normalised queries and keys, decay and write strength; shaped [chunks, batch * heads, CHUNK, dim]."""
    batch, t, _ = qkv.shape
    q, k, v = F.silu(qkv).view(batch, t, 3, heads, -1).unbind(2)
    dim = q.shape[-1]
    q = q * torch.rsqrt(q.square().sum(-1, keepdim=True) + 1e-6) * dim ** -0.5
    k = k * torch.rsqrt(k.square().sum(-1, keepdim=True) + 1e-6)
    g = bound * torch.sigmoid(f.view(batch, t, heads, dim))
    beta = torch.sigmoid(b.to(g.dtype)).unsqueeze(-1)

    def chunked(x):
        x = x.reshape(batch, t // CHUNK, CHUNK, heads, -1).permute(1, 0, 3, 2, 4)
        return x.reshape(t // CHUNK, batch * heads, CHUNK, -1)
    return chunked(q), chunked(k), chunked(v), chunked(g), chunked(beta)


@fused
def kda_factors(q, k, v, total, beta):
    """What the chunk formulas multiply. `total` is the log decay from the chunk's start."""
    middle, last = total[..., CHUNK // 2 - 1:CHUNK // 2, :], total[..., -1:, :]
    down, whole = torch.exp(total - middle), torch.exp(total)
    k_down = beta * k
    return (q * down, k_down * down, k * torch.exp(middle - total), q * whole, k * torch.exp(last - total),
            beta * v, k_down * whole, torch.exp(last).transpose(-1, -2))


class Solve(torch.autograd.Function):
    """x with (I + lower) x = rhs, `lower` strictly lower triangular, by way of the small inverse."""

    @staticmethod
    def forward(ctx, lower, rhs):
        eye = torch.eye(lower.shape[-1], dtype=lower.dtype).expand_as(lower)
        inverse = torch.linalg.solve_triangular(lower, eye, upper=False, unitriangular=True)
        x = inverse @ rhs
        ctx.save_for_backward(inverse, x)
        return x

    @staticmethod
    def backward(ctx, dx):
        inverse, x = ctx.saved_tensors
        drhs = inverse.transpose(-1, -2) @ dx
        return (drhs @ x.transpose(-1, -2)).tril_(-1).neg_(), drhs


class Scan(torch.autograd.Function):
    """The state from chunk to chunk. For each chunk n, with S[0] = 0:

        u = w_v - w_k S,   out = q S,   S' = last * S + k^T u

    w_v [chunks, batch, CHUNK, values], the others [chunks, batch, CHUNK, keys], last [chunks, batch, keys, 1].
    """

    @staticmethod
    def forward(ctx, w_v, w_k, q, k, last):
        chunks, batch, _, dim = w_k.shape
        state = torch.zeros(chunks + 1, batch, dim, w_v.shape[-1], dtype=q.dtype)
        u, out = torch.empty_like(w_v), torch.empty_like(w_v)
        for n in range(chunks):
            torch.baddbmm(w_v[n], w_k[n], state[n], alpha=-1, out=u[n])
            torch.bmm(q[n], state[n], out=out[n])
            torch.mul(state[n], last[n], out=state[n + 1])
            state[n + 1].baddbmm_(k[n].transpose(-1, -2), u[n])
        ctx.save_for_backward(w_k, q, k, last, state, u)
        return u, out

    @staticmethod
    def backward(ctx, du, dout):
        w_k, q, k, last, state, u = ctx.saved_tensors
        du = du.clone()
        after = torch.zeros_like(state)                     # after[n] is the gradient of the state before chunk n
        for n in range(len(q) - 1, -1, -1):
            du[n].baddbmm_(k[n], after[n + 1])
            torch.mul(after[n + 1], last[n], out=after[n])
            after[n].baddbmm_(w_k[n].transpose(-1, -2), du[n], alpha=-1)
            after[n].baddbmm_(q[n].transpose(-1, -2), dout[n])
        old = state[:-1].transpose(-1, -2)
        dlast = (after[1:] * state[:-1]).sum(-1, keepdim=True)
        return du, -(du @ old), dout @ old, u @ after[1:].transpose(-1, -2), dlast


def kda_chunks(q, k, v, g, beta):
    """Gated delta rule over [chunks, batch * heads, CHUNK, dim] inputs; out has the same shape.

    Inside a chunk the written vectors solve (I + strict lower triangle) u = beta (v - k_in S); the state between chunks
    is a linear recurrence. Every decay that survives the mask has an exponent of at most zero.
    """
    tri = torch.ones(CHUNK, CHUNK, dtype=q.dtype).tril()
    q_mid, kb_mid, k_mid, q_in, k_out, bv, bk_in, last = kda_factors(q, k, v, tri @ g, beta)
    k_mid = k_mid.transpose(-1, -2)
    w_v, w_k = Solve.apply((kb_mid @ k_mid).tril(-1), torch.cat([bv, bk_in], -1)).split(v.shape[-1], -1)
    u, out = Scan.apply(w_v, w_k, q_in, k_out, last)
    return out + (q_mid @ k_mid).tril() @ u


def kda_recurrent(q, k, v, g, beta):
    """The same by its definition, one step at a time, on [batch, time, heads, dim]; for checks."""
    state = torch.zeros(*q.shape[:1], *q.shape[2:], v.shape[-1], dtype=q.dtype)
    out = []
    for i in range(q.shape[1]):
        state = state * g[:, i].exp()[..., None]
        miss = v[:, i] - torch.einsum("bhk,bhkv->bhv", k[:, i], state)
        state = state + torch.einsum("bhk,bhv->bhkv", beta[:, i] * k[:, i], miss)
        out.append(torch.einsum("bhk,bhkv->bhv", q[:, i], state))
    return torch.stack(out, 1)


class Gain(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))


def linear(rows, cols, gain=1.0):
    m = nn.Linear(cols, rows, bias=False)
    nn.init.normal_(m.weight, std=gain * cols ** -0.5)
    return m


class Kda(nn.Module):
    def __init__(self, c):
        super().__init__()
        a, d = c["linear_attn_config"], c["hidden_size"]
        self.heads, self.dim, self.bound, self.eps = a["num_heads"], a["head_dim"], a["gate_lower_bound"], c["rms_norm_eps"]
        inner = self.heads * self.dim
        for x in "qkvg":
            setattr(self, f"{x}_proj", linear(inner, d))
        for x in "qkv":
            conv = nn.Module()
            conv.weight = nn.Parameter(torch.randn(inner, 1, a["short_conv_kernel_size"]) * 0.1)
            conv.weight.data[:, :, -1] += 0.7
            setattr(self, f"{x}_conv1d", conv)
        self.f_a_proj, self.f_b_proj = linear(self.dim, d), linear(inner, self.dim, 0.5)
        self.b_proj = linear(self.heads, d)
        self.A_log = nn.Parameter(torch.zeros(self.heads))
        self.dt_bias = nn.Parameter(torch.empty(inner).uniform_(-6.5, -1.5))
        self.o_norm = Gain(self.dim)
        self.o_proj = linear(d, inner, 0.5)

    def forward(self, x, gain):
        batch, t, _ = x.shape
        parts = [self.q_proj, self.k_proj, self.v_proj, self.g_proj, self.f_a_proj, self.b_proj]
        inner, *rest = [m.weight.shape[0] for m in parts[2:]]
        qkv, gate, f, b = F.linear(x, torch.cat([m.weight for m in parts]) * gain).split([3 * inner, *rest], -1)
        taps = torch.cat([self.q_conv1d.weight, self.k_conv1d.weight, self.v_conv1d.weight]).squeeze(1)
        rate = self.A_log.exp().repeat_interleave(self.dim)
        with torch.autocast("cpu", enabled=False):
            qkv = Convolution.apply(qkv, taps)
            f = F.linear(f.to(rate.dtype), self.f_b_proj.weight * rate[:, None], self.dt_bias * rate)
            out = kda_chunks(*kda_inputs(qkv, f, b, self.heads, self.bound))
            out = out.view(t // CHUNK, batch, self.heads, CHUNK, self.dim).permute(1, 0, 3, 2, 4)
        out = gated_unit_rms(out, gate.view(batch, t // CHUNK, CHUNK, self.heads, self.dim), self.eps)
        return F.linear(out.reshape(batch, t, -1), self.o_proj.weight * self.o_norm.weight.repeat(self.heads))


class Rotary(nn.Module):
    """Cosines and sines of YaRN for each position, and the factor on the attention scale."""

    def __init__(self, c, positions=4096):
        super().__init__()
        dim, theta, s = c["qk_rope_head_dim"], c["rope_theta"], c["rope_scaling"]
        inv = theta ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
        original, factor = s["original_max_position_embeddings"], s["factor"]

        def turn(n):
            return dim * math.log(original / (n * 2 * math.pi)) / (2 * math.log(theta))
        low = max(math.floor(turn(s["beta_fast"])), 0)
        high = min(math.ceil(turn(s["beta_slow"])), dim - 1)
        ramp = ((torch.arange(dim // 2, dtype=torch.float64) - low) / max(high - low, 0.001)).clamp(0, 1)
        inv = inv / factor * ramp + inv * (1 - ramp)

        def m(mscale):
            return 0.1 * mscale * math.log(factor) + 1 if factor > 1 else 1.0
        self.grow = m(s["mscale_all_dim"]) ** 2
        angle = torch.outer(torch.arange(positions, dtype=torch.float64), inv)
        ratio = m(s["mscale"]) / m(s["mscale_all_dim"])
        self.register_buffer("cos", (angle.cos() * ratio).float(), persistent=False)
        self.register_buffer("sin", (angle.sin() * ratio).float(), persistent=False)


@fused
def rotate(x, cos, sin):
    """Neighbouring values form the pairs; x is [batch, time, heads, dim]."""
    even, odd = x.float().unflatten(-1, (-1, 2)).unbind(-1)
    cos, sin = cos[:, None], sin[:, None]
    return torch.stack([even * cos - odd * sin, odd * cos + even * sin], -1).flatten(-2)


class Mla(nn.Module):
    def __init__(self, c):
        super().__init__()
        d, self.heads = c["hidden_size"], c["num_attention_heads"]
        self.nope, self.rope, self.v, self.rank = (c[k] for k in ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim",
                                                                  "kv_lora_rank"))
        self.q_a_proj, self.q_a_layernorm = linear(c["q_lora_rank"], d), Gain(c["q_lora_rank"])
        self.q_b_proj = linear(self.heads * (self.nope + self.rope), c["q_lora_rank"])
        self.kv_a_proj_with_mqa = linear(self.rank + self.rope, d)
        self.kv_a_layernorm = Gain(self.rank)
        self.kv_b_proj = linear(self.heads * (self.nope + self.v), self.rank)
        self.o_proj = linear(d, self.heads * self.v, 0.5)
        self.scale = (self.nope + self.rope) ** -0.5
        self.rotary = None if c.get("mla_use_nope") else Rotary(c)
        if self.rotary:
            self.scale *= self.rotary.grow
        if c.get("mla_use_output_gate"):
            self.g_proj = linear(self.heads * self.v, d)
        self.gated = bool(c.get("mla_use_output_gate"))
        self.sizes = [c["q_lora_rank"], self.rank, self.rope] + [self.heads * self.v] * self.gated

    def forward(self, x, gain):
        batch, t, _ = x.shape
        parts = [self.q_a_proj, self.kv_a_proj_with_mqa] + ([self.g_proj] if self.gated else [])
        q, latent, shared, *gate = F.linear(x, torch.cat([m.weight for m in parts]) * gain).split(self.sizes, -1)
        q = F.linear(normalise(q, 1e-6), self.q_b_proj.weight * self.q_a_layernorm.weight)
        q = q.view(batch, t, self.heads, self.nope + self.rope)
        kv = F.linear(normalise(latent, 1e-6), self.kv_b_proj.weight * self.kv_a_layernorm.weight)
        k, v = kv.view(batch, t, self.heads, -1).split([self.nope, self.v], -1)
        shared = shared.unsqueeze(2)
        if self.rotary:
            cos, sin = self.rotary.cos[:t].to(x.dtype), self.rotary.sin[:t].to(x.dtype)
            q = torch.cat([q[..., :self.nope], rotate(q[..., self.nope:], cos, sin).to(q.dtype)], -1)
            shared = rotate(shared, cos, sin).to(k.dtype)
        k = torch.cat([k, shared.expand(-1, -1, self.heads, -1)], -1)
        out = F.scaled_dot_product_attention(*(z.transpose(1, 2) for z in (q, k, v)), is_causal=True, scale=self.scale)
        out = out.transpose(1, 2).flatten(2)
        return self.o_proj(gated(out, gate[0]) if self.gated else out)


class Mlp(nn.Module):
    def __init__(self, d, inner, act):
        super().__init__()
        self.gate_proj, self.up_proj, self.down_proj = linear(inner, d), linear(inner, d), linear(d, inner, 0.5)
        self.act = act

    def forward(self, x, gain):
        return self.down_proj(self.act(F.linear(x, torch.cat([self.gate_proj.weight, self.up_proj.weight]) * gain)))


class Router(nn.Module):
    def __init__(self, experts, d):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(experts, d) * 0.2 * d ** -0.5)
        self.register_buffer("e_score_correction_bias", torch.zeros(experts))


class Moe(nn.Module):
    """Sigmoid router with a selection bias, routed experts (in a latent or at full width), and a shared expert."""

    def __init__(self, c, act, store):
        super().__init__()
        d, inner = c["hidden_size"], c["moe_intermediate_size"]
        self.count = c.get("num_experts") or c["n_routed_experts"]
        self.top = c.get("num_experts_per_token") or c["num_experts_per_tok"]
        shared = c.get("num_shared_experts") or c["n_shared_experts"]
        width = c.get("routed_expert_hidden_size") or d
        self.latent, self.eps, self.scaling = width != d, c["rms_norm_eps"], c["routed_scaling_factor"]
        self.act = expert_situ if act is situ else expert_swiglu
        self.round = fused(ROUND[store])
        self.gate = Router(self.count, d)
        self.experts_in = nn.Parameter(torch.randn(self.count, 2 * inner, width) * width ** -0.5)
        self.experts_out = nn.Parameter(torch.randn(self.count, width, inner) * inner ** -0.5)
        self.shared_experts = Mlp(d, inner * shared, act)
        if self.latent:
            self.routed_expert_down_proj, self.routed_expert_up_proj = linear(width, d), linear(d, width, 0.5)
            self.routed_expert_norm = Gain(width)
        self.register_buffer("load", torch.zeros(self.count), persistent=False)
        self.exact = False      # set when the experts already hold stored values

    def rounded(self, w):
        if self.exact:
            return w
        with torch.no_grad():
            q = self.round(w)
        return w + (q - w).detach()

    def route(self, flat, gain):
        with torch.autocast("cpu", enabled=False):
            scores = torch.sigmoid(flat @ (self.gate.weight * gain).T)
        index = (scores.detach() + self.gate.e_score_correction_bias).topk(self.top, -1).indices
        weight = scores.gather(-1, index)
        return index, weight / (weight.sum(-1, keepdim=True) + 1e-20) * self.scaling

    def forward(self, x, gain):
        flat = x.flatten(0, 1)
        index, weight = self.route(flat, gain)
        h = F.linear(flat, self.routed_expert_down_proj.weight * gain) if self.latent else flat * gain
        chosen = F.one_hot(index.flatten(), self.count)
        place = ((chosen.cumsum(0) - 1) * chosen).sum(-1)
        counts = chosen.sum(0)
        if self.training:
            self.load += counts
        room = -(-int(counts.max()) // 64) * 64
        slot = index.flatten() * room + place
        source = torch.full((self.count * room,), -1, dtype=torch.long)
        source[slot] = torch.arange(len(slot)) // self.top
        # Unused places read row 0; nothing reads their result, so no gradient comes back from them.
        z = h.index_select(0, source.clamp_min(0)).view(self.count, room, -1)
        y = self.act(torch.bmm(z, self.rounded(self.experts_in).transpose(1, 2).to(z.dtype)))
        y = torch.bmm(y, self.rounded(self.experts_out).transpose(1, 2).to(y.dtype))
        y = y.flatten(0, 1).index_select(0, slot).view(len(flat), self.top, -1)
        y = (y.to(weight.dtype) * weight.unsqueeze(-1)).sum(1)
        if self.latent:
            y = F.linear(normalise(y, self.eps), self.routed_expert_up_proj.weight * self.routed_expert_norm.weight)
        return (y + self.shared_experts(flat, gain)).view_as(x)


class Layer(nn.Module):
    def __init__(self, c, i):
        super().__init__()
        d, act = c["hidden_size"], situ if c["hidden_act"] == "situ" else swiglu
        self.input_layernorm, self.post_attention_layernorm = Gain(d), Gain(d)
        kda = "linear_attn_config" in c and i + 1 in c["linear_attn_config"]["kda_layers"]
        self.self_attn = Kda(c) if kda else Mla(c)
        if c.get("attn_res_block_size"):
            for name in ("self_attention_res", "mlp_res"):
                setattr(self, f"{name}_norm", Gain(d))
                setattr(self, f"{name}_proj", linear(1, d, 0.1))
        k3 = "num_experts" in c
        if i < c["first_k_dense_replace"]:
            self.mlp = Mlp(d, c["intermediate_size"], act)
            self.feed_forward = "mlp"
        else:
            self.feed_forward = "block_sparse_moe" if k3 else "mlp"
            setattr(self, self.feed_forward, Moe(c, act, "mxfp4" if k3 else "int4"))


class Body(nn.Module):
    def __init__(self, c):
        super().__init__()
        d = c["hidden_size"]
        self.eps, self.block = c["rms_norm_eps"], c.get("attn_res_block_size")
        self.embed_tokens = nn.Embedding(c["vocab_size"], d)
        nn.init.normal_(self.embed_tokens.weight, std=0.1)
        self.layers = nn.ModuleList(Layer(c, i) for i in range(c["num_hidden_layers"]))
        if self.block:
            self.output_attn_res_norm, self.output_attn_res_proj = Gain(d), linear(1, d, 0.1)
        self.norm = Gain(d)

    def normed(self, owner, name, blocks, x):
        """What a sublayer reads, normalised but for the gain: the running sum, or the mix of it with stored blocks."""
        if not blocks:
            return normalise(x, self.eps)
        direction = getattr(owner, f"{name}_norm").weight * getattr(owner, f"{name}_proj").weight[0]
        with torch.autocast("cpu", enabled=False):
            dots = torch.stack([v @ direction for v in (*blocks, x)], -1)
        return mixed_unit_rms(dots, self.eps, *blocks, x)

    def forward(self, ids):
        x, blocks = self.embed_tokens(ids), []
        for i, layer in enumerate(self.layers):
            h = self.normed(layer, "self_attention_res", blocks, x)
            y = layer.self_attn(h, layer.input_layernorm.weight)
            if self.block and i % self.block == 0:          # the raw input is stored, and the sum starts anew
                blocks, x = [*blocks, x], y.to(x.dtype)
            else:
                x = x + y
            h = self.normed(layer, "mlp_res", blocks, x)
            x = x + getattr(layer, layer.feed_forward)(h, layer.post_attention_layernorm.weight)
        return self.normed(self, "output_attn_res", blocks, x)


class Decoder(nn.Module):
    """Gains of norms are multiplied into the weights that read them: the same product, and cheaper gradients."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.model = Body(config)
        self.lm_head = linear(config["vocab_size"], config["hidden_size"], 0.1)

    def forward(self, ids):
        return F.linear(self.model(ids), self.lm_head.weight * self.model.norm.weight)

    def experts(self):
        return [m for m in self.modules() if isinstance(m, Moe)]
