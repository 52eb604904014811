#include "report/doctor_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/units.h"

namespace ridge {
namespace {

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::ok:
      return "ok";
    case Verdict::note:
      return "note";
    case Verdict::problem:
      break;
  }
  return "problem";
}

// Breaks at blanks so that no line is longer than `width`; further lines are indented by `indent`.
std::string wrapped(const std::string& text, size_t width, size_t indent) {
  std::string out;
  size_t column = indent;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find_first_of(" \n", at), text.size());
    const std::string word = printable(text.substr(at, end - at));
    if (column > indent && column + 1 + word.size() > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    }
    if (column > indent) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    at = std::min(text.find_first_not_of(" \n", end), text.size());
  }
  return out;
}

}  // namespace

std::string doctor_table(std::span<const Finding> findings) {
  constexpr size_t kWidth = 80, kIndent = 26;
  std::string text;
  size_t notes = 0, problems = 0;
  for (const Finding& f : findings) {
    text += fmt::format("{:<8} {:<16} {}\n", name_of(f.verdict), f.topic, wrapped(f.fact, kWidth, kIndent));
    if (!f.advice.empty()) {
      text += std::string(kIndent, ' ') + wrapped("→ " + f.advice, kWidth, kIndent) + "\n";
    }
    notes += f.verdict == Verdict::note;
    problems += f.verdict == Verdict::problem;
  }
  return text + fmt::format("\n{}: {}, {}\n", counted(findings.size(), "fact"), counted(problems, "problem"),
                            counted(notes, "note"));
}

nlohmann::ordered_json doctor_json(std::span<const Finding> findings, const std::optional<Error>& impossible) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Finding& f : findings) {
    nlohmann::ordered_json one = {{"topic", f.topic}, {"verdict", name_of(f.verdict)}, {"fact", f.fact}};
    if (!f.advice.empty()) one["advice"] = f.advice;
    list.push_back(std::move(one));
  }
  return {{"runs", !impossible.has_value()},
          {"exit_code", impossible ? static_cast<int>(impossible->code) : 0},
          {"findings", std::move(list)}};
}

}  // namespace ridge
