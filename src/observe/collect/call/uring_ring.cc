#include "observe/collect/call/uring_ring.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <string_view>
#include <tuple>

#include "base/unique_fd.h"
#include "observe/collect/process/proc.h"

namespace assay::collect {
namespace {

// Newer than Debian 12's headers.
constexpr std::uint32_t kNoMmap = 1U << 14U;
constexpr std::uint32_t kRegisteredFdOnly = 1U << 15U;
constexpr std::uint32_t kNoSqArray = 1U << 16U;
constexpr std::uint32_t kKnown = kNoSqArray;
constexpr std::uint32_t kWithoutLayout =
    IORING_SETUP_IOPOLL | IORING_SETUP_SQ_AFF | IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP |
    IORING_SETUP_ATTACH_WQ | IORING_SETUP_R_DISABLED | IORING_SETUP_SUBMIT_ALL |
    IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SINGLE_ISSUER |
    IORING_SETUP_DEFER_TASKRUN;

// The parameters that the kernel returns for a ring that we create; nothing if that fails.
std::optional<io_uring_params> parameters_for(std::uint32_t layout, std::uint32_t entries,
                                              std::uint32_t completions) {
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;
  static std::map<Key, std::optional<io_uring_params>> known;
  const auto [at, is_new] = known.try_emplace({layout, entries, completions});
  if (!is_new) return at->second;
  io_uring_params parameters{};
  parameters.flags = layout | IORING_SETUP_CQSIZE;
  parameters.cq_entries = completions;
  const base::UniqueFd ring(static_cast<int>(::syscall(SYS_io_uring_setup, entries, &parameters)));
  if (ring.valid()) at->second = parameters;
  return at->second;
}

class Mapping {
 public:
  Mapping(int fd, std::size_t size, std::uint64_t offset)
      : size_(size),
        memory_(::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(offset))) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (valid()) ::munmap(memory_, size_);
  }
  [[nodiscard]] bool valid() const { return memory_ != MAP_FAILED; }
  [[nodiscard]] const char* at(std::size_t offset) const {
    return static_cast<const char*>(memory_) + offset;
  }
  // The program may change it at any time.
  [[nodiscard]] std::uint32_t word(std::size_t offset) const {
    return __atomic_load_n(reinterpret_cast<const std::uint32_t*>(at(offset)), __ATOMIC_ACQUIRE);
  }

 private:
  std::size_t size_;
  void* memory_;
};

base::UniqueFd copy_of_descriptor(pid_t process, int descriptor) {
  const base::UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
  if (!pidfd.valid()) return {};
  return base::UniqueFd(static_cast<int>(::syscall(SYS_pidfd_getfd, pidfd.get(), descriptor, 0)));
}

bool is_ring(const std::string& link) {
  std::array<char, 64> text{};
  const ssize_t length = ::readlink(link.c_str(), text.data(), text.size());
  return length > 0 &&
         std::string_view(text.data(), static_cast<std::size_t>(length)) == "anon_inode:[io_uring]";
}

std::string folder_of_descriptors(pid_t process) {
  return fmt::format("/proc/{}/fd/", process);
}

}  // namespace

std::uint32_t layout_flags(std::uint32_t setup_flags) {
  return setup_flags & (IORING_SETUP_SQE128 | IORING_SETUP_CQE32 | kNoSqArray);
}

bool is_followed(std::uint32_t setup_flags) {
  static_assert((kNoMmap & kRegisteredFdOnly) == 0);
  return (setup_flags & ~(kWithoutLayout | layout_flags(setup_flags) | kKnown)) == 0;
}

bool kernel_makes(std::uint32_t setup_flags) {
  // The other flags need a device, processors or another ring, and every kernel with the tried ones
  // has them.
  constexpr std::uint32_t kTried = IORING_SETUP_CLAMP | IORING_SETUP_R_DISABLED |
                                   IORING_SETUP_SUBMIT_ALL | IORING_SETUP_COOP_TASKRUN |
                                   IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SINGLE_ISSUER |
                                   IORING_SETUP_DEFER_TASKRUN;
  return parameters_for(layout_flags(setup_flags) | (setup_flags & kTried), 1, 2).has_value();
}

std::optional<std::vector<io_uring_sqe>> entries_to_submit(pid_t process, int descriptor,
                                                           std::uint32_t layout,
                                                           std::uint32_t to_submit) {
  const base::UniqueFd ring = copy_of_descriptor(process, descriptor);
  // The first words are at the same place in every ring of a layout.
  const auto least = parameters_for(layout, 1, 2);
  if (!ring.valid() || !least) return std::nullopt;
  const std::size_t page = 4096;
  std::uint32_t entries = 0;
  std::uint32_t completions = 0;
  {
    const Mapping first(ring.get(), page, IORING_OFF_SQ_RING);
    if (!first.valid()) return std::nullopt;
    entries = first.word(least->sq_off.ring_entries);
    completions = first.word(least->cq_off.ring_entries);
  }
  const auto here = parameters_for(layout, entries, completions);
  if (!here || here->sq_entries != entries || here->cq_entries != completions) return std::nullopt;
  const bool indexed = (layout & kNoSqArray) == 0;
  const std::size_t queue_size =
      std::max(page, indexed ? here->sq_off.array + entries * sizeof(std::uint32_t) : page);
  const std::size_t stride = sizeof(io_uring_sqe) * ((layout & IORING_SETUP_SQE128) != 0 ? 2 : 1);
  const Mapping queue(ring.get(), queue_size, IORING_OFF_SQ_RING);
  const Mapping slots(ring.get(), entries * stride, IORING_OFF_SQES);
  if (!queue.valid() || !slots.valid()) return std::nullopt;
  const std::uint32_t head = queue.word(here->sq_off.head);
  const std::uint32_t tail = queue.word(here->sq_off.tail);
  const std::uint32_t count = std::min({to_submit, tail - head, entries});
  std::vector<io_uring_sqe> found(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t place = (head + i) & (entries - 1);
    const std::uint32_t slot =
        indexed ? queue.word(here->sq_off.array + place * sizeof(std::uint32_t)) : place;
    if (slot < entries) std::memcpy(&found[i], slots.at(slot * stride), sizeof found[i]);
  }
  return found;
}

std::vector<int> rings_of(pid_t process) {
  const std::string folder = folder_of_descriptors(process);
  std::vector<int> rings;
  for (const int descriptor : numbers_in(folder)) {
    if (is_ring(folder + std::to_string(descriptor))) rings.push_back(descriptor);
  }
  return rings;
}

bool is_ring(pid_t process, int descriptor) {
  return is_ring(folder_of_descriptors(process) + std::to_string(descriptor));
}

}  // namespace assay::collect
