// A project as people have them, from raw data to a model: a virtual environment with a package of
// its own, scripts, a C program built with make, and a model trained on the result. Recorded,
// edited, made again, carried elsewhere and exported; every answer is checked, contents by b3sum.
//
// DVC and notebooks are in a virtual environment that ASSAY_PIPELINE_TOOLS names: `make pipeline`
// makes it.
#include <cstdlib>
#include <set>

#include "cli/scripted_project.h"

namespace assay {
namespace {

using base::Json;
using ::testing::HasSubstr;
using ::testing::Not;

class Pipeline : public ScriptedProject {
 protected:
  // The only stage of this number, as `status` has it.
  Json stage(int number) {
    const Json document = json("status");
    for (const Json& one : document["stages"]) {
      if (one["stage"] == number) return one;
    }
    return {};
  }
  std::string b3sum(const std::string& name) {
    return done("b3sum --no-names " + name).out.substr(0, 64);
  }
  std::string in(const std::string& name) { return (project_.path() / name).string(); }
};

// A wheel is a zip file with a list of its files.
constexpr const char* kMakeWheel = R"(
import sys, zipfile
version, factor = sys.argv[1:]
info = f'scale-{version}.dist-info/'
with zipfile.ZipFile(f'wheels/scale-{version}-py3-none-any.whl', 'w') as wheel:
    wheel.writestr('scale.py', f'def scaled(x):\n    return x * {factor}\n')
    wheel.writestr(info + 'METADATA', f'Metadata-Version: 2.1\nName: scale\nVersion: {version}\n')
    wheel.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
    wheel.writestr(info + 'RECORD',
                   f'scale.py,,\n{info}METADATA,,\n{info}WHEEL,,\n{info}RECORD,,\n')
)";

TEST_F(Pipeline, FromRawDataToAReproducedModel) {
  write("p/make_wheel.py", kMakeWheel);
  write("p/prepare.py",
        "import scale, sys\n"
        "with open(sys.argv[1]) as raw, open(sys.argv[2], 'w') as clean:\n"
        "    for line in raw:\n"
        "        print(scale.scaled(int(line)), file=clean)\n");
  write("p/total.c",
        "#include <stdio.h>\n#include \"total.h\"\n"
        "int main(void) { long sum = 0, one; while (scanf(\"%ld\", &one) == 1) sum += one;\n"
        "  printf(TEXT \"%ld\\n\", sum); return 0; }\n");
  write("p/total.h", "#define TEXT \"total: \"\n");
  write("p/Makefile", "total: total.c total.h\n\t$(CC) -o $@ total.c\n");
  const std::string cd = "cd p && ";
  done(cd +
       "git init -q && printf '.venv\\nmodel\\nwheels\\n*.tokens\\n' > .gitignore &&"
       " seq 400 > raw.csv && mkdir wheels && python3 make_wheel.py 1.0 3 && git add -A &&"
       " git -c user.name=a -c user.email=a@b commit -qm start && $ASSAY init -q");

  // Run.
  const auto run = [&](const std::string& what) { done(cd + "$ASSAY run -q " + what); };
  run("--build -- python3 -m venv .venv");
  run("--build -- .venv/bin/python -m pip install -q --no-index --find-links wheels scale");
  run("-- .venv/bin/python prepare.py raw.csv clean.csv");
  run("-- make -s");
  run("-- sh -c './total < clean.csv > total.txt'");
  done(cd + "$ASSAY data tokenize clean.csv -o clean.tokens --quiet");
  done(cd +
       "$ASSAY train demo --quiet --device cpu --out model --set data.train=clean.tokens"
       " --set train.steps=2 --set model.layers=1 --set model.dim=32 --set model.ffn=64");
  EXPECT_EQ(done(cd + "cat total.txt").out, "total: 240600\n");
  const std::string weights = "model/checkpoints/step-2/weights.safetensors";
  const std::string first_model = b3sum("p/" + weights);

  const auto in_p = [&](const std::string& arguments) {
    const auto outcome = shell(cd + "$ASSAY " + arguments + " --json 2>/dev/null");
    EXPECT_TRUE(Json::accept(outcome.out)) << arguments << outcome.out << outcome.err;
    return Json::parse(outcome.out, nullptr, false);
  };
  const Json log = in_p("log");
  ASSERT_EQ(log["runs"].size(), 7U);
  for (const Json& one : log["runs"]) {
    const Json shown = in_p("show " + one["id"].dump());
    EXPECT_EQ(shown["run"]["status"], "done") << shown["run"];
    EXPECT_TRUE(shown["run"]["complete"].get<bool>()) << shown["missed"];
  }
  const Json prepared = in_p("show 3");
  EXPECT_THAT(prepared["packages"].dump(),
              HasSubstr("{\"manager\":\"pip\",\"name\":\"scale\",\"version\":\"1.0\"}"));
  ASSERT_EQ(prepared["interpreters"].size(), 1U);
  EXPECT_EQ(prepared["interpreters"][0]["started"], in("p/.venv/bin/python"));

  // Status and lineage.
  EXPECT_EQ(shell(cd + "$ASSAY status").exit_code, 0) << shell(cd + "$ASSAY status").out;
  const auto lineage = done(cd + "$ASSAY lineage " + weights + " --up").out;
  for (const char* part :
       {"unchanged since run 7", "data tokenize clean.csv", "prepare.py raw.csv", "raw.csv"}) {
    EXPECT_THAT(lineage, HasSubstr(part));
  }
  EXPECT_THAT(lineage, Not(HasSubstr("total")));
  EXPECT_EQ(in_p("lineage " + weights)["on_disk"]["blake3"], first_model);

  // Edit: a header of the C program, which nothing but the build and the total depend on.
  write("p/total.h", "#define TEXT \"sum: \"\n");
  const Json stale = in_p("status");
  std::set<int> stages;
  for (const Json& one : stale["stages"]) {
    if (one["stale"]) stages.insert(one["stage"].get<int>());
  }
  EXPECT_EQ(stages, (std::set<int>{4, 5}));
  EXPECT_EQ(done(cd + "$ASSAY refresh -q && cat total.txt").out, "sum: 240600\n");
  EXPECT_EQ(shell(cd + "$ASSAY status").exit_code, 0);
  EXPECT_EQ(b3sum("p/" + weights), first_model) << "which was not made again";

  // Edit: the raw data, on which everything else depends.
  done(cd + "seq 500 > raw.csv");
  EXPECT_EQ(shell(cd + "$ASSAY status").exit_code, 1);
  done(cd + "rm -r model && $ASSAY refresh -q");
  EXPECT_EQ(shell(cd + "$ASSAY status").exit_code, 0) << shell(cd + "$ASSAY status").out;
  EXPECT_EQ(done(cd + "cat total.txt").out, "sum: 375750\n");
  const std::string second_model = b3sum("p/" + weights);
  EXPECT_NE(second_model, first_model);

  // By hand: said, and not overwritten.
  done(cd + "echo 'sum: 1' > total.txt");
  EXPECT_THAT(shell(cd + "$ASSAY status").out, HasSubstr("changed by hand"));
  EXPECT_NE(shell(cd + "$ASSAY refresh -q").exit_code, 0);
  EXPECT_EQ(done(cd + "cat total.txt").out, "sum: 1\n");
  done(cd + "echo 'sum: 375750' > total.txt");
  EXPECT_EQ(shell(cd + "$ASSAY status").exit_code, 0);

  // Reproduce: with an environment that is made again, and a model bit for bit.
  const Json again = in_p("reproduce " + weights + " --run --directory ../copy");
  EXPECT_EQ(again["verdict"], "identical")
      << again["reproduction"]["undecided"] << again["obstacles"];
  EXPECT_EQ(b3sum("copy/" + weights), second_model);
  EXPECT_EQ(again["reproduction"]["stages"].size(), 5U) << "two builds, prepare, tokenize, train";
  EXPECT_EQ(done("test -x copy/.venv/bin/python && readlink copy/.venv; echo -n").out, "");

  // Pack, and make it again elsewhere, without this project.
  done(cd +
       "$ASSAY pack total.txt -o ../total.tar.zst -q && cd .. && mv p away &&"
       " $ASSAY unpack total.tar.zst --directory new -q");
  const auto elsewhere = shell("cd new && $ASSAY reproduce total.txt --run --directory ../copy2");
  EXPECT_EQ(elsewhere.exit_code, 0) << elsewhere.out << elsewhere.err;
  EXPECT_EQ(done("cat copy2/total.txt").out, "sum: 375750\n");
  done("mv away p");

  // Export.
  const Json statement =
      Json::parse(done(cd + "$ASSAY export " + weights + " --format in-toto").out);
  EXPECT_EQ(statement["subject"][0]["digest"]["blake3"], second_model);
  EXPECT_THAT(statement["predicate"]["buildDefinition"]["resolvedDependencies"].dump(),
              HasSubstr(b3sum("p/clean.tokens")));
  const Json prov = Json::parse(done(cd + "$ASSAY export " + weights + " --format prov").out);
  EXPECT_EQ(prov["activity"].size(), 3U) << "prepare, tokenize, train";
}

class PipelineTools : public Pipeline {
 protected:
  void SetUp() override {
    const char* tools = std::getenv("ASSAY_PIPELINE_TOOLS");
    if (tools == nullptr) GTEST_SKIP() << "`make pipeline` installs the tools and runs this";
    bin_ = std::string(tools) + "/bin/";
  }
  void needs(const std::string& tool) {
    if (shell("test -x " + bin_ + tool).exit_code != 0) GTEST_SKIP() << tool << " is not installed";
  }
  std::string bin_;
};

TEST_F(PipelineTools, Dvc) {
  needs("dvc");
  if (IsSkipped()) return;
  write("double.py", "open('out.txt', 'w').write(open('in.txt').read() * 2)\n");
  write("in.txt", "one\n");
  write("dvc.yaml",
        "stages:\n  double:\n    cmd: python3 double.py\n    deps: [in.txt, double.py]\n"
        "    outs: [out.txt]\n");
  done("git init -q && " + bin_ + "dvc init -q && $ASSAY init -q && $ASSAY run -q -- " + bin_ +
       "dvc repro -q");
  const Json run = json("show last");
  EXPECT_TRUE(run["run"]["complete"].get<bool>()) << run["missed"];
  EXPECT_THAT(run["inputs"].dump(), HasSubstr("in.txt"));
  EXPECT_THAT(run["outputs"].dump(), HasSubstr("out.txt"));
  EXPECT_THAT(run["outputs"].dump(), Not(HasSubstr(".dvc/tmp"))) << "its locks and caches";
  // DVC does nothing the second time; what the stage depends on stays.
  done("$ASSAY run -q -- " + bin_ + "dvc repro -q");
  EXPECT_EQ(shell("$ASSAY status").exit_code, 0) << shell("$ASSAY status").out;
  write("in.txt", "two\n");
  EXPECT_EQ(shell("$ASSAY status").exit_code, 1);
  done("$ASSAY refresh -q");
  EXPECT_EQ(done("cat out.txt").out, "two\ntwo\n");
  EXPECT_EQ(shell("$ASSAY status").exit_code, 0) << shell("$ASSAY status").out;
}

TEST_F(PipelineTools, ANotebook) {
  needs("jupyter-nbconvert");
  if (IsSkipped()) return;
  const Json cell = {{"cell_type", "code"},
                     {"execution_count", nullptr},
                     {"id", "a"},
                     {"metadata", Json::object()},
                     {"outputs", Json::array()},
                     {"source", "open('sum.txt', 'w').write(str(sum(map(int, open('in.txt')))))"}};
  const Json kernel = {{"name", "python3"}, {"display_name", "p"}, {"language", "python"}};
  write("sum.ipynb", Json{{"cells", Json::array({cell})},
                          {"metadata", {{"kernelspec", kernel}}},
                          {"nbformat", 4},
                          {"nbformat_minor", 5}}
                         .dump());
  write("in.txt", "1\n2\n3\n");
  done("$ASSAY init -q && $ASSAY run -q -- " + bin_ +
       "jupyter-nbconvert --to notebook --execute sum.ipynb --output done.ipynb");
  EXPECT_EQ(done("cat sum.txt").out, "6");
  const Json run = json("show last");
  EXPECT_TRUE(run["run"]["complete"].get<bool>()) << run["missed"];
  for (const char* name : {"in.txt", "sum.ipynb"})
    EXPECT_THAT(run["inputs"].dump(), HasSubstr(name));
  for (const char* name : {"sum.txt", "done.ipynb"})
    EXPECT_THAT(run["outputs"].dump(), HasSubstr(name));
  EXPECT_THAT(run["packages"].dump(), HasSubstr("nbconvert"));
  write("in.txt", "10\n");
  EXPECT_THAT(shell("$ASSAY status").out, HasSubstr("input in.txt has changed"));
  done("$ASSAY refresh -q");
  EXPECT_EQ(done("cat sum.txt").out, "10");
  EXPECT_EQ(json("reproduce sum.txt --run --directory copy")["verdict"], "identical");
}

}  // namespace
}  // namespace assay
