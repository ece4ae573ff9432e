// Words that get memory and free it.
#include <utility>

#include "observe/shim/gpu/testing/memory_words.h"

namespace memory {
namespace {

constexpr std::uint64_t kUntouched = 0xDEAD;

// One of the first device's, of the second's (its own, or another), of the host's (likewise).
void* pool_for(State& state, const std::string& what) {
  void* found = nullptr;
  int host[2] = {2, 0};
  if (what == "fromnew" && state.pool != nullptr) return state.pool;
  if (what == "fromsecond") {
    state.call("cuDeviceGetDefaultMemPool", &found, 1);
  } else if (what == "fromhosts") {
    state.call("cuMemGetDefaultMemPool", &found, &host[0], 1);
  } else {
    const int properties[22] = {1, 0, what == "fromhost" ? 2 : 1, what == "fromother" ? 1 : 0};
    state.call("cuMemPoolCreate", &found, &properties[0]);
  }
  if (what == "fromnew") state.pool = found;
  return found;
}

int get_array(State& state, const Word& word, Got& got) {
  struct {
    std::size_t width, height;
    int format;
    unsigned channels;
  } flat{got.size, 0, 1, 1};
  struct {
    std::size_t width, height, depth;
    int format;
    unsigned channels, flags;
  } deep{got.size, 0, 0, 1, 1, 0};
  if (word.what == "array3d" && word.numbers.size() == 5) {  // width, height, format, channels…
    deep.height = word.number(1);
    deep.format = static_cast<int>(word.number(2));
    deep.channels = static_cast<unsigned>(word.number(3));
    deep.flags = static_cast<unsigned>(word.number(4));
  }
  if (word.what == "mipmap") deep.flags = static_cast<unsigned>(word.number(2));
  got.free = "cuArrayDestroy";
  auto* out = reinterpret_cast<void**>(&got.key);
  if (word.what == "array") return state.call("cuArrayCreate_v2", out, &flat);
  if (word.what == "array3d") return state.call("cuArray3DCreate_v2", out, &deep);
  got.free = "cuMipmappedArrayDestroy";
  return state.call("cuMipmappedArrayCreate", out, &deep, static_cast<unsigned>(word.number(1)));
}

int get_plain(State& state, const Word& word, Got& got) {
  const std::string& what = word.what;
  const std::size_t size = got.size;
  got.free = "cuMemFree_v2";
  if (what == "managed") return state.call("cuMemAllocManaged", &got.key, size, 1U);
  if (what == "pitch") {
    std::size_t pitch = 0;
    return state.call("cuMemAllocPitch_v2", &got.key, &pitch, size,
                      static_cast<std::size_t>(word.number(1)), 4U);
  }
  if (what == "create") {
    const int properties[8] = {1, 0, 1, static_cast<int>(word.number(1))};
    got.free = "cuMemRelease";
    return state.call("cuMemCreate", &got.key, size, &properties[0], std::uint64_t{0});
  }
  return state.call("cuMemAlloc_v2", &got.key, size);
}

int get_pooled(State& state, const Word& word, Got& got) {
  got.free = "cuMemFreeAsync";
  const std::size_t size = got.size;
  if (word.what == "async") return state.call("cuMemAllocAsync", &got.key, size, state.stream);
  return state.call("cuMemAllocFromPoolAsync", &got.key, size, pool_for(state, word.what),
                    state.stream);
}

template <int (*kGet)(State&, const Word&, Got&)>
int get(State& state, const Word& word) {
  Got got{kUntouched, word.number(0), "", 0};
  const int result = kGet(state, word, got);
  state.got.push_back(got);
  // What the library refuses leaves the caller's pointer alone, as the fake driver does; a real one
  // does not always.
  const bool fake = ::dlsym(state.driver, "fakecuda_used") != nullptr;
  return fake && result > 0 && got.key != kUntouched ? 999 : result;
}

int free_one(State& state, const Word& word) {
  const Got& got = state.got.at(word.number(0));
  if (got.free == "cuMemFreeAsync") return state.call(got.free.c_str(), got.key, state.stream);
  return state.call(got.free.c_str(), got.key);
}

int map_one(State& state, const Word& word) {
  Got& got = state.got.at(word.number(0));
  const auto size = static_cast<std::size_t>(got.size);
  got.place = 0x6000'0000'0000 + (word.number(0) << 32U);  // where the fake driver has no say
  state.call("cuMemAddressReserve", &got.place, size, std::size_t{0}, got.place, std::uint64_t{0});
  return state.call("cuMemMap", got.place, size, std::size_t{0}, got.key, std::uint64_t{0});
}

// Pools are to keep everything.
int keep(State& state) {
  void* own = nullptr;
  const std::uint64_t all = ~std::uint64_t{0};
  state.call("cuDeviceGetDefaultMemPool", &own, 0);
  return state.call("cuMemPoolSetAttribute", own, 4, static_cast<const void*>(&all));
}

}  // namespace

Words allocation_words(State& state) {
  Words words = {
      {"free", [&](const Word& word) { return free_one(state, word); }},
      {"freeraw", [&](const Word& word) { return state.call("cuMemFree_v2", word.number(0)); }},
      {"map", [&](const Word& word) { return map_one(state, word); }},
      {"unmap",
       [&](const Word& word) {
         const Got& got = state.got.at(word.number(0));
         return state.call("cuMemUnmap", got.place, static_cast<std::size_t>(got.size));
       }},
      {"retain",
       [&](const Word& word) {
         std::uint64_t handle = 0;
         return state.call("cuMemRetainAllocationHandle", &handle,
                           state.got.at(word.number(0)).place);
       }},
      {"keep", [&](const Word&) { return keep(state); }},
      {"nopool",
       [&](const Word&) { return state.call("cuMemPoolDestroy", std::exchange(state.pool, {})); }},
  };
  for (const char* name : {"alloc", "managed", "pitch", "create"}) {
    words[name] = [&](const Word& word) { return get<get_plain>(state, word); };
  }
  for (const char* name :
       {"async", "fromnew", "fromother", "fromsecond", "fromhost", "fromhosts"}) {
    words[name] = [&](const Word& word) { return get<get_pooled>(state, word); };
  }
  for (const char* name : {"array", "array3d", "mipmap"}) {
    words[name] = [&](const Word& word) { return get<get_array>(state, word); };
  }
  return words;
}

}  // namespace memory
