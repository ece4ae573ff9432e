#include "observe/shim/gpu/testing/memory_script.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

struct Word {
  std::string label, what;
  std::vector<std::uint64_t> numbers;
  std::string rest;
  [[nodiscard]] std::uint64_t number(std::size_t i) const {
    return i < numbers.size() ? numbers[i] : 0;
  }
};

Word parse(const std::string& text) {
  Word word;
  const std::size_t equals = text.find('=');
  std::string left = equals == std::string::npos ? text : text.substr(equals + 1);
  if (equals != std::string::npos) word.label = text.substr(0, equals);
  std::size_t colon = left.find(':');
  word.what = left.substr(0, colon);
  if (colon != std::string::npos) word.rest = left.substr(colon + 1);
  while (colon != std::string::npos) {
    word.numbers.push_back(std::strtoull(left.c_str() + colon + 1, nullptr, 10));
    colon = left.find(':', colon + 1);
  }
  return word;
}

// Something that was got, and how it is freed.
struct Got {
  std::uint64_t key = 0, size = 0;
  std::string free;
};

class Script {
 public:
  Script() : driver_(::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) {}

  template <typename... Arguments>
  int call(const char* name, Arguments... arguments) {
    auto* function = reinterpret_cast<int (*)(Arguments...)>(::dlsym(driver_, name));
    return function == nullptr ? -1 : function(arguments...);
  }

  int run(const Word& word) {
    const std::string& what = word.what;
    if (const auto found = simple_.find(what); found != simple_.end()) return found->second(word);
    if (const int result = get(word); result != kUnknown) return result;
    std::fprintf(stderr, "memory: what is %s?\n", what.c_str());
    std::exit(64);
  }

 private:
  static constexpr int kUnknown = -1000;
  using Pointer = std::uint64_t*;

  void tell(const Word& word, const char* field, std::uint64_t value) {
    std::printf("%s.%s %llu\n", word.label.c_str(), field, static_cast<unsigned long long>(value));
  }

  int get(const Word& word) {
    Got got{kUntouched, word.number(0), "cuMemFree_v2"};
    int result = kUnknown;
    const std::string& what = word.what;
    const std::size_t size = got.size;
    if (what == "alloc") result = call("cuMemAlloc_v2", &got.key, size);
    if (what == "managed") result = call("cuMemAllocManaged", &got.key, size, 1U);
    if (what == "async" || what.starts_with("from")) {
      got.free = "cuMemFreeAsync";
      void* stream = nullptr;
      result = what == "async"
                   ? call("cuMemAllocAsync", &got.key, size, stream)
                   : call("cuMemAllocFromPoolAsync", &got.key, size, pool(what), stream);
    }
    if (what == "pitch") {
      std::size_t pitch = 0;
      result = call("cuMemAllocPitch_v2", &got.key, &pitch, size,
                    static_cast<std::size_t>(word.number(1)), 4U);
    }
    if (what == "create") {
      const int properties[8] = {1, 0, 1, static_cast<int>(word.number(1))};
      got.free = "cuMemRelease";
      result = call("cuMemCreate", &got.key, size, &properties[0], std::uint64_t{0});
    }
    if (what == "array" || what == "array3d" || what == "mipmap") result = get_array(word, got);
    if (result != kUnknown) got_.push_back(got);
    // What is refused must leave the caller's pointer alone.
    if (result > 0 && got.key != kUntouched) return 999;
    return result;
  }

  // One of the first device's, of the second's (its own, or another), of the host's (likewise).
  void* pool(const std::string& what) {
    void* found = nullptr;
    int host[2] = {2, 0};
    if (what == "fromnew" && pool_ != nullptr) return pool_;
    if (what == "fromsecond") {
      call("cuDeviceGetDefaultMemPool", &found, 1);
    } else if (what == "fromhosts") {
      call("cuMemGetDefaultMemPool", &found, &host[0], 1);
    } else {
      const int properties[22] = {1, 0, what == "fromhost" ? 2 : 1, what == "fromother" ? 1 : 0};
      call("cuMemPoolCreate", &found, &properties[0]);
    }
    if (what == "fromnew") pool_ = found;
    return found;
  }

