// What each kernel file offers to the one list (list.cpp): an array of entries and their number.
//
// Not for: choosing (choose.h). Plain data, so that the files of every ISA may include it. An ISA file includes nothing
// but kernels.h, this header, and C headers; everything in it but the two constants sits in an unnamed namespace inside
// ridge::<isa> (docs/kernels.md; scripts/check_symbols.sh looks at the objects).
//
//   namespace ridge::avx512 {
//   namespace { void rope_norm(float* head, size_t rot, const float* cos_sin) { … } }
//   const KernelEntry kVectorEntries[] = {
//       {Op::rope_norm, Isa::avx512, Type::F32, kBitAvx512, RIDGE_KERNEL(rope_norm), "avx512"}};
//   const size_t kVectorCount = sizeof(kVectorEntries) / sizeof(kVectorEntries[0]);
//   }  // namespace ridge::avx512
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"
#include "kernels/op.h"
#include "machine/feature_bits.h"

namespace ridge {

// One kernel. `function` is cast back to the operation's type (MatmulFn, PackFn, …) where the table is built.
struct KernelEntry {
  Op op;
  Isa isa;
  Type type;       // the weight type, for operations that depend on one; else Type::F32
  uint32_t needs;  // FeatureBits that must all be present
  void (*function)();
  const char* name;   // of the variant, beginning with the ISA: "avx512 vnni"; differs within (op, type)
  bool fast = false;  // outside the arithmetic contract: `--numerics fast` alone may use it
};

}  // namespace ridge

// A kernel of any signature as KernelEntry::function.
#define RIDGE_KERNEL(function) reinterpret_cast<void (*)()>(&function)

// Declares what one file offers: k<File>Entries and k<File>Count in ridge::<isa>.
#define RIDGE_DECLARE_ENTRIES(isa, file)       \
  namespace ridge::isa {                       \
  extern const KernelEntry k##file##Entries[]; \
  extern const size_t k##file##Count;          \
  }

RIDGE_DECLARE_ENTRIES(scalar, MatmulQ8)
RIDGE_DECLARE_ENTRIES(scalar, MatmulFloat)
RIDGE_DECLARE_ENTRIES(scalar, Pack)
RIDGE_DECLARE_ENTRIES(scalar, Vector)
RIDGE_DECLARE_ENTRIES(scalar, Attention)
RIDGE_DECLARE_ENTRIES(scalar, Latent)
RIDGE_DECLARE_ENTRIES(avx2, MatmulQ8)
RIDGE_DECLARE_ENTRIES(avx2, MatmulFloat)
RIDGE_DECLARE_ENTRIES(avx2, Pack)
RIDGE_DECLARE_ENTRIES(avx2, Vector)
RIDGE_DECLARE_ENTRIES(avx2, Attention)
RIDGE_DECLARE_ENTRIES(avx2, Latent)
RIDGE_DECLARE_ENTRIES(avx2, Transpose)
RIDGE_DECLARE_ENTRIES(avxvnni, MatmulQ8)
RIDGE_DECLARE_ENTRIES(avx512, MatmulQ8)
RIDGE_DECLARE_ENTRIES(avx512, MatmulFloat)
RIDGE_DECLARE_ENTRIES(avx512, Pack)
RIDGE_DECLARE_ENTRIES(avx512, Vector)
RIDGE_DECLARE_ENTRIES(avx512, Attention)
RIDGE_DECLARE_ENTRIES(avx512, Latent)
RIDGE_DECLARE_ENTRIES(avx512, Transpose)
RIDGE_DECLARE_ENTRIES(avx512bf16, MatmulBf16)
RIDGE_DECLARE_ENTRIES(amx, MatmulBf16)
RIDGE_DECLARE_ENTRIES(amx, MatmulQ8)
RIDGE_DECLARE_ENTRIES(neon, MatmulQ8)
RIDGE_DECLARE_ENTRIES(neon, MatmulFloat)
RIDGE_DECLARE_ENTRIES(neon, Pack)
RIDGE_DECLARE_ENTRIES(neon, Vector)
RIDGE_DECLARE_ENTRIES(neon, Attention)
RIDGE_DECLARE_ENTRIES(neon, Latent)
RIDGE_DECLARE_ENTRIES(neondot, MatmulQ8)
RIDGE_DECLARE_ENTRIES(neoni8mm, MatmulQ8)
