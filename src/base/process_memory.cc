#include "base/process_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

namespace assay::base {
namespace {

// "VmRSS:	    1234 kB"
std::int64_t field_bytes(std::string_view status, std::string_view key) {
  const std::size_t at = status.find(key);
  if (at == std::string_view::npos) return 0;
  std::string_view rest = status.substr(at + key.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  std::int64_t kib = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), kib);
  return kib * 1024;
}

}  // namespace

MemorySize parse_memory_size(std::string_view status) {
  return {field_bytes(status, "\nVmRSS:"), field_bytes(status, "\nVmHWM:")};
}

ProcessMemory::ProcessMemory() : status_(::open("/proc/self/status", O_RDONLY | O_CLOEXEC)) {}

MemorySize ProcessMemory::now() const {
  char text[4096];
  const ssize_t size = status_.valid() ? ::pread(status_.get(), text, sizeof text, 0) : 0;
  return size > 0 ? parse_memory_size({text, static_cast<std::size_t>(size)}) : MemorySize{};
}

}  // namespace assay::base
