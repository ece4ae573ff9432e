// Collectives between processes on this machine: how long ranks take to connect and what that costs
// in memory, how fast all_gather and all_to_all are beside a plain copy, and the latency of a small
// message. Run by bench/comm.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <vector>

#include "base/statistics.h"
#include "comm/testing/rank_processes.h"

namespace {

using namespace assay;
using comm::CommKind;
using comm::Communicator;
using comm::ElementType;
using comm::testing::run_processes;
using comm::testing::SharedMemory;

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Fails the benchmark if a rank did.
void check(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    if (line == "ok") continue;
    fmt::print(stderr, "comm_bench: {}\n", line);
    std::exit(1);
  }
}

double private_bytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  double kilobytes = 0;
  while (status >> word) {
    if (word == "RssAnon:") status >> kilobytes;
  }
  return kilobytes * 1024;
}

void connecting() {
  fmt::print(
      "| ranks | sockets | connected, ms (median of 5) | worst | private memory per rank, MB |\n"
      "|---|---|---|---|---|\n");
  for (const bool only_tcp : {false, true}) {
    for (const int ranks : {2, 8, 64}) {
      std::vector<double> times;
      double most_bytes = 0;
      for (int round = 0; round < 5; ++round) {
        SharedMemory shared;
        const double begun = now_s();
        check(run_processes({.ranks = ranks,
                             .body = [&](Communicator& c) -> base::Result<void> {
                               ASSAY_TRY_VOID(c.barrier());
                               shared.figure(c.rank()) = now_s();
                               shared.figure(c.rank() + 128) = private_bytes();
                               return c.barrier();
                             },
                             .only_tcp = only_tcp,
                             .shared = &shared}));
        double last = 0;
        for (int rank = 0; rank < ranks; ++rank) {
          last = std::max(last, shared.figure(rank).load());
          most_bytes = std::max(most_bytes, shared.figure(rank + 128).load());
        }
        times.push_back((last - begun) * 1e3);
      }
      fmt::print("| {} | {} | {:.0f} | {:.0f} | {:.1f} |\n", ranks, only_tcp ? "TCP" : "local",
                 base::median(times), *std::ranges::max_element(times), most_bytes / 1e6);
    }
  }
}

double copy_bandwidth(std::size_t bytes) {
  const std::vector<char> from(bytes, 1);
  std::vector<char> to(bytes, 2);
  std::vector<double> rates;
  for (int round = 0; round < 9; ++round) {
    const int repeats =
        static_cast<int>(std::max<std::size_t>((std::size_t{64} << 20U) / bytes, 1));
    const double begun = now_s();
    for (int i = 0; i < repeats; ++i) {
      std::memcpy(to.data(), from.data(), bytes);
      asm volatile("" ::"r"(to.data()) : "memory");
    }
    rates.push_back(static_cast<double>(bytes) * repeats / (now_s() - begun));
  }
  return base::median(rates);
}

// Seconds per call as rank 0 sees it, the median over rounds.
double call_seconds(int ranks, CommKind collective, std::size_t bytes, bool only_tcp) {
  SharedMemory shared;
  constexpr int kRounds = 7;
  const int repeats =
      static_cast<int>(std::clamp<std::size_t>((std::size_t{4} << 20U) / bytes, 1, 200));
  check(run_processes(
      {.ranks = ranks,
       .body = [&](Communicator& c) -> base::Result<void> {
         const std::vector<char> in(bytes, 1);
         std::vector<char> out(bytes, 2);
         const auto count = static_cast<std::int64_t>(bytes) / ranks;
         for (int round = -1; round < kRounds; ++round) {  // the first touches the memory
           ASSAY_TRY_VOID(c.barrier());
           const double begun = now_s();
           for (int i = 0; i < repeats; ++i) {
             ASSAY_TRY(const auto ticket,
                       c.issue({collective, count, ElementType::kU8}, in.data(), out.data()));
             ASSAY_TRY_VOID(c.wait(ticket));
           }
           const double seconds = (now_s() - begun) / repeats;
           ASSAY_TRY_VOID(c.barrier());
           if (round >= 0 && c.rank() == 0) shared.figure(round) = seconds;
         }
         return {};
       },
       .only_tcp = only_tcp,
       .shared = &shared}));
  std::vector<double> seconds;
  for (int round = 0; round < kRounds; ++round) seconds.push_back(shared.figure(round));
  return base::median(seconds);
}

void collectives(bool only_tcp) {
  fmt::print(
      "| call | result per rank | ranks | ms | GB/s, all ranks together | of a copy |\n"
      "|---|---|---|---|---|---|\n");
  for (const auto collective : {CommKind::kAllGather, CommKind::kAllToAll}) {
    for (const int ranks : {2, 4, 8}) {
      for (const std::size_t kib : std::initializer_list<std::size_t>{1, 16, 256, 4096, 65536}) {
        const std::size_t bytes = kib * 1024;
        const double seconds = call_seconds(ranks, collective, bytes, only_tcp);
        const double moved = static_cast<double>(bytes) * (ranks - 1);  // between processes
        fmt::print("| {} | {} KiB | {} | {:.3f} | {:.2f} | {:.0f}% |\n",
                   collective == CommKind::kAllGather ? "all_gather" : "all_to_all", kib, ranks,
                   seconds * 1e3, moved / seconds / 1e9,
                   100 * moved / seconds / copy_bandwidth(bytes));
      }
    }
  }
}

void latency(bool only_tcp) {
  SharedMemory shared;
  constexpr int kExchanges = 5000;
  check(run_processes({.ranks = 2,
                       .body = [&](Communicator& c) -> base::Result<void> {
                         char data[64] = {};
                         for (int round = 0; round < 8; ++round) {
                           ASSAY_TRY_VOID(c.barrier());
                           const double begun = now_s();
                           for (int i = 0; i < kExchanges; ++i) {
                             if (c.rank() == 0)
                               ASSAY_TRY_VOID(c.send(data, 64, ElementType::kU8, 1));
                             ASSAY_TRY_VOID(c.receive(data, 64, ElementType::kU8, 1 - c.rank()));
                             if (c.rank() == 1)
                               ASSAY_TRY_VOID(c.send(data, 64, ElementType::kU8, 0));
                           }
                           if (c.rank() == 0) {
                             shared.figure(round) = (now_s() - begun) / kExchanges / 2;
                           }
                         }
                         return {};
                       },
                       .only_tcp = only_tcp,
                       .shared = &shared}));
  std::vector<double> times;
  for (int round = 1; round < 8; ++round) times.push_back(shared.figure(round) * 1e6);
  fmt::print("| {} | {:.1f} | {:.1f} |\n", only_tcp ? "TCP" : "local", base::median(times),
             *std::ranges::min_element(times));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string only = argc > 1 ? argv[1] : "";
  if (only.empty() || only == "connect") {
    fmt::print("## From the first fork to the first barrier of all ranks\n\n");
    connecting();
  }
  if (only.empty() || only == "latency") {
    fmt::print(
        "\n## A message of 64 bytes, one way\n\n| sockets | us (median) | least "
        "|\n|---|---|---|\n");
    latency(false);
    latency(true);
  }
  if (only.empty() || only == "local") {
    fmt::print("\n## Calls, local sockets\n\n");
    collectives(false);
  }
  if (only.empty() || only == "tcp") {
    fmt::print("\n## Calls, TCP over loopback\n\n");
    collectives(true);
  }
  return 0;
}
