#include "format/neuron_permute.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <vector>

#include "format/unique_fd.h"

namespace ridge {
namespace {

Result<void> read_all(int fd, const std::string& path, uint64_t offset, uint8_t* out, size_t bytes) {
  while (bytes > 0) {
    const ssize_t n = ::pread(fd, out, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      return io_error(fmt::format("{}: cannot be read at {}: {}", path, offset,
                                  n < 0 ? std::generic_category().message(errno) : "the file ends there"));
    }
    out += n;
    offset += static_cast<uint64_t>(n);
    bytes -= static_cast<size_t>(n);
  }
  return {};
}

}  // namespace

Permuted permuted_by(std::span<const NeuronOrder> orders, const std::string& tensor) {
  for (const NeuronOrder& order : orders) {
    const std::string prefix = fmt::format("blk.{}.ffn_", order.layer);
    if (!tensor.starts_with(prefix)) continue;
    const std::string part = tensor.substr(prefix.size());
    if (part == "down.weight") return {.columns = &order};
    for (const char* rows : {"gate.weight", "gate.bias", "up.weight", "up.bias"}) {
      if (part == rows) return {.rows = &order};
    }
  }
  return {};
}

size_t moved_bytes(const GgufTensor& tensor) {
  if (tensor.dims >= 2) return row_bytes(tensor.type, tensor.cols());
  const TypeInfo& type = type_info(tensor.type);
  return type.block == 1 ? type.bytes : 0;
}

Result<void> read_permuted_rows(const std::string& path, const GgufTensor& tensor, const NeuronOrder& order,
                                uint64_t first, size_t count, uint8_t* out) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return bad_input(fmt::format("{}: cannot be opened: {}", path, std::generic_category().message(errno)));
  const size_t stride = moved_bytes(tensor);
  for (size_t i = 0; i < count;) {
    const uint64_t from = order.neuron(first + i);
    size_t run = 1;
    while (i + run < count && order.neuron(first + i + run) == from + run) ++run;
    RIDGE_TRY(read_all(fd.get(), path, tensor.offset + from * stride, out + i * stride, run * stride));
    i += run;
  }
  ::posix_fadvise(fd.get(), static_cast<off_t>(tensor.offset), static_cast<off_t>(tensor.bytes), POSIX_FADV_DONTNEED);
  return {};
}

void permute_columns(const NeuronOrder& order, const GgufTensor& tensor, uint8_t* rows, size_t count) {
  const size_t stride = row_bytes(tensor.type, tensor.cols()), unit = row_bytes(tensor.type, order.unit);
  std::vector<uint8_t> before(stride);
  for (size_t r = 0; r < count; ++r) {
    uint8_t* row = rows + r * stride;
    std::memcpy(before.data(), row, stride);
    for (size_t i = 0; i < order.units.size(); ++i) {
      std::memcpy(row + i * unit, before.data() + order.units[i] * unit, unit);
    }
  }
}

}  // namespace ridge
