#include "observe/collect/ebpf/kernel_types.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bitset>
#include <cerrno>
#include <cstring>

#include "base/unique_fd.h"

namespace assay::collect {
namespace {

constexpr const char* kFile = "/sys/kernel/btf/vmlinux";

base::Error unreadable(int error) {
  return base::system_error(kFile, "cannot read the kernel's types", error,
                            "the kernel needs CONFIG_DEBUG_INFO_BTF");
}

// The first two characters of a name, which rule most names out.
std::size_t beginning(const char* name) {
  const auto first = static_cast<unsigned char>(name[0]);
  const auto second = static_cast<unsigned char>(first == 0 ? 0 : name[1]);
  return std::size_t{first} << 8U | second;
}

}  // namespace

class KernelTypes::Data {
 public:
  explicit Data(std::string read) : read_(std::move(read)) {}
  Data(void* mapped, std::size_t size) : mapped_(mapped), size_(size) {}
  Data(const Data&) = delete;
  Data& operator=(const Data&) = delete;
  ~Data() {
    if (mapped_ != nullptr) ::munmap(mapped_, size_);
  }
  [[nodiscard]] std::string_view view() const {
    return mapped_ != nullptr ? std::string_view(static_cast<const char*>(mapped_), size_) : read_;
  }

 private:
  std::string read_;
  void* mapped_ = nullptr;
  std::size_t size_ = 0;
};

KernelTypes::KernelTypes() = default;
KernelTypes::KernelTypes(KernelTypes&&) noexcept = default;
KernelTypes& KernelTypes::operator=(KernelTypes&&) noexcept = default;
KernelTypes::~KernelTypes() = default;

base::Result<KernelTypes> KernelTypes::read(const std::vector<std::string>& wanted) {
  const base::UniqueFd fd(::open(kFile, O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0) return base::fail(unreadable(errno));
  const auto size = static_cast<std::size_t>(status.st_size);
  void* mapped = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd.get(), 0);
  if (mapped != MAP_FAILED) return make(std::make_unique<Data>(mapped, size), wanted);
  std::string data(size, '\0');
  std::size_t length = 0;
  while (length < data.size()) {
    const ssize_t got = ::read(fd.get(), data.data() + length, data.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    length += static_cast<std::size_t>(got);
  }
  if (length < data.size()) return base::fail(unreadable(EIO));
  return parse(std::move(data), wanted);
}

base::Result<KernelTypes> KernelTypes::parse(std::string data,
                                             const std::vector<std::string>& wanted) {
  return make(std::make_unique<Data>(std::move(data)), wanted);
}

base::Result<KernelTypes> KernelTypes::make(std::unique_ptr<Data> data,
                                            const std::vector<std::string>& wanted) {
  KernelTypes out;
  out.data_ = std::move(data);
  auto table = TypeTable::parse(out.data_->view());
  if (!table) return base::fail(unreadable(EINVAL));
  out.table_ = *std::move(table);
  std::bitset<1U << 16U> beginnings;
  for (const std::string& name : wanted) {
    out.found_.try_emplace(name);
    beginnings.set(beginning(name.c_str()));
  }
  for (std::uint32_t id = 1; id <= out.table_.size(); ++id) {
    const btf_type& type = *out.table_.find(id);
    const unsigned kind = kind_of(type);
    if (kind != BTF_KIND_STRUCT && kind != BTF_KIND_FUNC && kind != BTF_KIND_TYPEDEF &&
        kind != BTF_KIND_ENUM) {
      continue;
    }
    const char* name = out.table_.text(type.name_off);
    if (!beginnings.test(beginning(name))) continue;
    if (const auto at = out.found_.find(name); at != out.found_.end()) {
      at->second.push_back({id, kind});
    }
  }
  return out;
}

std::vector<std::uint32_t> KernelTypes::all(unsigned kind, std::string_view name) const {
  std::vector<std::uint32_t> ids;
  if (const auto at = found_.find(std::string(name)); at != found_.end()) {
    for (const FoundType& found : at->second) {
      if (found.kind == kind) ids.push_back(found.id);
    }
  }
  return ids;
}

std::uint32_t KernelTypes::function(std::string_view name) const {
  const auto ids = all(BTF_KIND_FUNC, name);
  return ids.empty() ? 0 : ids.front();
}

std::uint32_t KernelTypes::tracepoint(std::string_view name) const {
  const auto ids = all(BTF_KIND_TYPEDEF, "btf_trace_" + std::string(name));
  return ids.empty() ? 0 : ids.front();
}

}  // namespace assay::collect
