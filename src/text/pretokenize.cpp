#include "text/pretokenize.h"

#include <algorithm>
#include <array>

#include "text/unicode.h"

namespace ridge {
namespace {

// ---- What the expressions are made of -------------------------------------------------------------------------------

// The end of the run, beginning at `pos`, of characters that have any of the classes.
size_t run_end(std::string_view piece, size_t pos, unsigned classes) {
  for (Char c = char_at(piece, pos); c.is(classes); c = char_at(piece, pos)) pos += c.bytes;
  return pos;
}

template <class Predicate>
size_t run_end_if(std::string_view piece, size_t pos, Predicate wanted) {
  for (Char c = char_at(piece, pos); c.bytes > 0 && wanted(c); c = char_at(piece, pos)) pos += c.bytes;
  return pos;
}

constexpr bool is_newline(uint32_t c) { return c == '\r' || c == '\n'; }

Match found(size_t bytes) { return {true, bytes}; }
Match none(size_t skip) { return {false, skip}; }

enum class Case { lower, any };

// 's|'t|'re|'ve|'m|'ll|'d at `pos`, which holds an apostrophe: its length, or 0.
size_t contraction(std::string_view piece, size_t pos, Case letters) {
  auto letter = [&](size_t at) -> char {
    if (at >= piece.size()) return '\0';
    const char c = piece[at];
    return letters == Case::any && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  const char first = letter(pos + 1);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  const char second = letter(pos + 2);
  const bool three =
      (first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l');
  return three ? 3 : 0;
}

// \s+(?!\S)|\s+ : a run of white space; if a word follows, the last one stays with it.
size_t white_space(std::string_view piece, size_t pos) {
  size_t end = pos, last = pos;
  for (Char c = char_at(piece, pos); c.is(kSpace); c = char_at(piece, end)) {
    last = end;
    end += c.bytes;
  }
  if (end < piece.size() && last > pos) return last - pos;
  return end - pos;
}

// \s*[\r\n]+ : white space up to the last line break of the run, or 0.
size_t line_breaks(std::string_view piece, size_t pos) {
  size_t end = pos, after_break = pos;
  for (Char c = char_at(piece, pos); c.is(kSpace); c = char_at(piece, end)) {
    end += c.bytes;
    if (is_newline(c.value)) after_break = end;
  }
  return after_break - pos;
}

// ---- Expressions ----------------------------------------------------------------------------------------------------

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
Match gpt2(std::string_view piece, size_t pos) {
  const Char first = char_at(piece, pos);
  if (first.value == '\'') {
    if (size_t bytes = contraction(piece, pos, Case::lower)) return found(bytes);
  }
  const size_t begin = first.value == ' ' ? pos + 1 : pos;
  const Char body = char_at(piece, begin);
  for (CharClass kind : {kLetter, kNumber, kOther}) {
    if (body.is(kind)) return found(run_end(piece, begin, kind) - pos);
  }
  return found(white_space(piece, pos));
}

// \p{N}{1,D}| ?[^\s\p{L}\p{N}]+T*|\s*[\r\n]+|\s+(?!\S)|\s+ : what the llama3 and o200k expressions end with, where the
// trailing set T is [\r\n] or [\r\n/]. Always matches what is no letter.
Match numbers_symbols_space(std::string_view piece, size_t pos, int digits, std::string_view trailing) {
  const Char first = char_at(piece, pos);
  if (first.is(kNumber)) {
    return found(run_end_if(piece, pos, [&](const Char& c) { return c.is(kNumber) && digits-- > 0; }) - pos);
  }
  const size_t begin = first.value == ' ' ? pos + 1 : pos;
  if (char_at(piece, begin).is(kOther)) {
    const size_t end = run_end(piece, begin, kOther);
    return found(std::min(piece.find_first_not_of(trailing, end), piece.size()) - pos);
  }
  if (size_t bytes = line_breaks(piece, pos)) return found(bytes);
  return found(white_space(piece, pos));
}

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+| and the rest above
template <int kDigits>
Match llama3(std::string_view piece, size_t pos) {
  const Char first = char_at(piece, pos);
  if (first.value == '\'') {
    if (size_t bytes = contraction(piece, pos, Case::any)) return found(bytes);
  }
  const bool may_lead = !is_newline(first.value) && !first.is(kNumber);
  const size_t letters = first.is(kLetter) ? pos : pos + first.bytes;
  if (may_lead && char_at(piece, letters).is(kLetter)) return found(run_end(piece, letters, kLetter) - pos);
  return numbers_symbols_space(piece, pos, kDigits, "\r\n");
}

// U*W+|U+W* with U = [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}], W = [\p{Ll}\p{Lm}\p{Lo}\p{M}]. Letters without case are in both,
// so that U* may have to give some back.
struct CasedWord {
  size_t end;           // where it begins, if there is none
  bool has_lower_part;  // the first alternative matched
};
CasedWord cased_word(std::string_view piece, size_t pos) {
  size_t end = pos, after_lower = pos;
  Char c = char_at(piece, end);
  for (; c.is(kUpperOrNone); c = char_at(piece, end)) {
    end += c.bytes;
    if (c.is(kLowerOrNone)) after_lower = end;
  }
  if (c.is(kLowerOrNone)) return {run_end(piece, end, kLowerOrNone), true};
  if (after_lower > pos) return {after_lower, true};
  return {end, false};
}

enum class Suffix { none, contraction };

// P?U*W+S?|P?U+W*S?| and the rest above, with P = [^\r\n\p{L}\p{N}] and S the contractions in either case.
template <int kDigits, Suffix kSuffix>
Match o200k(std::string_view piece, size_t pos) {
  const Char first = char_at(piece, pos);
  size_t end = pos;
  if (first.is(kLetter)) {
    end = cased_word(piece, pos).end;
  } else if (!is_newline(first.value) && !first.is(kNumber)) {
    const size_t second = pos + first.bytes;
    const CasedWord word = cased_word(piece, second);
    const bool mark_alone = !word.has_lower_part && first.is(kLowerOrNone);  // P? empty, the mark is W+
    end = mark_alone ? second : word.end > second ? word.end : pos;
  }
  if (end == pos) return numbers_symbols_space(piece, pos, kDigits, "\r\n/");
  if (kSuffix == Suffix::contraction && end < piece.size() && piece[end] == '\'') {
    end += contraction(piece, end, Case::any);
  }
  return found(end - pos);
}

// \p{N}
Match number(std::string_view piece, size_t pos) {
  const Char c = char_at(piece, pos);
  return {c.is(kNumber), c.bytes};
}

// \p{N}+
Match numbers(std::string_view piece, size_t pos) {
  const size_t end = run_end(piece, pos, kNumber);
  return end > pos ? found(end - pos) : none(char_at(piece, pos).bytes);
}

// [0-9][0-9][0-9]
Match three_digits(std::string_view piece, size_t pos) {
  auto digit = [&](size_t at) { return at < piece.size() && piece[at] >= '0' && piece[at] <= '9'; };
  if (digit(pos) && digit(pos + 1) && digit(pos + 2)) return found(3);
  return none(char_at(piece, pos).bytes);
}

// [\p{P}\$\+<=>\^~\|]+
Match punctuation(std::string_view piece, size_t pos) {
  auto wanted = [](const Char& c) {
    constexpr std::string_view symbols = "$+<=>^~|";
    return c.is(kPunctuation) || (c.value < 0x80 && symbols.find(static_cast<char>(c.value)) != symbols.npos);
  };
  const size_t end = run_end_if(piece, pos, wanted);
  return end > pos ? found(end - pos) : none(char_at(piece, pos).bytes);
}

// [\r\n]
Match newline(std::string_view piece, size_t pos) {
  const Char c = char_at(piece, pos);
  return {is_newline(c.value), c.bytes};
}

// \s+$
Match trailing_space(std::string_view piece, size_t pos) {
  const size_t end = run_end(piece, pos, kSpace);
  if (end == pos) return none(char_at(piece, pos).bytes);
  return {end == piece.size(), end - pos};  // a run that is not the last has no match inside: skip it whole
}

struct Range {
  uint32_t first, last;
};

template <size_t N>
bool in_any(uint32_t c, const std::array<Range, N>& ranges) {
  for (const Range& range : ranges) {
    if (c >= range.first && c <= range.last) return true;
  }
  return false;
}

// \s?X+ for a set X of characters, which may hold white space itself.
template <class Predicate>
Match spaced_run(std::string_view piece, size_t pos, Predicate wanted) {
  const Char first = char_at(piece, pos);
  const size_t begin = first.is(kSpace) ? pos + first.bytes : pos;
  size_t end = run_end_if(piece, begin, wanted);
  if (end == begin && begin > pos) end = run_end_if(piece, pos, wanted);  // the optional space as the run itself
  return end > pos ? found(end - pos) : none(first.bytes);
}

// \s?C+ with C the cased letters deepseek-llm lists: Lu, Ll and Lt without Armenian small letters, Georgian and some
// others.
Match deepseek_word(std::string_view piece, size_t pos) {
  static constexpr std::array<Range, 12> kLeftOut = {{{0x560, 0x588},
                                                      {0x10C7, 0x10C7},
                                                      {0x10CD, 0x10CD},
                                                      {0x10D0, 0x10FF},
                                                      {0x1C80, 0x1C8F},
                                                      {0x2D00, 0x2D2D},
                                                      {0xA790, 0xA7FF},
                                                      {0xAB30, 0xAB68},
                                                      {0x10570, 0x105BC},
                                                      {0x16E40, 0x16E7F},
                                                      {0x1D400, 0x1D7CB},
                                                      {0x1DF00, 0x1DFFF}}};
  return spaced_run(piece, pos, [](const Char& c) { return c.is(kCased) && !in_any(c.value, kLeftOut); });
}

// \s?[!-/:-~！-／：-～‘-‟　-。]+ : what deepseek-llm calls punctuation; the range :-~ holds the ASCII letters too.
Match deepseek_punctuation(std::string_view piece, size_t pos) {
  static constexpr std::array<Range, 6> kSet = {
      {{0x21, 0x2F}, {0x3A, 0x7E}, {0xFF01, 0xFF0F}, {0xFF1A, 0xFF5E}, {0x2018, 0x201F}, {0x3000, 0x3002}}};
  return spaced_run(piece, pos, [](const Char& c) { return in_any(c.value, kSet); });
}

// [ࠀ-龥가-퟿]+
Match deepseek_cjk(std::string_view piece, size_t pos) {
  static constexpr std::array<Range, 2> kSet = {{{0x800, 0x9FA5}, {0xAC00, 0xD7FF}}};
  const size_t end = run_end_if(piece, pos, [](const Char& c) { return in_any(c.value, kSet); });
  return end > pos ? found(end - pos) : none(char_at(piece, pos).bytes);
}

// \p{N}{1,3}
Match up_to_three_numbers(std::string_view piece, size_t pos) {
  int left = 3;
  const size_t end = run_end_if(piece, pos, [&](const Char& c) { return c.is(kNumber) && left-- > 0; });
  return end > pos ? found(end - pos) : none(char_at(piece, pos).bytes);
}

// [一-龥぀-ゟ゠-ヿ]+
Match han_and_kana(std::string_view piece, size_t pos) {
  static constexpr std::array<Range, 2> kSet = {{{0x4E00, 0x9FA5}, {0x3040, 0x30FF}}};
  const size_t end = run_end_if(piece, pos, [](const Char& c) { return in_any(c.value, kSet); });
  return end > pos ? found(end - pos) : none(char_at(piece, pos).bytes);
}

// A[A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+ with A the ASCII
// punctuation and symbols.
Match deepseek_v3_word(std::string_view piece, size_t pos) {
  constexpr unsigned kWord = kLetter | kMark, kSign = kPunctuation | kSymbol;
  const Char first = char_at(piece, pos);
  if (first.value < 0x80 && first.is(kSign)) {
    auto ascii_letter = [](const Char& c) { return c.value < 0x80 && c.is(kLetter); };
    const size_t end = run_end_if(piece, pos + 1, ascii_letter);
    if (end > pos + 1) return found(end - pos);
  }
  if (first.is(kWord)) return found(run_end(piece, pos, kWord) - pos);
  const bool may_lead = !is_newline(first.value) && !first.is(kSign);
  if (may_lead && char_at(piece, pos + first.bytes).is(kWord)) {
    return found(run_end(piece, pos + first.bytes, kWord) - pos);
  }
  const size_t begin = first.value == ' ' ? pos + 1 : pos;
  if (char_at(piece, begin).is(kSign)) {
    const size_t end = run_end(piece, begin, kSign);
    return found(std::min(piece.find_first_not_of("\r\n", end), piece.size()) - pos);
  }
  if (size_t bytes = line_breaks(piece, pos)) return found(bytes);
  return first.is(kSpace) ? found(white_space(piece, pos)) : none(first.bytes);
}

// ---- The table ------------------------------------------------------------------------------------------------------

constexpr Expression kGpt2[] = {gpt2};
constexpr Expression kSmollm[] = {number, gpt2};
constexpr Expression kLlama3[] = {llama3<3>};
constexpr Expression kQwen2[] = {llama3<1>};
constexpr Expression kGpt4o[] = {o200k<3, Suffix::contraction>};
constexpr Expression kTekken[] = {o200k<1, Suffix::none>};
constexpr Expression kDefault[] = {punctuation, gpt2, numbers, three_digits};
constexpr Expression kDeepseekV3[] = {up_to_three_numbers, han_and_kana, deepseek_v3_word};
constexpr Expression kDeepseekLlm[] = {newline,        deepseek_word, deepseek_punctuation,
                                       trailing_space, deepseek_cjk,  numbers};

// Every name a GGUF file may give. To add a pre-tokenizer, add its expressions above and one row here.
constexpr Pretokenizer kTable[] = {
    {"default", kDefault},
    {"gpt-2", kGpt2},
    {"phi-2", kGpt2},
    {"mpt", kGpt2},
    {"olmo", kGpt2},
    {"jais", kGpt2},
    {"exaone4", kGpt2},
    {"trillion", kGpt2},
    {"granite-docling", kGpt2},
    {"gigachat", kGpt2},
    {"a.x-4.0", kGpt2},
    {"mellum", kGpt2},
    {"smollm", kSmollm},
    {"starcoder", kSmollm},
    {"refact", kSmollm},
    {"command-r", kSmollm},
    {"codeshell", kSmollm},
    {"exaone", kSmollm},
    {"minerva-7b", kSmollm},
    {"mellum2", kSmollm},
    {"llama-bpe", kLlama3, true, true},
    {"llama3", kLlama3, true, true},
    {"llama-v3", kLlama3, true, true},
    {"falcon3", kLlama3, true, true},
    {"falcon-h1", kLlama3, true, true},
    {"pixtral", kLlama3, true, true},
    {"midm-2.0", kLlama3, true, true},
    {"lfm2", kLlama3, true, true},
    {"dbrx", kLlama3},
    {"smaug-bpe", kLlama3},
    {"chatglm-bpe", kLlama3},
    {"glm4", kLlama3, true},
    {"glm5", kLlama3, true},
    {"qwen2", kQwen2},
    {"stablelm2", kQwen2},
    {"deepseek-r1-qwen", kQwen2},
    {"megrez", kQwen2},
    {"hunyuan", kQwen2},
    {"kormo", kQwen2},
    {"f2llmv2", kQwen2},
    {"solar-open", kQwen2},
    {"grok-2", kQwen2},
    {"gpt-4o", kGpt4o},
    {"llama4", kGpt4o},
    {"kanana2", kGpt4o},
    {"tekken", kTekken, true, true},
    {"deepseek-llm", kDeepseekLlm},
    {"deepseek-v3", kDeepseekV3},
    {"hunyuan-dense", kDeepseekV3},
};

void split_with(std::span<const Expression> expressions, std::string_view piece,
                FunctionRef<void(std::string_view)> word) {
  if (expressions.empty()) return word(piece);
  const Expression match_at = expressions.front();
  const auto rest = expressions.subspan(1);
  size_t gap = 0;  // where the text since the last match begins
  for (size_t pos = 0; pos < piece.size();) {
    const Match match = match_at(piece, pos);
    if (match.found) {
      if (pos > gap) split_with(rest, piece.substr(gap, pos - gap), word);
      split_with(rest, piece.substr(pos, match.bytes), word);
      gap = pos + match.bytes;
    }
    pos += match.bytes;
  }
  if (gap < piece.size()) split_with(rest, piece.substr(gap), word);
}

}  // namespace

void Pretokenizer::split(std::string_view text, FunctionRef<void(std::string_view)> word) const {
  if (!text.empty()) split_with(expressions, text, word);
}

const Pretokenizer* find_pretokenizer(std::string_view name) {
  for (const Pretokenizer& row : kTable) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

std::string pretokenizer_names() {
  std::string names;
  for (const Pretokenizer& row : kTable) {
    if (!names.empty()) names += ", ";
    names += row.name;
  }
  return names;
}

}  // namespace ridge
