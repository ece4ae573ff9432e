// TypeTable: type information in the kernel's format (BTF), read in place. Used for the kernel's
// own types (kernel_types.h) and for those that our programs were compiled with (object_file.h).
#pragma once

#include <linux/btf.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace assay::collect {

class TypeTable {
 public:
  // Nothing if `data` is damaged. It must outlive the table and begin at a multiple of four. Types
  // after one of a kind that is not known are not seen.
  static std::optional<TypeTable> parse(std::string_view data);

  // Types have the ids 1 to size().
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(at_.size()); }
  // Null if there is no such type.
  [[nodiscard]] const btf_type* find(std::uint32_t id) const;
  [[nodiscard]] std::string_view name(const btf_type& type) const { return text(type.name_off); }
  // Terminated; empty if there is none.
  [[nodiscard]] const char* text(std::uint32_t offset) const;

  // Of a structure or union.
  [[nodiscard]] std::span<const btf_member> members(const btf_type& type) const;
  [[nodiscard]] std::span<const btf_enum> values(const btf_type& enumeration) const;
  [[nodiscard]] const btf_array& array(const btf_type& type) const;

  // The type behind typedefs and qualifiers.
  [[nodiscard]] std::uint32_t unqualified(std::uint32_t id) const;
  // In bytes; 0 if it has none.
  [[nodiscard]] std::uint64_t size_of(std::uint32_t id) const;

 private:
  std::string_view types_;
  std::string_view names_;
  std::vector<std::uint32_t> at_;  // where each type begins
};

inline unsigned kind_of(const btf_type& type) {
  return BTF_INFO_KIND(type.info);
}
inline bool is_composite(const btf_type& type) {
  return kind_of(type) == BTF_KIND_STRUCT || kind_of(type) == BTF_KIND_UNION;
}

}  // namespace assay::collect
