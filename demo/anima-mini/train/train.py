#!/usr/bin/env python3
"""Trains anima-mini: tokenizers, a VAE, and text encoder, adapter and diffusion transformer together.

usage: train.py vae    WORK [--seconds 1500] [--font FILE]     stage 1: WORK/vae.pt
       train.py model  WORK [--seconds 3600] [--resume]        stage 2: tokenizers and WORK/model.pt
       train.py export WORK FOLDER                             the files that `ridge image --bundle FOLDER` reads
       train.py check  FOLDER                                  the modules here against the golden latents of a folder

Needs PyTorch 1.13 or later, NumPy, Pillow, and for `model` the packages sentencepiece and tokenizers; the font is
Debian's fonts-noto-color-emoji. Times are for two CPU cores; more of them give clearer pictures. The shipped files were
trained with the same data, losses and schedules by modules of another library; `check` shows that those here are equal.
"""
import argparse
import contextlib
import math
import os
import sys
import time

try:
    import torch
    import torch.nn.functional as F

    import files
    import pictures
    from modules import Model, Vae
except ModuleNotFoundError as missing:
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(__doc__)
        sys.exit(0)
    sys.exit(f"train.py: the package '{missing.name}' is missing; --help says what is needed")

ROWS = 25  # of the context: the longest prompt and one row that stands for the zeros up to 512
SHIFT, STEPS, GUIDANCE = 3.0, 20, 4.0
# Of the latents that the published VAE gives (docs/models/anima.md).
MEAN = torch.tensor([-0.7571, -0.7089, -0.9113, 0.1075, -0.1745, 0.9653, -0.1517, 1.5508,
                     0.4134, -0.0715, 0.5517, -0.3632, -0.1922, -0.9497, 0.2503, -0.2921])
DEVIATION = torch.tensor([2.8184, 1.4541, 2.3275, 2.6558, 1.2196, 1.7708, 2.6052, 2.0743,
                          3.2687, 2.1526, 2.8652, 1.5579, 1.6382, 1.1253, 2.8251, 1.9160])
QWEN_SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
              r"|\s+(?!\S)|\s+")


class Clock:
    """The share of the time that is over, and a learning rate that rises for 100 steps and falls as a cosine."""

    def __init__(self, seconds):
        self.seconds, self.start, self.step = seconds, time.monotonic(), 0

    def over(self):
        return min(1.0, (time.monotonic() - self.start) / self.seconds)

    def rate(self, highest):
        return highest * min(1, (self.step + 1) / 100) * (0.02 + 0.49 * (1 + math.cos(math.pi * self.over())))


def update(optimizer, loss, clock, highest):
    for group in optimizer.param_groups:
        group["lr"] = clock.rate(highest)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(optimizer.param_groups[0]["params"], 1.0)
    optimizer.step()
    clock.step += 1


# ---- stage 1: the VAE ----------------------------------------------------------------------------------------------


def start_vae(vae):
    """He-like weights with damped residual branches: with the usual ones the loss stalls at the mean picture."""
    with torch.no_grad():
        for name, p in vae.named_parameters():
            if name.endswith("weight"):
                torch.nn.init.normal_(p, 0, math.sqrt(1.6 / p[0].numel()))
                if ".residual.6." in name:
                    p.mul_(0.3)
        vae.conv1.bias.zero_()
        vae.conv1.weight[16:].mul_(0.05)
        vae.conv1.bias[16:] = -6.0


def differences(x):
    return x[..., 1:] - x[..., :-1], x[..., 1:, :] - x[..., :-1, :]


def batch_of_pictures(images, clock):
    """Crops of 64 first; whole pictures in the last part, so that the attention sees what it will see."""
    if clock.over() > 0.85:
        return images[torch.randint(0, len(images), (6,))]
    corners = torch.randint(0, pictures.SIDE - 63, (16, 2)).tolist()
    which = torch.randint(0, len(images), (16,)).tolist()
    x = torch.stack([images[i][:, r:r + 64, c:c + 64] for i, (r, c) in zip(which, corners)])
    return x.flip(-1) if torch.rand(()) < 0.5 else x


