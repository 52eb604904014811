#include "sim/recorded_trace.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/units.h"
#include "format/file_stream.h"
#include "format/output_file.h"

namespace ridge::sim {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "ridge-visits";
constexpr uint64_t kLargestRecording = 512 * kMiB;

Error no_recording(const std::string& path, const std::string& what) {
  return bad_input(fmt::format("{}: {}: expected a file that `ridge run --record` wrote; record it anew", path, what));
}

std::string in_quotes(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool is_count(const Json& j, uint64_t least) { return j.is_number_unsigned() && j.get<uint64_t>() >= least; }

Result<std::vector<RecordedBlock>> read_blocks(const Json& all, const std::string& path) {
  std::vector<RecordedBlock> blocks;
  if (!all.is_array()) return no_recording(path, "'blocks' is no list");
  for (const Json& j : all) {
    const bool good = j.is_object() && j.contains("name") && j["name"].is_string() && j.contains("storage_bytes") &&
                      is_count(j["storage_bytes"], 1) && j.contains("memory_bytes") && is_count(j["memory_bytes"], 1);
    if (!good) return no_recording(path, fmt::format("block {} has no name, or no size above 0", blocks.size()));
    blocks.push_back(
        {j["name"].get<std::string>(), j["storage_bytes"].get<uint64_t>(), j["memory_bytes"].get<uint64_t>()});
  }
  return blocks;
}

}  // namespace

Result<void> write_recorded(const Program& program, std::span<const BlockId> order, std::span<const size_t> pass_begins,
                            const std::string& model, const std::string& path) {
  OutputFile out = RIDGE_TRY(OutputFile::create(path));
  std::string text =
      fmt::format("{{\"format\": \"{}\", \"version\": 1, \"model\": {},\n\"blocks\": [\n", kFormat, in_quotes(model));
  for (size_t b = 0; b < program.blocks.size(); ++b) {
    const Block& block = program.blocks[b];
    text += fmt::format("{{\"name\": {}, \"storage_bytes\": {}, \"memory_bytes\": {}}}{}\n", in_quotes(block.name),
                        block.storage_bytes, block.memory_bytes, b + 1 < program.blocks.size() ? "," : "");
  }
  text += "],\n\"passes\": [\n";
  for (size_t pass = 0; pass < pass_begins.size(); ++pass) {
    RIDGE_TRY(out.write(text));  // a pass at a time: the whole may be larger than the memory that is left
    const size_t end = pass + 1 < pass_begins.size() ? pass_begins[pass + 1] : order.size();
    text = fmt::format("[{}]{}\n", fmt::join(order.subspan(pass_begins[pass], end - pass_begins[pass]), ","),
                       pass + 1 < pass_begins.size() ? "," : "");
  }
  text += "]}\n";
  RIDGE_TRY(out.write(text));
  return out.commit();
}

Result<RecordedTrace> read_recorded(const std::string& path) {
  FileStream in = RIDGE_TRY(FileStream::open(path));
  if (in.size() > kLargestRecording) return no_recording(path, "larger than 512 MiB");
  std::string text(in.size(), '\0');
  RIDGE_TRY(in.read(text.data(), text.size()));
  const Json j = Json::parse(text, nullptr, false);
  if (j.is_discarded() || !j.is_object()) return no_recording(path, "no JSON object");
  if (j.value("format", Json()) != kFormat) return no_recording(path, "its 'format' is not ridge-visits");
  if (j.value("version", Json()) != 1) return no_recording(path, "its version is not 1");
  RecordedTrace out;
  if (j.contains("model") && j["model"].is_string()) out.model = j["model"].get<std::string>();
  out.blocks = RIDGE_TRY(read_blocks(j.value("blocks", Json()), path));
  const Json passes = j.value("passes", Json());
  if (!passes.is_array()) return no_recording(path, "'passes' is no list");
  for (const Json& pass : passes) {
    if (!pass.is_array()) return no_recording(path, "a pass is no list");
    out.trace.begin_pass();
    for (const Json& visit : pass) {
      if (!is_count(visit, 0) || visit.get<uint64_t>() >= out.blocks.size()) {
        return no_recording(path, fmt::format("pass {} visits a block that is not in the list of {}",
                                              out.trace.pass_begins.size() - 1, out.blocks.size()));
      }
      const uint64_t block = visit.get<uint64_t>();
      out.trace.add(block, out.blocks[block].memory_bytes);
    }
  }
  out.trace.link();
  return out;
}

}  // namespace ridge::sim
