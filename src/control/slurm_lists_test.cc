// The oracle of the property tests is the expanded list that the compressed one is made from.
#include "control/slurm_lists.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

namespace assay::control {
namespace {

TEST(SlurmLists, FirstHost) {
  EXPECT_EQ(first_host("login"), "login");
  EXPECT_EQ(first_host("a,b"), "a");
  EXPECT_EQ(first_host("gpu[01-03,7]-ib,login"), "gpu01-ib");
  EXPECT_EQ(first_host("gpu[7]"), "gpu7");
  EXPECT_EQ(first_host("gpu[007,9]"), "gpu007");
  EXPECT_EQ(first_host("rack[2-3]node[10-12].example.org,x[1-2]"), "rack2node10.example.org");
  for (const char* bad : {"", ",", "[", "gpu[", "gpu[]", "gpu[a]", "gpu]1", "gpu[1-2", "(null)",
                          "gpu[-1]", "gpu[1;2]", "a b"}) {
    EXPECT_EQ(first_host(bad), std::nullopt) << bad;
  }
}

TEST(SlurmLists, TasksOnNode) {
  EXPECT_EQ(tasks_on_node("4", 0), 4);
  EXPECT_EQ(tasks_on_node("4", 1), std::nullopt);
  EXPECT_EQ(tasks_on_node("2(x3),1", 2), 2);
  EXPECT_EQ(tasks_on_node("2(x3),1", 3), 1);
  EXPECT_EQ(tasks_on_node("2(x3),1", 4), std::nullopt);
  EXPECT_EQ(tasks_on_node("1(x2000000000),1(x2000000000),3", 5), 1);
  for (const char* bad :
       {"", "x", "2(", "2(x", "2(x0)", "2(x3", "2(x3)1", "-1", "2;3", "99999999999"}) {
    EXPECT_EQ(tasks_on_node(bad, 7), std::nullopt) << bad;
  }
}

RC_GTEST_PROP(SlurmLists, TasksOnNodeIsTheExpandedList, ()) {
  const auto runs = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::pair<int, int>>>(
      rc::gen::pair(rc::gen::inRange(1, 9), rc::gen::inRange(1, 5))));
  std::string text;
  std::vector<int> expanded;
  for (const auto& [tasks, nodes] : runs) {
    if (!text.empty()) text += ',';
    text += nodes == 1 ? fmt::format("{}", tasks) : fmt::format("{}(x{})", tasks, nodes);
    expanded.insert(expanded.end(), static_cast<std::size_t>(nodes), tasks);
  }
  for (std::size_t node = 0; node < expanded.size(); ++node) {
    RC_ASSERT(tasks_on_node(text, static_cast<int>(node)) == expanded[node]);
  }
  RC_ASSERT(!tasks_on_node(text, static_cast<int>(expanded.size())));
}

RC_GTEST_PROP(SlurmLists, AnyTextIsRefusedOrUnderstood, ()) {
  const auto text =
      *rc::gen::container<std::string>(rc::gen::elementOf(std::string("[]0129-,(x)ab")));
  const auto host = first_host(text);
  RC_ASSERT(!host || !host->empty());
  (void)tasks_on_node(text, *rc::gen::inRange(0, 5));
}

}  // namespace
}  // namespace assay::control
