// Matmuls by every matmul function of cuBLAS, of random sizes and types. Their flops are also
// summed here from the arguments, and printed with what the fake library counted.
//
//   matmuls VERSION[,VERSION] ROUNDS SEED [how…]
//     with each version in turn, found as ctypes does: dlopen by name, dlsym
//     capture: into a capturing stream; fail: with a negative size; huge: the sum exceeds 64 bits;
//     impossible: one product exceeds 64 bits; threads: four at once; default: by RTLD_DEFAULT
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <random>
#include <thread>

#include "observe/shim/gpu/testing/blas_shapes.h"
#include "observe/shim/gpu/testing/probe.h"

namespace probe {
namespace {

enum class Shape { PLAIN, ARRAYS, STRIDES, TYPES, EX, ARRAYS_EX, STRIDES_EX, LT };
struct Function {
  const char* symbol;
  Shape shape;
  bool wide;
  unsigned flops;  // 0: by the type
};
const Function kFunctions[] = {
#define GEMM(symbol, shape, N, flops) {#symbol, Shape::shape, sizeof(N) == 8, flops},
#include "observe/shim/gpu/testing/blas_calls.inc"
#undef GEMM
    {"cublasLtMatmul", Shape::LT, true, 0},
};

__extension__ using Wide = unsigned __int128;

struct Sizes {
  long m, n, k, batch;
  int type, trans_a, trans_b;
};

struct Libraries {
  void* blas;
  void* lt;
  void* handle = nullptr;
  void* stream = nullptr;
};

const char* at(unsigned long address) {
  return reinterpret_cast<const char*>(address);
}

template <typename N>
int call(void* function, Shape shape, void* handle, const Sizes& of) {
  using Shapes = fakeblas::Shapes<N>;
  const auto m = static_cast<N>(of.m), n = static_cast<N>(of.n), k = static_cast<N>(of.k),
             batch = static_cast<N>(of.batch);
  const int ta = of.trans_a, tb = of.trans_b, type = of.type;
  void* c = const_cast<char*>(at(0x5000));
  const auto as = [&](auto* signature) { return reinterpret_cast<decltype(signature)>(function); };
  switch (shape) {
    case Shape::PLAIN:
      return as(static_cast<typename Shapes::PLAIN*>(nullptr))(handle, ta, tb, m, n, k, at(1),
                                                               at(2), 11, at(3), 12, at(4), c, 13);
    case Shape::ARRAYS:
      return as(static_cast<typename Shapes::ARRAYS*>(nullptr))(
          handle, ta, tb, m, n, k, at(1), at(2), 11, at(3), 12, at(4), c, 13, batch);
    case Shape::STRIDES:
      return as(static_cast<typename Shapes::STRIDES*>(nullptr))(handle, ta, tb, m, n, k, at(1),
                                                                 at(2), 11, -5, at(3), 12, 6, at(4),
                                                                 c, 13, 1LL << 40U, batch);
    case Shape::TYPES:
      return as(static_cast<typename Shapes::TYPES*>(nullptr))(
          handle, ta, tb, m, n, k, at(1), at(2), type, 11, at(3), type, 12, at(4), c, 77, 13);
    case Shape::EX:
      return as(static_cast<typename Shapes::EX*>(nullptr))(handle, ta, tb, m, n, k, at(1), at(2),
                                                            type, 11, at(3), type, 12, at(4), c, 77,
                                                            13, 68, -1);
    case Shape::ARRAYS_EX:
      return as(static_cast<typename Shapes::ARRAYS_EX*>(nullptr))(handle, ta, tb, m, n, k, at(1),
                                                                   at(2), type, 11, at(3), type, 12,
                                                                   at(4), c, 77, 13, batch, 68, -1);
    default:
      return as(static_cast<typename Shapes::STRIDES_EX*>(nullptr))(
          handle, ta, tb, m, n, k, at(1), at(2), type, 11, -5, at(3), type, 12, 6, at(4), c, 77, 13,
          1LL << 40U, batch, 68, -1);
  }
}

int call_lt(const Libraries& in, void* function, const Sizes& of) {
  const auto get = [&](const char* name) { return ::dlsym(in.lt, name); };
  auto* create = reinterpret_cast<int (*)(void**, int, std::uint64_t, std::uint64_t, std::int64_t)>(
      get("cublasLtMatrixLayoutCreate"));
  auto* set = reinterpret_cast<int (*)(void*, int, const void*, std::size_t)>(
      get("cublasLtMatrixLayoutSetAttribute"));
  auto* set_descriptor = reinterpret_cast<int (*)(void*, int, const void*, std::size_t)>(
      get("cublasLtMatmulDescSetAttribute"));
  void* descriptor = nullptr;
  reinterpret_cast<int (*)(void**, int, int)>(get("cublasLtMatmulDescCreate"))(&descriptor, 68, 0);
  set_descriptor(descriptor, 3, &of.trans_a, sizeof of.trans_a);
  set_descriptor(descriptor, 4, &of.trans_b, sizeof of.trans_b);
  const auto layout = [&](long rows, long columns, bool transposed) {
    void* made = nullptr;
    create(&made, of.type, static_cast<std::uint64_t>(transposed ? columns : rows),
           static_cast<std::uint64_t>(transposed ? rows : columns), 1);
    const int batch = static_cast<int>(of.batch);
    set(made, 5, &batch, sizeof batch);
    return made;
  };
  void* a = layout(of.m, of.k, of.trans_a != 0);
  void* b = layout(of.k, of.n, of.trans_b != 0);
  void* c = layout(of.m, of.n, false);
  const int result = reinterpret_cast<fakeblas::LtMatmul*>(function)(
      nullptr, descriptor, at(1), at(2), a, at(3), of.m < 0 ? nullptr : b, at(4), at(5), c,
      const_cast<char*>(at(5)), c, nullptr, nullptr, 0, in.stream);
  for (void* made : {a, b, c}) {
    reinterpret_cast<int (*)(void*)>(get("cublasLtMatrixLayoutDestroy"))(made);
  }
  reinterpret_cast<int (*)(void*)>(get("cublasLtMatmulDescDestroy"))(descriptor);
  return result;
}

std::atomic<unsigned long> made{0};
std::atomic<unsigned long> failed{0};
std::atomic<unsigned long> millions{0};  // of flops, and the remainder
std::atomic<unsigned long> rest{0};

void multiply(const Libraries& in, const Function& function, const Sizes& sizes, bool by_default) {
  const bool lt = function.shape == Shape::LT;
  void* found = ::dlsym(by_default ? RTLD_DEFAULT : (lt ? in.lt : in.blas), function.symbol);
  const int result =
      lt ? call_lt(in, found, sizes)
         : (function.wide ? call<long> : call<int>)(found, function.shape, in.handle, sizes);
  ++made;
  if (result != 0) {
    ++failed;
    return;
  }
  const bool batched = function.shape != Shape::PLAIN && function.shape != Shape::TYPES &&
                       function.shape != Shape::EX;
  const bool complex = sizes.type >= 4 && sizes.type <= 7;
  Wide flops = function.flops != 0 ? function.flops : (complex ? 8 : 2);
  for (const long size : {sizes.m, sizes.n, sizes.k, batched ? sizes.batch : 1}) {
    flops *= static_cast<unsigned long>(size);
  }
  if (flops >> 64U != 0) return;
  millions += static_cast<unsigned long>(flops / 1'000'000);
  rest += static_cast<unsigned long>(flops % 1'000'000);
}

}  // namespace

int matmuls(const std::vector<std::string>& arguments) {
  const auto has = [&](const char* argument) {
    return std::find(arguments.begin(), arguments.end(), argument) != arguments.end();
  };
  const long rounds = std::stol(arguments.at(1));
  std::vector<Libraries> libraries;
  for (std::size_t from = 0; from < arguments[0].size(); from += 3) {
    const std::string version = arguments[0].substr(from, 2);
    const auto open = [&](const std::string& name) {
      return ::dlopen((name + version).c_str(), RTLD_NOW | (has("default") ? RTLD_GLOBAL : 0));
    };
    Libraries in{.blas = open("libcublas.so."), .lt = open("libcublasLt.so.")};
    if (in.blas == nullptr || in.lt == nullptr) return 2;
    reinterpret_cast<int (*)(void**)>(::dlsym(in.blas, "cublasCreate_v2"))(&in.handle);
    if (has("capture")) {
      in.stream = const_cast<char*>(at(0x7000));
      reinterpret_cast<int (*)(void*, void*)>(::dlsym(in.blas, "cublasSetStream_v2"))(in.handle,
                                                                                      in.stream);
    }
    libraries.push_back(in);
  }
  open_driver();
  if (has("capture")) {
    symbol<int(void*, int)>("cuStreamBeginCapture_v2")(libraries.front().stream, 0);
  }
  const auto work = [&](unsigned seed) {
    std::minstd_rand random(seed);
    const auto below = [&](unsigned long end) { return static_cast<long>(random() % end); };
    for (long i = 0; i < rounds; ++i) {
      Sizes sizes{below(300) + 1, below(300) + 1, below(300) + 1, below(5) + 1, 0, 0, 0};
      const int types[] = {0, 1, 2, 14, 28, 4, 5, 6};
      sizes.type = types[below(8)];
      sizes.trans_a = static_cast<int>(below(3));
      sizes.trans_b = static_cast<int>(below(3));
      if (has("huge")) sizes = {1 << 20, 1 << 20, 1 << 19, 1, 0, 0, 0};
      if (has("impossible")) sizes = {1L << 30, 1L << 30, 1L << 30, 3, 0, 0, 0};
      if (has("fail")) sizes.m = -1;
      // Each at least once, then at random.
      const std::size_t all = std::size(kFunctions);
      const std::size_t which =
          static_cast<std::size_t>(i) < all ? static_cast<std::size_t>(i) : random() % all;
      for (const Libraries& in : libraries) {
        multiply(in, kFunctions[which], sizes, has("default"));
      }
    }
  };
  const unsigned seed = arguments.size() > 2 ? static_cast<unsigned>(std::stoul(arguments[2])) : 1;
  std::vector<std::thread> running;
  for (unsigned i = 1; i < (has("threads") ? 4U : 1U); ++i) running.emplace_back(work, seed + i);
  work(seed);
  for (std::thread& thread : running) thread.join();
  print("functions", std::size(kFunctions));
  print("made", made);
  print("failed", failed);
  print("mflops", millions + rest / 1'000'000);
  print("rest", rest % 1'000'000);
  unsigned long inside = 0;
  for (std::size_t i = 0; i < libraries.size(); ++i) {
    const auto query = [](void* of, const char* name) {
      return reinterpret_cast<unsigned long (*)()>(::dlsym(of, name))();
    };
    const std::string number = std::to_string(i);
    print(("calls" + number).c_str(), query(libraries[i].blas, "fakeblas_calls"));
    print(("digest" + number).c_str(), query(libraries[i].blas, "fakeblas_digest"));
    inside += query(libraries[i].lt, "fakeblas_lt_calls");
  }
  print("lt_calls", inside);
  return 0;
}

}  // namespace probe