  int get_array(const Word& word, Got& got) {
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
    if (word.what == "array") return call("cuArrayCreate_v2", out, &flat);
    if (word.what == "array3d") return call("cuArray3DCreate_v2", out, &deep);
    got.free = "cuMipmappedArrayDestroy";
    return call("cuMipmappedArrayCreate", out, &deep, static_cast<unsigned>(word.number(1)));
  }

  int free(const Word& word) {
    const Got& got = got_.at(word.number(0));
    if (got.free == "cuMemFreeAsync") {
      return call(got.free.c_str(), got.key, static_cast<void*>(nullptr));
    }
    return call(got.free.c_str(), got.key);
  }
  static std::uint64_t place_of(std::uint64_t i) { return 0x6000'0000'0000 + (i << 32U); }
  int map(const Word& word) {
    const Got& got = got_.at(word.number(0));
    return call("cuMemMap", place_of(word.number(0)), static_cast<std::size_t>(got.size),
                std::size_t{0}, got.key, std::uint64_t{0});
  }
  int unmap(const Word& word) {
    return call("cuMemUnmap", place_of(word.number(0)),
                static_cast<std::size_t>(got_.at(word.number(0)).size));
  }
  int retain(const Word& word) {
    std::uint64_t handle = 0;
    return call("cuMemRetainAllocationHandle", &handle, place_of(word.number(0)));
  }

  int info(const Word& word) {
    std::size_t left = 0;
    std::size_t total = 0;
    const int result = call("cuMemGetInfo_v2", &left, &total);
    tell(word, "free", left);
    tell(word, "total", total);
    return result;
  }
  int total(const Word& word) {
    std::size_t bytes = 0;
    const int result = call("cuDeviceTotalMem_v2", &bytes, static_cast<int>(word.number(0)));
    tell(word, "total", bytes);
    return result;
  }
  // As ctypes does it.
  int nvml(const Word& word) {
    void* library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return -1;
    void* device = nullptr;
    const auto find = [&](const char* name) { return ::dlsym(library, name); };
    reinterpret_cast<int (*)()>(find("nvmlInit_v2"))();
    reinterpret_cast<int (*)(unsigned, void**)>(find("nvmlDeviceGetHandleByIndex_v2"))(
        static_cast<unsigned>(word.number(0)), &device);
    struct {
      unsigned version;
      unsigned long long total, reserved, free, used;
    } second{40U | (2U << 24U), 0, 0, 0, 0};
    unsigned long long first[3] = {};
    if (word.what == "nvml2") {
      using Get = int(void*, void*);
      const int result =
          reinterpret_cast<Get*>(find("nvmlDeviceGetMemoryInfo_v2"))(device, &second);
      tell(word, "version", second.version);
      tell(word, "total", second.total);
      tell(word, "free", second.free);
      tell(word, "used", second.used);
      return result;
    }
    using Get = int(void*, void*);
    const int result = reinterpret_cast<Get*>(find("nvmlDeviceGetMemoryInfo"))(device, first);
    tell(word, "total", first[0]);
    tell(word, "free", first[1]);
    tell(word, "used", first[2]);
    return result;
  }

  int graph(const Word& word) {
    void* graph = nullptr;
    if (word.what == "graph") {
      unsigned char parameters[256] = {};
      const std::uint64_t bytes = word.number(0);
      std::memcpy(parameters + 104, &bytes, sizeof bytes);
      void* node = nullptr;
      call("cuGraphCreate", &graph, 0U);
      call("cuGraphAddMemAllocNode", &node, graph, static_cast<const void*>(nullptr),
           std::size_t{0}, static_cast<void*>(parameters));
    } else {
      std::uint64_t address = 0;
      void* stream = nullptr;
      call("cuStreamBeginCapture_v2", stream, 0);
      call("cuMemAllocAsync", &address, static_cast<std::size_t>(word.number(0)), stream);
      call("cuMemFreeAsync", address, stream);
      call("cuStreamEndCapture", stream, &graph);
    }
    return call("cuGraphInstantiateWithFlags", &executable_, graph, std::uint64_t{0});
  }

