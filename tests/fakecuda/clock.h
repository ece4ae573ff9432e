// The fake GPU's time: each process has a queue of work. While several have work for the
// multiprocessors, each runs at its fraction of the speed, like processes that share a GPU; copy
// engines run at full speed concurrently, but in the order of their queue. All processes with the
// same FAKECUDA_CLOCK=FILE share one GPU; otherwise each process has its own.
#pragma once

#include <cstdint>

namespace fakecuda {

enum class Engine : std::uint32_t { kMultiprocessors, kCopy };
// Adds work to this process's queue. Returns the queue's end: how much was ever submitted.
std::uint64_t submit(std::uint64_t ns, Engine engine = Engine::kMultiprocessors);
// Whether everything before this place in the queue has run, and when that was (0: not yet).
std::uint64_t done_at(std::uint64_t place);
// Sleeps until the queue is empty.
void wait_until_done();
// GPU time used by this process.
std::uint64_t busy_ns();

std::uint64_t now_ns();

}  // namespace fakecuda
