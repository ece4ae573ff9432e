// KernelTypes: the kernel's functions and tracepoints, from /sys/kernel/btf/vmlinux, which decide
// how programs are loaded. libbpf could look them up, but needs seven milliseconds for each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace assay::collect {

class KernelTypes {
 public:
  static base::Result<KernelTypes> read();
  // `data` as in the file; for tests.
  static base::Result<KernelTypes> parse(std::string data);

  // Whether anything has this name. A tracepoint NAME is the type btf_trace_NAME.
  [[nodiscard]] bool has(std::string_view name) const;
  // The BTF id to attach a program to, 0 if there is none.
  [[nodiscard]] std::uint32_t function(std::string_view name) const;
  [[nodiscard]] std::uint32_t tracepoint(std::string_view name) const;

 private:
  [[nodiscard]] std::uint32_t find(unsigned kind, std::string_view name) const;
  [[nodiscard]] std::string_view types() const;
  [[nodiscard]] std::string_view names() const;

  std::string data_;
  // Where they are in the data.
  std::size_t types_at_ = 0, types_size_ = 0;
  std::size_t names_at_ = 0, names_size_ = 0;
};

}  // namespace assay::collect
