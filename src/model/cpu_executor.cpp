#include "model/cpu_executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "base/units.h"
#include "kernels/choose.h"
#include "memory/pin_loader.h"
#include "memory/slab.h"
#include "memory/source_layout.h"
#include "model/ops.h"
#include "tensor/panel.h"

namespace ridge {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// A program of this block alone, all of it pinned: so its place in memory and its loading are those of any source.
struct OneBlock {
  Program program;
  Placement placement{.pinned = {1}};
  SourceLayout layout;
};

OneBlock one_block(const Program& whole, BlockId id) {
  OneBlock one;
  one.program.files = whole.files;
  Block block = whole.blocks[id];
  for (Piece& piece : block.pieces) {
    one.program.tensors.push_back(whole.tensors[piece.tensor]);
    piece.tensor = static_cast<TensorId>(one.program.tensors.size() - 1);
  }
  one.program.blocks.push_back(std::move(block));
  one.program.visits.push_back({});
  one.layout = SourceLayout::of(one.program, one.placement, {}, false);
  return one;
}

// Where the buffers of a context lie in its scratch: those of its largest step, since one step runs at a time.
struct Scratch {
  uint64_t cols = 0, rows = 0;  // of the widest input and the longest output
  uint64_t q_stride = 0, d_stride = 0;
  uint64_t output = 0, q = 0, d = 0, sums = 0, bytes = 0;  // offsets, and the sum
};

class Cpu final : public CpuExecutor {
 public:
  explicit Cpu(const CpuExecutorOptions& options)
      : o_(options), contexts_(options.program->blocks.size()), lifecycles_(options.program->blocks.size()) {}

  Result<void> open();
  uint64_t needs(BlockId block) const override;
  Result<void> prepare(BlockId block) override;
  bool prepared(BlockId block) const override { return contexts_[block] != nullptr; }
  Matrix<float> input(const Slice& slice) override;
  Result<Matrix<const float>> run(const Slice& slice, size_t tokens) override;
  void release(BlockId block) override;
  const Lifecycle& lifecycle(BlockId block) const override { return lifecycles_[block]; }
  const Program& program() const override { return *o_.program; }
  std::string description() const override;

 private:
  struct Context {
    Slab weights, memory;
    std::vector<PiecePlace> places;  // by piece
    Scratch scratch;
  };

  void size_scratch();
  Result<std::unique_ptr<Context>> load(BlockId block);
  size_t cols_of(const Slice& slice) const;
  Q8Rows quantize(const Context& context, Matrix<const float> x) const;
  void multiply(const Context& context, const Slice& slice, Matrix<const float> x, const Q8Rows& x8, Matrix<float> out);

