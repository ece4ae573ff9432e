// MessageRing: the reading end of a BPF ring buffer, as the kernel describes it
// (Documentation/bpf/ringbuf.rst): a page with the consumer's position, one with the producers',
// and the data, mapped twice in a row so that no message is split.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "base/result.h"

namespace assay::collect {

class MessageRing {
 public:
  // `map` stays the caller's.
  static base::Result<MessageRing> map(int map, std::size_t size);
  MessageRing(MessageRing&& other) noexcept;
  MessageRing& operator=(MessageRing&&) = delete;
  ~MessageRing();

  // Takes messages until there are none, or `most` were taken. Returns their number. A message's
  // bytes live only during the call.
  std::size_t take(const std::function<void(std::span<const std::byte>)>& receive,
                   std::size_t most);

 private:
  MessageRing() = default;
  std::byte* consumer_ = nullptr;
  const std::byte* producer_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace assay::collect
