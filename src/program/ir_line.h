// The lines of an IR as ir.cpp prints them, for ir_read.cpp, which takes no line that would be printed otherwise.
// Internal to program/.
#pragma once

#include <string>
#include <string_view>

#include "program/ir.h"

namespace ridge {

inline constexpr std::string_view kIrFirstLine = "ridge-ir 1";

std::string ir_quoted(std::string_view text);
std::string ir_head(const Ir& ir);
std::string ir_target(const Ir& ir);
std::string ir_line(const IrFile& file);
std::string ir_line(const IrTier& tier);
std::string ir_line(const IrBlock& block);
std::string ir_line(const IrKv& kv);
std::string ir_end(const Ir& ir);

}  // namespace ridge
