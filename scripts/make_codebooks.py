#!/usr/bin/env python3
"""Writes src/tensor/codebooks.cpp from the tables of the `gguf` package (MIT licence, LICENSES/MIT-gguf.txt).

usage: scripts/make_codebooks.py            needs: pip install gguf numpy

The package keeps each grid as packed codes; the values come from its `grid_map`. Here the codes are unpacked into the
words that kernels look up (src/tensor/codebooks.h says how they lie in them).
"""
import pathlib
import sys

if len(sys.argv) > 1:  # before the packages are looked for
    sys.exit(print(__doc__) if sys.argv[1] in ("-h", "--help") else f"'{sys.argv[1]}' is not understood: it takes no arguments")

import numpy as np
from gguf import quants

TABLES = [("kIq2XxsGrid", quants.IQ2_XXS), ("kIq2XsGrid", quants.IQ2_XS), ("kIq2SGrid", quants.IQ2_S),
          ("kIq1Grid", quants.IQ1_S), ("kIq3XxsGrid", quants.IQ3_XXS), ("kIq3SGrid", quants.IQ3_S)]

HEAD = """// Made by scripts/make_codebooks.py from the tables of the `gguf` Python package; do not edit.
// The tables are Copyright (c) 2023 Georgi Gerganov, MIT licence: LICENSES/MIT-gguf.txt.
#include "tensor/codebooks.h"

namespace ridge {

// clang-format off
"""


def words(kind):
    """One word per grid entry: nibbles for entries of 8 codes, bytes for entries of 4."""
    kind.init_grid()
    values = {float(v): code for code, v in enumerate(kind.grid_map)}
    for entry in np.asarray(kind.grid).reshape(kind.grid_shape):
        codes = [values[float(v)] for v in entry]
        if len(codes) == 4:
            yield sum(code << (8 * i) for i, code in enumerate(codes))
        else:
            yield sum(code << (8 * (i % 4) + 4 * (i // 4)) for i, code in enumerate(codes))


def check_signs():
    """The eighth sign of a group is the parity of its seven stored ones: kernels compute it instead of looking it up."""
    for index, signs in enumerate(quants.IQ2_XXS.ksigns):
        assert signs == index | (bin(index).count("1") % 2) << 7


def main():
    check_signs()
    text = HEAD
    for name, kind in TABLES:
        entries = [f"0x{word:08x}" for word in words(kind)]
        text += f"\nconst uint32_t {name}[{len(entries)}] = {{\n"
        for i in range(0, len(entries), 9):
            text += "  " + ", ".join(entries[i:i + 9]) + ",\n"
        text += "};\n"
    text += "\n// clang-format on\n\n}  // namespace ridge\n"
    path = pathlib.Path(__file__).resolve().parent.parent / "src/tensor/codebooks.cpp"
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
