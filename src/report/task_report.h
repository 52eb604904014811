// What a trained cache did about tasks, in words and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "engine/engine.h"

namespace ridge {

// "task chat → code at pass 41: 18 pins (2.1 MiB) read again over 3 passes, 12.4 ms"
std::string switch_words(const TaskTable& table, const TaskSwitch& change);
// A cell of a table: the present task and its pins, and the changes so far. The engine has trained its cache.
std::string task_words(const Engine& engine);
// null where no cache is trained.
nlohmann::ordered_json task_json(const Engine& engine);

}  // namespace ridge
