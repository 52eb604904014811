#include "plan/account.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"

namespace ridge {

uint64_t named_budget(uint64_t least) {
  constexpr uint64_t kSpread = 256 * kKiB;
  return round_up(least + kSpread, kMiB);
}

std::string budget_text(uint64_t named) { return fmt::format("{}M", (named + kMiB - 1) / kMiB); }

uint64_t Account::total() const {
  uint64_t sum = 0;
  for (const AccountItem& i : items_) sum += i.bytes;
  return sum;
}

std::string Account::table() const {
  size_t width = 5;
  for (const AccountItem& i : items_) width = std::max(width, i.name.size());
  std::string text;
  for (const AccountItem& i : items_) {
    if (i.bytes != 0) text += fmt::format("  {:<{}}  {:>9}\n", i.name, width, format_bytes(i.bytes));
  }
  return text + fmt::format("  {:<{}}  {:>9}\n", "total", width, format_bytes(total()));
}

}  // namespace ridge
