// Exact log lines, levels, the environment, and one write per line.
#include "base/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <thread>
#include <vector>

#include "base/json.h"
#include "base/terminal.h"
#include "base/unique_fd.h"

namespace assay::base {
namespace {

using Lines = std::vector<std::string>;

// Standard error is a file in memory while this exists; the settings are restored then, too. Each
// write goes to its end: files in memory have no lock around their position, as other files do.
class Capture {
 public:
  explicit Capture(LogLevel level, LogFormat format = LogFormat::kText) {
    set_log_settings({level, format});
    ::fcntl(file_.get(), F_SETFL, O_APPEND);
    ::dup2(file_.get(), STDERR_FILENO);
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  ~Capture() {
    ::dup2(saved_.get(), STDERR_FILENO);
    set_log_settings({});
  }
  // Written since the last call; each ends with a newline.
  Lines take() {
    std::string text;
    char buffer[4096];
    for (ssize_t count; (count = ::pread(file_.get(), buffer, sizeof buffer, taken_)) > 0;) {
      text.append(buffer, static_cast<std::size_t>(count));
      taken_ += count;
    }
    Lines lines;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at);
      const std::size_t next = end == std::string::npos ? text.size() : end + 1;
      lines.push_back(text.substr(at, next - at));
      at = next;
    }
    return lines;
  }

 private:
  UniqueFd file_{::memfd_create("log", MFD_CLOEXEC)};
  UniqueFd saved_{::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)};
  off_t taken_ = 0;
};

std::string text(std::string_view message, std::initializer_list<LogField> fields) {
  return log_line(LogFormat::kText, LogLevel::kInfo, message, {fields.begin(), fields.size()}, 0);
}

TEST(LogLine, Text) {
  const std::filesystem::path path = "/data/a";
  EXPECT_EQ(text("store opened", {{"path", path}, {"schema", 3}}),
            "assay: info: store opened path=/data/a schema=3");
  EXPECT_EQ(text("x", {}), "assay: info: x");
  EXPECT_EQ(text("x", {{"yes", true}, {"ratio", 0.25}, {"size", std::size_t{7}}, {"n", -1}}),
            "assay: info: x yes=true ratio=0.25 size=7 n=-1");
  EXPECT_EQ(text("x", {{"least", std::numeric_limits<std::int64_t>::min()},
                       {"most", std::numeric_limits<std::uint64_t>::max()}}),
            "assay: info: x least=-9223372036854775808 most=18446744073709551615");
}

TEST(LogLine, QuotesWhatWouldBeAmbiguous) {
  const std::string quoted = "two words";
  EXPECT_EQ(text("x", {{"k", quoted}}), "assay: info: x k=\"two words\"");
  EXPECT_EQ(text("x", {{"k", ""}}), "assay: info: x k=\"\"");
  EXPECT_EQ(text("x", {{"k", "a=b"}}), "assay: info: x k=\"a=b\"");
  EXPECT_EQ(text("x", {{"k", "say \"hi\" \\o/"}}), "assay: info: x k=\"say \\\"hi\\\" \\\\o/\"");
  EXPECT_EQ(text("x", {{"k", "für"}}), "assay: info: x k=für");
}

TEST(LogLine, IsOneLineWhateverItHolds) {
  EXPECT_EQ(text("a\nassay: error: forged", {{"k", "1\n2\t\x1b[2J\xff"}}),
            "assay: info: a\\x0aassay: error: forged k=\"1\\n2\\t\\x1b[2J\\xff\"");
}

