#include "observe/wire/gpu_uuid.h"

#include <gtest/gtest.h>

namespace assay::wire {
namespace {

TEST(GpuUuid, IsReadAsItIsWritten) {
  const GpuUuid uuid = {0x0123456789ABCDEF, 0xFEDCBA9876543210};
  char text[kGpuUuidTextSize + 1];
  for (const char* kind : {"GPU", "MIG"}) {
    print_uuid(kind, uuid, text);
    EXPECT_EQ(parse_uuid(text), uuid) << text;
  }
  EXPECT_STREQ(text, "MIG-efcdab89-6745-2301-1032-547698badcfe");
  EXPECT_EQ(uuid_text(uuid), "GPU-efcdab89-6745-2301-1032-547698badcfe");
}

TEST(GpuUuid, BytesAreInTheOrderOfTheDriver) {
  const auto uuid = parse_uuid("GPU-00112233-4455-6677-8899-aabbccddeeff");
  ASSERT_TRUE(uuid);
  EXPECT_EQ((*uuid)[0], 0x7766554433221100U);  // as cuDeviceGetUuid fills memory
  EXPECT_EQ(parse_uuid("MIG-00112233-4455-6677-8899-AABBCCDDEEFF"), uuid);
  EXPECT_EQ(parse_uuid("gpu-00112233-4455-6677-8899-aabbccddeeff"), uuid);
}

TEST(GpuUuid, OtherTextIsRefused) {
  for (const char* other :
       {"", "GPU", "GPU-", "GPU-0011", "00112233-4455-6677-8899-aabbccddeeff",
        "TPU-efcdab89-6745-2301-1032-547698badcfe",
        "MIG-GPU-efcdab89-6745-2301-1032-547698badcfe/1/0", "GPU-efcdab89-6745-2301-1032-54769",
        "GPU-00112233-4455-6677-8899-aabbccddeeff0", "GPU-efcdab89-6745-2301-1032-547698badcfe00",
        "GPU-0011223g-4455-6677-8899-aabbccddeeff", "GPU-efcdab8g-6745-2301-1032-547698badcfe"}) {
    EXPECT_FALSE(parse_uuid(other)) << other;
  }
}

}  // namespace
}  // namespace assay::wire
