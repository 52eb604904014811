// The types of weights by the names that people and files write.
//
//   std::optional<Type> type = type_named("Q4_K");
#pragma once

#include <optional>
#include <string_view>

#include "tensor/types.h"

namespace ridge {

// As in the table of types, capitals included; none: no type has this name.
std::optional<Type> type_named(std::string_view name);

}  // namespace ridge