TEST(LogLine, Json) {
  const LogField fields[] = {{"path", "a\n\u202e\xff"},
                             {"n", 3},
                             {"ok", false},
                             {"rate", std::numeric_limits<double>::infinity()},
                             {"message", "not this one"}};
  EXPECT_EQ(log_line(LogFormat::kJson, LogLevel::kError, "it broke", fields, 1'500'000'000),
            "{\"time\":\"1970-01-01T00:00:01.500Z\",\"level\":\"error\",\"message\":\"it broke\","
            "\"path\":\"a\\n\\u202e\\ufffd\",\"n\":3,\"ok\":false,\"rate\":null}");
}

TEST(Log, LetsThroughItsLevelAndAbove) {
  Capture capture(LogLevel::kWarn);
  log(LogLevel::kDebug, "d");
  log_info("i");
  log_warn("w");
  log_error("e");
  EXPECT_EQ(capture.take(), (Lines{"assay: warn: w\n", "assay: error: e\n"}));
  set_log_settings({.level = LogLevel::kDebug});
  log(LogLevel::kDebug, "d", {{"k", 1}});
  EXPECT_EQ(capture.take(), Lines{"assay: debug: d k=1\n"});
  set_log_settings({.level = LogLevel::kOff});
  log_error("e");
  log(LogLevel::kOff, "nothing is logged at this level");
  EXPECT_EQ(capture.take(), Lines{});
}

TEST(Log, EnvironmentChoosesLevelAndFormat) {
  Capture capture(LogLevel::kOff);
  set_log_environment("info", "json");
  EXPECT_EQ(log_settings().level, LogLevel::kInfo);
  EXPECT_EQ(log_settings().format, LogFormat::kJson);
  log_info("hello");
  const Lines lines = capture.take();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(Json::parse(lines[0])["message"], "hello");
  for (const char* unset : {static_cast<const char*>(nullptr), ""}) {
    set_log_environment(unset, unset);
    EXPECT_EQ(log_settings().level, LogLevel::kWarn);
    EXPECT_EQ(log_settings().format, LogFormat::kText);
  }
  EXPECT_EQ(capture.take(), Lines{});
}

TEST(Log, AnInvalidEnvironmentIsOneWarning) {
  Capture capture(LogLevel::kOff);
  set_log_environment("inof", nullptr);
  EXPECT_EQ(capture.take(),
            Lines{"assay: warn: ASSAY_LOG is ignored value=inof hint=\"did you mean 'info'?\"\n"});
  EXPECT_EQ(log_settings().level, LogLevel::kWarn);
  set_log_environment("error", "xml");
  EXPECT_EQ(capture.take(), Lines{});  // asked for errors only
  set_log_environment(nullptr, "xml");
  EXPECT_EQ(capture.take(), Lines{"assay: warn: ASSAY_LOG_FORMAT is ignored value=xml "
                                  "hint=\"expected one of: text, json\"\n"});
}

TEST(LogDeathTest, ReadsTheEnvironmentAtTheFirstLine) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a fresh process, which has not logged yet
  EXPECT_EXIT(
      {
        ::setenv("ASSAY_LOG", "loud", 1);
        log(LogLevel::kDebug, "too quiet");
        log_warn("first");
        log_warn("second");
        std::exit(0);
      },
      ::testing::ExitedWithCode(0),
      "^assay: warn: ASSAY_LOG is ignored value=loud hint=\"expected one of: debug, info, warn, "
      "error, off\"\nassay: warn: first\nassay: warn: second\n$");
}

TEST(Log, ManyThreadsKeepTheirLinesWhole) {
  Capture capture(LogLevel::kInfo);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([i] {
      for (int j = 0; j < 100; ++j) log_info("line", {{"thread", i}, {"n", j}});
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Lines lines = capture.take();
  EXPECT_EQ(lines.size(), 400U);
  EXPECT_TRUE(std::ranges::all_of(lines, [](const std::string& line) {
    return line.starts_with("assay: info: line thread=");
  }));
}

TEST(Log, AStandardErrorThatCannotBeWrittenIsNoMatter) {
  const UniqueFd saved(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));
  const UniqueFd unwritable(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ::dup2(unwritable.get(), STDERR_FILENO);
  errno = EDOM;
  log_error("this is not written");
  const int kept_errno = errno;
  ::dup2(saved.get(), STDERR_FILENO);
  EXPECT_EQ(kept_errno, EDOM);
}

// A pipe in packet mode (O_DIRECT) keeps the borders of write(2), so that each read() is one write.
TEST(Log, EachLineIsOneWrite) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK | O_DIRECT), 0);
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  const UniqueFd saved(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));
  ::dup2(writer.get(), STDERR_FILENO);
  progress_on_stderr = true;
  log_warn("first", {{"a", 1}, {"b", "two words"}});
  log_error("second");
  ::dup2(saved.get(), STDERR_FILENO);

  const auto packet = [&] {
    char buffer[512];
    const ssize_t count = ::read(reader.get(), buffer, sizeof buffer);
    return count < 0 ? std::string() : std::string(buffer, static_cast<std::size_t>(count));
  };
  EXPECT_EQ(packet(), "\r\x1b[Kassay: warn: first a=1 b=\"two words\"\n");  // over a progress line
  EXPECT_EQ(packet(), "assay: error: second\n");
  EXPECT_EQ(packet(), "");
}

}  // namespace
}  // namespace assay::base
