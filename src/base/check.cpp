#include "base/check.h"

#include <unistd.h>

#include <cstdio>

namespace ridge {

void check_failed(const char* file, int line, const char* condition, const char* message) {
  std::fprintf(stderr, "ridge: bug at %s:%d: %s (%s); please report it with the command you ran\n", file, line, message,
               condition);
  std::fflush(nullptr);
  ::_exit(70);
}

}  // namespace ridge
