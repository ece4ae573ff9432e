// How fast the products of experts are: all six of a mixture's layer, forward and backward, with
// even and uneven loads, as a loop of cuBLASLt's, one after the other and side by side, and by our
// own kernel; beside one dense product of all rows.
//
//   expert_products_bench [--experts E] [--rows R] [--dim D] [--width W] [--seconds S]
//       [--tuning FILE]
//
// R: rows of each expert, on average. Without options: 8 x 4096 rows of width 7168, as moe-9b has
// them, and 64 x 1536 of width 1408. Each figure is of S seconds (3) of work, so at the clock that
// the power limit allows.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <vector>

#include "base/error.h"
#include "train/cuda/grouped_products.h"
#include "train/cuda/kernels.h"

namespace {

using namespace assay;
using namespace assay::train::cuda;

constexpr std::int64_t kWorkspace = std::int64_t{64} << 20U;

struct Shape {
  std::int64_t experts = 8;
  std::int64_t rows = 4096;
  std::int64_t dim = 2048;
  std::int64_t width = 7168;
};

class Memory {
 public:
  explicit Memory(std::int64_t bytes) {
    if (cudaMalloc(&data_, static_cast<std::size_t>(bytes)) != cudaSuccess) data_ = nullptr;
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { cudaFree(data_); }
  [[nodiscard]] void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

struct Named {
  const char* name;
  GroupedProduct product;
  double flops = 0;
};

// The operands of a layer.
class Layer {
 public:
  Layer(Device& device, const Shape& s)
      : device_(device),
        shape_(s),
        x_(2 * all() * s.dim),
        inner_(2 * all() * 2 * s.width),
        a_(2 * all() * s.width),
        up_(2 * s.experts * 2 * s.width * s.dim),
        down_(2 * s.experts * s.dim * s.width),
        dup_(2 * s.experts * 2 * s.width * s.dim),
        ddown_(2 * s.experts * s.dim * s.width),
        made_(2 * all() * 2 * s.width) {}

  // Zeros would be too fast.
  bool fill() {
    const std::int64_t weights = shape_.experts * shape_.dim * shape_.width;
    for (const auto& [memory, elements] : {std::pair{&x_, all() * shape_.dim},
                                           {&inner_, all() * 2 * shape_.width},
                                           {&a_, all() * shape_.width},
                                           {&up_, 2 * weights},
                                           {&down_, weights}}) {
      if (memory->data() == nullptr) return false;
      fill_random(device_, memory->data(), elements);
    }
    return dup_.data() != nullptr && ddown_.data() != nullptr && made_.data() != nullptr;
  }

  // As one expert with all rows, for comparison, or as many.
  [[nodiscard]] std::vector<Named> products(std::int64_t experts) const {
    const Shape& s = shape_;
    const auto matrix = [](const Memory& m, std::int64_t rows, std::int64_t cols) {
      return Matrix{m.data(), rows, cols, cols};
    };
    const Matrix x = matrix(x_, all(), s.dim);
    const Matrix inner = matrix(inner_, all(), 2 * s.width);
    const Matrix a = matrix(a_, all(), s.width);
    const auto of = [&](const Memory& m, std::int64_t rows, std::int64_t cols) {
      return matrix(m, experts * rows, cols);
    };
    const Matrix up = of(up_, 2 * s.width, s.dim);
    const Matrix down = of(down_, s.dim, s.width);
    const Matrix dup = of(dup_, 2 * s.width, s.dim);
    const Matrix ddown = of(ddown_, s.dim, s.width);
    // Results are nobody's operands, or numbers would grow from round to round.
    const auto made = [&](const Matrix& like) { return matrix(made_, like.rows, like.cols); };
    std::vector<Named> list = {
        {"gate_up forward", {false, true, false, x, up, made(inner), {}, {}, experts}},
        {"down forward", {false, true, false, a, down, made(x), {}, {}, experts}},
        {"down inputs", {false, false, false, x, down, made(a), {}, {}, experts}},
        {"down weights", {true, false, false, x, a, ddown, {}, {}, experts}},
        {"gate_up inputs", {false, false, false, inner, up, made(x), {}, {}, experts}},
        {"gate_up weights", {true, false, false, inner, x, dup, {}, {}, experts}},
    };
    for (std::size_t i = 0; i < list.size(); ++i) {
      const bool is_up = i == 0 || i >= 4;
      list[i].flops = 2.0 * static_cast<double>(all()) * static_cast<double>(s.dim) *
                      static_cast<double>(s.width) * (is_up ? 2 : 1);
    }
    return list;
  }
  [[nodiscard]] std::int64_t all() const { return shape_.experts * shape_.rows; }

 private:
  Device& device_;
  Shape shape_;
  Memory x_, inner_, a_, up_, down_, dup_, ddown_, made_;
};

// `spread` 0: all alike; 0.5: from half to one and a half of the average.
std::vector<std::int32_t> first_rows(const Shape& s, std::int64_t experts, double spread) {
  std::vector<std::int32_t> list = {0};
  const auto all = static_cast<double>(s.experts * s.rows);
  double at = 0;
  for (std::int64_t e = 0; e < experts; ++e) {
    const double place =
        experts == 1 ? 0 : 2.0 * static_cast<double>(e) / static_cast<double>(experts - 1) - 1;
    at += all / static_cast<double>(experts) * (1 + spread * place);
    list.push_back(static_cast<std::int32_t>(at + 0.5));
  }
  list.back() = static_cast<std::int32_t>(all);
  return list;
}

// The same on the device.
class RowsOnDevice {
 public:
  explicit RowsOnDevice(const std::vector<std::int32_t>& rows)
      : memory_(static_cast<std::int64_t>(rows.size() * sizeof(std::int32_t))) {
    if (cudaMemcpy(memory_.data(), rows.data(), rows.size() * sizeof(std::int32_t),
                   cudaMemcpyHostToDevice) != cudaSuccess) {
      fmt::print(stderr, "expert_products_bench: rows cannot be copied\n");
    }
  }
  [[nodiscard]] const std::int32_t* data() const {
    return static_cast<const std::int32_t*>(memory_.data());
  }

 private:
  Memory memory_;
};

class Clock {
 public:
  Clock() {
    cudaEventCreate(&begin_);
    cudaEventCreate(&end_);
  }
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  ~Clock() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  template <class Work>
  double ms(const Device& device, Work work) {
    cudaEventRecord(begin_, device.stream);
    work();
    cudaEventRecord(end_, device.stream);
    cudaEventSynchronize(end_);
    float ms = 0;
    cudaEventElapsedTime(&ms, begin_, end_);
    return static_cast<double>(ms);
  }

 private:
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

struct Options {
  std::vector<Shape> shapes;
  double seconds = 3;
  std::string tuning;
};

void measure(Device& device, GroupedProducts& products, const std::vector<Named>& list,
             const std::vector<std::int32_t>& rows, double seconds, const std::string& name) {
  Clock clock;
  const auto round = [&] {
    for (const Named& one : list) products.multiply(device, one.product, rows);
  };
  const double once = clock.ms(device, round);
  const int rounds = std::max(3, static_cast<int>(1e3 * seconds / once));
  const double ms = clock.ms(device, [&] {
    for (int i = 0; i < rounds; ++i) round();
  }) / rounds;
  double flops = 0;
  std::string each;
  for (const Named& one : list) {
    flops += one.flops;
    const double own = clock.ms(device, [&] {
      for (int i = 0; i < 10; ++i) products.multiply(device, one.product, rows);
    });
    each += fmt::format(" {:>6.0f}", 10 * one.flops / own / 1e9);
  }
  fmt::print("{:<36} {:>8.3f} {:>8.0f}  {}\n", name, ms, flops / ms / 1e9, each);
  std::fflush(stdout);
}

std::string name_of(int lanes) {
  if (lanes == kByKernel) return "own kernel";
  return lanes == kAsMeasured ? "as tuned" : fmt::format("loop, {} lanes", lanes);
}

base::Result<void> run(const Options& options) {
  Device device;
  device.check(cudaStreamCreateWithFlags(&device.stream, cudaStreamNonBlocking), "stream");
  Matmul matmul;
  ASSAY_TRY_VOID(matmul.open(options.tuning, true));
  GroupedProducts products(matmul);
  ASSAY_TRY_VOID(products.open());
  const Memory workspace(kWorkspace * kLanes);
  device.workspace.products = workspace.data();
  device.workspace.products_bytes = kWorkspace;
  device.workspace.lanes = static_cast<std::byte*>(workspace.data()) + kWorkspace;
  for (const Shape& s : options.shapes) {
    Layer layer(device, s);
    if (workspace.data() == nullptr || !layer.fill()) {
      return base::fail(base::unfit_error("GPU memory", "is too small"));
    }
    auto grouped = layer.products(s.experts);
    const auto dense = layer.products(1);
    const RowsOnDevice even(first_rows(s, s.experts, 0));
    for (Named& one : grouped) one.product.first_rows = even.data();
    for (const Named& one : grouped) products.tune(device, one.product);
    for (const Named& one : dense) products.tune(device, one.product);
    ASSAY_TRY_VOID(matmul.save());
    fmt::print(
        "{} experts, {} rows each, {} x {}; TFLOP/s of all six, sustained, and of each in "
        "a burst of ten:\n",
        s.experts, s.rows, s.dim, s.width);
    fmt::print("{:<36} {:>8} {:>8}  {}\n", "", "ms", "TFLOP/s",
               " up fwd dn fwd  dn in  dn wt  up in  up wt");
    measure(device, products, dense, first_rows(s, 1, 0), options.seconds, "one dense product");
    for (const double spread : {0.0, 0.5}) {
      const auto rows = first_rows(s, s.experts, spread);
      const RowsOnDevice on_device(rows);
      for (Named& one : grouped) one.product.first_rows = on_device.data();
      for (const int lanes : {1, 2, 4, kByKernel, kAsMeasured}) {
        products.use_lanes(lanes);
        measure(device, products, grouped, rows, options.seconds,
                fmt::format("{}, {}", spread == 0 ? "even" : "0.5 to 1.5", name_of(lanes)));
      }
    }
    products.use_lanes(kAsMeasured);
    std::string tuned;
    for (const Named& one : grouped) {
      tuned += fmt::format(" {}: {};", one.name, name_of(products.lanes_of(one.product)));
    }
    fmt::print("as tuned:{}\n", tuned);
  }
  if (!device.failure().empty()) return base::fail(base::failed_error("cuda", device.failure()));
  return {};
}

base::Result<Options> parse(const std::vector<std::string>& arguments) {
  Options options;
  Shape shape;
  bool has_shape = false;
  for (std::size_t i = 0; i + 1 < arguments.size(); i += 2) {
    const std::string& key = arguments[i];
    const std::string& value = arguments[i + 1];
    const auto number = [&] {
      has_shape = true;
      return std::stoll(value);
    };
    if (key == "--experts") {
      shape.experts = number();
    } else if (key == "--rows") {
      shape.rows = number();
    } else if (key == "--dim") {
      shape.dim = number();
    } else if (key == "--width") {
      shape.width = number();
    } else if (key == "--seconds") {
      options.seconds = std::stod(value);
    } else if (key == "--tuning") {
      options.tuning = value;
    } else {
      return base::fail(base::usage_error(key, "is no option", "see the source"));
    }
  }
  options.shapes = {shape};
  if (!has_shape) options.shapes.push_back({.experts = 64, .rows = 1536, .width = 1408});
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const auto options = parse({argv + 1, argv + argc});
  const auto done = options ? run(*options) : base::fail(options.error());
  if (done) return 0;
  fmt::print(stderr, "expert_products_bench: {}\n", done.error().line());
  return static_cast<int>(done.error().code);
}
