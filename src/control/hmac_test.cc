// Against the test vectors of RFC 4231.
#include "control/hmac.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace assay::control {
namespace {

std::string hex(const Sha256& digest) {
  std::string text;
  for (const char c : digest) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

TEST(Hmac, PublishedVectors) {
  EXPECT_EQ(hex(hmac_sha256(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex(hmac_sha256(std::string(131, '\xaa'),
                            "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Hmac, Comparison) {
  const Sha256 a = random_nonce();
  EXPECT_TRUE(equal_digests(a, view(a)));
  EXPECT_FALSE(equal_digests(a, view(random_nonce())));
  EXPECT_FALSE(equal_digests(a, view(a).substr(1)));
  EXPECT_FALSE(equal_digests(a, ""));
}

}  // namespace
}  // namespace assay::control
