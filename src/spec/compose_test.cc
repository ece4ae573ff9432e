// extends and --set: what wins, what is forgotten, and what a mistake is told.
#include "spec/compose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "spec/load.h"

namespace assay::spec {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

class Compose : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "assay-compose-XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
  }
  void TearDown() override { fs::remove_all(directory_); }

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

  fs::path directory_;
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
  for (const char* bad : {"", "=", "=4", "model.layers", ".layers=4", "model.=4", "a..b=4",
                          "model layers=4", "mod\nel=4"}) {
    EXPECT_THAT(error_of("tiny", {bad}), HasSubstr("expected KEY=VALUE")) << bad;
  }
}

TEST_F(Compose, ErrorsNameTheLineOfTheFileThatIsWrong) {
  const std::string base = write("base.toml", "extends = \"tiny\"\n\n[model]\nlayers = \"four\"\n");
  const std::string top = write("top.toml", "extends = \"base.toml\"\n[model]\nheads = 8\n");
  EXPECT_EQ(error_of(top), base + ":4: model.layers: expected a whole number, got a string");
}

TEST_F(Compose, CirclesAreToldAsCircles) {
  const std::string a = write("a.toml", "extends = \"b.toml\"\n");
  write("b.toml", "extends = \"./a.toml\"\n");
  EXPECT_THAT(error_of(a), HasSubstr("goes in a circle"));
  EXPECT_THAT(error_of(write("self.toml", "extends = \"self.toml\"\n")), HasSubstr("circle"));
}

TEST_F(Compose, LongChainsEnd) {
  for (int i = 0; i < 40; ++i) {
    write(std::to_string(i) + ".toml", "extends = \"" + std::to_string(i + 1) + ".toml\"\n");
  }
  EXPECT_THAT(error_of((directory_ / "0.toml").string()), HasSubstr("deeper than 16"));
}

TEST_F(Compose, UnknownNamesGetTheNearestOne) {
  EXPECT_EQ(error_of("llama3-8c"), "no preset 'llama3-8c'; did you mean 'llama3-8b'?");
  const std::string file = write("m.toml", "[model]\nextends = \"llama3-8c\"\n");
  EXPECT_EQ(error_of(file), file + ":2: extends: no preset 'llama3-8c'; did you mean 'llama3-8b'?");
}

TEST_F(Compose, APresetOfAnotherKindIsNamedAsSuch) {
  const std::string file = write("m.toml", "[model]\nextends = \"h200-1\"\n");
  EXPECT_EQ(error_of(file), file + ":2: model.extends: 'h200-1' has no [model]");
}

TEST_F(Compose, MissingFilesAreNamedWithWhoAskedForThem) {
  EXPECT_THAT(error_of("./nowhere.toml"), HasSubstr("nowhere.toml"));
  const std::string file = write("m.toml", "extends = \"nowhere.toml\"\n");
  EXPECT_THAT(error_of(file), StartsWith(file + ":1: extends: "));
}

TEST_F(Compose, ExtendsMustBeAName) {
  const std::string file = write("m.toml", "extends = 4\n");
  EXPECT_THAT(error_of(file), HasSubstr("extends: expected the name of a preset or a file"));
}

}  // namespace
}  // namespace assay::spec
