// Every collector calls EventSink::on_tick() while the command is idle.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "observe/collect/testing/probe.h"
#include "observe/collect/testing/recorder.h"

namespace assay::collect::testing {
namespace {

constexpr int kTurns = 5;

// Lets the command continue at the fifth tick since its last event.
class Releasing : public EventSink {
 public:
  explicit Releasing(std::string pipe) : pipe_(std::move(pipe)) {}
  void on_event(const Event&) override { quiet_turns_ = 0; }
  void before_change(std::string_view, const wire::Stamp&, Change) override { quiet_turns_ = 0; }
  void on_tick() override {
    if (++quiet_turns_ < kTurns) return;
    const base::UniqueFd end(::open(pipe_.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    released_ = released_ || (end.valid() && ::write(end.get(), "go\n", 3) == 3);
  }
  [[nodiscard]] bool released() const { return released_; }

 private:
  std::string pipe_;
  int quiet_turns_ = 0;
  bool released_ = false;
};

class Tick : public ::testing::TestWithParam<Tracer> {};
INSTANTIATE_TEST_SUITE_P(Tracers, Tick, ::testing::ValuesIn(kTracers),
                         [](const auto& tracer) { return std::string(name_of(tracer.param)); });

TEST_P(Tick, TheSinkHasItsTurnsWhileTheCommandIsQuiet) {
  if (const Preflight found = preflight(GetParam()); !found.available) {
    GTEST_SKIP() << found.reason;
  }
  const ProbeFolder place;
  const base::testing::TempDir logs;
  const std::string pipe = place.path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  Releasing sink(pipe);
  const auto collector = make_collector(GetParam(), logs.path() / "log");
  const auto outcome =
      collector->run(command({"timeout", "20", "cat", pipe}, place.path()), {}, sink);
  ASSERT_TRUE(outcome) << outcome.error().line();
  EXPECT_TRUE(sink.released());
  EXPECT_EQ(outcome->wait_status, 0) << "it was left to wait";
}

}  // namespace
}  // namespace assay::collect::testing
