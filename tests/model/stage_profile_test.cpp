#include "model/stage_profile.h"

#include <gtest/gtest.h>

#include <thread>

namespace ridge {
namespace {

using std::chrono::milliseconds;

void pass_time() { std::this_thread::sleep_for(milliseconds(2)); }

TEST(StageProfile, StagesKeepOnlyWhatIsTheirOwn) {
  StageProfile profile;
  auto begin = StageProfile::Clock::now();
  profile.start();
  {
    StageTimer outer(&profile, Stage::bias);
    {
      StageTimer product(&profile, Stage::product, 7);
      pass_time();
      {
        StageTimer inner(&profile, Stage::quantize);
        pass_time();
      }
      pass_time();
    }
  }
  profile.stop();
  auto whole = StageProfile::Clock::now() - begin;
  EXPECT_GE(profile.time(Stage::product), milliseconds(4));
  EXPECT_GE(profile.time(Stage::quantize), milliseconds(2));
  EXPECT_EQ(profile.products().at(7), profile.time(Stage::product));
  StageProfile::Duration sum{0};
  for (size_t i = 0; i < kStageCount; ++i) sum += profile.time(static_cast<Stage>(i));
  EXPECT_LE(sum, whole);  // nothing is counted twice
  EXPECT_GE(sum, milliseconds(6));
}

TEST(StageProfile, CountsNothingUnlessItListens) {
  StageProfile profile;
  {
    StageTimer timer(&profile, Stage::rope);
    StageTimer nobody(nullptr, Stage::rope);
    pass_time();
  }
  EXPECT_EQ(profile.time(Stage::rope).count(), 0);
  profile.start();
  profile.stop();
  {
    StageTimer timer(&profile, Stage::rope);
    pass_time();
  }
  EXPECT_EQ(profile.time(Stage::rope).count(), 0);
}

}  // namespace
}  // namespace ridge
