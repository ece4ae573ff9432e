#include "base/host_port.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace assay::base {
namespace {

TEST(HostPort, IsReadAndWritten) {
  for (const char* text : {"node1:29500", "10.0.0.1:1", "[::1]:65535", "[fe80::1%eth0]:80"}) {
    const auto address = parse_host_port("V", text, "");
    ASSERT_TRUE(address) << address.error().line();
    EXPECT_EQ(to_text(*address), text);
  }
  EXPECT_EQ(parse_host_port("V", "[::1]:80", "")->host, "::1");
}

TEST(HostPort, APortAloneIsOfTheDefaultHost) {
  EXPECT_EQ(parse_host_port("V", "9400", "", "127.0.0.1"), (HostPort{"127.0.0.1", 9400}));
  EXPECT_EQ(parse_host_port("V", "9400", "", "::1"), (HostPort{"::1", 9400}));
  EXPECT_EQ(parse_host_port("V", "0.0.0.0:0", "", "127.0.0.1"), (HostPort{"0.0.0.0", 0}));
  EXPECT_FALSE(parse_host_port("V", ":9400", "", "127.0.0.1")) << "an empty host is none";
  EXPECT_FALSE(parse_host_port("V", "::1:80", "", "127.0.0.1"));
  EXPECT_FALSE(parse_host_port("V", "", "", "127.0.0.1"));
}

TEST(HostPort, BadTextIsRefusedInOneLine) {
  for (const char* text : {"", "node", ":1", "node:", "node:x", "node:65536", "node:-1", "::1:80",
                           "[]:80", "[::1:80", "no de:80", "node:1 "}) {
    const auto address = parse_host_port("ASSAY_RENDEZVOUS", text, "write HOST:PORT");
    ASSERT_FALSE(address) << text;
    EXPECT_EQ(address.error().code, ExitCode::kUsage);
    EXPECT_THAT(address.error().line(), ::testing::StartsWith("ASSAY_RENDEZVOUS: '"));
  }
  EXPECT_EQ(parse_host_port("V", "node", "write HOST:PORT").error().line(),
            "V: 'node' is not an address: it has no port; write HOST:PORT");
}

RC_GTEST_PROP(HostPort, WhatIsReadIsWrittenAsItWas, (const std::string& text)) {
  const auto address = parse_host_port("V", text, "");
  // A port may be written with zeros in front, a host with needless brackets.
  if (address) RC_ASSERT(parse_host_port("V", to_text(*address), "").value() == *address);
}

}  // namespace
}  // namespace assay::base
