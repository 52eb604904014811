#include "format/tokenizer_json_parts.h"

#include <fmt/format.h>

#include <optional>

namespace ridge {
namespace {

using nlohmann::json;

constexpr size_t kDeepest = 32;         // real files have 7
constexpr size_t kMostNodes = 1 << 18;  // of the tree; Gemma's 6,414 added tokens make 58,000

// Receives the events of the parser: model.vocab and model.merges go into pools, everything else into a tree.
class Receiver final : public nlohmann::json_sax<json> {
 public:
  JsonParts parts;
  std::string problem;  // why receiving stopped; empty: it did not, or for an error of syntax
  uint64_t syntax_error_at = 0;

  bool null() override { return value(json()); }
  bool boolean(bool v) override { return value(v); }
  bool number_integer(int64_t v) override { return number(static_cast<double>(v), v, json(v)); }
  bool number_unsigned(uint64_t v) override {
    const bool fits = v <= static_cast<uint64_t>(INT64_MAX);
    return number(static_cast<double>(v), fits ? std::optional(static_cast<int64_t>(v)) : std::nullopt, json(v));
  }
  bool number_float(double v, const std::string&) override { return number(v, std::nullopt, json(v)); }
  bool binary(json::binary_t&) override { return fail("binary data"); }

  bool string(std::string& v) override {
    if (table_ == Table::none) return value(std::move(v));
    if (table_ == Table::vocabulary && depth_ == 4 && row_ == 0) {
      pending_ = std::move(v);
      ++row_;
      return true;
    }
    if (table_ != Table::merges) return misplaced();
    if (depth_ == 3) {
      parts.merges.push_back(v);
      return true;
    }
    if (row_ > 1 || v.empty()) return misplaced();
    pending_ += row_ == 0 ? v : ' ' + v;
    ++row_;
    return true;
  }

  bool key(std::string& v) override {
    if (table_ != Table::none) {
      pending_ = std::move(v);
      return true;
    }
    if (depth_ == 1) top_key_ = v;
    key_ = std::move(v);
    return true;
  }

  bool start_object(size_t) override { return start(json::value_t::object); }
  bool start_array(size_t) override { return start(json::value_t::array); }
  bool end_object() override { return end(); }
  bool end_array() override { return end(); }

  bool parse_error(size_t position, const std::string&, const json::exception& e) override {
    static_cast<void>(e);  // its words quote the file at length
    syntax_error_at = position;
    return false;
  }

 private:
  enum class Table : uint8_t { none, vocabulary, merges };

  bool fail(std::string_view what) {
    problem = what;
    return false;
  }
  bool misplaced() {
    return fail(table_ == Table::merges
                    ? "model.merges holds something else than \"left right\" or [\"left\", \"right\"]"
                    : "model.vocab holds something else than \"text\": id or [\"text\", score]");
  }

  bool start(json::value_t type) {
    if (++depth_ > kDeepest) return fail(fmt::format("it is nested deeper than {}", kDeepest));
    if (table_ != Table::none) {
      // Only the rows of a table may be opened inside of it.
      if (depth_ != 4 || type != json::value_t::array || vocabulary_is_object_) return misplaced();
      row_ = 0;
      pending_.clear();
      return true;
    }
    if (depth_ == 3 && top_key_ == "model" && (key_ == "vocab" || key_ == "merges")) {
      table_ = key_ == "vocab" ? Table::vocabulary : Table::merges;
      vocabulary_is_object_ = type == json::value_t::object;
      const bool again = table_ == Table::merges ? parts.merges.size() > 0 : parts.texts.size() > 0;
      return !again && (table_ == Table::vocabulary || !vocabulary_is_object_) ? true : misplaced();
    }
    json* place = put(json(type));
    if (place == nullptr) return false;
    open_.push_back(place);
    return true;
  }

  bool end() {
    --depth_;
    if (table_ != Table::none) {
      if (depth_ == 3) {  // the end of a row
        if (row_ != 2) return misplaced();
        if (table_ == Table::merges) parts.merges.push_back(pending_);
        return true;
      }
      table_ = Table::none;
      vocabulary_is_object_ = false;
      return true;
    }
    open_.pop_back();
    return true;
  }

  bool number(double as_double, std::optional<int64_t> as_integer, json v) {
    if (table_ == Table::none) return value(std::move(v));
    if (table_ != Table::vocabulary) return misplaced();
    if (vocabulary_is_object_) {
      if (!as_integer) return misplaced();
      parts.texts.push_back(pending_);
      parts.ids.push_back(*as_integer);
      return true;
    }
    if (depth_ != 4 || row_ != 1) return misplaced();
    parts.texts.push_back(pending_);
    parts.scores.push_back(as_double);
    ++row_;
    return true;
  }

  bool value(json v) {
    if (table_ != Table::none) return misplaced();
    return put(std::move(v)) != nullptr;
  }

  // Where the value now stands in the tree; nullptr: refused.
  json* put(json v) {
    if (++nodes_ > kMostNodes) {
      fail("it has more entries outside of its vocabulary than any tokenizer");
      return nullptr;
    }
    if (open_.empty()) {
      parts.rest = std::move(v);
      return &parts.rest;
    }
    json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(v));
      return &parent.back();
    }
    return &(parent[key_] = std::move(v));
  }

  std::vector<json*> open_;  // the containers around us; stable: a container grows only while it is the last
  size_t depth_ = 0, nodes_ = 0;
  std::string key_, top_key_;
  Table table_ = Table::none;
  bool vocabulary_is_object_ = false;
  std::string pending_;  // the text of a row, or the key of an entry
  int row_ = 0;          // how much of a row has come
};

}  // namespace

Result<JsonParts> split_tokenizer_json(std::span<const uint8_t> bytes, const std::string& name) {
  Receiver receiver;
  bool complete = false;
  try {
    complete = json::sax_parse(bytes.begin(), bytes.end(), &receiver);
  } catch (const json::exception& e) {  // the library promises to report by parse_error() alone
    receiver.problem = e.what();
  }
  if (!complete && receiver.problem.empty()) {
    const bool cut = receiver.syntax_error_at >= bytes.size();
    return bad_input(fmt::format("{}: {}; fetch it again", name,
                                 cut ? "the file ends inside its JSON: it is cut short" : "the file is no JSON"),
                     receiver.syntax_error_at);
  }
  if (!complete) return bad_input(fmt::format("{}: no tokenizer.json: {}; fetch it again", name, receiver.problem));
  if (!receiver.parts.rest.is_object()) {
    return bad_input(fmt::format("{}: no tokenizer.json: its outermost value is no object; fetch it again", name));
  }
  return std::move(receiver.parts);
}

}  // namespace ridge
