// Runs a program under the library with the fake driver and its own region, and reads its output
// and its counts.
#pragma once

#include <fcntl.h>
#include <glob.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>

#include "observe/wire/gpu_region.h"

namespace assay::gpu::testing {

struct ProgramOutput {
  int status = -1;  // as wait(2) returns it
  std::string text;
  std::map<std::string, unsigned long> values;  // "name number" lines
};

class GpuTestRun {
 public:
  GpuTestRun() {
    const int file = ::mkstemp(path_);
    ready_ = wire::make_gpu_region(file);
    void* memory =
        ::mmap(nullptr, sizeof(wire::GpuRegion), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    region_ = static_cast<wire::GpuRegion*>(memory);
  }
  ~GpuTestRun() {
    ::munmap(region_, sizeof(wire::GpuRegion));
    remove_files();
  }
  GpuTestRun(const GpuTestRun&) = delete;
  GpuTestRun& operator=(const GpuTestRun&) = delete;

  [[nodiscard]] bool ready() const { return ready_; }
  [[nodiscard]] wire::GpuRegion& region() const { return *region_; }
  [[nodiscard]] const char* path() const { return path_; }
  // A file of the run, removed at the end of the test.
  [[nodiscard]] std::string file(const std::string& name) const {
    return std::string(path_) + "." + name;
  }
  [[nodiscard]] wire::GpuTotals::Total total(wire::GpuQuantity quantity) const {
    return wire::sum_of(*region_)[quantity];
  }

  // `settings` are environment variables in shell syntax.
  [[nodiscard]] ProgramOutput run(const std::string& command,
                                  const std::string& settings = "") const {
    return run_as(std::string("ASSAY_GPU_REGION=") + path_ +
                  " LD_PRELOAD=" ASSAY_GPU_LIBRARY " LD_LIBRARY_PATH=" ASSAY_FAKECUDA " " +
                  settings + " exec " + command);
  }
  [[nodiscard]] ProgramOutput probe(const std::string& arguments,
                                    const std::string& settings = "") const {
    return run(ASSAY_GPU_PROBE " " + arguments, settings);
  }

  static ProgramOutput run_as(const std::string& line) {
    ProgramOutput ran;
    FILE* output = ::popen((line + " 2>&1").c_str(), "r");
    char buffer[4096];
    for (std::size_t size = 0; (size = std::fread(buffer, 1, sizeof buffer, output)) > 0;) {
      ran.text.append(buffer, size);
    }
    ran.status = ::pclose(output);
    std::istringstream lines(ran.text);
    std::string name;
    unsigned long number = 0;
    for (std::string text; std::getline(lines, text);) {
      std::istringstream fields(text);
      if (fields >> name >> number) ran.values[name] = number;
    }
    return ran;
  }

 private:
  void remove_files() const {
    glob_t found{};
    if (::glob((std::string(path_) + "*").c_str(), 0, nullptr, &found) == 0) {
      for (std::size_t i = 0; i < found.gl_pathc; ++i) ::unlink(found.gl_pathv[i]);
    }
    ::globfree(&found);
  }

  char path_[32] = "/dev/shm/assay-gpu-test-XXXXXX";
  wire::GpuRegion* region_ = nullptr;
  bool ready_ = false;
};

}  // namespace assay::gpu::testing
