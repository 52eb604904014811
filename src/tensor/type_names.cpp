#include "tensor/type_names.h"

namespace ridge {

std::optional<Type> type_named(std::string_view name) {
  for (const TypeInfo& info : all_types()) {
    if (info.name == name) return info.type;
  }
  return std::nullopt;
}

}  // namespace ridge
