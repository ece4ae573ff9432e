// extends and --set: precedence, what is dropped, and error messages.
#include "spec/compose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/testing/temp_dir.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "spec/load.h"

namespace assay::spec {
namespace {

namespace fs = std::filesystem;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Compose : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    fs::create_directories((directory_ / name).parent_path());
    std::ofstream(directory_ / name) << text;
    return (directory_ / name).string();
  }
  std::string error_of(const std::string& file, std::vector<std::string> set = {}) {
    const auto loaded = load(file, {.overrides = set});
    return loaded ? "no error" : loaded.error().line();
  }
  ModelSpec model_of(const std::string& file, std::vector<std::string> set = {}) {
    const auto loaded = load(file, {.overrides = set});
    EXPECT_TRUE(loaded.has_value()) << loaded.error().line();
    const auto* job = std::get_if<JobSpec>(&loaded->spec);
    return job != nullptr ? job->model : std::get<ModelSpec>(loaded->spec);
  }

  base::testing::TempDir temporary_;
  fs::path directory_ = temporary_.path();
};

TEST_F(Compose, AWholeFileExtendsAPreset) {
  const ModelSpec model =
      model_of(write("m.toml", "extends = \"llama3-8b\"\n[model]\nlayers = 4\n"));
  EXPECT_EQ(model.layers, 4);
  EXPECT_EQ(model.vocab, 128256);
}

TEST_F(Compose, ASectionExtendsAPreset) {
  const ModelSpec model =
      model_of(write("m.toml", "[model]\nextends = \"llama3-8b\"\nlayers = 4\n"));
  EXPECT_EQ(model.layers, 4);
  EXPECT_EQ(model.ffn, 14336);
}

TEST_F(Compose, FilesExtendFilesRelativeToThemselves) {
  write("base/model.toml", "extends = \"tiny\"\n[model]\nlayers = 2\n");
  write("base/middle.toml", "extends = \"model.toml\"\n[model]\nheads = 8\n");
  const ModelSpec model = model_of(write("top.toml", "extends = \"base/middle.toml\"\n"));
  EXPECT_EQ(model.layers, 2);
  EXPECT_EQ(model.heads, 8);
  EXPECT_EQ(model.dim, 128);
}

TEST_F(Compose, ASectionWithItsOwnExtendsStartsAfresh) {
  // moe-9b's experts must not leak into a job that swaps the model for a dense one.
  const std::string file =
      write("job.toml", "extends = \"moe-9b-h200x32\"\n[model]\nextends = \"llama3-8b\"\n");
  const std::vector<std::string> dense = {"layout.ep=1", "layout.fsdp=8"};
  EXPECT_EQ(model_of(file, dense).experts, 0);
}

TEST_F(Compose, OverridesWinOverTheFileAndMaySwapWhatItExtends) {
  const std::string file = write("m.toml", "[model]\nextends = \"llama3-8b\"\nlayers = 4\n");
  EXPECT_EQ(model_of(file, {"model.layers=7"}).layers, 7);
  const ModelSpec swapped = model_of(file, {"model.extends=tiny"});
  EXPECT_EQ(swapped.vocab, 256);
  EXPECT_EQ(swapped.layers, 4) << "what the file itself says stays";
}

TEST_F(Compose, OverridesTakeStringsWithAndWithoutQuotes) {
  EXPECT_EQ(model_of("tiny", {"model.mlp=gelu"}).mlp, Mlp::kGelu);
  EXPECT_EQ(model_of("tiny", {"model.mlp=\"gelu\""}).mlp, Mlp::kGelu);
  EXPECT_EQ(model_of("tiny", {" model.mlp = gelu "}).mlp, Mlp::kGelu);
  EXPECT_TRUE(model_of("tiny", {"model.tied=true"}).tied);
}

TEST_F(Compose, TheLastOfTwoOverridesWins) {
  EXPECT_EQ(model_of("tiny", {"model.layers=2", "model.layers=3"}).layers, 3);
}

TEST_F(Compose, ErrorsNameTheOverride) {
  EXPECT_EQ(error_of("tiny", {"model.layerz=4"}),
            "--set model.layerz=4: model.layerz: unknown key; did you mean 'layers'?");
  EXPECT_EQ(error_of("tiny", {"été=1"}), "--set été=1: été: unknown key");
  for (const char* bad : {"", "=", "=4", "model.layers", ".layers=4", "model.=4", "a..b=4",
                          "model layers=4", "mod\nel=4"}) {
    EXPECT_THAT(error_of("tiny", {bad}), HasSubstr("expected KEY=VALUE")) << bad;
  }
}

