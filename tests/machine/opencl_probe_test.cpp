// The probe of OpenCL devices, where a driver is there (PoCL makes the CPU one); elsewhere that it says what is
// missing.
#include "machine/opencl_probe.h"

#include <gtest/gtest.h>

#include "base/units.h"

namespace ridge {
namespace {

TEST(OpenCl, MeasuresADevice) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "drivers keep memory of their own, which AddressSanitizer calls leaks";
#endif
  const auto devices = opencl_devices();
  if (!devices.ok()) GTEST_SKIP() << "no OpenCL device: " << devices.error().message;
  auto profile = probe_opencl({.quick = true, .most_bytes = 2 * kMiB});
  ASSERT_TRUE(profile.ok()) << profile.error().message;
  const MachineProfile& p = profile.value();
  EXPECT_EQ(p.name, devices.value().front());
  ASSERT_GE(p.reads.size(), 1u);
  EXPECT_EQ(p.reads.size(), p.streams.size());
  EXPECT_EQ(p.reads.back().footprint_bytes, 2 * kMiB);
  for (const ReadPoint& r : p.reads) EXPECT_GT(r.gb_per_s.value, 0);
  EXPECT_GT(p.peak_gops("f32", 1).value_or(0), 0);
  ASSERT_NE(p.figure("memory_bytes"), nullptr);

  const std::string path = testing::TempDir() + "/opencl.toml";
  ASSERT_TRUE(save_profile(p, path).ok());
  const auto back = load_profile(path);
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(back.value().reads.size(), p.reads.size());

  const auto absent = probe_opencl({.device = devices.value().size(), .quick = true});
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.error().code, ErrorCode::usage);
}

TEST(OpenCl, SaysWhatIsMissing) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "drivers keep memory of their own, which AddressSanitizer calls leaks";
#endif
  const auto devices = opencl_devices();
  if (devices.ok()) GTEST_SKIP() << "there is an OpenCL device";
  EXPECT_EQ(devices.error().code, ErrorCode::io);
  EXPECT_NE(devices.error().message.find("install"), std::string::npos) << devices.error().message;
  EXPECT_EQ(probe_opencl({}).error().message, devices.error().message);
}

}  // namespace
}  // namespace ridge
