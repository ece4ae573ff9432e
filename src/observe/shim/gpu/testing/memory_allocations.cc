// Actions that allocate and free memory.
#include <utility>

#include "observe/shim/gpu/testing/memory_script.h"

namespace memory {
namespace {

constexpr std::uint64_t kUntouched = 0xDEAD;

// A pool of the first device, of the second (its default pool or a new one), or of the host
// (likewise).
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

int get_array(State& state, const Action& action, Got& got) {
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
  if (action.what == "array3d" && action.numbers.size() == 5) {  // width, height, format, channels…
    deep.height = action.number(1);
    deep.format = static_cast<int>(action.number(2));
    deep.channels = static_cast<unsigned>(action.number(3));
    deep.flags = static_cast<unsigned>(action.number(4));
  }
  if (action.what == "mipmap") deep.flags = static_cast<unsigned>(action.number(2));
  got.free = "cuArrayDestroy";
  auto* out = reinterpret_cast<void**>(&got.key);
  if (action.what == "array") return state.call("cuArrayCreate_v2", out, &flat);
  if (action.what == "array3d") return state.call("cuArray3DCreate_v2", out, &deep);
  got.free = "cuMipmappedArrayDestroy";
  return state.call("cuMipmappedArrayCreate", out, &deep, static_cast<unsigned>(action.number(1)));
}

int get_plain(State& state, const Action& action, Got& got) {
  const std::string& what = action.what;
  const std::size_t size = got.size;
  got.free = "cuMemFree_v2";
  if (what == "managed") return state.call("cuMemAllocManaged", &got.key, size, 1U);
  if (what == "pitch") {
    std::size_t pitch = 0;
    return state.call("cuMemAllocPitch_v2", &got.key, &pitch, size,
                      static_cast<std::size_t>(action.number(1)), 4U);
  }
  if (what == "create") {
    const int properties[8] = {1, 0, 1, static_cast<int>(action.number(1))};
    got.free = "cuMemRelease";
    return state.call("cuMemCreate", &got.key, size, &properties[0], std::uint64_t{0});
  }
  return state.call("cuMemAlloc_v2", &got.key, size);
}

int get_pooled(State& state, const Action& action, Got& got) {
  got.free = "cuMemFreeAsync";
  const std::size_t size = got.size;
  if (action.what == "async") return state.call("cuMemAllocAsync", &got.key, size, state.stream);
  return state.call("cuMemAllocFromPoolAsync", &got.key, size, pool_for(state, action.what),
                    state.stream);
}

template <int (*kGet)(State&, const Action&, Got&)>
int get(State& state, const Action& action) {
  Got got{kUntouched, action.number(0), "", 0};
  const int result = kGet(state, action, got);
  state.got.push_back(got);
  // A refused allocation leaves the caller's pointer unchanged, as in the fake driver; a real
  // driver may change it.
  const bool fake = ::dlsym(state.driver, "fakecuda_used") != nullptr;
  return fake && result > 0 && got.key != kUntouched ? 999 : result;
}

int free_one(State& state, const Action& action) {
  const Got& got = state.got.at(action.number(0));
  if (got.free == "cuMemFreeAsync") return state.call(got.free.c_str(), got.key, state.stream);
  return state.call(got.free.c_str(), got.key);
}

int map_one(State& state, const Action& action) {
  Got& got = state.got.at(action.number(0));
  const auto size = static_cast<std::size_t>(got.size);
  got.place = 0x6000'0000'0000 + (action.number(0) << 32U);  // outside the fake driver's range
  state.call("cuMemAddressReserve", &got.place, size, std::size_t{0}, got.place, std::uint64_t{0});
  return state.call("cuMemMap", got.place, size, std::size_t{0}, got.key, std::uint64_t{0});
}

// Sets the release threshold so that pools keep everything.
int keep(State& state) {
  void* own = nullptr;
  const std::uint64_t all = ~std::uint64_t{0};
  state.call("cuDeviceGetDefaultMemPool", &own, 0);
  return state.call("cuMemPoolSetAttribute", own, 4, static_cast<const void*>(&all));
}

}  // namespace

Actions allocation_actions(State& state) {
  Actions actions = {
      {"free", [&](const Action& action) { return free_one(state, action); }},
      {"freeraw",
       [&](const Action& action) { return state.call("cuMemFree_v2", action.number(0)); }},
      {"map", [&](const Action& action) { return map_one(state, action); }},
      {"unmap",
       [&](const Action& action) {
         const Got& got = state.got.at(action.number(0));
         return state.call("cuMemUnmap", got.place, static_cast<std::size_t>(got.size));
       }},
      {"retain",
       [&](const Action& action) {
         std::uint64_t handle = 0;
         return state.call("cuMemRetainAllocationHandle", &handle,
                           state.got.at(action.number(0)).place);
       }},
      {"keep", [&](const Action&) { return keep(state); }},
      {"nopool",
       [&](const Action&) {
         return state.call("cuMemPoolDestroy", std::exchange(state.pool, {}));
       }},
  };
  for (const char* name : {"alloc", "managed", "pitch", "create"}) {
    actions[name] = [&](const Action& action) { return get<get_plain>(state, action); };
  }
  for (const char* name :
       {"async", "fromnew", "fromother", "fromsecond", "fromhost", "fromhosts"}) {
    actions[name] = [&](const Action& action) { return get<get_pooled>(state, action); };
  }
  for (const char* name : {"array", "array3d", "mipmap"}) {
    actions[name] = [&](const Action& action) { return get<get_array>(state, action); };
  }
  return actions;
}

}  // namespace memory
