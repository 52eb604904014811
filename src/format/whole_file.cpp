#include "format/whole_file.h"

#include <fmt/format.h>

#include "base/units.h"
#include "format/file_stream.h"

namespace ridge {

Result<std::vector<uint8_t>> read_whole_file(const std::string& path, uint64_t most_bytes) {
  FileStream in = RIDGE_TRY(FileStream::open(path));
  if (in.size() > most_bytes) {
    return bad_input(
        fmt::format("{}: the file has {}, more than the {} that a file of its kind may have: is it the "
                    "right one?",
                    path, format_bytes(in.size()), format_bytes(most_bytes)));
  }
  std::vector<uint8_t> bytes(static_cast<size_t>(in.size()));
  RIDGE_TRY(in.read(bytes.data(), bytes.size()));
  return bytes;
}

}  // namespace ridge
