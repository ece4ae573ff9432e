#include "hash/segments.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

namespace assay::hash {
namespace {

constexpr std::size_t kSegmentBytes = std::size_t{1} << 20;
constexpr std::uint64_t kMostSegments = 1 << 16;  // of 1 MiB, up to 64 GiB; larger ones beyond

std::size_t segment_bytes_of(std::uint64_t size) {
  std::size_t bytes = kSegmentBytes;
  while (size / bytes > kMostSegments) bytes *= 2;
  return bytes;
}

class SegmentedHash {
 public:
  SegmentedHash(const SegmentSource& source, std::uint64_t size, const SegmentOptions& options)
      : source_(source),
        options_(options),
        size_(size),
        segment_bytes_(segment_bytes_of(size)),
        count_(std::max<std::uint64_t>(1, (size + segment_bytes_ - 1) / segment_bytes_)),
        end_{count_, size},
        values_(count_) {}

  [[nodiscard]] std::uint64_t count() const { return count_; }

  // What every thread does.
  void work(Subtree& subtree) {
    while (!over_.load(std::memory_order_relaxed)) {
      const std::uint64_t segment = next_.fetch_add(1, std::memory_order_relaxed);
      if (segment >= count_) return;
      if (options_.stop.stop_requested())
        return give_up(segment, base::failed_error({}, "stopped"));
      hash_one(subtree, segment);
    }
  }

  base::Result<Hashed> result() {
    if (error_) return base::fail(std::move(*error_));
    if (end_.segments <= 1) return Hashed{first_.root(), end_.bytes};
    const auto values = std::span(values_).first(end_.segments);
    return Hashed{join(*options_.kernel, values).root(), end_.bytes};
  }

 private:
  void hash_one(Subtree& subtree, std::uint64_t segment) {
    const std::uint64_t offset = segment * segment_bytes_;
    const auto length =
        static_cast<std::size_t>(std::min<std::uint64_t>(segment_bytes_, size_ - offset));
    subtree.begin(offset / kChunkBytes, segment_bytes_ / kChunkBytes);
    auto fed = source_.feed(subtree, offset, length);
    if (!fed) return give_up(segment, std::move(fed).error());
    if (*fed < length) report_truncation(segment, offset + *fed);
    const Node node = subtree.finish();
    if (segment == 0) first_ = node;
    values_[segment] = node.chaining_value();
    if (options_.progress && *fed > 0) options_.progress(static_cast<std::int64_t>(*fed));
  }

  // The input ends at `bytes`, in this segment or just before it. If several threads report an end,
  // the earliest counts.
  void report_truncation(std::uint64_t segment, std::uint64_t bytes) {
    const std::scoped_lock lock(mutex_);
    if (bytes < end_.bytes) end_ = {segment + (bytes % segment_bytes_ == 0 ? 0 : 1), bytes};
    over_ = true;
  }

  void give_up(std::uint64_t segment, base::Error error) {
    const std::scoped_lock lock(mutex_);
    if (!error_ || segment < error_segment_) {
      error_ = std::move(error);
      error_segment_ = segment;
    }
    over_ = true;
  }

  struct End {
    std::uint64_t segments;
    std::uint64_t bytes;
  };

  const SegmentSource& source_;
  const SegmentOptions& options_;
  const std::uint64_t size_;
  const std::size_t segment_bytes_;
  const std::uint64_t count_;
  std::atomic<std::uint64_t> next_ = 0;
  std::atomic<bool> over_ = false;  // all segments before the early end have been taken

  std::mutex mutex_;  // guards the next three
  End end_;
  std::optional<base::Error> error_;
  std::uint64_t error_segment_ = 0;

  std::vector<ChainingValue> values_;  // each written by one thread, read when all are done
  Node first_;
};

}  // namespace

base::Result<Hashed> hash_segments(const SegmentSource& source, std::uint64_t size,
                                   const SegmentOptions& options) {
  SegmentedHash hashing(source, size, options);
  const unsigned wanted = options.threads == 0 ? usable_threads() : options.threads;
  const auto threads = static_cast<std::size_t>(std::min<std::uint64_t>(wanted, hashing.count()));
  // All memory is taken here, where running out of it can be reported.
  std::vector<Subtree> subtrees(threads, Subtree(*options.kernel));
  for (Subtree& subtree : subtrees) subtree.begin(0, segment_bytes_of(size) / kChunkBytes);
  {
    std::vector<std::jthread> helpers;
    helpers.reserve(threads);
    try {
      for (std::size_t i = 1; i < threads; ++i) {
        helpers.emplace_back([&hashing, &subtree = subtrees[i]] { hashing.work(subtree); });
      }
    } catch (const std::system_error&) {
      // No more threads can be created: the existing ones do the work.
    }
    hashing.work(subtrees[0]);
  }
  return hashing.result();
}

unsigned usable_threads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) {
    return static_cast<unsigned>(std::max(1, CPU_COUNT(&set)));
  }
  // More processors than a cpu_set_t has bits for.
  return std::max(1U, std::thread::hardware_concurrency());
}

}  // namespace assay::hash
