#include "control/interface.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace assay::control {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::vector<Interface> kInterfaces{{"lo", "127.0.0.1", true},
                                         {"docker0", "172.17.0.1"},
                                         {"eth0", "10.0.0.1"},
                                         {"eth01", "10.0.1.1"},
                                         {"ib0", "fd00::1"}};

std::string chosen(std::string_view pattern) {
  const auto address = choose_interface("ASSAY_INTERFACE", pattern, kInterfaces);
  return address ? *address : address.error().line();
}

TEST(Interface, Patterns) {
  EXPECT_EQ(chosen("eth"), "10.0.0.1");
  EXPECT_EQ(chosen("eth01"), "10.0.1.1");
  EXPECT_EQ(chosen("=eth0"), "10.0.0.1");
  EXPECT_EQ(chosen("=eth01,ib0"), "10.0.1.1");
  EXPECT_EQ(chosen("ib,eth"), "fd00::1");
  EXPECT_EQ(chosen("wlan, eth"), "10.0.0.1");
  EXPECT_EQ(chosen("eth,^=eth0"), "10.0.1.1");
  EXPECT_EQ(chosen("eth,^docker"), "10.0.0.1");
  EXPECT_EQ(chosen("^docker"), "10.0.0.1");
  EXPECT_EQ(chosen("^docker,eth"), "fd00::1");  // the sign in front is for the whole list
  EXPECT_EQ(chosen("^=eth0,docker0"), "10.0.1.1");
  EXPECT_EQ(chosen("^docker,eth,ib"), "127.0.0.1");
  for (const char* bad : {"wlan", "=eth", "^docker,eth,ib,lo", "", ",", "=", "^", "eth,^eth"}) {
    EXPECT_THAT(chosen(bad),
                AllOf(HasSubstr("ASSAY_INTERFACE: '"), HasSubstr("docker0 (172.17.0.1)")))
        << bad;
  }
}

TEST(Interface, OfThisMachine) {
  const auto interfaces = local_interfaces();
  ASSERT_TRUE(interfaces);
  bool loopback = false;
  for (const Interface& one : *interfaces) loopback |= one.loopback;
  EXPECT_TRUE(loopback);
  EXPECT_EQ(data_address({}, "", true).value(), "127.0.0.1");
  EXPECT_EQ(
      data_address({{"ASSAY_INTERFACE", "lo"}, {"NCCL_SOCKET_IFNAME", "x"}}, "", false).value(),
      "127.0.0.1");
  EXPECT_EQ(data_address({{"NCCL_SOCKET_IFNAME", "=lo"}}, "", false).value(), "127.0.0.1");
  EXPECT_THAT(data_address({{"NCCL_SOCKET_IFNAME", "nothing9"}}, "", false).error().line(),
              AllOf(HasSubstr("NCCL_SOCKET_IFNAME"), HasSubstr("lo (127.0.0.1)")));
  EXPECT_TRUE(data_address({}, "127.0.0.1", false));
}

RC_GTEST_PROP(Interface, AnyPatternChoosesOneOfThemOrFails, ()) {
  const auto pattern =
      *rc::gen::container<std::string>(rc::gen::elementOf(std::string("^=,, ethlo01b")));
  const auto address = choose_interface("V", pattern, kInterfaces);
  if (address) {
    RC_ASSERT(std::any_of(kInterfaces.begin(), kInterfaces.end(),
                          [&](const Interface& one) { return one.address == *address; }));
  }
}

}  // namespace
}  // namespace assay::control
