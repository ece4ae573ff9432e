// GPUs lent and watched, as a user meets it: limits reach the job's region, bad ones start nothing,
// running jobs are changed and shown.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/json.h"
#include "base/testing/temp_dir.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "observe/wire/gpu_region.h"
#include "share/testing/exposition.h"
#include "support/process.h"

namespace assay {
namespace {

using base::Json;
using share::testing::Exposition;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr std::uint64_t kMi = 1U << 20U;
constexpr const char* kFirstGpu = "GPU-a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a000";
constexpr const char* kSecondGpu = "GPU-a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a001";

class GpuShare : public testing::Test {
 protected:
  support::Outcome shell(const std::string& script) {
    return support::run({{"sh", "-c", preamble() + script}, "", project_.path()});
  }
  std::string preamble() const {
    return "ASSAY='" + support::program() +
           "'; SITTER='" ASSAY_GPU_SITTER "'; export LD_LIBRARY_PATH=" ASSAY_FAKECUDA
           " FAKECUDA_DEVICES=2 FAKECUDA_STATE=$PWD/state; ";
  }
  std::string text_of(const std::string& name) const {
    std::ifstream file(project_.path() / name);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  // A job in the background that does these things; back when it waits for `go`.
  void start(const std::string& options, const std::string& steps) {
    shell("mkfifo go again; (" + options +
          " -- sh -c 'echo $ASSAY_GPU_REGION > region; exec $0 \"$@\"' $SITTER " + steps +
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
  void let_go(const std::string& fifo = "go") {
    shell("timeout 10 sh -c 'echo on > " + fifo + "'");
  }
  void finish() {
    let_go();
    EXPECT_TRUE(appears("rc", "\n"));
    running_ = false;
  }
  void TearDown() override {
    if (running_) finish();
  }
  // The region as the job's own processes have it.
  void look(const std::function<void(const wire::GpuRegion&)>& check) {
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
  Json json(const std::string& command) {
    const auto told = shell("$ASSAY " + command + " --json 2>err2");
    EXPECT_EQ(told.exit_code, 0) << text_of("err2");
    return Json::parse(told.out, nullptr, false);
  }

  base::testing::TempDir project_;
  bool running_ = false;
};

TEST_F(GpuShare, LimitsReachTheRegionBeforeTheCommandStarts) {
  start(
      "$ASSAY run --gpu-memory 512MiB --gpu-compute 30% --priority low --gpu-borrow"
      " --gpu 1=memory:64MiB,compute:12.5%,priority:high,borrow:no",
      "launch 1 wait go");
  look([&](const wire::GpuRegion& region) {
    const wire::GpuDevice* second = device(region, 1);
    ASSERT_NE(second, nullptr);  // known by its UUID, though no process has touched it
    EXPECT_EQ(wire::byte_limit(region, *second), 64 * kMi);
    EXPECT_EQ(second->total.load(), 1024 * kMi);
    const wire::GpuShare own = wire::share_of(region, *second);
    EXPECT_EQ(own.thousandths, 125U);
    EXPECT_EQ(own.priority, wire::GpuPriority::kHigh);
    EXPECT_FALSE(own.borrow);
    const wire::GpuDevice other{};
    EXPECT_EQ(wire::byte_limit(region, other), 512 * kMi);
    const wire::GpuShare rest = wire::share_of(region, other);
    EXPECT_EQ(rest.thousandths, 300U);
    EXPECT_EQ(rest.priority, wire::GpuPriority::kLow);
    EXPECT_TRUE(rest.borrow);
  });
  finish();
  EXPECT_EQ(text_of("rc"), "0\n");
  // They are kept with the job.
  const Json shares = json("show last")["gpu"]["shares"];
  ASSERT_GE(shares.size(), 2U);
  EXPECT_TRUE(shares[0]["device"].is_null());
  EXPECT_EQ(shares[0]["memory_bytes"], 512 * kMi);
  EXPECT_EQ(shares[0]["share_thousandths"], 300);
  EXPECT_EQ(shares.back()["device"], kSecondGpu);
  EXPECT_EQ(shares.back()["memory_bytes"], 64 * kMi);
  EXPECT_EQ(shares.back()["priority"], "high");
  EXPECT_THAT(shell("$ASSAY show").out, AllOf(HasSubstr("GPU limits"), HasSubstr("12.5%")));
}

TEST_F(GpuShare, DevicesAreCountedAsCudaDoes) {
  start(
      "CUDA_VISIBLE_DEVICES=1,0 $ASSAY run --gpu 0=memory:1MiB --gpu GPU-a0a0a0a0-a0a0-a0a0-"
      "a0a0-a0a0a0a0a000=memory:2MiB",
      "wait go");
  const auto check = [&](std::uint64_t first, std::uint64_t second) {
    look([&](const wire::GpuRegion& region) {
      EXPECT_EQ(wire::byte_limit(region, *device(region, 0)), first * kMi);
      EXPECT_EQ(wire::byte_limit(region, *device(region, 1)), second * kMi);
    });
  };
  check(2, 1);
  // `limit` counts as the job does, not as its own environment would.
  json("limit last --gpu 0=memory:3MiB");
  check(2, 3);
}

TEST_F(GpuShare, BadLimitsStartNothing) {
  const std::string cases[][3] = {
      {"", "--gpu-memory 0", "run --gpu-memory: "},
      {"", "--gpu-memory=-1GiB", "is negative"},
      {"", "--gpu-memory 20apples", "unknown unit 'apples'"},
      {"", "--gpu-memory ''", "it is empty"},
      {"", "--gpu-memory 2GiB", "more than GPU 0 (Fake GPU) has, which is 1.00 GiB"},
      {"", "--gpu-compute 101%", "more than the whole GPU"},
      {"", "--gpu-compute 0%", "run --gpu-compute: "},
      {"", "--gpu-compute 30", "does not end with %"},
      {"", "--gpu 2=memory:1MiB", "there is no GPU 2; the command will see 2, 0 to 1"},
      {"", "--gpu GPU-77=memory:1MiB", "there is no GPU 'GPU-77'"},
      {"", "--gpu GPU-a0a0=memory:1MiB", "the beginning of 2 UUIDs"},
      {"", "--gpu 0", "does not say what holds"},
      {"", "--gpu 0=cores:3", "'cores' is not something to limit"},
      {"", "--gpu 0=memory:1MiB --gpu 0=compute:3%", "named twice"},
      {"", "--gpu-borrow", "there is no share to go beyond"},
      {"", "--priority urgent", "is not a priority"},
      {"CUDA_VISIBLE_DEVICES=1", "--gpu 1=memory:1MiB", "the command will see one, 0"},
      {"CUDA_VISIBLE_DEVICES=", "--gpu-memory 1MiB", "CUDA_VISIBLE_DEVICES leaves no GPU"},
      {"FAKECUDA_DEVICES=0", "--gpu-memory 1MiB", "there is no GPU to limit"},
      {"ASSAY_GPU=0", "--gpu-memory 1MiB", "cannot be kept with ASSAY_GPU=0"},
      {"LD_LIBRARY_PATH=", "--gpu-memory 1MiB", "cannot be checked here"},
      {"ASSAY_GPU=1 LD_LIBRARY_PATH=", "--gpu 0=memory:1MiB", "give its whole UUID"},
  };
  for (const auto& [environment, options, says] : cases) {
    const auto ran = shell(environment + " $ASSAY run " + options + " -- touch started");
    EXPECT_EQ(ran.exit_code, 64) << options << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(says)) << environment << " " << options;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
    EXPECT_FALSE(std::filesystem::exists(project_.path() / "started")) << options;
  }
  EXPECT_FALSE(std::filesystem::exists(project_.path() / ".assay"));
}

TEST_F(GpuShare, WhereNothingCanBeKeptNothingRunsUnlimited) {
  const auto promised =
      shell("LD_LIBRARY_PATH= ASSAY_GPU=1 $ASSAY run --gpu-memory 5TiB -- touch promised");
  EXPECT_EQ(promised.exit_code, 0) << promised.err;  // somebody vouches for the driver
  EXPECT_EQ(json("show last")["gpu"]["shares"][0]["memory_bytes"], 5 * kMi * kMi);
  shell("rm -rf .assay; touch .assay");
  const auto ran = shell("$ASSAY run --gpu-memory 1MiB -- touch started");
  EXPECT_EQ(ran.exit_code, 3) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("not run, because limits could not be kept"));
  EXPECT_FALSE(std::filesystem::exists(project_.path() / "started"));
  EXPECT_EQ(shell("$ASSAY run -- touch started").exit_code, 0);
}

TEST_F(GpuShare, AStepRunAgainHasItsLimits) {
  ASSERT_EQ(shell("$ASSAY run --gpu-memory 7MiB --priority high -- cp state copy").exit_code, 1);
  ASSERT_EQ(
      shell("echo x > in; $ASSAY run --gpu-memory 7MiB --gpu-compute 5% -- cp in copy").exit_code,
      0);
  ASSERT_EQ(shell("$ASSAY run @1 --gpu-compute 6%").exit_code, 0);
  const Json share = json("show last")["gpu"]["shares"][0];
  EXPECT_EQ(share["memory_bytes"], 7 * kMi);
  EXPECT_EQ(share["share_thousandths"], 60);
}

TEST_F(GpuShare, ARunningJobIsChanged) {
  start("$ASSAY run --name train --gpu-memory 512MiB", "launch 3 alloc 4194304 wait go");
  std::uint64_t generation = 0;
  look([&](const wire::GpuRegion& region) { generation = region.header.generation.load(); });
  const Json told = json("limit train");
  EXPECT_EQ(told["launches"], 3);
  EXPECT_EQ(told["devices"][0]["uuid"], kFirstGpu);
  EXPECT_EQ(told["devices"][0]["memory_limit_bytes"], 512 * kMi);
  EXPECT_GE(told["devices"][0]["memory_used_bytes"].get<std::uint64_t>(), 4 * kMi);
  EXPECT_EQ(told["others"]["memory_limit_bytes"], 512 * kMi);

  const auto less = shell("$ASSAY limit last --gpu-memory 1MiB --gpu-compute 40% --priority high");
  EXPECT_EQ(less.exit_code, 0) << less.err;
  EXPECT_THAT(less.out, AllOf(HasSubstr("1.00 MiB"), HasSubstr("40%"), HasSubstr("high"),
                              HasSubstr("Nothing is taken away")));
  look([&](const wire::GpuRegion& region) {
    EXPECT_GT(region.header.generation.load(), generation);
    EXPECT_EQ(wire::byte_limit(region, *device(region, 0)), kMi);
    EXPECT_EQ(wire::share_of(region, *device(region, 0)).thousandths, 400U);
  });
  for (const char* bad : {"--gpu-memory 0", "--gpu-memory 2GiB", "--gpu 7=memory:1MiB",
                          "--gpu-compute 0%", "--gpu-borrow --gpu-no-borrow"}) {
    EXPECT_EQ(shell(std::string("$ASSAY limit 1 ") + bad).exit_code, 64) << bad;
  }
  const std::string uid = told["uid"];
  json("limit " + uid.substr(0, 6) + " --gpu-compute none --gpu-borrow");
  json("limit train --gpu-no-borrow");
  look([&](const wire::GpuRegion& region) {
    EXPECT_EQ(wire::byte_limit(region, *device(region, 0)), kMi);  // as it was
    EXPECT_EQ(wire::share_of(region, *device(region, 0)).thousandths, wire::kGpuWholeShare);
    EXPECT_FALSE(wire::share_of(region, *device(region, 0)).borrow);
  });
  // From another project, by its uid; which GPU is 0 there, nobody knows.
  const auto far = shell("mkdir -p far && cd far && $ASSAY init >/dev/null && $ASSAY limit " + uid +
                         " --gpu-memory 9MiB && $ASSAY limit " + uid + " --gpu 0=memory:1MiB");
  EXPECT_EQ(far.exit_code, 64) << far.err;
  EXPECT_THAT(far.err, HasSubstr("job of another project"));
  look([&](const wire::GpuRegion& region) {
    EXPECT_EQ(wire::byte_limit(region, *device(region, 0)), 9 * kMi);
  });
  json("limit last --none");
  look([&](const wire::GpuRegion& region) {
    EXPECT_EQ(wire::byte_limit(region, *device(region, 0)), 0U);
    EXPECT_FALSE(wire::share_of(region, *device(region, 0)).limited());
  });
  finish();
  const auto over = shell("$ASSAY limit train --gpu-memory 1MiB");
  EXPECT_EQ(over.exit_code, 64);
  EXPECT_THAT(over.err, HasSubstr("it is not running (done)"));
  EXPECT_EQ(shell("$ASSAY limit nobody").exit_code, 64);
}

TEST_F(GpuShare, AJobWithoutGpusHasNothingToLimit) {
  shell(
      "mkfifo go; (ASSAY_GPU=0 $ASSAY run -- sh -c 'echo ready; read x < go' > out 2> err;"
      " echo $? > rc) > /dev/null 2>&1 &");
  ASSERT_TRUE(appears("out", "ready"));
  running_ = true;
  const auto told = shell("$ASSAY limit last --gpu-memory 1MiB");
  EXPECT_EQ(told.exit_code, 64);
  EXPECT_THAT(told.err, HasSubstr("it counts no GPU work"));
}

TEST_F(GpuShare, TopTellsWhatTheJobDid) {
  start("$ASSAY run --name busy --gpu-memory 512MiB --gpu-compute 30%",
        "launch 100 alloc 1048576 wait go");
  const Json view = json("top --once --interval 0.1");
  Json mine;
  for (const Json& job : view["jobs"]) {
    if (job["title"] == "busy" && job["job"] == 1) mine = job;
  }
  ASSERT_FALSE(mine.is_null()) << view.dump();
  EXPECT_EQ(mine["launches"], 100);
  EXPECT_EQ(mine["kernels"], 100);
  EXPECT_EQ(mine["processes"], 1);
  EXPECT_EQ(mine["collectives"], 0);
  EXPECT_EQ(mine["launches_per_s"], 0);
  EXPECT_EQ(mine["devices"][0]["gpu"], "0");
  EXPECT_GE(mine["devices"][0]["memory_used_bytes"].get<std::uint64_t>(), kMi);
  EXPECT_EQ(mine["devices"][0]["memory_limit_bytes"], 512 * kMi);
  EXPECT_EQ(mine["devices"][0]["compute_limit_percent"], 30);
  // The GPUs, each with the numbers that the driver gives for it.
  ASSERT_EQ(view["gpus"].size(), 2U);
  EXPECT_EQ(view["gpus"][1]["uuid"], kSecondGpu);
  EXPECT_EQ(view["gpus"][1]["busy_percent"], 41);
  EXPECT_EQ(view["gpus"][1]["watts"], 501);
  EXPECT_EQ(view["gpus"][1]["tensor_percent"], 6);
  EXPECT_EQ(view["gpus"][1]["dram_percent"], 11);
  EXPECT_EQ(view["gpus"][1]["pcie_sent_bytes_per_s"], 21 * kMi);
  EXPECT_EQ(view["gpus"][1]["nvlink_received_bytes_per_s"], 61 * kMi);
  const auto old = shell("FAKENVML_GPM=0 $ASSAY top --once --interval 0.1 --json");
  EXPECT_TRUE(Json::parse(old.out)["gpus"][0]["tensor_percent"].is_null());
  // For people, in a pipe: whole, and without a terminal's codes.
  const auto text = shell("$ASSAY top --once --interval 0.1");
  EXPECT_THAT(text.out, AllOf(HasSubstr("busy"), HasSubstr("30%"), HasSubstr("of 512 MiB"),
                              HasSubstr("Fake GPU"), Not(HasSubstr("\x1b"))));
  // Elsewhere it has no number, but a command.
  const auto far =
      shell("mkdir -p far && cd far && $ASSAY init >/dev/null && $ASSAY top --once --interval 0.1");
  EXPECT_THAT(far.out, AllOf(HasSubstr("gpu_sitter launch 100"), Not(HasSubstr("  busy\n"))));
}

// Whatever moments it looked at: rate times time, added up, is what was done.
TEST_F(GpuShare, RatesAddUpToWhatWasDone) {
  start("$ASSAY run", "wait go launch 1000 wait again");
  shell("($ASSAY top --json --interval 0.1 > lines 2> toperr & echo $! > toppid)");
  ASSERT_TRUE(appears("lines", "\n"));
  let_go();
  shell(
      "while [ $(grep -c ready out) -lt 2 ]; do sleep 0.01; done; n=$(wc -l < lines);"
      " while [ $(wc -l < lines) -lt $((n + 2)) ]; do sleep 0.01; done; kill -INT $(cat toppid);"
      " while kill -0 $(cat toppid) 2> /dev/null; do sleep 0.01; done");
  double launched = 0;
  std::istringstream lines(text_of("lines"));
  for (std::string line; std::getline(lines, line);) {
    const Json view = Json::parse(line);
    for (const Json& job : view["jobs"]) {
      if (job["job"] != 1 || job["launches_per_s"].is_null()) continue;
      launched += job["launches_per_s"].get<double>() * view["seconds"].get<double>();
    }
  }
  EXPECT_NEAR(launched, 1000, 1e-6);
  EXPECT_EQ(text_of("toperr"), "");
  let_go("again");
  EXPECT_TRUE(appears("rc", "0\n"));
  running_ = false;
}

TEST_F(GpuShare, TopServesMetrics) {
  start("$ASSAY run --name 'a-b' --gpu-memory 512MiB", "launch 42 alloc 2097152 wait go");
  shell(
      "($ASSAY top --listen 0 --interval 0.1 > servedout 2> served; echo $? > servedrc) > "
      "/dev/null 2>&1 &"
      " while ! grep -q serving served; do sleep 0.01; done; pgrep -P $! > servedpid");
  const std::string said = text_of("served");
  const std::string url = said.substr(said.find("http"), said.find('\n') - said.find("http"));
  EXPECT_THAT(url, HasSubstr("http://127.0.0.1:"));
  const auto got = shell("curl -si --max-time 10 " + url);
  EXPECT_THAT(got.out, HasSubstr("HTTP/1.1 200 OK"));
  EXPECT_THAT(got.out, HasSubstr("Content-Type: text/plain; version=0.0.4"));
  const Exposition read =
      share::testing::read_exposition(got.out.substr(got.out.find("\r\n\r\n") + 4));
  EXPECT_EQ(read.error, "");
  const Exposition::Labels job = {{"title", "a-b"}};
  EXPECT_EQ(read.value("assay_gpu_job_launches_total", job), 42);
  EXPECT_EQ(read.value("assay_gpu_job_processes", job), 1);
  EXPECT_EQ(read.value("assay_gpu_job_memory_limit_bytes", {{"uuid", kFirstGpu}}), 512 * kMi);
  EXPECT_EQ(read.value("assay_gpu_power_watts", {{"gpu", "1"}}), 501);
  EXPECT_THAT(shell("curl -si --max-time 10 " + url + "/x").out, HasSubstr("404"));
  const auto taken = shell("$ASSAY top --listen " + url.substr(7, url.rfind('/') - 7));
  EXPECT_EQ(taken.exit_code, 3);
  EXPECT_THAT(taken.err, HasSubstr("cannot listen"));
  shell("kill -INT $(cat servedpid)");
  EXPECT_TRUE(appears("servedrc", "0\n"));
  EXPECT_EQ(text_of("servedout"), "");
}

// As on a terminal of 80 columns: drawn over itself, and given back.
TEST_F(GpuShare, TopGivesTheTerminalBack) {
  int terminal = -1;
  const winsize size{.ws_row = 12, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    const std::string script = preamble() + "exec $ASSAY top --interval 0.1";
    ::execl("/bin/sh", "sh", "-c", script.c_str(), nullptr);
    ::_exit(127);
  }
  ASSERT_GT(child, 0);
  const base::UniqueFd owned(terminal);
  std::string seen;
  char buffer[4096];
  const auto read_some = [&] {
    const ssize_t got = ::read(terminal, buffer, sizeof buffer);
    if (got > 0) seen.append(buffer, static_cast<std::size_t>(got));
    return got > 0;
  };
  const auto frames = [&] {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = seen.find("\x1b[H", at)) != std::string::npos; ++at) ++count;
    return count;
  };
  while (frames() < 3 && read_some()) {
  }
  EXPECT_EQ(::write(terminal, "\x03", 1), 1);  // Ctrl-C
  while (read_some()) {
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(seen.starts_with("\x1b[?1049h\x1b[?25l")) << seen.substr(0, 40);
  EXPECT_THAT(seen.substr(seen.size() - std::min<std::size_t>(seen.size(), 20)),
              HasSubstr("\x1b[?25h\x1b[?1049l"));
  std::istringstream lines(seen);
  for (std::string line; std::getline(lines, line);) {
    for (std::size_t at = 0; (at = line.find('\x1b')) != std::string::npos;) {
      line.erase(at, line.find_first_of("HJKhl", at) - at + 1);
    }
    if (line.ends_with('\r')) line.pop_back();
    EXPECT_LE(base::display_width(line), 80U) << line;
  }
}

TEST_F(GpuShare, TopWithoutGpusSaysSo) {
  const auto none = shell("LD_LIBRARY_PATH= $ASSAY top --once --interval 0.1");
  EXPECT_EQ(none.exit_code, 0);
  EXPECT_THAT(none.out, HasSubstr("no GPU: libnvidia-ml.so.1: no driver library"));
  const Json json_view =
      Json::parse(shell("LD_LIBRARY_PATH= $ASSAY top --once --interval 0.1 --json").out);
  EXPECT_TRUE(json_view["gpus"].empty());
  EXPECT_TRUE(json_view["no_gpus"].is_string());
  EXPECT_THAT(shell("FAKECUDA_DEVICES=0 $ASSAY top --once --interval 0.1").out,
              HasSubstr("no GPU: the driver knows none"));
  for (const char* bad : {"--interval 0", "--interval x", "--interval -1", "--interval 1e9",
                          "--interval nan", "--interval ''", "--listen x", "--listen 99999",
                          "--listen 0 --once", "--listen 0 --json"}) {
    const auto told = shell(std::string("$ASSAY top ") + bad);
    EXPECT_EQ(told.exit_code, 64) << bad << told.err;
    EXPECT_EQ(std::count(told.err.begin(), told.err.end(), '\n'), 1) << told.err;
  }
}

// What others left in /dev/shm under our names is no job, and does no harm.
TEST_F(GpuShare, StrangeFilesAreNoJobs) {
  const std::string name = "/dev/shm/assay-gpu-strange-" + std::to_string(::getpid());
  const auto top = [&] { return shell("$ASSAY top --once --interval 0.1 --json").out; };
  shell("head -c 5000000 /dev/urandom > " + name);
  EXPECT_THAT(top(), Not(HasSubstr("strange")));
  shell(": > " + name);
  EXPECT_THAT(top(), Not(HasSubstr("strange")));
  shell("rm -f " + name + "; mkfifo " + name);
  EXPECT_THAT(top(), Not(HasSubstr("strange")));
  shell("rm -f " + name + "; mkdir " + name);
  EXPECT_THAT(top(), Not(HasSubstr("strange")));
  shell("rm -rf " + name);
}

}  // namespace
}  // namespace assay
