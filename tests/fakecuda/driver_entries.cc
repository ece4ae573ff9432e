#include <cstring>

#include "driver.h"

using namespace fakecuda;

extern "C" {
#define PLAIN(name, version, per_thread, symbol) \
  int symbol() {                                 \
    count(k_##symbol);                           \
    return kOk;                                  \
  }
// Defined elsewhere with their parameters; only their addresses are used here.
#define MODELLED(name, version, per_thread, symbol) int symbol();
#include "entries.inc"
#undef PLAIN
#undef MODELLED
}

namespace fakecuda {

std::atomic<std::uint64_t> called[kSymbols];

const Entry kEntries[kSymbols] = {
#define PLAIN(name, version, per_thread, symbol) \
  {#name, version, per_thread, #symbol, reinterpret_cast<void*>(symbol)},
#define MODELLED PLAIN
#include "entries.inc"
#undef PLAIN
#undef MODELLED
};

const Entry* find(const char* name, int version, bool per_thread) {
  const Entry* best = nullptr;
  for (const Entry& entry : kEntries) {
    if (std::strcmp(entry.name, name) != 0 || entry.version > version ||
        entry.per_thread != per_thread) {
      continue;
    }
    if (best == nullptr || entry.version > best->version) best = &entry;
  }
  return best == nullptr && per_thread ? find(name, version, false) : best;
}

}  // namespace fakecuda