def train_vae(a):
    torch.manual_seed(0)
    images = torch.tensor(pictures.dataset(a.font)[1])
    vae, clock = Vae(), Clock(a.seconds)
    start_vae(vae)
    optimizer = torch.optim.AdamW(vae.parameters(), 2e-3, betas=(0.9, 0.95), weight_decay=1e-4)
    while clock.over() < 1:
        x = batch_of_pictures(images, clock)
        mean, log_variance = vae.encode(x)
        y = vae.decode(mean + (0.5 * log_variance).exp() * torch.randn_like(mean))
        kl = 0.5 * (mean ** 2 + log_variance.exp() - 1 - log_variance).mean()
        edges = sum((u - v).abs().mean() for u, v in zip(differences(x), differences(y)))
        sharp = 0.3 * clock.over()
        loss = ((y - x) ** 2).mean() + sharp * ((y - x).abs().mean() + edges) + 1e-5 * kl
        update(optimizer, loss, clock, 2e-3)
        if clock.step % 20 == 1:
            print(f"step {clock.step}, {clock.over():.0%}: l1 {(y - x).abs().mean():.4f}, kl {kl:.2f}", flush=True)
    torch.save(vae.state_dict(), os.path.join(a.work, "vae.pt"))


# ---- stage 2: text and diffusion -----------------------------------------------------------------------------------


