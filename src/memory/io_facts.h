// How weights would be read from a file: the same attempts that a run makes (io_uring, O_DIRECT with a real read), kept
// apart from it so that they can be told without one.
//
//   IoFacts facts = RIDGE_TRY(io_facts("model.gguf"));
//   facts.direct, facts.refusal, facts.engine
#pragma once

#include <string>

#include "base/result.h"
#include "memory/syscalls.h"

namespace ridge {

struct IoFacts {
  std::string path;
  bool direct = false;        // past the page cache, proved by a read
  std::string refusal;        // why not
  std::string mode;           // "O_DIRECT", "buffered with RWF_DONTCACHE", …
  DirectAlignment alignment;  // STATX_DIOALIGN
  bool uring_tried = false;   // not where O_DIRECT is refused: io_uring would gain nothing there
  int uring_error = 0;        // errno of setting up a ring; 0: it works
  std::string engine;         // what reads, and why nothing better does: IoEngine::description()
  bool read_works = false;    // the engine read the first block
  std::string read_error;
};

// Bad input for a file that cannot be opened.
Result<IoFacts> io_facts(const std::string& path, Syscalls* syscalls = nullptr);

}  // namespace ridge
