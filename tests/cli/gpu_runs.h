// A project with runs on pretended GPUs in it, for tests of limits and of top.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <sstream>
#include <string>

#include "base/json.h"
#include "base/testing/temp_dir.h"
#include "base/unique_fd.h"
#include "observe/wire/gpu_region.h"
#include "support/process.h"

namespace assay {

inline constexpr std::uint64_t kMi = 1U << 20U;
inline constexpr const char* kFirstGpu = "GPU-a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a000";
inline constexpr const char* kSecondGpu = "GPU-a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a001";

class GpuShareTest : public ::testing::Test {
 protected:
  support::ProcessResult shell(const std::string& script) {
    return support::run({{"sh", "-c", preamble() + script}, "", project_.path()});
  }
  std::string preamble() const {
    return "ASSAY='" + support::program() +
           "'; SCRIPT='" ASSAY_GPU_SCRIPT "'; export LD_LIBRARY_PATH=" ASSAY_FAKECUDA
           " FAKECUDA_DEVICES=2 FAKECUDA_STATE=" +
           (project_.path() / "state").string() + "; ";
  }
  std::string text_of(const std::string& name) const {
    std::ifstream file(project_.path() / name);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  // A run in the background that does these things; back when it waits for `go`.
  void start(const std::string& options, const std::string& steps) {
    shell("mkfifo go again; (" + options +
          " -- sh -c 'echo $ASSAY_GPU_REGION > region; exec $0 \"$@\"' $SCRIPT " + steps +
          " > out 2> err; echo $? > rc) > /dev/null 2>&1 &");
    ASSERT_TRUE(appears("out", "ready")) << text_of("err");
    running_ = true;
  }
  bool appears(const std::string& name, const std::string& what) const {
    for (int i = 0; i < 3000; ++i) {
      if (text_of(name).find(what) != std::string::npos) return true;
      ::usleep(10'000);
    }
    return false;
  }
  void let_continue(const std::string& fifo = "go") {
    shell("timeout 10 sh -c 'echo on > " + fifo + "'");
  }
  void finish() {
    let_continue();
    EXPECT_TRUE(appears("rc", "\n"));
    running_ = false;
  }
  void TearDown() override {
    if (running_) finish();
  }
  // The region as the run's own processes have it.
  void check_region(const std::function<void(const wire::GpuRegion&)>& check) {
    std::string path = text_of("region");
    path.resize(path.find('\n'));
    const base::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_TRUE(file.valid()) << path;
    void* memory = ::mmap(nullptr, sizeof(wire::GpuRegion), PROT_READ, MAP_SHARED, file.get(), 0);
    ASSERT_NE(memory, MAP_FAILED);
    check(*static_cast<const wire::GpuRegion*>(memory));
    ::munmap(memory, sizeof(wire::GpuRegion));
  }
  static const wire::GpuDevice* device(const wire::GpuRegion& region, std::uint64_t last) {
    for (const wire::GpuDevice& one : region.devices) {
      if (one.uuid[1].load() == (0x00A0A0A0A0A0A0A0U | last << 56U)) return &one;
    }
    return nullptr;
  }
  base::Json json(const std::string& command) {
    const auto ran = shell("$ASSAY " + command + " --json 2>err2");
    EXPECT_EQ(ran.exit_code, 0) << text_of("err2");
    return base::Json::parse(ran.out, nullptr, false);
  }

  base::testing::TempDir project_;
  bool running_ = false;
};

}  // namespace assay