  CpuExecutorOptions o_;
  Slab buffers_;  // two, for loading; before the engine, which writes into them until it is gone
  std::unique_ptr<IoEngine> io_;
  std::vector<Scratch> scratch_;                    // by block
  std::vector<std::unique_ptr<Context>> contexts_;  // by block; nullptr: not prepared
  std::vector<Lifecycle> lifecycles_;
};

Result<void> Cpu::open() {
  size_scratch();
  uint64_t unit = 0;
  for (BlockId b = 0; b < program().blocks.size(); ++b) {
    unit = std::max(unit, one_block(program(), b).layout.load_unit);
  }
  buffers_ = RIDGE_TRY(Slab::allocate(2 * unit, {.what = "a buffer for loading"}));
  io_ = RIDGE_TRY(make_io_engine({.files = program().files, .buffers = {}, .kind = o_.io, .syscalls = o_.syscalls}));
  return {};
}

// Pieces of one step share their input.
void Cpu::size_scratch() {
  scratch_.resize(program().blocks.size());
  for (const auto& step : program().steps) {
    for (const Slice& slice : step) {
      uint64_t rows = 0;
      for (uint32_t i = 0; i < slice.piece_count; ++i) {
        const Piece& piece = program().blocks[slice.block].pieces[slice.first_piece + i];
        rows += piece.row_end - piece.row_begin;
      }
      Scratch& s = scratch_[slice.block];
      s.cols = std::max<uint64_t>(s.cols, cols_of(slice));
      s.rows = std::max(s.rows, rows);
    }
  }
  constexpr uint64_t kLine = 64;
  const uint64_t tokens = o_.tokens;
  for (Scratch& s : scratch_) {
    s.q_stride = round_up(s.cols, kLine);
    s.d_stride = round_up((s.cols + 31) / 32, kLine / sizeof(float));
    s.output = round_up(tokens * s.cols * sizeof(float), kLine);
    s.q = s.output + round_up(tokens * s.rows * sizeof(float), kLine);
    s.d = s.q + tokens * s.q_stride;
    s.sums = s.d + tokens * s.d_stride * sizeof(float);
    s.bytes = s.sums + 2 * tokens * s.d_stride * sizeof(int32_t);
  }
}

uint64_t Cpu::needs(BlockId block) const {
  constexpr uint64_t kLists = 4096;  // the context itself, its list of places, and what the heap adds
  return Slab::charge(one_block(program(), block).layout.pin_bytes) + Slab::charge(scratch_[block].bytes) + kLists;
}

Result<std::unique_ptr<Cpu::Context>> Cpu::load(BlockId block) {
  OneBlock one = one_block(program(), block);
  auto context = std::make_unique<Context>();
  // Loading writes all of it: the workers that pack find their pages while the next read is under way.
  context->weights =
      RIDGE_TRY(Slab::allocate(one.layout.pin_bytes, {.what = "memory for a block's weights", .touch = false}));
  const uint64_t unit = buffers_.bytes() / 2;
  RIDGE_TRY(load_pins({.program = &one.program,
                       .placement = &one.placement,
                       .layout = &one.layout,
                       .io = io_.get(),
                       .pins = context->weights.data(),
                       .buffers = {buffers_.data(), buffers_.data() + unit / kIoAlign * kIoAlign},
                       .pool = o_.pool,
                       .pack = o_.kernels->pack}));
  const std::span<const PiecePlace> places = one.layout.blocks[0];
  context->places.assign(places.begin(), places.end());
  return context;
}

Result<void> Cpu::prepare(BlockId block) {
  RIDGE_CHECK(block < contexts_.size(), "a block of this program");
  RIDGE_CHECK(!prepared(block), "a block is prepared once");
  const auto begin = Clock::now();
  std::unique_ptr<Context> context = RIDGE_TRY(load(block));
  const double load_s = seconds_since(begin);
  const auto loaded = Clock::now();
  context->scratch = scratch_[block];
  context->memory = RIDGE_TRY(Slab::allocate(context->scratch.bytes, {.what = "the buffers of a block"}));
  Lifecycle& cost = lifecycles_[block];
  cost = {.weight_bytes = program().blocks[block].memory_bytes, .load_s = load_s, .init_s = seconds_since(loaded)};
  const uint64_t needed = needs(block);
  cost.overhead_bytes = needed - std::min(needed, cost.weight_bytes);
  contexts_[block] = std::move(context);
  return {};
}

void Cpu::release(BlockId block) {
  if (!prepared(block)) return;
  const auto begin = Clock::now();
  contexts_[block].reset();
  lifecycles_[block].release_s = seconds_since(begin);
}

size_t Cpu::cols_of(const Slice& slice) const {
  const Piece& piece = program().blocks[slice.block].pieces[slice.first_piece];
  return program().tensors[piece.tensor].cols;
}

Matrix<float> Cpu::input(const Slice& slice) {
  RIDGE_CHECK(prepared(slice.block), "a block is prepared before it runs");
  return {reinterpret_cast<float*>(contexts_[slice.block]->memory.data()), o_.tokens, cols_of(slice)};
}

Q8Rows Cpu::quantize(const Context& context, Matrix<const float> x) const {
  uint8_t* base = context.memory.data();
  const Scratch& s = context.scratch;
  Q8Rows x8{.q = reinterpret_cast<int8_t*>(base + s.q),
            .d = reinterpret_cast<float*>(base + s.d),
            .sums = reinterpret_cast<int32_t*>(base + s.sums),
            .q_stride = s.q_stride,
            .d_stride = s.d_stride};
  for (size_t t = 0; t < x.rows; ++t) {
    o_.kernels->quantize(x.row(t), x.cols, x8.q + t * x8.q_stride, x8.d + t * x8.d_stride,
                         x8.sums + 2 * t * x8.d_stride);
  }
  return x8;
}

Result<Matrix<const float>> Cpu::run(const Slice& slice, size_t tokens) {
  RIDGE_CHECK(prepared(slice.block), "a block is prepared before it runs");
  RIDGE_CHECK(tokens >= 1 && tokens <= o_.tokens, "the executor was made for so many tokens");
  const Context& context = *contexts_[slice.block];
  const Matrix<const float> x = input(slice).slice_rows(0, tokens);
  Q8Rows x8{};
  uint64_t rows = 0;
  for (uint32_t i = 0; i < slice.piece_count; ++i) {
    const Piece& piece = program().blocks[slice.block].pieces[slice.first_piece + i];
    rows += piece.row_end - piece.row_begin;
    if (x8.q == nullptr && uses_int8(program().tensors[piece.tensor].type, o_.exact)) x8 = quantize(context, x);
  }
  Matrix<float> out(reinterpret_cast<float*>(context.memory.data() + context.scratch.output), tokens, rows);
  multiply(context, slice, x, x8, out);
  return Matrix<const float>(out);
}

void Cpu::multiply(const Context& context, const Slice& slice, Matrix<const float> x, const Q8Rows& x8,
                   Matrix<float> out) {
  size_t column = 0;
  for (uint32_t i = 0; i < slice.piece_count; ++i) {
    const Piece& piece = program().blocks[slice.block].pieces[slice.first_piece + i];
    const Type type = program().tensors[piece.tensor].type;
    const size_t rows = piece.row_end - piece.row_begin, panel = panel_bytes(type, x.cols);
    const auto number = static_cast<size_t>(type);
    MatmulFn product = uses_int8(type, o_.exact) ? o_.kernels->matmul_q8[number] : o_.kernels->matmul_float[number];
    const uint8_t* panels = context.weights.data() + context.places[slice.first_piece + i].position;
    o_.pool->split(rows, kPanelRows, [&](size_t begin, size_t end, int) {
      product({.panels = panels + begin / kPanelRows * panel,
               .rows = end - begin,
               .cols = x.cols,
               .tokens = x.rows,
               .x = x.data,
               .x_stride = x.stride,
               .x8 = x8,
               .out = out.data + column + begin,
               .out_stride = out.stride});
    });
    column += rows;
  }
}

std::string Cpu::description() const {
  return fmt::format("CPU, {} kernels, {}; {}", name_of(o_.kernels->isa),
                     counted(static_cast<uint64_t>(o_.pool->size()), "thread"), io_->description());
}

}  // namespace

Result<std::unique_ptr<Executor>> CpuExecutor::create(const CpuExecutorOptions& options) {
  RIDGE_CHECK(options.program != nullptr && options.pool != nullptr && options.kernels != nullptr && options.tokens > 0,
              "an executor needs a program, a pool and kernels");
  auto executor = std::make_unique<Cpu>(options);
  RIDGE_TRY(executor->open());
  return std::unique_ptr<Executor>(std::move(executor));
}

}  // namespace ridge
