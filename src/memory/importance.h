// How much a block is worth keeping: the uses that its history promises, as a number that caches compare.
//
// Time is counted in passes, and within a pass by where a block's turn is (0 … 1): a block whose turn has gone by
// unused has missed a chance, one whose turn is still to come has not. The estimate is linear in what is known of a
// block: how often it was used in training, how often lately (at several half-lives), and what other blocks that were
// just used foretell (a table of blocks that are used together, learned in training). Its weights come from training
// too (sim/importance_training.h); without it the decayed frequencies count alone. Not for: what is in a cache
// (cache_manager.h).
//
//   Importance importance(model);
//   importance.begin_pass();
//   importance.note_use(block);
//   double uses = importance.expected_uses(block);     // those to come, each the less the later it is
//
// One thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ridge {

// Half-lives of decayed frequencies, in chances of use.
inline constexpr std::array<double, 5> kHalfLives = {0.7, 3, 12, 48, 192};
// 1, frequency in training, decayed frequencies, foretold by what was just used, and by what was used lately.
inline constexpr size_t kImportanceFeatures = 4 + kHalfLives.size();
// Passes after which a use counts half among what was used lately.
inline constexpr double kLatelyHalfLife = 6;
using ImportanceFeatures = std::array<double, kImportanceFeatures>;

// What the use of one block adds to the log odds of another's next turn: as reckoned before the pass of that turn
// (early), and once those before it in the pass are known (late).
struct ForetellingLink {
  uint32_t block = 0;
  float early = 0, late = 0;
};
struct LatelyLink {
  uint32_t block = 0;
  float log_odds = 0;
};
struct ImportanceModel {
  std::vector<float> frequency;  // by block: uses in a pass, in training; empty: no training
  std::vector<float> position;   // by block: of its turn in the pass, 0 … 1
  // By block: those that its use foretells, in this pass (late alone) and in the next.
  std::vector<std::vector<ForetellingLink>> same_pass, next_pass;
  std::vector<float> early_log_odds, late_log_odds;  // by block: where nothing foretells it
  std::vector<float> late_from;  // by block: where in the pass the last that may foretell it has its turn; 0: none does
  // The same by decayed uses of the last passes: what a text is about for a while.
  std::vector<std::vector<LatelyLink>> lately;
  std::vector<float> lately_log_odds;
  ImportanceFeatures weights = {};
  double discount = 0.8;  // of a use one pass later

  // Without training: decayed frequencies alone.
  static ImportanceModel untrained();
};

class Importance {
 public:
  explicit Importance(const ImportanceModel& model) : model_(model) {}

  void begin_pass();
  // The block's turn is now, and it is used.
  void note_use(uint32_t block);
  // Uses to come, discounted by passes until them; may be below 0 where the estimate is.
  double expected_uses(uint32_t block) const;
  ImportanceFeatures features(uint32_t block) const;
  // Chance that its next turn is used, by the table alone (0 without training).
  double foretold(uint32_t block) const;
  // The same by what was used lately.
  double foretold_lately(uint32_t block) const;
  // Passes until its next turn, above 0 up to 1.
  double until_turn(uint32_t block) const;
  double now() const { return now_; }  // where the pass is
  static uint64_t heap_bytes(size_t blocks);
  uint64_t pass() const { return pass_; }

 private:
  struct Evidence {
    float early = 0, late = 0;  // log odds
  };
  struct History {
    uint64_t chances = 0;  // turns that went by until its last use, that included
    std::array<double, kHalfLives.size()> decayed = {};
    float position = 0;
    bool known = false;
    std::array<Evidence, 2> evidence = {};  // for its turn in pass `evidence_of`, and in the one after
    uint64_t evidence_of = 0;
    float lately = 0;  // log odds as of pass `lately_of`
    uint64_t lately_of = 0;
  };
  History& history(uint32_t block);
  uint64_t chances(const History& h) const;
  void foretell(std::span<const ForetellingLink> links, uint64_t pass);
  float lately(const History& h) const;
  Evidence evidence(const History& h, uint64_t pass) const;

  const ImportanceModel& model_;
  std::vector<History> blocks_;
  uint64_t pass_ = 0, uses_in_pass_ = 0, uses_in_last_pass_ = 0;
  float now_ = 0;
};

}  // namespace ridge
