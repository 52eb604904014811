#include "report/doctor_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "report/wrapped.h"

namespace ridge {
namespace {

const char* name_of(Severity verdict) {
  switch (verdict) {
    case Severity::ok:
      return "ok";
    case Severity::note:
      return "note";
    case Severity::problem:
      break;
  }
  return "problem";
}

}  // namespace

std::string doctor_table(std::span<const Finding> findings) {
  constexpr size_t kIndent = 26;
  std::string text;
  size_t notes = 0, problems = 0;
  for (const Finding& f : findings) {
    text += fmt::format("{:<8} {:<16} {}\n", name_of(f.verdict), f.topic, wrapped(f.fact, kIndent));
    if (!f.advice.empty()) {
      text += std::string(kIndent, ' ') + wrapped("→ " + f.advice, kIndent) + "\n";
    }
    notes += f.verdict == Severity::note;
    problems += f.verdict == Severity::problem;
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