def train_tokenizers(prompts, work):
    import sentencepiece
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    corpus = os.path.join(work, "corpus.txt")
    # Some English beside the prompts.
    licence = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../LICENSE")
    with open(corpus, "w", encoding="utf-8") as f, open(licence, encoding="utf-8") as text:
        f.write("\n".join(prompts * 2) + "\n" + text.read())
    sentencepiece.SentencePieceTrainer.train(
        input=corpus, model_prefix=os.path.join(work, "spiece"), vocab_size=640, model_type="unigram",
        normalization_rule_name="nmt_nfkc", character_coverage=0.9999, pad_id=0, eos_id=1, unk_id=2, bos_id=-1,
        minloglevel=2)
    qwen = Tokenizer(models.BPE())
    qwen.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(QWEN_SPLIT), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    qwen.decoder = decoders.ByteLevel()
    qwen.train([corpus], trainers.BpeTrainer(vocab_size=1024, special_tokens=["<|endoftext|>"], show_progress=False,
                                             initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    qwen.save(os.path.join(work, "tokenizer.json"))


class Prompts:
    """Ids of all prompts, padded; the last row is the empty prompt, for guidance."""

    def __init__(self, prompts, work):
        import sentencepiece
        from tokenizers import Tokenizer

        qwen = Tokenizer.from_file(os.path.join(work, "tokenizer.json"))
        t5 = sentencepiece.SentencePieceProcessor(model_file=os.path.join(work, "spiece.model"))
        self.qwen, self.qwen_mask = self.padded([qwen.encode(p).ids or [0] for p in [*prompts, ""]])
        self.t5, self.t5_mask = self.padded([t5.encode(p) + [1] for p in [*prompts, ""]])
        if self.t5.shape[1] >= ROWS:
            raise SystemExit(f"train.py: a prompt has {self.t5.shape[1]} tokens, and ROWS is {ROWS}: raise it")

    @staticmethod
    def padded(lists):
        ids = torch.zeros(len(lists), max(map(len, lists)), dtype=torch.long)
        mask = torch.zeros_like(ids)
        for row, (values, seen) in zip(lists, zip(ids, mask)):
            values[:len(row)], seen[:len(row)] = torch.tensor(row), 1
        return ids, mask

    def context(self, model, which):
        return model.context(self.qwen[which], self.qwen_mask[which], self.t5[which], self.t5_mask[which], ROWS)


def start_model(model):
    branch_ends = (".o_proj.", ".output_proj.", ".layer2.", ".down_proj.")
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.dim() != 2:
                continue
            if "embed_tokens" in name or name.endswith("llm_adapter.embed.weight"):
                torch.nn.init.normal_(p, 0, 0.5)
                continue
            torch.nn.init.normal_(p, 0, p.shape[1] ** -0.5 * (0.5 if any(e in name for e in branch_ends) else 1))
            if "adaln_modulation" in name and name.endswith(".2.weight"):
                p.mul_(0.3)
        model.dit.final_layer.linear.weight.mul_(0.05)


def latents_of(vae, images):
    """Latents of mean 0 and deviation 1 by channel, with both."""
    with torch.no_grad():
        z = torch.cat([vae.encode(images[i:i + 16])[0] for i in range(0, len(images), 16)])
    mean, deviation = z.mean((0, 2, 3)), z.std((0, 2, 3))
    return (z - mean[:, None, None]) / deviation[:, None, None], mean, deviation


def load_vae(work):
    vae = Vae()
    vae.load_state_dict(torch.load(os.path.join(work, "vae.pt")))
    return vae.eval()


def train_model(a):
    torch.manual_seed(1)
    names, images = pictures.dataset(a.font)
    if not a.resume:
        train_tokenizers(names, a.work)
    prompts, saved = Prompts(names, a.work), os.path.join(a.work, "model.pt")
    latents, mean, deviation = latents_of(load_vae(a.work), torch.tensor(images))
    model = Model()
    start_model(model)
    if a.resume:
        model.load_state_dict(torch.load(saved)["model"])
    smooth = [p.detach().clone() for p in model.parameters()]
    optimizer = torch.optim.AdamW(model.parameters(), 7e-4, betas=(0.9, 0.98), weight_decay=0.01)
    clock, running = Clock(a.seconds), None
    while clock.over() < 1:
        which = torch.randint(0, len(latents), (32,))
        asked = torch.where(torch.rand(32) < 0.1, torch.tensor(len(names)), which)  # a tenth without a prompt
        sigma = torch.randn(32).sigmoid()
        sigma = SHIFT * sigma / (1 + (SHIFT - 1) * sigma)
        clean = latents[which]
        noise = torch.randn_like(clean)
        s = sigma[:, None, None, None]
        velocity = model.dit((1 - s) * clean + s * noise, sigma, prompts.context(model, asked))
        loss = F.mse_loss(velocity, noise - clean)
        update(optimizer, loss, clock, 7e-4)
        running = loss.item() if running is None else 0.98 * running + 0.02 * loss.item()
        keep = min(0.999, (1 + clock.step) / (10 + clock.step))
        with torch.no_grad():
            for average, p in zip(smooth, model.parameters()):
                average.lerp_(p, 1 - keep)
        if clock.step % 50 == 1:
            print(f"step {clock.step}, {clock.over():.0%}: loss {running:.4f}", flush=True)
    with torch.no_grad():
        for average, p in zip(smooth, model.parameters()):
            p.copy_(average)
    torch.save({"model": model.state_dict(), "mean": mean, "deviation": deviation}, saved)


# ---- files ---------------------------------------------------------------------------------------------------------


def fold_scale(vae, mean, deviation):
    """Latents with the published mean and deviation: the affine map goes into the two 1 x 1 convolutions."""
    scale = DEVIATION / deviation
    shift = MEAN - mean * scale
    with torch.no_grad():
        vae.conv1.weight[:16].mul_(scale[:, None, None, None])
        vae.conv1.bias[:16].mul_(scale).add_(shift)
        vae.conv1.bias[16:].add_(2 * scale.log())
        weight = vae.conv2.weight[:, :, 0, 0]
        vae.conv2.bias.sub_(weight @ (shift / scale))
        weight.div_(scale)


def export(a):
    import shutil

    saved = torch.load(os.path.join(a.work, "model.pt"))
    model, vae = Model(), load_vae(a.work)
    model.load_state_dict(saved["model"])
    fold_scale(vae, saved["mean"], saved["deviation"])
    os.makedirs(a.folder, exist_ok=True)
    at = lambda name: os.path.join(a.folder, name)  # noqa: E731
    files.write(at("anima-mini.safetensors"), {"net." + k: v for k, v in model.dit.state_dict().items()})
    files.write(at("qwen3-mini.safetensors"), {"model." + k: v for k, v in model.qwen.state_dict().items()})
    files.write(at("vae-mini.safetensors"), files.vae_tensors(vae))
    for name in ("tokenizer.json", "spiece.model"):
        shutil.copy(os.path.join(a.work, name), at(name))


def sample(model, contexts, latents):
    """Euler's method with guidance; contexts: of the prompt and of the empty one."""
    levels = [SHIFT * t / (1 + (SHIFT - 1) * t) for t in torch.linspace(1, 1 / STEPS, STEPS).tolist()] + [0.0]
    for here, there in zip(levels, levels[1:]):
        asked, free = (model.dit(latents, torch.tensor([here]), c) for c in contexts)
        latents = latents + (there - here) * (free + GUIDANCE * (asked - free))
    return latents


def load_folder(folder):
    def part(name, prefix):
        return {k[len(prefix):]: v for k, v in files.read(os.path.join(folder, name)).items()}

    model, vae = Model(), Vae()
    model.dit.load_state_dict(part("anima-mini.safetensors", "net."))
    model.qwen.load_state_dict(part("qwen3-mini.safetensors", "model."))
    vae.load_state_dict(files.vae_state(part("vae-mini.safetensors", "")))
    return model, vae


def check(a):
    model, vae = load_folder(a.folder)
    golden = files.read(os.path.join(a.folder, "golden.safetensors"))

    def context(qwen, t5):
        qwen, t5 = qwen[None], t5[None]
        return model.context(qwen, torch.ones_like(qwen), t5, torch.ones_like(t5), ROWS)

    worst = 0.0
    with torch.no_grad():
        free = context(torch.tensor([0]), torch.tensor([1]))
        for i in range(a.count):
            asked = context(golden[f"{i}.qwen_ids"], golden[f"{i}.t5_ids"])
            final = sample(model, (asked, free), golden[f"{i}.latents"][None])[0]
            picture = vae.decode((final * DEVIATION[:, None, None] + MEAN[:, None, None])[None])[0].clamp(-1, 1)
            far = (final - golden[f"{i}.final"]).norm() / golden[f"{i}.final"].norm()
            pixels = ((picture - golden[f"{i}.image"].clamp(-1, 1)).abs() > 2 / 255).float().mean()
            print(f"prompt {i}: final latent {far:.1e} away, {pixels:.2%} of the picture's values by more than 1/255")
            worst = max(worst, far.item(), pixels.item() / 10)
    if worst > 1e-4:
        raise SystemExit("train.py: these modules are not the model of the folder")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = p.add_subparsers(dest="command", required=True)
    for name, run, seconds in (("vae", train_vae, 1500), ("model", train_model, 3600)):
        c = commands.add_parser(name, help=(run.__doc__ or f"train {name}"))
        c.add_argument("work", help="folder for what is trained")
        c.add_argument("--seconds", type=float, default=seconds, help="how long (%(default)s)")
        c.add_argument("--font", default=pictures.FONT, help="NotoColorEmoji.ttf")
        if name == "model":
            c.add_argument("--resume", action="store_true", help="go on from WORK/model.pt")
        c.set_defaults(run=run)
    c = commands.add_parser("export", help="write the files of a bundle")
    c.add_argument("work")
    c.add_argument("folder")
    c.set_defaults(run=export)
    c = commands.add_parser("check", help="compare the modules with golden.safetensors")
    c.add_argument("folder")
    c.add_argument("--count", type=int, default=6, help="prompts, each a minute on one core (%(default)s)")
    c.set_defaults(run=check)
    p.add_argument("--threads", type=int, default=2)
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    with contextlib.suppress(AttributeError):
        os.makedirs(a.work, exist_ok=True)
    a.run(a)


if __name__ == "__main__":
    main()
