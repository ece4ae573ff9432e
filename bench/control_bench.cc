// The control channel with all ranks as threads of one process over the loopback interface: joining
// a job, and what a key, a barrier and a failure take. Run as it is.
#include <benchmark/benchmark.h>

#include <barrier>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "control/channel.h"
#include "control/socket.h"

namespace {

using namespace assay::control;        // NOLINT
using namespace std::chrono_literals;  // NOLINT
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Calls body(rank) in a thread for each rank; seconds from when all are ready until all are done.
double timed(int ranks, const std::function<void(int)>& body) {
  Clock::time_point start;
  std::barrier ready(ranks, [&]() noexcept { start = Clock::now(); });
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      ready.arrive_and_wait();
      body(rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return seconds_since(start);
}

class Ranks {
 public:
  explicit Ranks(int ranks) : channels_(static_cast<std::size_t>(ranks)) {
    Listener listener = listen_at({"127.0.0.1", 0}).value();
    ChannelOptions options;
    options.job = "bench";
    options.secret = Secret("a secret of benchmarks");
    options.ranks = ranks;
    options.rendezvous = {"127.0.0.1", listener.port};
    const int fd = listener.socket.release();
    join_seconds_ = timed(ranks, [&](int rank) {
      ChannelOptions mine = options;
      mine.rank = rank;
      if (rank == 0) mine.listener_fd = fd;
      at(rank) = (rank == 0 ? Channel::host(mine) : Channel::join(mine)).value();
    });
  }
  ~Ranks() {
    timed(static_cast<int>(channels_.size()), [&](int rank) {
      if (at(rank)) (void)at(rank)->leave();
    });
  }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  std::unique_ptr<Channel>& at(int rank) { return channels_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] double join_seconds() const { return join_seconds_; }

 private:
  std::vector<std::unique_ptr<Channel>> channels_;
  double join_seconds_ = 0;
};

void join(benchmark::State& state) {
  for (auto _ : state) {
    const Ranks ranks(static_cast<int>(state.range(0)));
    state.SetIterationTime(ranks.join_seconds());
  }
}
BENCHMARK(join)->Arg(2)->Arg(8)->Arg(64)->Arg(256)->Arg(1000)->UseManualTime()->Unit(
    benchmark::kMillisecond);

void put_and_get(benchmark::State& state) {
  Ranks ranks(2);
  const std::string value(static_cast<std::size_t>(state.range(0)), 'x');
  int key = 0;
  for (auto _ : state) {
    const std::string name = std::to_string(++key % 100);
    (void)ranks.at(1)->put(name, value);
    benchmark::DoNotOptimize(ranks.at(1)->get(name, 10s));
  }
}
BENCHMARK(put_and_get)->Arg(64)->Arg(1 << 20)->UseRealTime()->Unit(benchmark::kMicrosecond);

void barrier(benchmark::State& state) {
  const int count = static_cast<int>(state.range(0));
  Ranks ranks(count);
  constexpr int kBarriers = 20;
  for (auto _ : state) {
    const double seconds = timed(count, [&](int rank) {
      for (int i = 0; i < kBarriers; ++i) (void)ranks.at(rank)->barrier("b", 60s);
    });
    state.SetIterationTime(seconds / kBarriers);
  }
}
BENCHMARK(barrier)->Arg(2)->Arg(8)->Arg(64)->Arg(256)->UseManualTime()->Unit(
    benchmark::kMillisecond);

// From a rank's end without goodbye until every other rank's wait has returned.
void lost_rank(benchmark::State& state) {
  const int count = static_cast<int>(state.range(0));
  for (auto _ : state) {
    Ranks ranks(count);
    state.SetIterationTime(timed(count, [&](int rank) {
      if (rank == 1) {
        ranks.at(1).reset();
      } else {
        (void)ranks.at(rank)->get("never", 60s);
      }
    }));
  }
}
BENCHMARK(lost_rank)->Arg(8)->Arg(64)->UseManualTime()->Unit(benchmark::kMillisecond);

void progress(benchmark::State& state) {
  Ranks ranks(2);
  std::int64_t step = 0;
  for (auto _ : state) ranks.at(1)->progress(++step);
}
BENCHMARK(progress);

}  // namespace
