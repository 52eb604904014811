// Keeps the C library's heap small and steady under a memory budget: one arena, large blocks returned at once.
#pragma once

namespace ridge {

void tune_heap();  // once, before threads start
void trim_heap();  // gives free memory back, after loading

}  // namespace ridge
