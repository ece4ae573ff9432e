// StartUp: the consecutive phases from the start of the process to the end of the first step, and
// how long each takes.
//
//   startup.begin("products", "timing matrix products");
//   …
//   startup.end();  // after the first step
//
// Called by one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace assay::train {

class StartUp {
 public:
  struct Part {
    std::string name;  // one word
    double seconds = 0;
  };
  // Shows the current activity, and the seconds since the start.
  using Show = std::function<void(std::string_view, double)>;

  // `before_s`: how long ago the process started; this becomes the first part, "process".
  explicit StartUp(double before_s = 0, Show show = {},
                   const base::Clock& clock = base::system_clock());

  // Ends the previous part. If a part occurs several times, its times are added.
  void begin(const std::string& name, std::string_view description);
  void end();

  // In the order of their beginnings, without the current one.
  [[nodiscard]] const std::vector<Part>& parts() const { return parts_; }
  // Until now, or until end() was called.
  [[nodiscard]] double seconds() const;

 private:
  void close();
  [[nodiscard]] double now() const;

  const base::Clock& clock_;
  double before_s_;
  Show show_;
  std::int64_t start_ns_;
  std::vector<Part> parts_;
  std::optional<std::size_t> current_;
  double current_since_ = 0;
  std::optional<double> ended_;
};

}  // namespace assay::train
