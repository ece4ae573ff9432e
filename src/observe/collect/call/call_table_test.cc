#include "observe/collect/call/call_table.h"

#include <gtest/gtest.h>
#include <linux/audit.h>

#include <fstream>
#include <map>
#include <set>
#include <string>

#include "observe/collect/call/stopped_call.h"

namespace assay::collect {
namespace {

// The kernel's own headers, as installed for the C library.
std::map<std::string, int> kernel_numbers(const std::string& header) {
  std::map<std::string, int> numbers;
  std::ifstream file("/usr/include/x86_64-linux-gnu/asm/" + header);
  for (std::string word; file >> word;) {
    if (!word.starts_with("__NR_")) continue;
    std::string number;
    file >> number;
    if (number.starts_with("(__X32_SYSCALL_BIT")) {
      file >> number >> number;  // "+ 2)"
    }
    numbers[word.substr(5)] = std::atoi(number.c_str());
  }
  return numbers;
}

std::set<const CallRow*> every_row() {
  std::set<const CallRow*> rows;
  for (const std::uint32_t arch :
       {std::uint32_t{AUDIT_ARCH_X86_64}, std::uint32_t{AUDIT_ARCH_I386}}) {
    for (const CallToStop& stopped : calls_to_stop(arch)) {
      rows.insert(find_call(arch, stopped.number));
    }
  }
  rows.erase(nullptr);  // EveryStoppedCallIsFoundAgain
  return rows;
}

void compare(int CallRow::*column, const std::string& header) {
  const auto numbers = kernel_numbers(header);
  if (numbers.empty()) GTEST_SKIP() << header << " is not installed";
  for (const CallRow* row : every_row()) {
    const auto known = numbers.find(std::string(row->name));
    // Newer than these headers.
    if (known == numbers.end() && row->*column > numbers.rbegin()->second) continue;
    if (known == numbers.end() && row->name == "open_tree_attr") continue;
    EXPECT_EQ(row->*column, known == numbers.end() ? -1 : known->second) << row->name;
  }
}

TEST(CallTable, NumbersAreTheKernels) {
  compare(&CallRow::x86_64, "unistd_64.h");
  compare(&CallRow::x32, "unistd_x32.h");
  compare(&CallRow::i386, "unistd_32.h");
}

TEST(CallTable, EveryStoppedCallIsFoundAgain) {
  for (const std::uint32_t arch :
       {std::uint32_t{AUDIT_ARCH_X86_64}, std::uint32_t{AUDIT_ARCH_I386}}) {
    EXPECT_GT(calls_to_stop(arch).size(), 20U);
    for (const CallToStop& stopped : calls_to_stop(arch)) {
      EXPECT_NE(find_call(arch, stopped.number), nullptr) << stopped.number;
    }
  }
  EXPECT_TRUE(calls_to_stop(AUDIT_ARCH_AARCH64).empty());
}

TEST(CallTable, TheX32InterfaceIsStoppedToo) {
  const CallRow* row = find_call(AUDIT_ARCH_X86_64, 520 | kX32Bit);
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->name, "execve");
  EXPECT_EQ(find_call(AUDIT_ARCH_X86_64, 520), nullptr);
  EXPECT_EQ(find_call(AUDIT_ARCH_X86_64, 0), nullptr);  // read
}

}  // namespace
}  // namespace assay::collect
