#include "hash/digest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace assay::hash {
namespace {

TEST(Digest, IsWrittenAsHexadecimalDigitsFirstByteFirst) {
  Digest digest;
  digest.bytes[0] = 0xaf;
  digest.bytes[31] = 0x02;
  EXPECT_EQ(digest.hex(), "af" + std::string(60, '0') + "02");
  EXPECT_LT(Digest{}, digest);
}

RC_GTEST_PROP(Digest, ReadsWhatItWrites, ()) {
  Digest digest;
  for (auto& byte : digest.bytes) byte = *rc::gen::arbitrary<std::uint8_t>();
  RC_ASSERT(parse_digest(digest.hex()) == digest);
}

TEST(Digest, ReadsCapitals) {
  EXPECT_EQ(parse_digest(std::string(64, 'A'))->hex(), std::string(64, 'a'));
}

TEST(Digest, RefusesWhatIsNone) {
  EXPECT_EQ(parse_digest("af13").error().line(),
            "a digest cannot have 4 characters; expected 64 hexadecimal digits");
  for (const char bad : {'g', 'G', ' ', '/', ':', '@', '`', '\0', '\xff'}) {
    std::string text(64, '0');
    text[63] = bad;
    const auto parsed = parse_digest(text);
    ASSERT_FALSE(parsed);
    EXPECT_EQ(parsed.error().code, base::ExitCode::kUsage);
  }
}

}  // namespace
}  // namespace assay::hash
