// KernelTypes: the kernel's types, functions and tracepoints, from /sys/kernel/btf/vmlinux. Needed
// to load programs and to find the fields that they read. There are a hundred thousand, so they are
// searched once, for all wanted names.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "observe/collect/ebpf/type_table.h"

namespace assay::collect {

class KernelTypes {
 public:
  static base::Result<KernelTypes> read(const std::vector<std::string>& wanted);
  // `data` as in the file; for tests.
  static base::Result<KernelTypes> parse(std::string data, const std::vector<std::string>& wanted);

  KernelTypes(KernelTypes&&) noexcept;
  KernelTypes& operator=(KernelTypes&&) noexcept;
  ~KernelTypes();

  [[nodiscard]] const TypeTable& table() const { return table_; }

  // The following find only names in `wanted`. The BTF id to attach a program to or to call, 0 if
  // there is none.
  [[nodiscard]] std::uint32_t function(std::string_view name) const;
  // A tracepoint NAME is the type btf_trace_NAME, which is the wanted name.
  [[nodiscard]] std::uint32_t tracepoint(std::string_view name) const;
  // All types of this kind and name: several drivers may have one.
  [[nodiscard]] std::vector<std::uint32_t> all(unsigned kind, std::string_view name) const;

 private:
  // The file, mapped where the kernel can do that (Linux 6.16), else read.
  class Data;
  KernelTypes();
  static base::Result<KernelTypes> make(std::unique_ptr<Data> data,
                                        const std::vector<std::string>& wanted);

  std::unique_ptr<Data> data_;
  TypeTable table_;
  struct FoundType {
    std::uint32_t id = 0;
    unsigned kind = 0;
  };
  std::unordered_map<std::string, std::vector<FoundType>> found_;
};

}  // namespace assay::collect
