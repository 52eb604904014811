// Asks a model one question inside a memory budget: ask MODEL MEGABYTES QUESTION
#include <ridge/ridge.h>

#include <cstdlib>
#include <iostream>

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: ask MODEL MEGABYTES QUESTION\n";
    return 2;
  }
  uint64_t megabytes = std::strtoull(argv[2], nullptr, 10);
  auto model = ridge::api::Model::open({.path = argv[1], .memory_bytes = megabytes << 20, .context = 512});
  if (!model) {
    std::cerr << model.error() << "\n";
    return model.code();
  }
  auto answer = model.value().chat(argv[3], {.max_tokens = 64}, [](std::string_view text) {
    std::cout << text << std::flush;
    return true;
  });
  if (!answer) {
    std::cerr << answer.error() << "\n";
    return answer.code();
  }
  std::cout << "\n";
  return 0;
}
