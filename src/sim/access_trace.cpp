#include "sim/access_trace.h"

#include <fmt/format.h>

#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "base/units.h"
#include "format/file_stream.h"
#include "format/output_file.h"

namespace ridge::sim {
namespace {

constexpr size_t kRecord = 24;
constexpr uint64_t kMostRecords = uint64_t{1} << 26;  // 1.5 GiB of file, 2 GiB of accesses

void put(uint8_t* at, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) at[i] = static_cast<uint8_t>(value >> (8 * i));
}

}  // namespace

void AccessTrace::link() {
  std::unordered_map<ObjectId, uint64_t> next;
  for (size_t i = accesses.size(); i-- > 0;) {
    auto [found, is_new] = next.try_emplace(accesses[i].object, kNever);
    accesses[i].next = found->second;
    found->second = i;
  }
}

size_t AccessTrace::distinct() const {
  std::unordered_set<ObjectId> seen;
  for (const Access& a : accesses) seen.insert(a.object);
  return seen.size();
}

AccessTrace cyclic_trace(std::span<const uint64_t> sizes, size_t passes) {
  AccessTrace trace;
  trace.accesses.reserve(sizes.size() * passes);
  for (size_t pass = 0; pass < passes; ++pass) {
    trace.begin_pass();
    for (size_t i = 0; i < sizes.size(); ++i) trace.add(i, sizes[i]);
  }
  trace.link();
  return trace;
}

Result<void> write_oracle_general(const AccessTrace& trace, const std::string& path) {
  OutputFile out = RIDGE_TRY(OutputFile::create(path));
  constexpr size_t kAtOnce = 4096;
  std::vector<uint8_t> bytes;
  size_t pass = 0;
  for (size_t i = 0; i < trace.accesses.size(); ++i) {
    const Access& access = trace.accesses[i];
    if (access.size > std::numeric_limits<uint32_t>::max() || access.size == 0) {
      return bad_input(fmt::format("{}: object {} has {} bytes: this format holds sizes from 1 to 4,294,967,295", path,
                                   access.object, format_count(access.size)));
    }
    while (pass + 1 < trace.pass_begins.size() && trace.pass_begins[pass + 1] <= i) ++pass;
    const size_t at = bytes.size();
    bytes.resize(at + kRecord);
    put(bytes.data() + at, pass, 4);
    put(bytes.data() + at + 4, access.object, 8);
    put(bytes.data() + at + 12, access.size, 4);
    put(bytes.data() + at + 16, access.next == kNever ? UINT64_MAX : access.next + 1, 8);  // −1, or from 1
    if (bytes.size() < kAtOnce * kRecord) continue;
    RIDGE_TRY(out.write(bytes));
    bytes.clear();
  }
  RIDGE_TRY(out.write(bytes));
  return out.commit();
}

Result<AccessTrace> read_oracle_general(const std::string& path) {
  FileStream in = RIDGE_TRY(FileStream::open(path));
  if (in.size() % kRecord != 0) {
    return bad_input(fmt::format("{}: {} bytes are no whole number of records of {}: the file is cut short, or no "
                                 "oracleGeneral trace; fetch it again",
                                 path, format_count(in.size()), kRecord),
                     in.size() / kRecord * kRecord);
  }
  if (in.size() / kRecord > kMostRecords) {
    return bad_input(fmt::format("{}: {} records are more than this simulator takes ({}): cut the trace", path,
                                 format_count(in.size() / kRecord), format_count(kMostRecords)));
  }
  AccessTrace trace;
  trace.accesses.reserve(in.size() / kRecord);
  uint32_t before = 0;
  while (in.remaining() > 0) {
    const uint64_t offset = in.position();
    const uint32_t time = RIDGE_TRY(in.read_as<uint32_t>());
    const uint64_t object = RIDGE_TRY(in.read_as<uint64_t>());
    const uint32_t size = RIDGE_TRY(in.read_as<uint32_t>());
    RIDGE_TRY(in.skip(sizeof(int64_t)));
    if (size == 0) {
      return bad_input(fmt::format("{}: record {} has an object of 0 bytes: give each object its size, or 1", path,
                                   format_count(offset / kRecord)),
                       offset);
    }
    if (trace.accesses.empty() || time != before) trace.begin_pass();
    before = time;
    trace.add(object, size);
  }
  trace.link();
  return trace;
}

}  // namespace ridge::sim
