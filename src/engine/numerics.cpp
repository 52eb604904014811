#include "engine/numerics.h"

#include <fmt/format.h>

namespace ridge {

Result<Numerics> parse_numerics(std::string_view name) {
  if (name == "default") return Numerics::standard;
  if (name == "exact") return Numerics::exact;
  if (name == "fast") return Numerics::fast;
  return usage_error(fmt::format("--numerics '{}' is unknown: use default, exact or fast", name));
}

const char* name_of(Numerics numerics) {
  switch (numerics) {
    case Numerics::exact:
      return "exact";
    case Numerics::fast:
      return "fast";
    case Numerics::standard:
      break;
  }
  return "default";
}

}  // namespace ridge
