// What a run will charge to the process, item by item, before anything of it is allocated.
//
//   Account a;
//   a.add("KV cache (512 positions)", bytes);
//   if (a.total() > budget) return does_not_fit(a.table());
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ridge {

struct AccountItem {
  std::string name;
  uint64_t bytes = 0;
};

// A budget to tell people, bytes: `least` rounded up to whole MiB, after what a process's heap and its pages of code
// differ by from run to run. Whoever types what budget_text() says of it gets a run.
uint64_t named_budget(uint64_t least);
// As --memory takes it: "38M". Of a named budget.
std::string budget_text(uint64_t named);

class Account {
 public:
  void add(std::string name, uint64_t bytes) { items_.push_back({std::move(name), bytes}); }
  void add(const Account& other) { items_.insert(items_.end(), other.items_.begin(), other.items_.end()); }
  uint64_t total() const;
  const std::vector<AccountItem>& items() const { return items_; }
  // Lines of "  name   12.3 MiB", for people.
  std::string table() const;

 private:
  std::vector<AccountItem> items_;
};

}  // namespace ridge