  // So often a block that is freed again, captured; two at a time; or made by hand.
  int loop(const Word& word) {
    void* graph = nullptr;
    void* stream = nullptr;
    call("cuStreamBeginCapture_v2", stream, 0);
    std::uint64_t before = 0;
    for (std::uint64_t i = 0; i < word.number(0); ++i) {
      std::uint64_t address = 0;
      call("cuMemAllocAsync", &address, static_cast<std::size_t>(word.number(1)), stream);
      const std::uint64_t freed = word.what == "loop" ? address : before;
      if (freed != 0) call("cuMemFreeAsync", freed, stream);
      before = address;
    }
    if (word.what == "pairs") call("cuMemFreeAsync", before, stream);
    call("cuStreamEndCapture", stream, &graph);
    return call("cuGraphInstantiateWithFlags", &executable_, graph, std::uint64_t{0});
  }
  int any_nodes(const Word& word) {
    void* graph = nullptr;
    void* node = nullptr;
    call("cuGraphCreate", &graph, 0U);
    const void* none = nullptr;
    for (std::uint64_t i = 0; i < word.number(0); ++i) {
      unsigned char parameters[256] = {};
      const std::uint64_t bytes = word.number(1);
      parameters[0] = 10;
      std::memcpy(parameters + 16 + 104, &bytes, sizeof bytes);
      if (i % 2 == 0) {
        call("cuGraphAddNode", &node, graph, none, std::size_t{0}, static_cast<void*>(parameters));
      } else {
        call("cuGraphAddNode_v2", &node, graph, none, none, std::size_t{0},
             static_cast<void*>(parameters));
      }
      std::uint64_t address = 0;
      std::memcpy(&address, parameters + 16 + 112, sizeof address);
      std::memset(parameters, 0, sizeof parameters);
      parameters[0] = 11;
      std::memcpy(parameters + 16, &address, sizeof address);
      call("cuGraphAddNode", &node, graph, none, std::size_t{0}, static_cast<void*>(parameters));
    }
    return call("cuGraphInstantiateWithFlags", &executable_, graph, std::uint64_t{0});
  }

  // Pools are to keep everything.
  int keep() {
    void* own = nullptr;
    const std::uint64_t all = ~std::uint64_t{0};
    call("cuDeviceGetDefaultMemPool", &own, 0);
    return call("cuMemPoolSetAttribute", own, 4, static_cast<const void*>(&all));
  }

  // Two threads that get byte after byte, for so many milliseconds, and then free them.
  int beside(const Word& word) {
    using Clock = std::chrono::steady_clock;
    const auto until = Clock::now() + std::chrono::milliseconds(word.number(0));
    for (int i = 0; i < 2; ++i) {
      std::thread([this, until] {
        std::vector<std::uint64_t> got;
        while (Clock::now() < until) {
          call("cuMemAlloc_v2", &got.emplace_back(), std::size_t{1});
          std::this_thread::sleep_for(std::chrono::milliseconds(3));
        }
        for (const std::uint64_t address : got) call("cuMemFree_v2", address);
      }).detach();
    }
    return 0;
  }

