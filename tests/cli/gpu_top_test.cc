// `assay top`: in a pipe, in a terminal, as JSON, for Prometheus.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>

#include <algorithm>

#include "base/text.h"
#include "cli/gpu_runs.h"
#include "share/testing/exposition.h"

namespace assay {
namespace {

using base::Json;
using share::testing::Exposition;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using GpuTop = GpuShareTest;

// The run with a number in this project; runs of other tests on this machine may stand beside it.
Json run_of_this_project(const Json& view) {
  if (!view.is_object()) return nullptr;
  for (const Json& run : view["runs"]) {
    if (run["run"] == 1) return run;
  }
  return nullptr;
}

TEST_F(GpuTop, TopShowsTheWorkOfARun) {
  start("$ASSAY run --name busy --gpu-memory 512MiB --gpu-compute 30%",
        "launch 100 alloc 1048576 wait go");
  const Json view = json("top --once --interval 0.1");
  const Json mine = run_of_this_project(view);
  ASSERT_FALSE(mine.is_null()) << view.dump();
  EXPECT_EQ(mine["title"], "busy");
  EXPECT_EQ(mine["launches"], 100);
  EXPECT_EQ(mine["kernels"], 100);
  EXPECT_EQ(mine["processes"], 1);
  EXPECT_EQ(mine["gpu_processes"], 1);
  EXPECT_GT(mine["elapsed_seconds"].get<double>(), 0);
  EXPECT_GT(mine["memory_bytes"].get<std::uint64_t>(), 100'000U);
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
  EXPECT_THAT(text.out, AllOf(HasSubstr("  busy\n"), HasSubstr("30%"), HasSubstr("of 512 MiB"),
                              HasSubstr("Fake GPU"), Not(HasSubstr("\x1b"))));
  // Elsewhere it has no number, but a command.
  const Json far = Json::parse(shell("mkdir -p far && cd far && $ASSAY init >/dev/null && "
                                     "$ASSAY top --once --interval 0.1 --json")
                                   .out);
  const auto same = [&](const Json& run) { return run["uid"] == mine["uid"]; };
  const auto there = std::find_if(far["runs"].begin(), far["runs"].end(), same);
  ASSERT_NE(there, far["runs"].end()) << far.dump();
  EXPECT_TRUE((*there)["run"].is_null());
  EXPECT_THAT((*there)["title"].get<std::string>(), HasSubstr("gpu_script launch 100"));
}

// Rate times time, added up over all samples, is the total.
TEST_F(GpuTop, RatesAddUpToWhatWasDone) {
  start("$ASSAY run", "wait go launch 1000 wait again");
  shell("($ASSAY top --json --interval 0.1 > lines 2> toperr & echo $! > toppid)");
  ASSERT_TRUE(appears("lines", "\n"));
  let_continue();
  shell(
      "while [ $(grep -c ready out) -lt 2 ]; do sleep 0.01; done; n=$(wc -l < lines);"
      " while [ $(wc -l < lines) -lt $((n + 2)) ]; do sleep 0.01; done; kill -INT $(cat toppid);"
      " while kill -0 $(cat toppid) 2> /dev/null; do sleep 0.01; done");
  double launched = 0;
  std::istringstream lines(text_of("lines"));
  for (std::string line; std::getline(lines, line);) {
    const Json view = Json::parse(line);
    for (const Json& run : view["runs"]) {
      if (run["run"] != 1 || run["launches_per_s"].is_null()) continue;
      launched += run["launches_per_s"].get<double>() * view["seconds"].get<double>();
    }
  }
  EXPECT_NEAR(launched, 1000, 1e-6);
  EXPECT_EQ(text_of("toperr"), "");
  let_continue("again");
  EXPECT_TRUE(appears("rc", "0\n"));
  running_ = false;
}

// Training on CPUs: the usage of its processes, and the metrics that it wrote to the store.
TEST_F(GpuTop, TopShowsTrainingWithoutGpus) {
  const auto start_in_background = [&](const std::string& name, const std::string& command) {
    shell("(LD_LIBRARY_PATH= " + command + " > " + name + "-out 2> " + name + "-err & echo $! > " +
          name + "-pid; wait $!; echo $? > " + name + "-rc) > /dev/null 2>&1 &");
  };
  start_in_background("train", "$ASSAY train demo --set train.steps=100000 --out made");
  Json mine;
  for (int i = 0; i < 300 && (mine.is_null() || mine["step"].is_null()); ++i) {
    const auto top = shell("LD_LIBRARY_PATH= $ASSAY top --once --interval 0.1 --json");
    const Json view = Json::parse(top.out, nullptr, false);
    if (const Json found = run_of_this_project(view); !found.is_null()) mine = found;
  }
  ASSERT_FALSE(mine.is_null() || mine["step"].is_null()) << text_of("train-err");
  EXPECT_THAT(mine["title"].get<std::string>(), HasSubstr("train demo"));
  EXPECT_GE(mine["step"], 1);
  EXPECT_GT(mine["loss"].get<double>(), 0);
  EXPECT_GT(mine["tokens_per_s"].get<double>(), 0);
  EXPECT_GE(mine["processes"], 1);
  EXPECT_GT(mine["cpu_seconds"].get<double>(), 0);
  EXPECT_GE(mine["cpu_percent"].get<double>(), 0);
  EXPECT_GT(mine["memory_bytes"].get<std::uint64_t>(), 10 * kMi);
  EXPECT_TRUE(mine["launches"].is_null());
  const auto text = shell("LD_LIBRARY_PATH= $ASSAY top --once --interval 0.1");
  EXPECT_THAT(text.out, AllOf(HasSubstr("tokens/s"), HasSubstr("train demo")));
  start_in_background("serve", "$ASSAY top --listen 0 --interval 0.1");
  ASSERT_TRUE(appears("serve-err", "serving"));
  shell("curl -s --max-time 10 $(grep -o 'http:.*' serve-err) > page");
  const Exposition read = share::testing::read_exposition(text_of("page"));
  EXPECT_EQ(read.error, "");
  const auto uid = mine["uid"].get<std::string>();
  EXPECT_GE(read.value("assay_run_step", {{"assay_run", uid}}).value_or(0), 1);
  EXPECT_GT(read.value("assay_run_cpu_seconds_total", {{"assay_run", uid}}).value_or(0), 0);
  EXPECT_GE(read.value("assay_runs", {}).value_or(0), 1);
  shell("kill -INT $(cat serve-pid); kill -INT $(cat train-pid)");
  EXPECT_TRUE(appears("serve-rc", "0\n"));
  EXPECT_TRUE(appears("train-rc", "\n"));
  const auto after = shell("LD_LIBRARY_PATH= $ASSAY top --once --interval 0.1 --json");
  EXPECT_TRUE(run_of_this_project(Json::parse(after.out)).is_null()) << after.out;
}

TEST_F(GpuTop, TopServesMetrics) {
  start("$ASSAY run --name 'a-b' --gpu-memory 512MiB", "launch 42 alloc 2097152 wait go");
  const auto uid = run_of_this_project(json("top --once --interval 0.1"))["uid"].get<std::string>();
  shell(
      "($ASSAY top --listen 0 --interval 0.1 > servedout 2> served & echo $! > servedpid;"
      " wait $!; echo $? > servedrc) > /dev/null 2>&1 &"
      " while ! grep -qs serving served; do sleep 0.01; done");
  const std::string said = text_of("served");
  const std::string url = said.substr(said.find("http"), said.find('\n') - said.find("http"));
  EXPECT_THAT(url, HasSubstr("http://127.0.0.1:"));
  const auto got = shell("curl -si --max-time 10 " + url);
  EXPECT_THAT(got.out, HasSubstr("HTTP/1.1 200 OK"));
  EXPECT_THAT(got.out, HasSubstr("Content-Type: text/plain; version=0.0.4"));
  const Exposition read =
      share::testing::read_exposition(got.out.substr(got.out.find("\r\n\r\n") + 4));
  EXPECT_EQ(read.error, "");
  const Exposition::Labels run = {{"assay_run", uid}, {"title", "a-b"}};
  EXPECT_EQ(read.value("assay_gpu_run_launches_total", run), 42);
  EXPECT_EQ(read.value("assay_gpu_run_processes", run), 1);
  EXPECT_EQ(
      read.value("assay_gpu_run_memory_limit_bytes", {{"assay_run", uid}, {"uuid", kFirstGpu}}),
      512 * kMi);
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
TEST_F(GpuTop, TopGivesTheTerminalBack) {
  int terminal = -1;
  const winsize size{.ws_row = 12, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    if (::chdir(project_.path().c_str()) != 0) ::_exit(126);
    const std::string script = preamble() + "exec $ASSAY top --interval 0.1";
    ::execl("/bin/sh", "sh", "-c", script.c_str(), nullptr);
    ::_exit(127);
  }
  ASSERT_GT(child, 0);
  const base::UniqueFd owned(terminal);
  // Held open: the kernel may drop what was written last when the last one closes.
  const base::UniqueFd held(::open(::ptsname(terminal), O_RDWR | O_NOCTTY));
  std::string seen;
  char buffer[4096];
  const auto read_some = [&] {
    pollfd ready{.fd = terminal, .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, 5000) <= 0) return false;
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
  while (!seen.ends_with("\x1b[?1049l") && read_some()) {
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(seen.starts_with("\x1b[?1049h\x1b[?25l")) << seen.substr(0, 40);
  EXPECT_THAT(seen.substr(seen.size() - std::min<std::size_t>(seen.size(), 20)),
              HasSubstr("\x1b[?25h\x1b[?1049l"));
  // A frame begins where the last one stands; the terminal itself shows the Ctrl-C.
  for (const std::string_view mark : {"\x1b[H", "^C"}) {
    for (std::size_t at = 0; (at = seen.find(mark, at)) != std::string::npos;) {
      seen.replace(at, mark.size(), "\n");
    }
  }
  std::istringstream lines(seen);
  for (std::string line; std::getline(lines, line);) {
    for (std::size_t at = 0; (at = line.find('\x1b')) != std::string::npos;) {
      line.erase(at, line.find_first_of("HJKhl", at) - at + 1);
    }
    if (line.ends_with('\r')) line.pop_back();
    EXPECT_LE(base::display_width(line), 80U) << line;
  }
}

TEST_F(GpuTop, TopWithoutGpusReportsIt) {
  const auto none = shell("LD_LIBRARY_PATH= $ASSAY top --once --interval 0.1");
  EXPECT_EQ(none.exit_code, 0);
  EXPECT_THAT(none.out, HasSubstr("no GPU: no NVIDIA driver here (libnvidia-ml.so.1 not found)"));
  const Json json_view =
      Json::parse(shell("LD_LIBRARY_PATH= $ASSAY top --once --interval 0.1 --json").out);
  EXPECT_TRUE(json_view["gpus"].empty());
  EXPECT_TRUE(json_view["no_gpus"].is_string());
  EXPECT_THAT(shell("FAKECUDA_DEVICES=0 $ASSAY top --once --interval 0.1").out,
              HasSubstr("no GPU: the driver reports none"));
  for (const char* bad : {"--interval 0", "--interval x", "--interval -1", "--interval 1e9",
                          "--interval nan", "--interval ''", "--listen x", "--listen 99999",
                          "--listen 0 --once", "--listen 0 --json"}) {
    const auto ran = shell(std::string("$ASSAY top ") + bad);
    EXPECT_EQ(ran.exit_code, 64) << bad << ran.err;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  }
}

// What others left in /dev/shm under our names is no run, and does no harm.
TEST_F(GpuTop, StrangeFilesAreNoRuns) {
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
