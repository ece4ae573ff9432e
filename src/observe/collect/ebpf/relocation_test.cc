#include "observe/collect/ebpf/relocation.h"

#include <gtest/gtest.h>

#include <cstring>

namespace assay::collect {
namespace {

// Types in the kernel's format, written one by one.
class Types {
 public:
  std::uint32_t integer(const std::string& name, std::uint32_t bytes) {
    return add(name, BTF_KIND_INT, 0, bytes, {bytes * 8});
  }
  struct Member {
    std::string name;
    std::uint32_t type;
    std::uint32_t offset;  // bytes
  };
  std::uint32_t structure(const std::string& name, std::uint32_t bytes,
                          const std::vector<Member>& members, unsigned kind = BTF_KIND_STRUCT) {
    std::vector<std::uint32_t> tail;
    for (const Member& member : members) {
      tail.insert(tail.end(), {text(member.name), member.type, member.offset * 8});
    }
    return add(name, kind, static_cast<std::uint32_t>(members.size()), bytes, tail);
  }
  std::uint32_t renamed(const std::string& name, std::uint32_t type) {
    return add(name, BTF_KIND_TYPEDEF, 0, type, {});
  }
  std::uint32_t text(const std::string& value) {
    if (value.empty()) return 0;
    names_ += value + '\0';
    return static_cast<std::uint32_t>(names_.size() - value.size() - 1);
  }
  [[nodiscard]] std::string data() const {
    btf_header header{};
    header.magic = BTF_MAGIC;
    header.version = 1;
    header.hdr_len = sizeof header;
    header.type_len = static_cast<__u32>(types_.size() * 4);
    header.str_off = header.type_len;
    header.str_len = static_cast<__u32>(names_.size());
    std::string out(reinterpret_cast<const char*>(&header), sizeof header);
    out.append(reinterpret_cast<const char*>(types_.data()), types_.size() * 4);
    return out + names_;
  }

 private:
  std::uint32_t add(const std::string& name, unsigned kind, std::uint32_t count,
                    std::uint32_t size_or_type, const std::vector<std::uint32_t>& tail) {
    types_.insert(types_.end(), {text(name), kind << 24U | count, size_or_type});
    types_.insert(types_.end(), tail.begin(), tail.end());
    return ++count_;
  }
  std::vector<std::uint32_t> types_;
  std::string names_ = std::string(1, '\0');
  std::uint32_t count_ = 0;
};

// Ours: struct outer { int a; struct inner { int b; int c; } in; };
struct Ours {
  Ours() {
    const auto number = types.integer("int", 4);
    inner = types.structure("inner", 8, {{"b", number, 0}, {"c", number, 4}});
    outer = types.structure("outer___v", 12, {{"a", number, 0}, {"in", inner, 4}});
    to_c = types.text("0:1:1");
    to_a = types.text("0:0");
    bytes = types.data();
    table = *TypeTable::parse(bytes);
  }
  Types types;
  std::uint32_t inner = 0, outer = 0, to_c = 0, to_a = 0;
  std::string bytes;
  TypeTable table;
};

// The kernel's: everything moved, a union without a name around `in`, `in` behind a typedef.
std::string moved_kernel(std::uint32_t a_size) {
  Types types;
  const auto number = types.integer("int", 4);
  const auto wide = types.integer("wide", a_size);
  const auto inner = types.structure("other_name", 40, {{"c", number, 24}, {"b", number, 32}});
  const auto typed = types.renamed("inner_t", inner);
  const auto either = types.structure("", 40, {{"in", typed, 0}}, BTF_KIND_UNION);
  types.structure("outer", 80, {{"", either, 16}, {"a", wide, 64}});
  return types.data();
}

bpf_insn load() {
  return {.code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = 1, .src_reg = 2, .off = 0, .imm = 0};
}
bpf_insn add() {
  return {.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = 1, .src_reg = 0, .off = 0, .imm = 0};
}

TEST(BpfRelocation, InstructionsGetTheKernelsNumbers) {
  const Ours ours;
  const std::vector<bpf_core_relo> fields = {
      {0, ours.outer, ours.to_c, BPF_CORE_FIELD_BYTE_OFFSET},
      {8, ours.outer, ours.to_c, BPF_CORE_FIELD_BYTE_OFFSET},
      {16, ours.outer, ours.to_c, BPF_CORE_FIELD_EXISTS},
      {24, ours.outer, ours.to_a, BPF_CORE_TYPE_SIZE},
      {32, ours.outer, ours.to_a, BPF_CORE_TYPE_ID_TARGET},
  };
  const auto kernel = KernelTypes::parse(moved_kernel(4), names_of_types(fields, ours.table));
  ASSERT_TRUE(kernel.has_value());
  std::vector<bpf_insn> code = {load(), add(), add(), add(), add()};
  ASSERT_TRUE(fill_in_fields(fields, ours.table, *kernel, code).has_value());
  EXPECT_EQ(code[0].off, 16 + 24);
  EXPECT_EQ(code[1].imm, 16 + 24);
  EXPECT_EQ(code[2].imm, 1);
  EXPECT_EQ(code[3].imm, 80);
  EXPECT_EQ(code[4].imm, 6);
}

TEST(BpfRelocation, WhatTheKernelDoesNotHaveCannotBeReached) {
  const Ours ours;
  const std::vector<bpf_core_relo> fields = {
      {0, ours.inner, ours.to_a, BPF_CORE_FIELD_BYTE_OFFSET},  // the kernel has another name for it
      {8, ours.inner, ours.to_a, BPF_CORE_FIELD_EXISTS},
  };
  const auto kernel = KernelTypes::parse(moved_kernel(4), names_of_types(fields, ours.table));
  std::vector<bpf_insn> code = {load(), add()};
  ASSERT_TRUE(fill_in_fields(fields, ours.table, *kernel, code).has_value());
  EXPECT_EQ(code[0].code, BPF_JMP | BPF_CALL);
  EXPECT_GT(code[0].imm, 1 << 20);  // no helper has such a number, so the verifier rejects it
  EXPECT_EQ(code[1].imm, 0);
}

TEST(BpfRelocation, AFieldOfAnotherSizeIsRefused) {
  const Ours ours;
  const std::vector<bpf_core_relo> fields = {
      {0, ours.outer, ours.to_a, BPF_CORE_FIELD_BYTE_OFFSET}};
  const auto kernel = KernelTypes::parse(moved_kernel(8), names_of_types(fields, ours.table));
  std::vector<bpf_insn> code = {load()};
  const auto filled = fill_in_fields(fields, ours.table, *kernel, code);
  ASSERT_FALSE(filled.has_value());
  EXPECT_NE(filled.error().line().find("struct outer"), std::string::npos);
}

}  // namespace
}  // namespace assay::collect