  // Four threads get and free by chance; some of it is refused.
  int churn(const Word& word) {
    std::vector<std::thread> threads;
    for (unsigned seed = 1; seed <= 4; ++seed) {
      threads.emplace_back([&, seed] {
        std::minstd_rand random(seed + static_cast<unsigned>(::getpid()));
        std::vector<std::uint64_t> live;
        for (std::uint64_t i = 0; i < word.number(0); ++i) {
          std::uint64_t address = 0;
          if (live.size() > 20 || (!live.empty() && random() % 3 == 0)) {
            call("cuMemFree_v2", live.back());
            live.pop_back();
          } else if (call("cuMemAlloc_v2", &address,
                          static_cast<std::size_t>(1 + random() % word.number(1))) == 0) {
            live.push_back(address);
          }
        }
        for (const std::uint64_t address : live) call("cuMemFree_v2", address);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return 0;
  }

  // The same from the device's pool; tells the most that was in use of the device.
  int churn_pool(const Word& word) {
    auto* used = reinterpret_cast<unsigned long (*)(int)>(::dlsym(driver_, "fakecuda_used"));
    std::atomic<std::uint64_t> most{0};
    std::vector<std::thread> threads;
    for (unsigned seed = 1; seed <= 4; ++seed) {
      threads.emplace_back([&, seed] {
        std::minstd_rand random(seed);
        std::vector<std::uint64_t> live;
        void* stream = nullptr;
        for (std::uint64_t i = 0; i < word.number(0); ++i) {
          std::uint64_t address = 0;
          if (live.size() > 20 || (!live.empty() && random() % 3 == 0)) {
            call("cuMemFreeAsync", live.back(), stream);
            live.pop_back();
          } else if (call("cuMemAllocAsync", &address,
                          static_cast<std::size_t>(1 + random() % word.number(1)), stream) == 0) {
            live.push_back(address);
          }
          if (i % 64 == seed) call("cuCtxSynchronize", stream);
          const std::uint64_t now = used(0);
          for (std::uint64_t was = most; was < now && !most.compare_exchange_weak(was, now);) {
          }
        }
        for (const std::uint64_t address : live) call("cuMemFreeAsync", address, stream);
      });
    }
    for (std::thread& thread : threads) thread.join();
    tell(word, "most", most);
    return 0;
  }

  int set_device(const Word& word) {
    const auto device = static_cast<int>(word.number(0));
    call("cuDevicePrimaryCtxRetain", &context_, device);
    return call("cuCtxSetCurrent", context_);
  }

  static constexpr std::uint64_t kUntouched = 0xDEAD;
  void* driver_;
  void* context_ = nullptr;
  void* pool_ = nullptr;
  void* executable_ = nullptr;
  std::vector<Got> got_;
  const std::map<std::string, std::function<int(const Word&)>> simple_ = {
      {"free", [this](const Word& word) { return free(word); }},
      {"freeraw", [this](const Word& word) { return call("cuMemFree_v2", word.number(0)); }},
      {"map", [this](const Word& word) { return map(word); }},
      {"unmap", [this](const Word& word) { return unmap(word); }},
      {"retain", [this](const Word& word) { return retain(word); }},
      {"ctx", [this](const Word&) { return call("cuCtxCreate_v2", &context_, 0U, 0); }},
      {"destroy", [this](const Word&) { return call("cuCtxDestroy_v2", context_); }},
      {"primary", [this](const Word&) { return call("cuDevicePrimaryCtxRetain", &context_, 0); }},
      {"release", [this](const Word&) { return call("cuDevicePrimaryCtxRelease_v2", 0); }},
      {"reset", [this](const Word&) { return call("cuDevicePrimaryCtxReset_v2", 0); }},
      {"module", [this](const Word&) { return call("cuModuleLoadData"); }},
      {"device", [this](const Word& word) { return set_device(word); }},
      {"info", [this](const Word& word) { return info(word); }},
      {"infonull",
       [this](const Word&) {
         return call("cuMemGetInfo_v2", static_cast<std::size_t*>(nullptr),
                     static_cast<std::size_t*>(nullptr));
       }},
      {"total", [this](const Word& word) { return total(word); }},
      {"nvml", [this](const Word& word) { return nvml(word); }},
      {"nvml2", [this](const Word& word) { return nvml(word); }},
      {"graph", [this](const Word& word) { return graph(word); }},
      {"capture", [this](const Word& word) { return graph(word); }},
      {"launch",
       [this](const Word&) {
         return call("cuGraphLaunch", executable_, static_cast<void*>(nullptr));
       }},
      {"trim", [this](const Word&) { return call("cuDeviceGraphMemTrim", 0); }},
      {"loop", [this](const Word& word) { return loop(word); }},
      {"pairs", [this](const Word& word) { return loop(word); }},
      {"anynodes", [this](const Word& word) { return any_nodes(word); }},
      {"begin",
       [this](const Word& word) {
         return call("cuStreamBeginCapture_v2", static_cast<void*>(nullptr),
                     static_cast<int>(word.number(0)));
       }},
      {"end",
       [this](const Word&) {
         void* graph = nullptr;
         return call("cuStreamEndCapture", static_cast<void*>(nullptr), &graph);
       }},
      // As a thread does that has been told that it is harmless.
      {"relax",
       [this](const Word&) {
         int mode = 2;
         return call("cuThreadExchangeStreamCaptureMode", &mode);
       }},
      {"elsewhere",
       [this](const Word& word) {
         int result = 0;
         std::thread([&] {
           std::uint64_t address = 0;
           result = call("cuMemAllocAsync", &address, static_cast<std::size_t>(word.number(0)),
                         static_cast<void*>(nullptr));
         }).join();
         return result;
       }},
      {"beside", [this](const Word& word) { return beside(word); }},
      {"keep", [this](const Word&) { return keep(); }},
      {"sync",
       [this](const Word&) { return call("cuCtxSynchronize", static_cast<void*>(nullptr)); }},
      {"real",
       [this](const Word& word) {
         auto* used = reinterpret_cast<unsigned long (*)(int)>(::dlsym(driver_, "fakecuda_used"));
         tell(word, "used", used(static_cast<int>(word.number(0))));
         return 0;
       }},
      {"nopool",
       [this](const Word&) { return call("cuMemPoolDestroy", std::exchange(pool_, {})); }},
      {"churn", [this](const Word& word) { return churn(word); }},
      {"churnpool", [this](const Word& word) { return churn_pool(word); }},
      {"shell",
       [](const Word& word) {
         std::fflush(stdout);
         return std::system(std::getenv(word.rest.c_str()));
       }},
      // The child goes on; its parent waits for it, and ends as it does.
      {"fork",
       [](const Word&) {
         std::fflush(stdout);
         const pid_t child = ::fork();
         int status = 0;
         if (child == 0) return 0;
         ::waitpid(child, &status, 0);
         ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
       }},
      {"bury",
       [](const Word& word) {
         const pid_t child = ::fork();
         if (child == 0) {
           ::execl("/bin/sh", "sh", "-c",
                   (std::string("exec ") + std::getenv(word.rest.c_str())).c_str(), nullptr);
         }
         siginfo_t ended{};
         return ::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT);
       }},
      {"exit", [](const Word&) -> int { std::fflush(stdout), ::_exit(0); }},
      {"kill", [](const Word&) { return std::fflush(stdout), ::raise(SIGKILL); }},
      {"exec",
       [](const Word& word) {
         std::fflush(stdout);
         return ::execl("/bin/sh", "sh", "-c",
                        (std::string("exec ") + std::getenv(word.rest.c_str())).c_str(), nullptr);
       }},
      {"sleep",
       [](const Word& word) {
         std::this_thread::sleep_for(std::chrono::milliseconds(word.number(0)));
         return 0;
       }},
  };
};

}  // namespace

int memory_script(int count, char** words) {
  Script script;
  for (int i = 0; i < count; ++i) {
    const Word word = parse(words[i]);
    const int result = script.run(word);
    if (word.label.empty()) continue;
    std::printf("%s %d\n", word.label.c_str(), result);
    std::fflush(stdout);
  }
  return 0;
}
