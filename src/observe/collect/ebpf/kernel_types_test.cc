#include "observe/collect/ebpf/kernel_types.h"

#include <gtest/gtest.h>
#include <linux/btf.h>

#include <cstring>

namespace assay::collect {
namespace {

// A kernel with one integer, one structure of a member, one function and one tracepoint.
std::string small_kernel() {
  const std::string names = std::string("\0int\0open_file\0btf_trace_exit\0s\0", 33);
  std::string types;
  const auto add = [&](std::uint32_t name, std::uint32_t info, std::uint32_t size,
                       std::vector<std::uint32_t> tail) {
    for (const std::uint32_t word : {name, info, size}) {
      types.append(reinterpret_cast<const char*>(&word), sizeof word);
    }
    for (const std::uint32_t word : tail) {
      types.append(reinterpret_cast<const char*>(&word), sizeof word);
    }
  };
  const auto info = [](unsigned kind, unsigned members) { return kind << 24U | members; };
  add(1, info(BTF_KIND_INT, 0), 4, {32});
  add(30, info(BTF_KIND_STRUCT, 1), 4, {1, 1, 0});
  add(5, info(BTF_KIND_FUNC, 0), 1, {});
  add(15, info(BTF_KIND_TYPEDEF, 0), 1, {});
  btf_header header{};
  header.magic = BTF_MAGIC;
  header.version = 1;
  header.hdr_len = sizeof header;
  header.type_len = static_cast<__u32>(types.size());
  header.str_off = header.type_len;
  header.str_len = static_cast<__u32>(names.size());
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + types + names;
}

const std::vector<std::string> kWanted = {"open_file", "btf_trace_exit", "s",
                                          "open",      "pen_file",       "int"};

TEST(KernelTypes, FindsWhatProgramsAreAttachedTo) {
  const auto types = KernelTypes::parse(small_kernel(), kWanted);
  ASSERT_TRUE(types.has_value());
  EXPECT_EQ(types->function("open_file"), 3U);
  EXPECT_EQ(types->tracepoint("exit"), 4U);
  EXPECT_EQ(types->function("open"), 0U);      // a beginning is not a name
  EXPECT_EQ(types->function("pen_file"), 0U);  // nor is an end
  EXPECT_EQ(types->function("int"), 0U);       // another kind
  EXPECT_EQ(types->all(BTF_KIND_STRUCT, "s"), std::vector<std::uint32_t>{2});
}

TEST(KernelTypes, RefusesWhatIsDamaged) {
  const std::string whole = small_kernel();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(KernelTypes::parse(whole.substr(0, length), kWanted).has_value()) << length;
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {  // only has to survive
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    if (const auto types = KernelTypes::parse(damaged, kWanted)) {
      (void)types->function("open_file");
      for (std::uint32_t id = 0; id <= types->table().size() + 1; ++id) {
        (void)types->table().size_of(id);
      }
    }
  }
}

}  // namespace
}  // namespace assay::collect
