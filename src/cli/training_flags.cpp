#include "cli/training_flags.h"

#include <fmt/format.h>

#include "cli/command_line.h"

namespace ridge::cli {

void add_training_flags(CLI::App& c, TrainingFlags& f, distill::Optimizer& o, const char* seeded) {
  c.add_option("--steps", f.steps, "batches to learn from")->type_name("N")->capture_default_str();
  c.add_option("--batch", f.batch, "windows of a batch")->type_name("N")->capture_default_str();
  c.add_option("--rate", o.rate, "learning rate")->type_name("X")->capture_default_str();
  c.add_option("--warmup", o.warmup, "share of the steps in which it rises")->type_name("X")->capture_default_str();
  c.add_option("--decay", o.decay, "weight decay")->type_name("X")->capture_default_str();
  c.add_option("--clip", o.clip, "largest norm of the gradient")->type_name("X")->capture_default_str();
  c.add_option("--seed", f.seed, seeded)
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Validator(refuse_negative, ""));
  c.add_flag("--resume", f.resume, "go on from what was kept last");
  c.add_option("--checkpoint-every", f.checkpoint_every, "steps")->type_name("N")->capture_default_str();
  c.add_option("--evaluate-every", f.evaluate_every, "steps")->type_name("N")->capture_default_str();
  c.add_option("--validation-tokens", f.validation_tokens, "that judge it")->type_name("N")->capture_default_str();
}

Result<uint32_t> whole_number(int64_t value, const char* flag) {
  if (value >= 0 && value <= INT32_MAX) return static_cast<uint32_t>(value);
  return usage_error(fmt::format("{} {} cannot be used: give a number from 1 on", flag, value));
}

}  // namespace ridge::cli
