#include "observe/collect/ebpf/type_table.h"

#include <cstring>

namespace assay::collect {
namespace {

// Kinds newer than Debian 12's header.
constexpr unsigned kKindEnum64 = 19;

// Bytes after the header of a type, by its kind. Nothing: an unknown, newer kind.
std::optional<std::size_t> tail_size(unsigned kind, std::size_t members) {
  switch (kind) {
    case BTF_KIND_INT:
      return 4;
    case BTF_KIND_ARRAY:
      return sizeof(btf_array);
    case BTF_KIND_STRUCT:
    case BTF_KIND_UNION:
      return members * sizeof(btf_member);
    case BTF_KIND_ENUM:
      return members * sizeof(btf_enum);
    case BTF_KIND_FUNC_PROTO:
      return members * sizeof(btf_param);
    case BTF_KIND_VAR:
      return sizeof(btf_var);
    case BTF_KIND_DATASEC:
      return members * sizeof(btf_var_secinfo);
    case BTF_KIND_DECL_TAG:
      return 4;
    case kKindEnum64:
      return members * 12;
    case BTF_KIND_PTR:
    case BTF_KIND_FWD:
    case BTF_KIND_TYPEDEF:
    case BTF_KIND_VOLATILE:
    case BTF_KIND_CONST:
    case BTF_KIND_RESTRICT:
    case BTF_KIND_FUNC:
    case BTF_KIND_FLOAT:
    case BTF_KIND_TYPE_TAG:
      return 0;
    default:
      return std::nullopt;
  }
}

template <typename T>
std::span<const T> tail(const btf_type& type) {
  return {reinterpret_cast<const T*>(&type + 1), BTF_INFO_VLEN(type.info)};
}

}  // namespace

std::optional<TypeTable> TypeTable::parse(std::string_view data) {
  btf_header header{};
  if (data.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, data.data(), sizeof header);
  const auto part = [&](std::uint64_t offset, std::uint64_t length) {
    const std::uint64_t from = header.hdr_len + offset;
    return from + length <= data.size() ? std::optional(data.substr(from, length)) : std::nullopt;
  };
  const auto types = part(header.type_off, header.type_len);
  const auto names = part(header.str_off, header.str_len);
  if (header.magic != BTF_MAGIC || !types || !names ||
      (header.hdr_len + header.type_off) % 4 != 0 || names->empty() || names->back() != '\0') {
    return std::nullopt;
  }
  TypeTable out;
  out.types_ = *types;
  out.names_ = *names;
  constexpr std::size_t kUsualSize = 24;
  out.at_.reserve(types->size() / kUsualSize);
  for (std::size_t at = 0; at + sizeof(btf_type) <= types->size();) {
    const auto& type = *reinterpret_cast<const btf_type*>(types->data() + at);
    const auto after = tail_size(kind_of(type), BTF_INFO_VLEN(type.info));
    if (!after || at + sizeof type + *after > types->size()) break;
    out.at_.push_back(static_cast<std::uint32_t>(at));
    at += sizeof type + *after;
  }
  return out;
}

const btf_type* TypeTable::find(std::uint32_t id) const {
  if (id == 0 || id > at_.size()) return nullptr;
  return reinterpret_cast<const btf_type*>(types_.data() + at_[id - 1]);
}

const char* TypeTable::text(std::uint32_t offset) const {
  return offset < names_.size() ? names_.data() + offset : "";
}

std::span<const btf_member> TypeTable::members(const btf_type& type) const {
  return tail<btf_member>(type);
}

std::span<const btf_enum> TypeTable::values(const btf_type& enumeration) const {
  return tail<btf_enum>(enumeration);
}

const btf_array& TypeTable::array(const btf_type& type) const {
  return *reinterpret_cast<const btf_array*>(&type + 1);
}

std::uint32_t TypeTable::unqualified(std::uint32_t id) const {
  // Damaged types may refer to each other in a circle.
  for (int steps = 0; steps < 32; ++steps) {
    const btf_type* type = find(id);
    if (type == nullptr) return 0;
    switch (kind_of(*type)) {
      case BTF_KIND_TYPEDEF:
      case BTF_KIND_VOLATILE:
      case BTF_KIND_CONST:
      case BTF_KIND_RESTRICT:
      case BTF_KIND_TYPE_TAG:
        id = type->type;
        break;
      default:
        return id;
    }
  }
  return 0;
}

std::uint64_t TypeTable::size_of(std::uint32_t id) const {
  std::uint64_t elements = 1;
  for (int depth = 0; depth < 8; ++depth) {
    const btf_type* type = find(unqualified(id));
    if (type == nullptr) return 0;
    switch (kind_of(*type)) {
      case BTF_KIND_PTR:
        return elements * sizeof(void*);
      case BTF_KIND_ARRAY:
        elements *= array(*type).nelems;
        id = array(*type).type;
        break;
      case BTF_KIND_INT:
      case BTF_KIND_FLOAT:
      case BTF_KIND_STRUCT:
      case BTF_KIND_UNION:
      case BTF_KIND_ENUM:
      case kKindEnum64:
        return elements * type->size;
      default:
        return 0;
    }
  }
  return 0;
}

}  // namespace assay::collect
