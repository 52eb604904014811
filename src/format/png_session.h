// What reading and writing with libpng share: its errors, which leave its functions by longjmp, end as a message here.
// Internal to format/ (png.h).
//
//   struct Reading : PngSession { … };
//   if (!session.runs([](PngSession& s) { png_read_info(s.png, s.info); })) return … session.message;
//
// Between runs() and libpng no object with a destructor may live: longjmp would pass it by. So a step is a plain
// function, and what it needs is a member of the session.
#pragma once

#include <png.h>

#include <csetjmp>
#include <cstdio>

namespace ridge {

struct PngSession {
  using Step = void (*)(PngSession&);

  png_structp png = nullptr;
  png_infop info = nullptr;
  char message[128] = {};  // libpng's words, once a step has failed
  std::jmp_buf jump;

  // False if the step failed.
  bool runs(Step step) {
    if (setjmp(jump) != 0) return false;
    step(*this);
    return true;
  }

  [[noreturn]] static void on_error(png_structp png, png_const_charp words) {
    auto* session = static_cast<PngSession*>(png_get_error_ptr(png));
    std::snprintf(session->message, sizeof session->message, "%s", words);
    std::longjmp(session->jump, 1);
  }
  static void on_warning(png_structp, png_const_charp) {}
};

}  // namespace ridge
