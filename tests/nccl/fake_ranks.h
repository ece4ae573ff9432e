// Ranks over the fake NCCL: threads with a device each.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "comm/cuda/nccl.h"
#include "nccl/fake_nccl.h"

namespace assay::comm::testing {

class Values : public KeyValue {
 public:
  base::Result<void> put(const std::string& key, const std::string& bytes) override {
    const std::lock_guard lock(mutex_);
    values_[key] = bytes;
    changed_.notify_all();
    return {};
  }
  base::Result<std::string> get(const std::string& key,
                                std::chrono::milliseconds timeout) override {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, timeout, [&] { return values_.contains(key); })) {
      return base::fail(base::failed_error(key, "nobody has put it"));
    }
    return values_[key];
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
};

using Body = std::function<base::Result<void>(Communicator&)>;

inline const NcclLibrary& fake() {
  static const NcclLibrary library = fakenccl::library();
  return library;
}

// Each rank is a thread with its own device. One line per rank.
inline std::vector<std::string> run(int ranks, const Body& body, NcclOptions options = {}) {
  fakenccl::reset();
  Values values;
  std::vector<std::string> lines(static_cast<std::size_t>(ranks));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank, options]() mutable {
        options.rank = options.device = rank;
        options.ranks = ranks;
        options.first_bytes = 1'000;
        const auto done = [&]() -> base::Result<void> {
          ASSAY_TRY(const auto world, connect_nccl(fake(), options, values));
          ASSAY_TRY_VOID(world->connect_neighbours());
          auto result = body(*world);
          // Before the memory of calls that failed is given back.
          if (!result) world->abort(result.error());
          return result;
        }();
        lines[static_cast<std::size_t>(rank)] = done ? "ok" : done.error().line();
      });
    }
  }
  return lines;
}

}  // namespace assay::comm::testing
