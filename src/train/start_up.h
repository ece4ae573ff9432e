// StartUp: what happens from the start of the process to the end of the first step, in parts that
// follow each other, and how long each takes.
//
//   startup.begin("products", "timing matrix products");
//   …
//   startup.end();  // of the first step
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
    std::string name;  // a word
    double seconds = 0;
  };
  // Told what is being done now, in words, and for how many seconds the start has been going on.
  using Show = std::function<void(std::string_view, double)>;

  // `before_s`: how long ago it began; that is the first part, "process".
  explicit StartUp(double before_s = 0, Show show = {},
                   const base::Clock& clock = base::system_clock());

  // Ends what came before. A part may come more than once: its times are added up.
  void begin(const std::string& name, std::string_view doing);
  void end();

  // In the order in which they began; without the one that has not ended.
  [[nodiscard]] const std::vector<Part>& parts() const { return parts_; }
  // So far, or until the end.
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
