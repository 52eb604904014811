// The policy against passes of known cost, and the lookup of n-grams.
#include "engine/draft_policy.h"

#include <gtest/gtest.h>

#include "engine/draft_ngram.h"

namespace ridge {
namespace {

std::array<float, kGuessKinds> half() {
  std::array<float, kGuessKinds> priors;
  priors.fill(0.5f);
  return priors;
}

// A text whose guesses are right with a chance, on a machine where a pass costs 1 s and each draft `slope` more.
struct World {
  double slope = 0.1, guess_s = 0, noise = 0;
  uint32_t state = 1;
  double seconds = 0;
  uint64_t tokens = 0, checked = 0, guessed = 0;

  bool right(double chance) {
    state = state * 1664525u + 1013904223u;
    return static_cast<double>(state >> 8) < chance * static_cast<double>(1 << 24);
  }

  void pass(DraftPolicy& policy, double chance, size_t most = 8) {
    std::vector<Guess> guesses;
    double hope = 1;
    while (guesses.size() < most && (guess_s == 0 || policy.worth_guessing(hope))) {
      guesses.push_back({.id = 1, .kind = 3});
      hope *= policy.rate(3);
      if (!policy.worth_checking(hope)) break;
    }
    const size_t count = policy.worth_checking(guesses);
    size_t kept = 0;
    for (size_t i = 0; i < guesses.size(); ++i) {
      const bool hit = right(chance);
      policy.learn(3, hit);
      if (!hit) break;
      kept += i < count ? 1 : 0;
    }
    state = state * 1664525u + 1013904223u;
    const double extra = right(0.3) ? noise * static_cast<double>(state >> 8) / static_cast<double>(1 << 24) : 0;
    const double draft = guess_s * static_cast<double>(guesses.size());
    policy.note_pass({.checked = count,
                      .tokens = kept + 1,
                      .guesses = guesses.size(),
                      .check_s = 1 + slope * static_cast<double>(count) + extra,
                      .draft_s = draft});
    seconds += 1 + slope * static_cast<double>(count) + draft;
    tokens += kept + 1;
    checked += count;
    guessed += guesses.size();
  }
  void reset() { seconds = 0, tokens = checked = guessed = 0; }
};

TEST(DraftPolicy, StopsWhereGuessesAreWrong) {
  for (double slope : {0.01, 0.1, 0.5, 0.9}) {
    DraftPolicy policy(half());
    World world{.slope = slope};
    for (int i = 0; i < 400; ++i) world.pass(policy, 0);
    EXPECT_LT(world.seconds / 400, 1.03) << slope;  // a pass without drafts takes 1 s
  }
}

TEST(DraftPolicy, ChecksAllWhereTheyAreRight) {
  DraftPolicy policy(half());
  World world{.slope = 0.05};
  for (int i = 0; i < 40; ++i) world.pass(policy, 1);
  EXPECT_GT(world.checked, 36u * 8);
}

// The best constant draft length is found by trying all: the policy must come close to it, and never do worse than
// none.
TEST(DraftPolicy, ComesCloseToTheBestLength) {
  for (double slope : {0.01, 0.05, 0.2, 0.5}) {
    for (double chance : {0.1, 0.3, 0.5, 0.7, 0.9}) {
      double best = 0;
      for (int k = 0; k <= 8; ++k) {
        double expected = 0, all = 1;
        for (int i = 0; i <= k; ++i, all *= chance) expected += all;
        best = std::max(best, expected / (1 + slope * k));
      }
      DraftPolicy policy(half());
      World world{.slope = slope};
      for (int i = 0; i < 200; ++i) world.pass(policy, chance);
      world.reset();
      for (int i = 0; i < 3000; ++i) world.pass(policy, chance);
      const double rate = static_cast<double>(world.tokens) / world.seconds;
      EXPECT_GT(rate, 0.93 * best) << slope << ", " << chance;
      EXPECT_GT(rate, 0.97) << slope << ", " << chance;
    }
  }
}

// Other work on the machine makes passes up to five times as long, whatever is in them.
TEST(DraftPolicy, StandsNoise) {
  DraftPolicy policy(half());
  World world{.slope = 0.02, .noise = 4};
  for (int i = 0; i < 1000; ++i) world.pass(policy, 0.8);
  EXPECT_GT(world.checked, 4000u);  // of 8000; at this chance and cost eight are best
}

TEST(DraftPolicy, ComesBackWhenTheTextChanges) {
  DraftPolicy policy(half());
  World world{.slope = 0.3};
  for (int i = 0; i < 200; ++i) world.pass(policy, 0);
  world.reset();
  for (int i = 0; i < 60; ++i) world.pass(policy, 1);
  EXPECT_GT(world.checked, 30u * 8);
}

// Guesses that take time are made rarely while they are wrong, and again when they are right.
TEST(DraftPolicy, GuessesRarelyWhatCostsAndFails) {
  DraftPolicy policy(half());
  World world{.slope = 0.1, .guess_s = 0.4};
  for (int i = 0; i < 200; ++i) world.pass(policy, 0);
  world.reset();
  for (int i = 0; i < 640; ++i) world.pass(policy, 0);
  EXPECT_LE(world.guessed, 20u);
  EXPECT_GE(world.guessed, 5u);
  world.reset();
  for (int i = 0; i < 2000; ++i) world.pass(policy, 1);
  EXPECT_GT(static_cast<double>(world.tokens) / world.seconds, 1.3);
}

std::optional<Guess> look(std::vector<TokenId> line, size_t longest = 4) {
  return NgramDrafter::look_up(line, longest);
}

TEST(Ngrams, LongestMatchCounts) {
  EXPECT_FALSE(look({1}));
  EXPECT_FALSE(look({1, 2, 3}));
  EXPECT_EQ(look({1, 1})->id, 1);
  EXPECT_EQ(look({1, 2, 3, 9, 2, 4, 1, 2})->id, 3);              // 1 2 is longer than 2
  EXPECT_EQ(look({1, 2, 3, 9, 2, 4, 1, 2}, 1)->id, 4);           // of single tokens the most recent
  EXPECT_EQ(look({5, 3, 9, 5, 3, 7, 5, 3, 9, 8, 5, 3})->id, 9);  // two votes to one
  EXPECT_EQ(look({5, 3, 9, 5, 3, 7, 5, 3})->id, 7);              // one to one
  EXPECT_NE(look({5, 3, 9, 5, 3, 7, 5, 3})->kind, look({5, 3, 9, 5, 3, 9, 5, 3})->kind);
  EXPECT_EQ(look({6, 6, 6, 6})->id, 6);
}

TEST(Ngrams, AgainstAllPlaces) {
  uint32_t state = 3;
  for (int round = 0; round < 300; ++round) {
    std::vector<TokenId> line(2 + round % 40);
    for (TokenId& id : line) id = static_cast<TokenId>((state = state * 1664525u + 1013904223u) >> 28) % 3;
    const size_t longest = 1 + static_cast<size_t>(round % 5);
    // By definition: the most frequent follower of the longest end that occurs before.
    size_t length = std::min(longest, line.size() - 1);
    std::vector<TokenId> followers;
    for (; length > 0 && followers.empty(); --length) {
      for (size_t at = 0; at + length < line.size(); ++at) {
        if (std::equal(line.end() - static_cast<ptrdiff_t>(length), line.end(),
                       line.begin() + static_cast<ptrdiff_t>(at)))
          followers.push_back(line[at + length]);
      }
    }
    auto got = look(line, longest);
    ASSERT_EQ(got.has_value(), !followers.empty());
    if (!got) continue;
    auto votes = [&](TokenId id) { return std::count(followers.begin(), followers.end(), id); };
    for (TokenId id : followers) EXPECT_LE(votes(id), votes(got->id));
  }
}

}  // namespace
}  // namespace ridge
