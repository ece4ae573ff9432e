#include "observe/collect/ebpf/kernel_types.h"

#include <fcntl.h>
#include <linux/btf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "base/unique_fd.h"

namespace assay::collect {
namespace {

constexpr const char* kFile = "/sys/kernel/btf/vmlinux";

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

base::Error unreadable(int error) {
  return base::system_error(kFile, "cannot read the kernel's types", error,
                            "the kernel needs CONFIG_DEBUG_INFO_BTF");
}

}  // namespace

base::Result<KernelTypes> KernelTypes::read() {
  const base::UniqueFd fd(::open(kFile, O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0) return base::fail(unreadable(errno));
  std::string data(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t length = 0;
  while (length < data.size()) {
    const ssize_t got = ::read(fd.get(), data.data() + length, data.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    length += static_cast<std::size_t>(got);
  }
  if (length < data.size()) return base::fail(unreadable(EIO));
  return parse(std::move(data));
}

base::Result<KernelTypes> KernelTypes::parse(std::string data) {
  KernelTypes out;
  btf_header header{};
  if (data.size() >= sizeof header) std::memcpy(&header, data.data(), sizeof header);
  const auto inside = [&](std::uint64_t offset, std::uint64_t length) {
    return header.hdr_len + offset + length <= data.size();
  };
  if (header.magic != BTF_MAGIC || !inside(header.type_off, header.type_len) ||
      !inside(header.str_off, header.str_len)) {
    return base::fail(unreadable(EINVAL));
  }
  out.data_ = std::move(data);
  out.types_at_ = std::size_t{header.hdr_len} + header.type_off;
  out.types_size_ = header.type_len;
  out.names_at_ = std::size_t{header.hdr_len} + header.str_off;
  out.names_size_ = header.str_len;
  return out;
}

std::string_view KernelTypes::types() const {
  return std::string_view(data_).substr(types_at_, types_size_);
}

std::string_view KernelTypes::names() const {
  return std::string_view(data_).substr(names_at_, names_size_);
}

bool KernelTypes::has(std::string_view name) const {
  const std::string whole = std::string(1, '\0').append(name).append(1, '\0');
  return ::memmem(names().data(), names_size_, whole.data(), whole.size()) != nullptr;
}

std::uint32_t KernelTypes::function(std::string_view name) const {
  return find(BTF_KIND_FUNC, name);
}

std::uint32_t KernelTypes::tracepoint(std::string_view name) const {
  return find(BTF_KIND_TYPEDEF, "btf_trace_" + std::string(name));
}

std::uint32_t KernelTypes::find(unsigned kind, std::string_view name) const {
  const std::string_view types = this->types();
  const std::string_view names = this->names();
  std::uint32_t number = 0;
  for (std::size_t at = 0; at + sizeof(btf_type) <= types.size();) {
    btf_type type{};
    std::memcpy(&type, types.data() + at, sizeof type);
    ++number;
    const unsigned this_kind = BTF_INFO_KIND(type.info);
    if (this_kind == kind && type.name_off < names.size() &&
        names.substr(type.name_off).starts_with(name) &&
        names.substr(type.name_off + name.size(), 1) == std::string_view("\0", 1)) {
      return number;
    }
    const auto tail = tail_size(this_kind, BTF_INFO_VLEN(type.info));
    if (!tail) return 0;
    at += sizeof type + *tail;
  }
  return 0;
}

}  // namespace assay::collect
