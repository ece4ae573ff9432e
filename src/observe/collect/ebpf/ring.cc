#include "observe/collect/ebpf/ring.h"

#include <linux/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <utility>

namespace assay::collect {
namespace {

std::size_t page_size() {
  return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

template <typename Word>
Word load(const std::byte* at) {
  return __atomic_load_n(reinterpret_cast<const Word*>(at), __ATOMIC_ACQUIRE);
}

}  // namespace

base::Result<MessageRing> MessageRing::map(int map, std::size_t size) {
  const std::size_t page = page_size();
  MessageRing ring;
  ring.size_ = size;
  void* mapped = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);
  if (mapped == MAP_FAILED) {
    return base::fail(base::system_error("ebpf", "cannot map the ring buffer", errno));
  }
  ring.consumer_ = static_cast<std::byte*>(mapped);
  mapped = ::mmap(nullptr, page + 2 * size, PROT_READ, MAP_SHARED, map, static_cast<off_t>(page));
  if (mapped == MAP_FAILED) {
    return base::fail(base::system_error("ebpf", "cannot map the ring buffer", errno));
  }
  ring.producer_ = static_cast<const std::byte*>(mapped);
  return ring;
}

MessageRing::MessageRing(MessageRing&& other) noexcept
    : consumer_(std::exchange(other.consumer_, nullptr)),
      producer_(std::exchange(other.producer_, nullptr)),
      size_(other.size_) {}

MessageRing::~MessageRing() {
  if (consumer_ != nullptr) ::munmap(consumer_, page_size());
  if (producer_ != nullptr) {
    ::munmap(const_cast<std::byte*>(producer_), page_size() + 2 * size_);
  }
}

std::size_t MessageRing::take(const std::function<void(std::span<const std::byte>)>& receive,
                              std::size_t most) {
  const std::byte* data = producer_ + page_size();
  auto position = load<unsigned long>(consumer_);
  std::size_t taken = 0;
  while (taken < most && position < load<unsigned long>(producer_)) {
    const std::byte* record = data + (position & (size_ - 1));
    const auto header = load<std::uint32_t>(record);
    if ((header & BPF_RINGBUF_BUSY_BIT) != 0) break;  // being written
    const std::uint32_t length = header & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
    if ((header & BPF_RINGBUF_DISCARD_BIT) == 0) {
      ++taken;
      receive({record + BPF_RINGBUF_HDR_SZ, length});
    }
    position += (length + BPF_RINGBUF_HDR_SZ + 7) / 8 * 8;
    __atomic_store_n(reinterpret_cast<unsigned long*>(consumer_), position, __ATOMIC_RELEASE);
  }
  return taken;
}

}  // namespace assay::collect
