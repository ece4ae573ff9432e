#include "control/endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace assay::control {
namespace {

TEST(Endpoint, IsReadAndWritten) {
  for (const char* text : {"node1:29500", "10.0.0.1:1", "[::1]:65535", "[fe80::1%eth0]:80"}) {
    const auto endpoint = parse_endpoint("V", text);
    ASSERT_TRUE(endpoint) << endpoint.error().line();
    EXPECT_EQ(to_text(*endpoint), text);
  }
  EXPECT_EQ(parse_endpoint("V", "[::1]:80")->host, "::1");
}

TEST(Endpoint, BadTextIsRefusedInOneLine) {
  for (const char* text : {"", "node", ":1", "node:", "node:x", "node:65536", "node:-1", "::1:80",
                           "[]:80", "[::1:80", "no de:80", "node:1 "}) {
    const auto endpoint = parse_endpoint("ASSAY_RENDEZVOUS", text);
    ASSERT_FALSE(endpoint) << text;
    EXPECT_EQ(endpoint.error().code, base::ExitCode::kUsage);
    EXPECT_THAT(endpoint.error().line(), ::testing::StartsWith("ASSAY_RENDEZVOUS: '"));
  }
}

RC_GTEST_PROP(Endpoint, WhatIsReadIsWrittenAsItWas, (const std::string& text)) {
  const auto endpoint = parse_endpoint("V", text);
  // A port may be written with zeros in front, a host with needless brackets.
  if (endpoint) RC_ASSERT(parse_endpoint("V", to_text(*endpoint)).value() == *endpoint);
}

}  // namespace
}  // namespace assay::control
