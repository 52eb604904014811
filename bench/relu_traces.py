#!/usr/bin/env python3
"""Made-up traces of neuron blocks: which blocks of a ReLU student's feed-forward parts each token touches.

No student is trained here. A neuron fires where a random projection of the text's recent bytes exceeds its threshold; the
thresholds give every neuron the frequency that it was dealt. So the order of accesses has what a trained student's has (a skew of
frequencies, neurons that fire together, firing that lasts for some tokens because neighbouring tokens look alike), and its
strength is set by a few numbers, chosen to meet the statistics that were measured on a small trained one (STUDENTS).
Everything made with it is called synthetic. The same text and arguments give the same trace. Needs numpy.

usage: bench/relu_traces.py TEXT      (prints the statistics of each student's trace of a text file)

    trace = relu_trace(text_bytes, calibration_bytes, STUDENTS["l1"], block=16)   # {"blocks": [(name, bytes)], "passes": [[0, 3, …], …]}
"""
import argparse
import dataclasses
import json
import pathlib

try:
    import numpy as np
except ImportError:
    np = None

LAYERS, NEURONS, WIDTH = 4, 256, 64
NEURON_BYTES = 3 * WIDTH * 9 // 16  # gate row, up row and down column at 4.5 bits a weight
FEATURES = 48


@dataclasses.dataclass(frozen=True)
class Student:
    """mean: share of neurons that fire at a token; spread: of the log of a neuron's frequency; dead: share of neurons that never
    fire; now, pair, lately: how much a neuron looks at the present byte, at the last two, and at the last `memory` or so."""
    mean: float
    spread: float
    dead: float = 0.0
    now: float = 1.0
    pair: float = 1.0
    lately: float = 1.0
    memory: float = 8.0


STUDENTS = {
    "plain": Student(mean=0.317, spread=0.35),
    "l1": Student(mean=0.036, spread=0.95, lately=0.5),
    "strong-l1": Student(mean=0.013, spread=1.1, dead=0.24),
}


def features(text, student, seed):
    """[tokens, layers, FEATURES], each row of unit length."""
    rng = np.random.default_rng(seed)
    x = np.frombuffer(text, np.uint8).astype(np.int64)
    before = np.concatenate([[32], x[:-1]])
    pairs = (x * 31 + before * 1009) % 4096
    out = np.empty((len(x), LAYERS, FEATURES), np.float32)
    shared = [rng.standard_normal((n, FEATURES)).astype(np.float32) for n in (256, 4096, 256)]
    for layer in range(LAYERS):
        own = [rng.standard_normal((n, FEATURES)).astype(np.float32) for n in (256, 4096, 256)]
        now, pair, lately = (0.7 * a + 0.7 * b for a, b in zip(shared, own))
        keep = np.float32(1 - 1 / student.memory)
        slow, s = np.empty((len(x), FEATURES), np.float32), np.zeros(FEATURES, np.float32)
        for t, byte in enumerate(x):
            s = keep * s + lately[byte]
            slow[t] = s
        slow *= np.sqrt(1 - keep * keep)
        h = student.now * now[x] + student.pair * pair[pairs] + student.lately * slow
        out[:, layer] = h / np.linalg.norm(h, axis=1, keepdims=True)
    return out


def fires(text, calibration, student, seed=1):
    """[tokens, layers, NEURONS] of bool; thresholds from the calibration text."""
    rng = np.random.default_rng(seed + 1000)
    seen, asked = features(calibration, student, seed), features(text, student, seed)
    out = np.empty((len(text), LAYERS, NEURONS), bool)
    for layer in range(LAYERS):
        frequency = np.exp(student.spread * rng.standard_normal(NEURONS))
        frequency[: int(student.dead * NEURONS)] = 0
        rng.shuffle(frequency)
        for _ in range(20):  # so that the mean is right although no neuron fires more often than always
            frequency = np.minimum(frequency * student.mean / frequency.mean(), 0.98)
        weights = rng.standard_normal((NEURONS, FEATURES)).astype(np.float32)
        drive, asked_drive = seen[:, layer] @ weights.T, asked[:, layer] @ weights.T
        drive.sort(axis=0)
        rank = np.clip(((1 - frequency) * len(drive)).astype(np.int64), 0, len(drive) - 1)
        threshold = np.where(frequency > 0, drive[rank, np.arange(NEURONS)], np.inf)
        out[:, layer] = asked_drive > threshold
    return out


def statistics(on):
    """Share of firing neurons, the share of all firing due to the busiest 26 % of a layer, and how often a neuron that fired fires again."""
    frequency = on.mean(axis=0)
    busiest = np.sort(frequency, axis=1)[:, ::-1]
    return {"mean": float(on.mean()), "top26": float(busiest[:, : int(0.26 * NEURONS)].sum() / frequency.sum()),
            "again": float((on[1:] & on[:-1]).sum() / max(1, on[:-1].sum()))}


def blocks_of(on, order, block):
    """Accesses by token: a block of `block` neurons is touched where one of them fires. order: [layers, NEURONS], neurons by rank."""
    ranked = np.take_along_axis(on, np.broadcast_to(order[None], on.shape), axis=2)
    touched = ranked.reshape(len(on), LAYERS * NEURONS // block, block).any(axis=2)
    return [np.flatnonzero(row).tolist() for row in touched]


def by_frequency(on):
    """Neurons of each layer, the busiest first: what packing by the importance map does."""
    return np.argsort(-on.mean(axis=0), axis=1, kind="stable")


def write_visits(path, model, blocks, passes):
    """The form of `ridge run --record`. blocks: (name, bytes)."""
    with open(path, "w", encoding="utf-8") as out:
        out.write(json.dumps({"format": "ridge-visits", "version": 1, "model": model,
                              "blocks": [{"name": n, "storage_bytes": b, "memory_bytes": b} for n, b in blocks], "passes": passes}))


def neuron_blocks(block):
    return [(f"blk.{layer}.ffn.{first}", block * NEURON_BYTES) for layer in range(LAYERS) for first in range(0, NEURONS, block)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=pathlib.Path)
    text = parser.parse_args().text.read_bytes()[:8192]
    for name, student in STUDENTS.items():
        print(name, {k: round(v, 3) for k, v in statistics(fires(text, text, student)).items()})


if __name__ == "__main__":
    main()
