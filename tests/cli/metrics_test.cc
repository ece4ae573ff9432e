// Parameters and metrics that any program reports: log-metric, JSON lines, the Python package.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "base/testing/temp_dir.h"
#include "support/process.h"

namespace assay {
namespace {

using base::Json;
using ::testing::AllOf;
using ::testing::HasSubstr;

class MetricsCli : public ::testing::Test {
 protected:
  void SetUp() override { shell("$A init -q"); }
  support::ProcessResult shell(const std::string& script) {
    return support::run(
        {{"bash", "-c",
          "export A='" + support::program() + "' PYTHONDONTWRITEBYTECODE=1 " +
              "PYTHONPATH='" ASSAY_SOURCE_DIR "/python/assay-metrics/src'; " + script},
         "",
         project_.path()});
  }
  Json json(const std::string& arguments) {
    return Json::parse(shell("$A " + arguments + " --json 2>/dev/null").out);
  }
  // By an independent reader of the store.
  std::string points() {
    return shell(
               "sqlite3 -readonly .assay/assay.db 'SELECT s.name, p.step, p.value FROM"
               " metric_series s JOIN metric_point p ON p.series = s.id ORDER BY 1, 2'")
        .out;
  }

  base::testing::TempDir project_;
};

TEST_F(MetricsCli, FromTheShell) {
  const auto ran = shell(
      "$A run -- sh -c '$A log-metric --parameter lr=0.1 opt=adam; for i in 1 2 3; do"
      " $A log-metric loss=0.$i ok=true --step $i; done; $A log-metric final=7 bad=nan'");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(points(),
            "bad|0|\nfinal|0|7.0\nloss|1|0.1\nloss|2|0.2\nloss|3|0.3\nok|1|1.0\nok|2|1.0\n"
            "ok|3|1.0\n");
  const Json run = json("show last");
  EXPECT_EQ(run["parameters"], Json({{"lr", "0.1"}, {"opt", "adam"}}));
  EXPECT_EQ(run["metrics"][0]["last"], 0.3);
  EXPECT_EQ(run["run"]["complete"], true);
  EXPECT_THAT(shell("$A show last").out, AllOf(HasSubstr("opt        adam"), HasSubstr("loss")));
  EXPECT_EQ(shell("ls .assay/spool | wc -l").out, "0\n") << "nothing is left";
}

TEST_F(MetricsCli, FromPython) {
  std::ofstream(project_.path() / "train.py") << R"(
import assay_metrics as m, threading
assert m.active()
m.log_parameters(lr=0.3, name='tab\tand "quotes" ü', none=None, flag=True, other=[1, 2])
def work(n):
    for step in range(100): m.log_metrics(step, **{"loss%d" % n: step / 4})
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
m.log_metrics(5, odd=float("inf"), boolean=True)
for wrong in (lambda: m.log_metrics(1, a="x"), lambda: m.log_metrics(0.5, a=1), lambda: m.log_metrics(0, **{"a,b": 1})):
    try: wrong()
    except (TypeError, ValueError): pass
    else: raise SystemExit("accepted")
)";
  const auto ran = shell("$A run -- python3 train.py");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  EXPECT_EQ(
      shell("sqlite3 -readonly .assay/assay.db 'SELECT count(*), sum(value) FROM metric_point'")
          .out,
      "402|4951.0\n");
  EXPECT_EQ(json("show last")["parameters"]["name"], "tab\tand \"quotes\" ü");
  EXPECT_EQ(json("show last")["parameters"]["none"], "null");
  EXPECT_EQ(
      shell("python3 -c 'import assay_metrics as m; m.log_metrics(1, a=2); print(m.active())'").out,
      "False\n");
}

TEST_F(MetricsCli, RunsAreComparedByThem) {
  shell("$A run -- sh -c '$A log-metric --parameter lr=0.1; $A log-metric loss=0.5'");
  shell("$A run -- sh -c '$A log-metric --parameter lr=0.3; $A log-metric loss=0.25'");
  shell("$A run -- true");
  const Json runs = json("log --columns lr,loss")["runs"];
  EXPECT_EQ(runs[0]["columns"], Json({{"lr", nullptr}, {"loss", nullptr}}));
  EXPECT_EQ(runs[1]["columns"], Json({{"lr", "0.3"}, {"loss", "0.25"}}));
  EXPECT_EQ(runs[2]["columns"], Json({{"lr", "0.1"}, {"loss", "0.5"}}));
  EXPECT_THAT(shell("$A log --columns lr --columns loss").out, HasSubstr(" lr  loss  command"));
  const auto diff = shell("$A diff 1 2");
  EXPECT_EQ(diff.exit_code, 1);
  EXPECT_THAT(diff.out, AllOf(HasSubstr("parameter  lr"), HasSubstr("metric     loss")));
  const auto misspelt = shell("$A log --columns lss");
  EXPECT_EQ(misspelt.exit_code, 64);
  EXPECT_THAT(misspelt.err, AllOf(HasSubstr("log --columns lss: none of these runs"),
                                  HasSubstr("did you mean 'loss'?")));
  EXPECT_EQ(shell("$A log --columns lr,").exit_code, 64);
}

TEST_F(MetricsCli, LinesThatAreNoMetricsDoNoHarm) {
  const auto ran = shell(
      "$A run -- sh -c '{ echo nonsense; echo \"[1]\"; echo \"{\\\"metrics\\\": {\\\"a\\\": "
      "\\\"b\\\"}}\";"
      " head -c 2000000 /dev/zero | tr \"\\0\" x; echo; echo \"{\\\"metrics\\\": {\\\"a\\\": 1}}\";"
      " printf \"{\\\"metr\"; } >> $ASSAY_METRICS'");
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_EQ(ran.err,
            "assay: metrics: 5 of 6 lines that the command reported are not metrics, the first is "
            "line 1\n");
  EXPECT_EQ(points(), "a|0|1.0\n");
  EXPECT_EQ(json("show last")["run"]["complete"], true);
  EXPECT_EQ(shell("$A run -- sh -c 'rm $ASSAY_METRICS; mkfifo $ASSAY_METRICS'").exit_code, 0);
}

TEST_F(MetricsCli, AFailedRunKeepsThem) {
  shell("$A run -- sh -c '$A log-metric loss=1; exit 3'");
  EXPECT_EQ(points(), "loss|0|1.0\n");
  shell("$A pop");
  EXPECT_EQ(points(), "");
}

TEST_F(MetricsCli, BadInputIsOneLine) {
  const auto line = [&](const std::string& arguments) {
    const auto outcome = shell("$A log-metric " + arguments);
    EXPECT_EQ(outcome.exit_code, 64) << arguments;
    return outcome.err;
  };
  EXPECT_EQ(line("loss=1"),
            "assay: log-metric: it is not inside a recorded run; use it in a "
            "command that `assay run` runs\n");
  EXPECT_THAT(line("loss"), HasSubstr("log-metric 'loss': is not NAME=VALUE"));
  EXPECT_THAT(line("=1"), HasSubstr("is not NAME=VALUE"));
  EXPECT_THAT(line("loss=low"), HasSubstr("'low' is not a number"));
  EXPECT_THAT(line("loss=1 --step x"), HasSubstr("'x' is not a whole number"));
  EXPECT_THAT(line("--parameter a=1 --step 1"), HasSubstr("parameters have no step"));
  EXPECT_THAT(line("'a,b=1'"), HasSubstr("a name that is not allowed"));
  EXPECT_EQ(shell("$A log-metric").exit_code, 64);
}

}  // namespace
}  // namespace assay
