"""The parts of anima-mini as PyTorch modules, whose parameters have the names of the published files.

The architecture is docs/models/anima.md; nothing here is used for running pictures. One frame alone is trained, so the
causal 3-D convolutions of the VAE are 2-D; train.py gives them their three taps when it writes the file.

    model = Model()
    context = model.context(qwen_ids, qwen_mask, t5_ids, t5_mask, rows=25)
    velocity = model.dit(latents, sigma, context, rows_for=512)
"""
import math

import torch
import torch.nn.functional as F
from torch import nn

EPS = 1e-6


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS) * self.weight


def rotate(x, angles):
    """x [batch, heads, rows, dim], angles [rows, dim / 2]: pairs (i, i + dim / 2)."""
    cos, sin = angles.cos(), angles.sin()
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def line_angles(rows, dim, base):
    frequencies = base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    return torch.outer(torch.arange(rows, dtype=torch.float64), frequencies).float()


def grid_angles(height, width, dim):
    side = dim // 6 * 2
    base = 10000 * 4 ** (side / (side - 2))
    h, w = line_angles(height, side, base), line_angles(width, side, base)
    time = torch.zeros(height, width, (dim - 2 * side) // 2)
    return torch.cat([time, h[:, None].expand(-1, width, -1), w[None].expand(height, -1, -1)], -1).flatten(0, 1)


class Attention(nn.Module):
    """Queries of x, keys and values of `of`; RMSNorm over each head's queries and keys."""

    def __init__(self, width, of_width, heads, dim, kv_heads=None, output="o_proj"):
        super().__init__()
        self.heads, self.kv_heads, self.dim, self.output = heads, kv_heads or heads, dim, output
        self.q_proj = nn.Linear(width, heads * dim, bias=False)
        self.k_proj = nn.Linear(of_width, self.kv_heads * dim, bias=False)
        self.v_proj = nn.Linear(of_width, self.kv_heads * dim, bias=False)
        self.add_module(output, nn.Linear(heads * dim, width, bias=False))
        self.q_norm, self.k_norm = RMSNorm(dim), RMSNorm(dim)

    def forward(self, x, of, q_angles=None, k_angles=None, bias=None):
        def split(y, heads):
            return y.unflatten(-1, (heads, self.dim)).transpose(1, 2)

        q = self.q_norm(split(self.q_proj(x), self.heads))
        k = self.k_norm(split(self.k_proj(of), self.kv_heads))
        v = split(self.v_proj(of), self.kv_heads)
        if q_angles is not None:
            q, k = rotate(q, q_angles), rotate(k, k_angles)
        k, v = (y.repeat_interleave(self.heads // self.kv_heads, 1) for y in (k, v))
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.dim)
        if bias is not None:
            scores = scores + bias
        return getattr(self, self.output)((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


# ---- text ----------------------------------------------------------------------------------------------------------


class SwiGlu(nn.Module):
    def __init__(self, width, ffn):
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(width, ffn, bias=False), nn.Linear(width, ffn, bias=False)
        self.down_proj = nn.Linear(ffn, width, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class QwenLayer(nn.Module):
    def __init__(self, width, ffn, heads, kv_heads, dim):
        super().__init__()
        self.self_attn = Attention(width, width, heads, dim, kv_heads)
        self.mlp = SwiGlu(width, ffn)
        self.input_layernorm, self.post_attention_layernorm = RMSNorm(width), RMSNorm(width)

    def forward(self, x, angles, bias):
        y = self.input_layernorm(x)
        x = x + self.self_attn(y, y, angles, angles, bias)
        return x + self.mlp(self.post_attention_layernorm(x))


class Qwen(nn.Module):
    def __init__(self, vocabulary=1024, width=128, ffn=384, layers=2, heads=4, kv_heads=2, dim=32):
        super().__init__()
        self.dim = dim
        self.embed_tokens = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(QwenLayer(width, ffn, heads, kv_heads, dim) for _ in range(layers))
        self.norm = RMSNorm(width)

    def forward(self, ids):  # padding comes last, and no token sees a later one
        angles = line_angles(ids.shape[1], self.dim, 1e6)
        later = torch.full((ids.shape[1], ids.shape[1]), -math.inf).triu(1)
        x = self.embed_tokens(ids)
        for layer in self.layers:
            x = layer(x, angles, later)
        return self.norm(x)


class AdapterLayer(nn.Module):
    def __init__(self, width, of_width, heads):
        super().__init__()
        self.norm_self_attn, self.norm_cross_attn, self.norm_mlp = RMSNorm(width), RMSNorm(width), RMSNorm(width)
        self.self_attn = Attention(width, width, heads, width // heads)
        self.cross_attn = Attention(width, of_width, heads, width // heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, states, angles, own, theirs):
        rows, of_rows = angles[:x.shape[1]], angles[:states.shape[1]]
        y = self.norm_self_attn(x)
        x = x + self.self_attn(y, y, rows, rows, own)
        x = x + self.cross_attn(self.norm_cross_attn(x), states, rows, of_rows, theirs)
        return x + self.mlp(self.norm_mlp(x))


class Adapter(nn.Module):
    def __init__(self, vocabulary=640, width=128, of_width=128, layers=2, heads=4):
        super().__init__()
        self.dim = width // heads
        self.embed = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(AdapterLayer(width, of_width, heads) for _ in range(layers))
        self.out_proj, self.norm = nn.Linear(width, width), RMSNorm(width)

    def forward(self, ids, mask, states, states_mask):
        def hidden(m):  # [batch, 1, 1, rows]: padding is not seen
            return torch.zeros(m.shape).masked_fill(m == 0, -math.inf)[:, None, None]

        angles = line_angles(max(ids.shape[1], states.shape[1]), self.dim, 1e4)
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x, states, angles, hidden(mask), hidden(states_mask))
        return self.norm(self.out_proj(x)) * mask[..., None]


# ---- diffusion transformer -----------------------------------------------------------------------------------------


class TimeMlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear_1 = nn.Linear(width, width, bias=False)
        self.linear_2 = nn.Linear(width, 3 * width, bias=False)

    def forward(self, x):
        return self.linear_2(F.silu(self.linear_1(x)))


def modulation(width, rank, parts):
    return nn.Sequential(nn.SiLU(), nn.Linear(width, rank, bias=False), nn.Linear(rank, parts * width, bias=False))


class Mlp(nn.Module):
    def __init__(self, width, ffn):
        super().__init__()
        self.layer1, self.layer2 = nn.Linear(width, ffn, bias=False), nn.Linear(ffn, width, bias=False)

    def forward(self, x):
        return self.layer2(F.gelu(self.layer1(x)))


class Block(nn.Module):
    def __init__(self, width, heads, context, rank):
        super().__init__()
        self.adaln_modulation_self_attn = modulation(width, rank, 3)
        self.adaln_modulation_cross_attn = modulation(width, rank, 3)
        self.adaln_modulation_mlp = modulation(width, rank, 3)
        self.self_attn = Attention(width, width, heads, width // heads, output="output_proj")
        self.cross_attn = Attention(width, context, heads, width // heads, output="output_proj")
        self.mlp = Mlp(width, 4 * width)

    def forward(self, x, emb, lora, context, angles, sink):
        def normed(parts):
            shift, scale, gate = (m[:, None] for m in (parts(emb) + lora).chunk(3, -1))
            return F.layer_norm(x, x.shape[-1:], eps=EPS) * (1 + scale) + shift, gate

        y, gate = normed(self.adaln_modulation_self_attn)
        x = x + gate * self.self_attn(y, y, angles, angles)
        y, gate = normed(self.adaln_modulation_cross_attn)
        x = x + gate * self.cross_attn(y, context, bias=sink)
        y, gate = normed(self.adaln_modulation_mlp)
        return x + gate * self.mlp(y)


class Final(nn.Module):
    def __init__(self, width, rank, outputs):
        super().__init__()
        self.adaln_modulation = modulation(width, rank, 2)
        self.linear = nn.Linear(width, outputs, bias=False)

    def forward(self, x, emb, lora):
        shift, scale = (m[:, None] for m in (self.adaln_modulation(emb) + lora).chunk(2, -1))
        return self.linear(F.layer_norm(x, x.shape[-1:], eps=EPS) * (1 + scale) + shift)


class Holder(nn.Module):
    """A module with one part, for its name."""

    def __init__(self, name, part):
        super().__init__()
        self.add_module(name, part)


class Dit(nn.Module):
    def __init__(self, width=256, layers=6, heads=2, context=128, rank=32):
        super().__init__()
        self.width, self.dim = width, width // heads
        self.x_embedder = Holder("proj", nn.Sequential(nn.Identity(), nn.Linear(68, width, bias=False)))
        self.t_embedder = nn.Sequential(nn.Identity(), TimeMlp(width))
        self.t_embedding_norm = RMSNorm(width)
        self.blocks = nn.ModuleList(Block(width, heads, context, rank) for _ in range(layers))
        self.final_layer = Final(width, rank, 64)
        self.llm_adapter = Adapter()

    def forward(self, latents, sigma, context, rows_for=512):
        """latents [batch, 16, h, w], sigma [batch], context [batch, rows, width]: the velocity.

        A context has rows_for rows, zeros behind the text. Zero rows score 0 and give nothing, so one, the last here,
        stands for all of them with a score of ln(their number): that is exact.
        """
        batch, channels, height, width = latents.shape
        x = torch.cat([latents, torch.zeros_like(latents[:, :1])], 1)
        x = F.pixel_unshuffle(x, 2).flatten(2).transpose(1, 2)  # channel by channel
        x = self.x_embedder.proj(x)
        half = self.width // 2
        angle = sigma[:, None] * torch.exp(-math.log(10000) * torch.arange(half) / half)
        emb = torch.cat([angle.cos(), angle.sin()], -1)
        lora = self.t_embedder(emb)
        emb = self.t_embedding_norm(emb)
        sink = torch.zeros(context.shape[1])
        sink[-1] = math.log(rows_for - context.shape[1] + 1)
        angles = grid_angles(height // 2, width // 2, self.dim)
        for block in self.blocks:
            x = block(x, emb, lora, context, angles, sink)
        x = self.final_layer(x, emb, lora[:, :2 * self.width])
        x = x.view(batch, height // 2, width // 2, 2, 2, channels)  # pixel by pixel
        return x.permute(0, 5, 1, 3, 2, 4).reshape(latents.shape)


class Model(nn.Module):
    """Text encoder and diffusion transformer, which are trained together."""

    def __init__(self):
        super().__init__()
        self.qwen, self.dit = Qwen(), Dit()

    def context(self, qwen_ids, qwen_mask, t5_ids, t5_mask, rows):
        states = self.qwen(qwen_ids) * qwen_mask[..., None]
        context = self.dit.llm_adapter(t5_ids, t5_mask, states, qwen_mask)
        return F.pad(context, (0, 0, 0, rows - context.shape[1]))


# ---- VAE -----------------------------------------------------------------------------------------------------------


class Norm(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(channels, 1, 1))

    def forward(self, x):
        return F.normalize(x, dim=1) * math.sqrt(x.shape[1]) * self.gamma


class Residual(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.residual = nn.Sequential(Norm(inputs), nn.SiLU(), nn.Conv2d(inputs, outputs, 3, padding=1), Norm(outputs),
                                      nn.SiLU(), nn.Identity(), nn.Conv2d(outputs, outputs, 3, padding=1))
        if inputs != outputs:
            self.shortcut = nn.Conv2d(inputs, outputs, 1)

    def forward(self, x):
        own = self.shortcut(x) if hasattr(self, "shortcut") else x
        return own + self.residual(x)


class Mixing(nn.Module):
    """One head over all channels; every pixel sees every other."""

    def __init__(self, channels):
        super().__init__()
        self.norm, self.to_qkv = Norm(channels), nn.Conv2d(channels, 3 * channels, 1)
        self.proj = nn.Conv2d(channels, channels, 1)

    def forward(self, x):
        q, k, v = (y.flatten(2) for y in self.to_qkv(self.norm(x)).chunk(3, 1))
        weights = (q.transpose(1, 2) @ k / math.sqrt(x.shape[1])).softmax(-1)
        return x + self.proj((v @ weights.transpose(1, 2)).view(x.shape))


class Resample(nn.Module):
    def __init__(self, channels, doubling):
        super().__init__()
        if doubling:
            self.resample = nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(channels, channels // 2, 3, padding=1))
        else:  # zeros right of and below the picture alone
            self.resample = nn.Sequential(nn.ZeroPad2d((0, 1, 0, 1)), nn.Conv2d(channels, channels, 3, stride=2))

    def forward(self, x):
        return self.resample(x)


def middle(channels):
    return nn.Sequential(Residual(channels, channels), Mixing(channels), Residual(channels, channels))


class Coder(nn.Module):
    def forward(self, x):
        x = self.conv1(x)
        for part in self.order:
            x = getattr(self, part)(x)
        return self.head(x)


class Encoder(Coder):
    order = ("downsamples", "middle")

    def __init__(self, base):
        super().__init__()
        self.conv1 = nn.Conv2d(3, base, 3, padding=1)
        parts, channels = [], base
        for stage, times in enumerate((1, 2, 4, 4)):
            parts += [Residual(channels, base * times), Residual(base * times, base * times)]
            channels = base * times
            if stage < 3:
                parts.append(Resample(channels, doubling=False))
        self.downsamples, self.middle = nn.Sequential(*parts), middle(channels)
        self.head = nn.Sequential(Norm(channels), nn.SiLU(), nn.Conv2d(channels, 32, 3, padding=1))


class Decoder(Coder):
    order = ("middle", "upsamples")

    def __init__(self, base):
        super().__init__()
        channels = 4 * base
        self.conv1, self.middle = nn.Conv2d(16, channels, 3, padding=1), middle(channels)
        parts = []
        for stage, times in enumerate((4, 4, 2, 1)):
            parts += [Residual(channels, base * times)] + [Residual(base * times, base * times) for _ in range(2)]
            channels = base * times
            if stage < 3:
                parts.append(Resample(channels, doubling=True))
                channels //= 2
        self.upsamples = nn.Sequential(*parts)
        self.head = nn.Sequential(Norm(channels), nn.SiLU(), nn.Conv2d(channels, 3, 3, padding=1))


class Vae(nn.Module):
    def __init__(self, base=16):
        super().__init__()
        self.encoder, self.decoder = Encoder(base), Decoder(base)
        self.conv1, self.conv2 = nn.Conv2d(32, 32, 1), nn.Conv2d(16, 16, 1)

    def encode(self, pictures):
        """Mean and logarithm of the variance, [batch, 16, h / 8, w / 8] each."""
        return self.conv1(self.encoder(pictures)).chunk(2, 1)

    def decode(self, z):
        return self.decoder(self.conv2(z))