TEST_F(Compose, ErrorsNameTheLineOfTheFileThatIsWrong) {
  const std::string base = write("base.toml", "extends = \"tiny\"\n\n[model]\nlayers = \"four\"\n");
  const std::string top = write("top.toml", "extends = \"base.toml\"\n[model]\nheads = 8\n");
  EXPECT_EQ(error_of(top),
            base + ":4: model.layers: expected a whole number, got the string 'four'");
}

TEST_F(Compose, CirclesAreReportedAsCircles) {
  const std::string a = write("a.toml", "extends = \"b.toml\"\n");
  write("b.toml", "extends = \"./a.toml\"\n");
  EXPECT_THAT(error_of(a), HasSubstr("circular, or nested"));
  EXPECT_THAT(error_of(write("self.toml", "extends = \"self.toml\"\n")), HasSubstr("circular"));
}

TEST_F(Compose, LongChainsEnd) {
  for (int i = 0; i < 40; ++i) {
    write(std::to_string(i) + ".toml", "extends = \"" + std::to_string(i + 1) + ".toml\"\n");
  }
  EXPECT_THAT(error_of((directory_ / "0.toml").string()), HasSubstr("deeper than 16"));
}

TEST_F(Compose, WideTreesEnd) {
  // Six places to extend from in each of 14 files: 6^14 documents if nothing stopped it.
  const auto extend = [](int to) { return "extends = \"" + std::to_string(to) + ".toml\"\n"; };
  for (int i = 0; i < 14; ++i) {
    std::string text = extend(i + 1);
    for (const char* section : {"model", "layout", "cluster", "cluster.device", "device"}) {
      text += "[" + std::string(section) + "]\n" + extend(i + 1);
    }
    write(std::to_string(i) + ".toml", text);
  }
  write("14.toml", "[model]\n[layout]\n[cluster]\n[cluster.device]\n[device]\n");
  EXPECT_THAT(error_of((directory_ / "0.toml").string()),
              HasSubstr("extends: more than 64 documents are included; extend fewer, or write"));
}

TEST_F(Compose, OverridesHaveNoLines) {
  EXPECT_EQ(
      error_of("tiny", {"model={layers=\"x\"}"}),
      "--set model={layers=\"x\"}: model.layers: expected a whole number, got the string 'x'");
  // And what they extend is relative to where the command runs, not to a file of that odd name.
  const std::string model = write("m.toml", "extends = \"tiny\"\n[model]\nlayers = 3\n");
  const std::string relative = fs::relative(model).string();
  EXPECT_EQ(model_of("demo", {"model={extends=\"" + relative + "\"}"}).layers, 3);
}

