// Reads an IR back. A line is taken apart leniently, and then has to be what its parts are printed as: so what is read
// is what was written, byte for byte.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/printable.h"
#include "program/ir.h"
#include "program/ir_line.h"
#include "tensor/type_names.h"

namespace ridge {
namespace {

constexpr size_t kMostQuoted = 60;  // of a line in a message

std::optional<uint64_t> number_in(std::string_view text, int base = 10) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string_view> split(std::string_view text, char between) {
  std::vector<std::string_view> parts;
  if (text == "-") return parts;
  for (;;) {
    const size_t at = text.find(between);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

// One line: a keyword and fields in a given order.
class Line {
 public:
  Line(std::string_view text, size_t number, const std::string& file) : text_(text), number_(number), file_(file) {
    rest_ = text;
    keyword_ = rest_.substr(0, rest_.find(' '));
    rest_.remove_prefix(keyword_.size());
  }
  std::string_view keyword() const { return keyword_; }
  size_t number() const { return number_; }
  Error error(std::string_view what) const {
    return bad_input(fmt::format("{}: line {}: {}: '{}'; expected what `ridge ir` writes (docs/ir.md)", file_, number_,
                                 what, printable_beginning()));
  }
  // The value of the next field, which has this name.
  Result<std::string_view> word(std::string_view name) {
    const std::string begin = fmt::format(" {}=", name);
    if (!rest_.starts_with(begin)) return error(fmt::format("'{}=' is missing", name));
    rest_.remove_prefix(begin.size());
    const std::string_view value = rest_.substr(0, rest_.find(' '));
    rest_.remove_prefix(value.size());
    return value;
  }
  Result<std::string> in_quotes(std::string_view name);
  Result<uint64_t> number(std::string_view name, uint64_t most = UINT64_MAX, int base = 10) {
    const auto value = number_in(RIDGE_TRY(word(name)), base);
    if (!value || *value > most) return error(fmt::format("'{}' is no number, or too large", name));
    return *value;
  }
  // That the line is what its parts are printed as.
  Result<void> same_as(const std::string& printed) const {
    if (printed == text_) return {};
    size_t at = 0;
    while (at < std::min(printed.size(), text_.size()) && printed[at] == text_[at]) ++at;
    return error(fmt::format("column {} is not as it would be written", at + 1));
  }

 private:
  std::string printable_beginning() const {
    size_t end = std::min(text_.size(), kMostQuoted);
    while (end > 0 && end < text_.size() && (static_cast<unsigned char>(text_[end]) & 0xc0) == 0x80) --end;
    return printable(text_.substr(0, end)) + (end < text_.size() ? "…" : "");
  }

  std::string_view text_, rest_, keyword_;
  size_t number_;
  const std::string& file_;
};

Result<std::string> Line::in_quotes(std::string_view name) {
  const std::string begin = fmt::format(" {}=\"", name);
  if (!rest_.starts_with(begin)) return error(fmt::format("'{}=' is missing, or not in quotes", name));
  rest_.remove_prefix(begin.size());
  std::string out;
  while (!rest_.empty() && rest_[0] != '"') {
    if (rest_[0] != '\\') {
      out += rest_[0];
      rest_.remove_prefix(1);
    } else if (rest_.starts_with("\\x") && rest_.size() >= 4 && number_in(rest_.substr(2, 2), 16)) {
      out += static_cast<char>(*number_in(rest_.substr(2, 2), 16));
      rest_.remove_prefix(4);
    } else if (rest_.size() >= 2) {
      out += rest_[1];
      rest_.remove_prefix(2);
    } else {
      break;
    }
  }
  if (rest_.empty() || rest_[0] != '"') return error(fmt::format("'{}' has no closing quote", name));
  rest_.remove_prefix(1);
  return out;
}

class IrReader {
 public:
  IrReader(std::string_view text, const std::string& file) : rest_(text), file_(file) {}
  Result<Ir> read();

 private:
  Result<Line> next();
  Result<void> read_head();
  Result<void> read_target(Line& line);
  Result<void> read_block(Line& line);
  Result<void> read_kv(Line& line);
  Result<void> read_end(Line& line);
  Result<void> read_matrices(Line& line, IrBlock& block) const;
  Result<void> read_extents(Line& line, IrBlock& block) const;
  Result<void> read_touch(Line& line, IrBlock& block) const;
  Result<void> read_place(Line& line, uint64_t bytes, IrHome& home, std::vector<IrKept>& kept) const;
  Result<IrKept> read_kept(const Line& line, std::string_view text) const;
  Result<void> check_block(const Line& line, const IrBlock& block) const;

  std::string_view rest_;
  const std::string& file_;
  size_t number_ = 0;
  Ir ir_;
};

Result<Line> IrReader::next() {
  ++number_;
  const size_t end = rest_.find('\n');
  if (end == std::string_view::npos) {
    return bad_input(fmt::format("{}: line {}: {}; it was cut short: write it anew with `ridge ir`", file_, number_,
                                 rest_.empty() ? "the text ends without a line 'end'" : "has no end"));
  }
  Line line(rest_.substr(0, end), number_, file_);
  rest_.remove_prefix(end + 1);
  return line;
}

Result<void> IrReader::read_head() {
  Line first = RIDGE_TRY(next());
  RIDGE_TRY(first.same_as(std::string(kIrFirstLine)));
  Line line = RIDGE_TRY(next());
  if (line.keyword() != "model") return line.error("no line 'model'");
  ir_.model = RIDGE_TRY(line.in_quotes("name"));
  ir_.fingerprint = RIDGE_TRY(line.number("fingerprint", UINT64_MAX, 16));
  ir_.positions = RIDGE_TRY(line.number("positions"));
  return line.same_as(ir_head(ir_));
}

Result<void> IrReader::read_target(Line& line) {
  if (line.keyword() == "budget") {
    ir_.budget = RIDGE_TRY(line.number("bytes"));
    ir_.slots = static_cast<uint32_t>(RIDGE_TRY(line.number("slots", UINT32_MAX)));
    ir_.slot_bytes = RIDGE_TRY(line.number("slot_bytes"));
    ir_.cache_slots = static_cast<uint32_t>(RIDGE_TRY(line.number("cache_slots", UINT32_MAX)));
    return line.same_as(ir_target(ir_));
  }
  if (line.keyword() != "machine") return line.error("no line 'machine' or 'budget'");
  ir_.machine = RIDGE_TRY(line.in_quotes("name"));
  return line.same_as(ir_target(ir_));
}

Result<void> IrReader::read_matrices(Line& line, IrBlock& block) const {
  const auto types = split(RIDGE_TRY(line.word("type")), '+');
  const auto shapes = split(RIDGE_TRY(line.word("shape")), '+');
  if (types.size() != shapes.size()) return line.error("as many types as shapes are needed");
  for (size_t i = 0; i < types.size(); ++i) {
    const std::optional<Type> type = type_named(types[i]);
    if (!type) return line.error("'type' is of no weights");
    const size_t cross = shapes[i].find('x');
    if (cross == std::string_view::npos) return line.error("'shape' is not ROWSxCOLUMNS");
    const auto rows = number_in(shapes[i].substr(0, cross)), cols = number_in(shapes[i].substr(cross + 1));
    if (!rows || !cols || *rows > UINT32_MAX || *cols > UINT32_MAX) return line.error("'shape' is not ROWSxCOLUMNS");
    block.matrices.push_back({*type, static_cast<uint32_t>(*rows), static_cast<uint32_t>(*cols)});
  }
  return {};
}

Result<void> IrReader::read_extents(Line& line, IrBlock& block) const {
  for (const std::string_view part : split(RIDGE_TRY(line.word("at")), ',')) {
    const size_t colon = part.find(':'), plus = part.find('+');
    if (colon == std::string_view::npos || plus == std::string_view::npos || plus < colon)
      return line.error("'at' is not FILE:OFFSET+BYTES");
    const auto file = number_in(part.substr(0, colon)), offset = number_in(part.substr(colon + 1, plus - colon - 1)),
               bytes = number_in(part.substr(plus + 1));
    if (!file || !offset || !bytes) return line.error("'at' is not FILE:OFFSET+BYTES");
    const bool inside =
        *file < ir_.files.size() && *offset <= ir_.files[*file].bytes && *bytes <= ir_.files[*file].bytes - *offset;
    if (!inside) return line.error("'at' is outside of its file");
    block.at.push_back({static_cast<uint32_t>(*file), *offset, *bytes});
  }
  return {};
}

Result<void> IrReader::read_touch(Line& line, IrBlock& block) const {
  const std::string_view text = RIDGE_TRY(line.word("touch"));
  const size_t dot = text.find('.');
  if (dot == std::string_view::npos || text.size() - dot != 7)
    return line.error("'touch' has no six digits after its point");
  const auto whole = number_in(text.substr(0, dot)), part = number_in(text.substr(dot + 1));
  if (!whole || !part || *whole > 1 || (*whole == 1 && *part > 0)) return line.error("'touch' is not between 0 and 1");
  block.touch = static_cast<uint32_t>(*whole * 1'000'000 + *part);
  return {};
}

// TIER:ADDRESS+BYTES@OFFSET
Result<IrKept> IrReader::read_kept(const Line& line, std::string_view text) const {
  const size_t colon = text.find(':'), plus = text.find('+'), at = text.find('@');
  const bool shaped = colon != std::string_view::npos && plus != std::string_view::npos &&
                      at != std::string_view::npos && colon < plus && plus < at &&
                      text.substr(colon + 1).starts_with("0x");
  if (!shaped) return line.error("'place' is not TIER:0xADDRESS+BYTES@OFFSET");
  const auto address = number_in(text.substr(colon + 3, plus - colon - 3), 16),
             bytes = number_in(text.substr(plus + 1, at - plus - 1)), offset = number_in(text.substr(at + 1));
  const std::string_view kind = text.substr(0, colon);
  const auto tier = std::find_if(ir_.tiers.begin(), ir_.tiers.end(), [&](const IrTier& t) { return t.kind == kind; });
  if (!address || !bytes || !offset || *bytes == 0) return line.error("'place' is not TIER:0xADDRESS+BYTES@OFFSET");
  if (tier == ir_.tiers.end()) return line.error("'place' names a tier that the machine has not");
  if (*address > tier->bytes || *bytes > tier->bytes - *address) return line.error("'place' is outside of its tier");
  return IrKept{std::string(kind), *address, *bytes, *offset};
}

Result<void> IrReader::read_place(Line& line, uint64_t bytes, IrHome& home, std::vector<IrKept>& kept) const {
  auto parts = split(RIDGE_TRY(line.word("place")), ',');
  constexpr IrHome kHomes[] = {IrHome::pin, IrHome::slot, IrHome::cache, IrHome::dram};
  home = ir_.machine ? IrHome::dram : IrHome::pin;
  if (!parts.empty() && parts.back().find(':') == std::string_view::npos) {
    const auto found =
        std::find_if(std::begin(kHomes), std::end(kHomes), [&](IrHome h) { return name_of(h) == parts.back(); });
    if (found == std::end(kHomes) || (*found == IrHome::dram) != ir_.machine.has_value())
      return line.error("'place' is none that the target has");
    home = *found;
    parts.pop_back();
  }
  uint64_t end = 0;
  for (const std::string_view part : parts) {
    IrKept k = RIDGE_TRY(read_kept(line, part));
    if (k.offset < end || k.offset > bytes || k.bytes > bytes - k.offset)
      return line.error("'place' holds bytes that the block has not, or holds some twice");
    end = k.offset + k.bytes;
    kept.push_back(std::move(k));
  }
  return {};
}

Result<void> IrReader::check_block(const Line& line, const IrBlock& b) const {
  uint64_t bytes = 0;
  for (const IrExtent& e : b.at) {
    bytes += e.bytes;
    if (e.offset % b.align != 0) return line.error("'at' does not begin at 'align'");
  }
  if (bytes != b.bytes) return line.error("'at' has not as many bytes as the block");
  return {};
}

Result<void> IrReader::read_block(Line& line) {
  IrBlock b;
  b.line = line.number();
  b.name = RIDGE_TRY(line.in_quotes("name"));
  const std::string_view op = RIDGE_TRY(line.word("op"));
  size_t number = 0;
  while (number < kOperators && name_of(static_cast<Operator>(number)) != op) ++number;
  if (number == kOperators) return line.error("'op' is no operator");
  b.op = static_cast<Operator>(number);
  for (const std::string_view visit : split(RIDGE_TRY(line.word("order")), ',')) {
    const auto n = number_in(visit);
    if (!n || *n > UINT32_MAX) return line.error("'order' is no list of numbers");
    b.order.push_back(static_cast<uint32_t>(*n));
  }
  RIDGE_TRY(read_matrices(line, b));
  b.bytes = RIDGE_TRY(line.number("bytes"));
  b.memory_bytes = RIDGE_TRY(line.number("memory"));
  b.align = RIDGE_TRY(line.number("align"));
  if (b.align == 0 || (b.align & (b.align - 1)) != 0) return line.error("'align' is no power of two");
  b.moved_bytes = RIDGE_TRY(line.number("moved"));
  if (b.moved_bytes < b.bytes) return line.error("'moved' is less than 'bytes'");
  RIDGE_TRY(read_touch(line, b));
  RIDGE_TRY(read_extents(line, b));
  RIDGE_TRY(read_place(line, b.bytes, b.home, b.kept));
  RIDGE_TRY(line.same_as(ir_line(b)));
  RIDGE_TRY(check_block(line, b));
  ir_.blocks.push_back(std::move(b));
  return {};
}

Result<void> IrReader::read_kv(Line& line) {
  IrKv kv;
  kv.name = RIDGE_TRY(line.in_quotes("name"));
  kv.bytes = RIDGE_TRY(line.number("bytes"));
  RIDGE_TRY(read_place(line, kv.bytes, kv.home, kv.kept));
  RIDGE_TRY(line.same_as(ir_line(kv)));
  ir_.kv.push_back(std::move(kv));
  return {};
}

Result<void> IrReader::read_end(Line& line) {
  (void)RIDGE_TRY(line.number("blocks"));
  (void)RIDGE_TRY(line.number("kv"));
  ir_.row_bytes = RIDGE_TRY(line.number("rows"));
  RIDGE_TRY(line.same_as(ir_end(ir_)));
  if (!rest_.empty()) {
    return bad_input(
        fmt::format("{}: line {}: text follows the end: write it anew with `ridge ir`", file_, number_ + 1));
  }
  return {};
}

Result<Ir> IrReader::read() {
  RIDGE_TRY(read_head());
  for (;;) {
    Line line = RIDGE_TRY(next());
    if (line.keyword() != "file") {
      RIDGE_TRY(read_target(line));
      break;
    }
    IrFile f{.name = RIDGE_TRY(line.in_quotes("name"))};
    f.bytes = RIDGE_TRY(line.number("bytes"));
    RIDGE_TRY(line.same_as(ir_line(f)));
    ir_.files.push_back(std::move(f));
  }
  for (;;) {
    Line line = RIDGE_TRY(next());
    if (line.keyword() == "tier" && ir_.machine && ir_.blocks.empty() && ir_.kv.empty()) {
      IrTier t{.kind = std::string(RIDGE_TRY(line.word("kind")))};
      t.name = RIDGE_TRY(line.in_quotes("name"));
      t.bytes = RIDGE_TRY(line.number("bytes"));
      t.burst_bytes = RIDGE_TRY(line.number("burst"));
      RIDGE_TRY(line.same_as(ir_line(t)));
      ir_.tiers.push_back(std::move(t));
      continue;
    }
    if (ir_.machine && ir_.tiers.empty()) return line.error("a machine has tiers");
    if (line.keyword() == "block" && ir_.kv.empty()) {
      RIDGE_TRY(read_block(line));
    } else if (line.keyword() == "kv") {
      RIDGE_TRY(read_kv(line));
    } else if (line.keyword() == "end") {
      RIDGE_TRY(read_end(line));
      return std::move(ir_);
    } else {
      return line.error("begins with no word that may stand here");
    }
  }
}

}  // namespace

Result<Ir> read_ir(std::string_view text, const std::string& name) { return IrReader(text, name).read(); }

}  // namespace ridge
