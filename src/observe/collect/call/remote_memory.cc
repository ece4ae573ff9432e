#include "observe/collect/call/remote_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/unique_fd.h"

namespace assay::collect {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kMostArguments =
    4096;  // of an argv; what is longer is cut by its bytes anyway

std::size_t to_page_end(std::uint64_t address) {
  return kPage - static_cast<std::size_t>(address & (kPage - 1));
}

// The slower way, for kernels and containers that forbid process_vm_readv.
int read_proc_mem(pid_t thread, std::uint64_t address, void* into, std::size_t size) {
  std::array<char, 32> name{};
  *fmt::format_to(name.data(), "/proc/{}/mem", thread) = '\0';
  const base::UniqueFd memory(::open(name.data(), O_RDONLY | O_CLOEXEC));
  if (!memory.valid()) {
    return errno == ENOENT ? ESRCH : EPERM;
  }
  const ssize_t got = ::pread(memory.get(), into, size, static_cast<off_t>(address));
  if (got == static_cast<ssize_t>(size)) return 0;
  return got < 0 && errno != EIO ? errno : EFAULT;
}

// The page that was read last: the strings of an argv are adjacent.
class RemotePage {
 public:
  explicit RemotePage(pid_t thread) : thread_(thread) {}

  // What the page holds from this address on; never empty.
  int from(std::uint64_t address, std::string_view& rest) {
    const std::uint64_t begin = address & ~std::uint64_t{kPage - 1};
    if (begin != begin_ || !valid_) {
      valid_ = false;
      if (const int error = read_remote(thread_, begin, bytes_.data(), kPage); error != 0) {
        return error;
      }
      begin_ = begin;
      valid_ = true;
    }
    rest = std::string_view(bytes_.data(), kPage).substr(address - begin);
    return 0;
  }

  int copy(std::uint64_t address, void* into, std::size_t size) {
    for (std::size_t done = 0; done < size;) {
      std::string_view rest;
      if (const int error = from(address + done, rest); error != 0) return error;
      const std::size_t count = std::min(rest.size(), size - done);
      std::memcpy(static_cast<char*>(into) + done, rest.data(), count);
      done += count;
    }
    return 0;
  }

 private:
  pid_t thread_;
  bool valid_ = false;
  std::uint64_t begin_ = 0;
  std::array<char, kPage> bytes_;
};

}  // namespace

int read_remote(pid_t thread, std::uint64_t address, void* into, std::size_t size) {
  const iovec local{into, size};
  // A pointer of the other process: never followed here.
  const iovec remote{reinterpret_cast<void*>(address), size};
  const ssize_t got = ::process_vm_readv(thread, &local, 1, &remote, 1, 0);
  if (got == static_cast<ssize_t>(size)) return 0;
  if (got >= 0) return EFAULT;
  if (errno == EPERM || errno == ENOSYS) return read_proc_mem(thread, address, into, size);
  return errno;
}

int write_remote(pid_t thread, std::uint64_t address, const void* from, std::size_t size) {
  const iovec local{const_cast<void*>(from), size};
  const iovec remote{reinterpret_cast<void*>(address), size};
  if (::process_vm_writev(thread, &local, 1, &remote, 1, 0) == static_cast<ssize_t>(size)) return 0;
  std::array<char, 32> name{};
  *fmt::format_to(name.data(), "/proc/{}/mem", thread) = '\0';
  const base::UniqueFd memory(::open(name.data(), O_WRONLY | O_CLOEXEC));
  if (!memory.valid()) return errno == ENOENT ? ESRCH : EPERM;
  const ssize_t done = ::pwrite(memory.get(), from, size, static_cast<off_t>(address));
  return done == static_cast<ssize_t>(size) ? 0 : EFAULT;
}

int read_remote_text(pid_t thread, std::uint64_t address, char* into, std::size_t limit,
                     std::size_t& length) {
  // Most paths are short; a read never crosses into a page that the string may not reach.
  std::size_t step = 256;
  length = 0;
  while (length < limit) {
    const std::size_t size = std::min({step, to_page_end(address + length), limit - length});
    if (const int error = read_remote(thread, address + length, into + length, size); error != 0) {
      return error;
    }
    if (const void* end = std::memchr(into + length, '\0', size)) {
      length = static_cast<std::size_t>(static_cast<const char*>(end) - into);
      return 0;
    }
    length += size;
    step = kPage;
  }
  return ENAMETOOLONG;
}

int read_remote_arguments(pid_t thread, std::uint64_t address, std::size_t pointer_size,
                          std::size_t limit, std::string& arguments) {
  arguments.clear();
  if (address == 0) return 0;  // Linux treats it as an empty list
  RemotePage pointers(thread);
  RemotePage texts(thread);
  for (std::size_t i = 0; i < kMostArguments && arguments.size() < limit; ++i) {
    std::uint64_t pointer = 0;  // little-endian: four bytes fill the lower half
    if (const int error = pointers.copy(address + i * pointer_size, &pointer, pointer_size);
        error != 0) {
      return error;
    }
    if (pointer == 0) return 0;
    if (i > 0) arguments.push_back('\0');
    // An argument may cross pages (sh -c with a whole script).
    for (bool ends = false; !ends && arguments.size() < limit;) {
      std::string_view rest;
      if (const int error = texts.from(pointer, rest); error != 0) return error;
      const std::size_t length = std::min(rest.find('\0'), rest.size());
      ends = length < rest.size();
      arguments.append(rest.substr(0, std::min(length, limit - arguments.size())));
      pointer += length;
    }
  }
  return 0;
}

}  // namespace assay::collect
