// The fake GPU's time: each process has a queue of work. While several have work for the
// multiprocessors, each runs at its fraction of the speed, as processes do that share a GPU; what a
// copy engine does runs at full speed beside them, but in the order of its queue. With
// FAKECUDA_CLOCK=FILE the GPU is the one of all processes that name this file; otherwise each
// process has one of its own.
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
// The GPU's time that this process has had.
std::uint64_t had();

std::uint64_t now_ns();

}  // namespace fakecuda