TEST_F(Compose, OverridesOfTooManyPartsAreRefused) {
  std::string path = "a";
  for (int i = 1; i < 16; ++i) path += ".a";
  EXPECT_EQ(error_of("tiny", {path + "=1"}), "--set " + path + "=1: a: unknown key");
  EXPECT_EQ(error_of("tiny", {path + ".a=1"}),
            "--set " + path + ".a=1: a key of more than 16 parts");
  for (int i = 0; i < 30'000; ++i) path += ".a";
  EXPECT_THAT(error_of("tiny", {path + "=1"}), HasSubstr("a key of more than 16 parts"));
}

TEST_F(Compose, ALongOverrideIsNotRepeatedInEveryNode) {
  // 40,000 numbers that each kept this text would take 6 GB.
  std::string list = "model.layers=[1";
  for (int i = 0; i < 40'000; ++i) list += ",1";
  const std::string line = error_of("tiny", {list + "]"});
  EXPECT_THAT(line, HasSubstr("…: model.layers: expected a whole number, got a list"));
  EXPECT_LT(base::display_width(line), 300U);
}

TEST_F(Compose, APipeMayBeNamedByAPersonButNotByAFile) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const base::UniqueFd reader(ends[0]);
  base::UniqueFd writer(ends[1]);
  const std::string text = "extends = \"tiny\"\n[model]\nlayers = 3\n";
  ASSERT_EQ(::write(writer.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  writer.reset();
  EXPECT_EQ(model_of("/dev/fd/" + std::to_string(reader.get())).layers, 3);

  ASSERT_EQ(::mkfifo((directory_ / "pipe.toml").c_str(), 0600), 0);
  const std::string file = write("m.toml", "extends = \"pipe.toml\"\n");
  EXPECT_THAT(error_of(file), HasSubstr("is a pipe; expected a file"));
  EXPECT_THAT(error_of((directory_ / "pipe.toml").string()), HasSubstr("it has no section"))
      << "there is no writer, and nothing waits";
}

TEST_F(Compose, OnlyTheCommandLineNamesStandardInput) {
  const std::string file = write("m.toml", "extends = \"-\"\n");
  EXPECT_EQ(error_of(file), file +
                                ":1: extends: standard input cannot be extended; name a preset "
                                "or a file");
}

TEST_F(Compose, UnknownNamesGetTheNearestOne) {
  EXPECT_EQ(error_of("llama3-8c"), "no preset 'llama3-8c'; did you mean 'llama3-8b'?");
  const std::string file = write("m.toml", "[model]\nextends = \"llama3-8c\"\n");
  EXPECT_EQ(error_of(file), file + ":2: extends: no preset 'llama3-8c'; did you mean 'llama3-8b'?");
}

TEST_F(Compose, AFileNamedLikeAPresetIsPointedOut) {
  write("tinny", "[model]\n");
  const std::string file = write("m.toml", "extends = \"tinny\"\n");
  EXPECT_EQ(error_of(file), file +
                                ":1: extends: no preset 'tinny'; there is a file of that name: "
                                "write ./tinny");
  const fs::path before = fs::current_path();
  fs::current_path(directory_);
  EXPECT_EQ(error_of("tinny"), "no preset 'tinny'; there is a file of that name: write ./tinny");
  fs::current_path(before);
}

TEST_F(Compose, APresetOfAnotherKindIsNamedAsSuch) {
  const std::string file = write("m.toml", "[model]\nextends = \"h200-1\"\n");
  EXPECT_EQ(error_of(file), file + ":2: model.extends: 'h200-1' has no [model]");
}

TEST_F(Compose, MissingFilesAreNamedWithTheFileThatExtendsThem) {
  EXPECT_THAT(error_of("./nowhere.toml"), HasSubstr("nowhere.toml"));
  const std::string file = write("m.toml", "extends = \"nowhere.toml\"\n");
  EXPECT_THAT(error_of(file), StartsWith(file + ":1: extends: "));
}

TEST_F(Compose, ExtendsMustBeAName) {
  const std::string file = write("m.toml", "extends = 4\n");
  EXPECT_THAT(error_of(file), HasSubstr("extends: expected the name of a preset or a file, got 4"));
}

TEST_F(Compose, UnknownKeysExplainMissingOnes) {
  const auto line_of = [&](const std::string& text) {
    const std::string file = write("f.toml", text);
    const std::string line = error_of(file);
    return line.starts_with(file) ? line.substr(file.size()) : line;
  };
  EXPECT_EQ(line_of("[model]\nvocabb = 5\n"),
            ":2: model.vocabb: unknown key; did you mean 'vocab'?");
  EXPECT_EQ(line_of("layers = 3\n"), ":1: layers: unknown key; did you mean 'model.layers'?");
  EXPECT_EQ(line_of("layers = 3\n[model]\n"),
            ":1: layers: unknown key; did you mean 'model.layers'?");
  EXPECT_EQ(line_of("[model]\n[layout]\ndpp = 1\n"),
            ":3: layout.dpp: unknown key; did you mean 'dp'?");
  EXPECT_EQ(line_of("[model]\nextend = \"tiny\"\n"),
            ":2: model.extend: unknown key; did you mean 'extends'?");
  EXPECT_EQ(line_of("[batch]\nextends = \"tiny\"\n"),
            ":2: batch.extends: unknown key; expected one of: accumulate, micro_batch, sequence");
  EXPECT_EQ(line_of("\"model.layers\" = 3\n"), ":1: model.layers: unknown key");
  EXPECT_EQ(
      line_of("[model]\n"),
      ":1: model.vocab: missing; expected a whole number from 2 to 100,000,000 (tokens in the "
      "vocabulary)");
  EXPECT_EQ(line_of(""),
            ": it has no section; expected [model], [layout], [cluster], [device], "
            "[[price]], or the sections of a job");
}

TEST_F(Compose, WrongTypesShowWhatIsThere) {
  const auto got = [&](const std::string& value) {
    const std::string line = error_of("tiny", {"description=" + value});
    return line.substr(line.find("expected a string, got ") + 23);
  };
  EXPECT_EQ(got("4"), "4");
  EXPECT_EQ(got("4.50"), "4.5");
  EXPECT_EQ(got("-4.0"), "-4.0");
  EXPECT_EQ(got("nan"), "nan");
  EXPECT_EQ(got("true"), "true");
  EXPECT_EQ(got("2026-08-14"), "the date 2026-08-14");
  EXPECT_EQ(got("07:32:00"), "a time");
  EXPECT_EQ(got("2026-08-14T07:32:00"), "a time");
  EXPECT_EQ(got("[]"), "a list");
  EXPECT_EQ(got("{}"), "a table");
  EXPECT_THAT(error_of("tiny", {"model.layers=" + std::string(9'000, 'x')}),
              EndsWith("got the string '" + std::string(39, 'x') + "…'"));
}

// A file and --set read the same text as the same number.
TEST_F(Compose, WholeNumbersMayHaveAnExponent) {
  // Tokens, or the error without the place where it was written.
  const auto read = [&](const std::string& text, bool in_file) {
    const std::string job = "model = {extends = \"tiny\"}\nbatch = {sequence = 8}\n";
    const std::string file =
        in_file ? write("job.toml", job + "train = {tokens = " + text + "}\n") : "demo";
    std::vector<std::string> sets = {"train.tokens=" + text};
    if (in_file) sets.clear();
    const auto loaded = load(file, {.overrides = sets});
    if (loaded) return std::to_string(*std::get<JobSpec>(loaded->spec).train.tokens);
    return loaded.error().what;
  };
  for (const bool in_file : {true, false}) {
    for (const auto& [text, number] :
         {std::pair("1e11", "100000000000"), std::pair("1E11", "100000000000"),
          std::pair("1e+11", "100000000000"), std::pair("+1e11", "100000000000"),
          std::pair("1.5e9", "1500000000"), std::pair("1.50e+1_0", "15000000000"),
          std::pair("12_345e3", "12345000"), std::pair("9007199254740993e1", "90071992547409930"),
          std::pair("123456789e0", "123456789")}) {
      EXPECT_EQ(read(text, in_file), number) << text;
    }
    for (const auto& [text, shown] :
         {std::pair("1.5", "1.5"), std::pair("1e-3", "0.001"), std::pair("4.0", "4.0"),
          std::pair("1.25e1", "12.5"), std::pair("10e-1", "1.0")}) {
      EXPECT_THAT(read(text, in_file),
                  StartsWith("train.tokens: expected a whole number, got " + std::string(shown)))
          << text;
    }
    EXPECT_EQ(read("1e30", in_file),
              "train.tokens: expected a whole number of at most 9,223,372,036,854,775,807, got "
              "1e+30");
    EXPECT_EQ(read("-1e30", in_file),
              "train.tokens: expected a whole number of at least -9,223,372,036,854,775,808, got "
              "-1e+30");
    EXPECT_THAT(read("-1e3", in_file), HasSubstr("expected a whole number from 1 to "));
  }
  // Keys for any number stay what they are.
  const auto rate = load("demo", {.overrides = std::vector<std::string>{"train.epsilon=1e0"}});
  ASSERT_TRUE(rate) << rate.error().line();
  EXPECT_EQ(std::get<JobSpec>(rate->spec).train.epsilon, 1);
}

// Where a number stands in its line is counted in characters, not in bytes.
TEST_F(Compose, NumbersBehindAnyTextAreFound) {
  const std::string file =
      write("m.toml",
            "description = \"über\"\r\nmodel = {extends = \"tiny\", layers = 2e0,"
            " \"heads\" = 4e0} # é 日本\n");
  const ModelSpec model = model_of(file);
  EXPECT_EQ(model.layers, 2);
  EXPECT_EQ(model.heads, 4);
  const std::string odd =
      write("n.toml", "x = {\"日本\" = 1.5, \"é\" = 3e0, layers = 2.5}\nextends = \"tiny\"\n");
  EXPECT_THAT(error_of(odd), HasSubstr("unknown key"));
}

// One way to say how long replaces the preset's; two of one's own are still an error.
TEST_F(Compose, AnOverrideReplacesWhatItMakesMeaningless) {
  const auto tokens = [](std::vector<std::string> sets) {
    const auto loaded = load("llama3-70b-h200x32", {.overrides = sets});
    return loaded ? training_tokens(std::get<JobSpec>(loaded->spec)) : std::nullopt;
  };
  EXPECT_EQ(tokens({"train.tokens=1e11"}), 100'000'000'000 / 262'144 * 262'144);
  EXPECT_EQ(tokens({"train.tokens=1e11", "train.steps=5"}), std::nullopt);
  const std::vector<std::string> replicas = {"layout.fsdp=1", "layout.dp=8"};
  EXPECT_TRUE(load("nanochat-d26-h100", {.overrides = replicas}).has_value());
  const std::vector<std::string> changes = {"layout.fsdp=1", "layout.dp=8", "layout.zero=2"};
  EXPECT_FALSE(load("nanochat-d26-h100", {.overrides = changes}).has_value());
}

}  // namespace
}  // namespace assay::spec
