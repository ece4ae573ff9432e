// Processes a sequence of items on several threads, with results in the order of the items: one
// thread reads, the others work, and the caller's thread takes the results.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/result.h"

namespace assay::data {

template <class Item, class Output>
struct InOrder {
  // The next item; nothing at the end. After an error the items before it are still processed.
  std::function<base::Result<std::optional<Item>>()> read;
  // Called by several threads; `worker` is the thread's number, from 0.
  std::function<Output(unsigned worker, Item item)> work;
  // An error ends everything.
  std::function<base::Result<void>(Output output)> take;
};

// `stop` becomes true when no more items are wanted: `read` should then return soon. If fewer
// threads can be started than requested, those do all the work.
template <class Item, class Output>
base::Result<void> run_in_order(unsigned workers, const InOrder<Item, Output>& steps,
                                std::atomic<bool>& stop) {
  const std::uint64_t most_ahead = 4 * std::uint64_t{workers} + 4;  // bounds the memory
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::pair<std::uint64_t, Item>> waiting;
  std::map<std::uint64_t, Output> done;
  std::uint64_t read = 0;
  std::uint64_t taken = 0;
  bool ended = false;
  std::optional<base::Error> read_error;

  const auto reader = [&] {
    while (true) {
      auto item = steps.read();
      std::unique_lock lock(mutex);
      if (!item) read_error = item.error();
      if (!item || !*item) {
        ended = true;
        changed.notify_all();
        return;
      }
      changed.wait(lock, [&] { return stop || read - taken < most_ahead; });
      if (stop) return;
      waiting.emplace_back(read++, std::move(**item));
      changed.notify_all();
    }
  };
  const auto worker = [&](unsigned number) {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] { return stop || ended || !waiting.empty(); });
      if (stop || waiting.empty()) return;
      auto [index, item] = std::move(waiting.front());
      waiting.pop_front();
      lock.unlock();
      Output output = steps.work(number, std::move(item));
      lock.lock();
      done.emplace(index, std::move(output));
      changed.notify_all();
    }
  };

  std::vector<std::jthread> threads;
  base::Result<void> outcome;
  try {
    threads.reserve(std::size_t{workers} + 1);
    threads.emplace_back(reader);
    for (unsigned i = 0; i < workers; ++i) threads.emplace_back(worker, i);
  } catch (const std::exception& error) {  // thrown when no thread can be started
    if (threads.size() < 2) {
      outcome =
          base::fail(base::unfit_error("threads", fmt::format("cannot start: {}", error.what()),
                                       "raise the limit of processes (ulimit -u)"));
    }
  }
  std::unique_lock lock(mutex);
  while (outcome) {
    changed.wait(lock, [&] { return done.contains(taken) || (ended && taken == read); });
    if (!done.contains(taken)) break;
    Output output = std::move(done.extract(taken).mapped());
    lock.unlock();
    outcome = steps.take(std::move(output));
    lock.lock();
    ++taken;
    changed.notify_all();
  }
  stop = true;
  changed.notify_all();
  lock.unlock();
  threads.clear();
  if (outcome && read_error) return base::fail(*read_error);
  return outcome;
}

}  // namespace assay::data
