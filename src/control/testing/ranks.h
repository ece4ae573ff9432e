// Jobs whose ranks are threads, for tests: matching options, and functions that act on all ranks at
// once.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "control/channel.h"
#include "control/socket.h"

namespace assay::control::testing {

// Owns a port that is already listening, as a launcher would: no rank can connect too early, and no
// other test can take the port.
class Job {
 public:
  explicit Job(int ranks, const std::string& host = "127.0.0.1") : ranks_(ranks) {
    auto listener = listen_at({host, 0});
    EXPECT_TRUE(listener) << listener.error().line();
    listener_ = *std::move(listener);
    host_ = host;
  }

  [[nodiscard]] ChannelOptions options(int rank) {
    ChannelOptions options;
    options.job = "test job";
    options.secret = Secret("a secret of tests");
    options.rank = rank;
    options.ranks = ranks_;
    options.rendezvous = {host_, listener_.port};
    if (rank == 0 && listener_.socket.valid()) options.listener_fd = listener_.socket.release();
    options.join_timeout = Milliseconds(60'000);
    return options;
  }
  [[nodiscard]] int ranks() const { return ranks_; }
  [[nodiscard]] std::uint16_t port() const { return listener_.port; }
  // Must be called in a forked child.
  void close_listener() { listener_.socket.reset(); }

 private:
  int ranks_;
  std::string host_;
  Listener listener_;
};

inline base::Result<std::unique_ptr<Channel>> enter(const ChannelOptions& options) {
  return options.rank == 0 ? Channel::host(options) : Channel::join(options);
}

using Changes = std::function<void(ChannelOptions&)>;

// Enters all ranks at once, each on its own thread.
inline std::vector<base::Result<std::unique_ptr<Channel>>> enter_all(Job& job,
                                                                     const Changes& change = {}) {
  std::vector<base::Result<std::unique_ptr<Channel>>> channels(
      static_cast<std::size_t>(job.ranks()));
  std::vector<ChannelOptions> options;
  for (int rank = 0; rank < job.ranks(); ++rank) {
    options.push_back(job.options(rank));
    if (change) change(options.back());
  }
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < channels.size(); ++rank) {
    threads.emplace_back([&, rank] { channels[rank] = enter(options[rank]); });
  }
  for (std::thread& thread : threads) thread.join();
  return channels;
}

// The same, but expects every rank to succeed.
inline std::vector<std::unique_ptr<Channel>> joined(Job& job, const Changes& change = {}) {
  std::vector<std::unique_ptr<Channel>> channels;
  for (auto& channel : enter_all(job, change)) {
    EXPECT_TRUE(channel) << channel.error().line();
    channels.push_back(channel ? *std::move(channel) : nullptr);
  }
  return channels;
}

// Calls body(channel) on all ranks at once.
inline void together(std::vector<std::unique_ptr<Channel>>& channels,
                     const std::function<void(Channel&)>& body) {
  std::vector<std::thread> threads;
  for (auto& channel : channels) {
    if (channel) threads.emplace_back([&] { body(*channel); });
  }
  for (std::thread& thread : threads) thread.join();
}

inline void leave_all(std::vector<std::unique_ptr<Channel>>& channels) {
  together(channels, [](Channel& channel) {
    const auto left = channel.leave(Milliseconds(60'000));
    EXPECT_TRUE(left) << left.error().line();
  });
}

// Waits until the condition holds, for at most a minute.
inline bool eventually(const std::function<bool()>& condition) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace assay::control::testing
