#include "http/message.h"

#include <gtest/gtest.h>

namespace assay::http {
namespace {

TEST(SinglePage, IsReadAtItsPathOnly) {
  const Response page{.body = "m 1\n"};
  EXPECT_EQ(single_page({.method = "GET", .path = "/metrics"}, "/metrics", page).body, "m 1\n");
  EXPECT_EQ(single_page({.method = "HEAD", .path = "/metrics"}, "/metrics", page).status, 200U);
  EXPECT_EQ(
      single_page({.method = "GET", .path = "/metrics", .query = "x=1"}, "/metrics", page).status,
      200U);
  for (const char* path : {"/", "/metricsx", "/metrics/", "", "metrics"}) {
    const Response missing = single_page({.method = "GET", .path = path}, "/metrics", page);
    EXPECT_EQ(missing.status, 404U) << path;
    EXPECT_EQ(missing.body, "404 Not Found: see /metrics\n");
  }
  const Response refused = single_page({.method = "POST", .path = "/metrics"}, "/metrics", page);
  EXPECT_EQ(refused.status, 405U);
  ASSERT_EQ(refused.headers.size(), 1U);
  EXPECT_EQ(refused.headers[0].first, "Allow");
}

}  // namespace
}  // namespace assay::http
