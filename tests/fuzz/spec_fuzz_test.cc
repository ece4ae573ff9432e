// Random, mutated and truncated TOML: never a crash, never a hang; either a valid spec or a usage
// error in one printable line that names the file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <random>

#include "base/testing/temp_dir.h"
#include "base/text.h"
#include "spec/load.h"
#include "spec/presets.h"
#include "support/process.h"

namespace assay {
namespace {

using Random = std::mt19937_64;

std::size_t below(Random& random, std::size_t limit) {
  return random() % limit;
}

// Any preset's text that is written down.
std::string some_preset(Random& random) {
  const auto& all = spec::presets();
  while (true) {
    const spec::Preset& preset = all[below(random, all.size())];
    if (!preset.contents.empty()) return std::string(preset.contents);
  }
}

// A new file each time: ext4 flushes a file that is truncated and written again.
void write_anew(const std::string& file, const std::string& input) {
  std::filesystem::remove(file);
  std::ofstream(file, std::ios::binary) << input;
}

std::string random_bytes(Random& random) {
  std::string text(below(random, 400), ' ');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

// Pieces that parsers trip over, strung together.
std::string random_tokens(Random& random) {
  static const std::vector<std::string> kTokens = {"[",
                                                   "]",
                                                   "[[",
                                                   "]]",
                                                   "{",
                                                   "}",
                                                   "=",
                                                   "\n",
                                                   ".",
                                                   ",",
                                                   "\"",
                                                   "'''",
                                                   "\"\"\"",
                                                   "#",
                                                   "\\",
                                                   "\r",
                                                   "model",
                                                   "layers",
                                                   "extends",
                                                   "price",
                                                   "cluster.device",
                                                   "tiny",
                                                   "demo",
                                                   "this-machine",
                                                   "-",
                                                   "1",
                                                   "-0",
                                                   "9223372036854775807",
                                                   "9223372036854775808",
                                                   "1e999",
                                                   "nan",
                                                   "inf",
                                                   "0x",
                                                   "0b2",
                                                   "1979-05-27",
                                                   "07:32:00",
                                                   "2026-08",
                                                   "true",
                                                   "\xff",
                                                   std::string(1, '\0'),
                                                   "\xef\xbb\xbf",
                                                   " ",
                                                   "\t",
                                                   "\\u0000",
                                                   "\\UFFFFFFFF"};
  std::string text;
  for (std::size_t i = below(random, 80); i > 0; --i)
    text += kTokens[below(random, kTokens.size())];
  return text;
}

std::string mutated(Random& random) {
  std::string text = some_preset(random);
  for (std::size_t i = 1 + below(random, 8); i > 0 && !text.empty(); --i) {
    const std::size_t at = below(random, text.size());
    switch (below(random, 4)) {
      case 0:
        text[at] = static_cast<char>(random());
        break;
      case 1:
        text.erase(at, 1 + below(random, 10));
        break;
      case 2:
        text.insert(at, random_tokens(random).substr(0, 12));
        break;
      default:
        text.insert(at, some_preset(random).substr(0, below(random, 60)));
    }
  }
  return text;
}

std::string truncated(Random& random) {
  const std::string text = some_preset(random);
  return text.substr(0, below(random, text.size() + 1));
}

std::string any_input(Random& random) {
  switch (below(random, 4)) {
    case 0:
      return random_bytes(random);
    case 1:
      return random_tokens(random);
    case 2:
      return mutated(random);
    default:
      return truncated(random);
  }
}

void expect_clear(const base::Error& error, const std::string& file, const std::string& input) {
  const std::string line = error.line();
  EXPECT_EQ(error.code, base::ExitCode::kUsage) << line << "\n" << input;
  EXPECT_EQ(line, base::printable(line)) << input;
  EXPECT_EQ(line.find('\n'), std::string::npos) << input;
  // A mutated `extends` may rightly blame a preset instead.
  EXPECT_TRUE(line.starts_with(file) || line.starts_with("presets/") || line.starts_with("this "))
      << line << "\n"
      << input;
  EXPECT_GT(line.size(), file.size() + 10) << line;
}

// A number from the environment: `make fuzz` tries more cases, from another seed each time.
std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(SpecFuzz, AnyInputIsASpecOrOneClearLine) {
  base::testing::TempDir directory;
  const std::string file = (directory.path() / "f.toml").string();
  const std::uint64_t seed = setting("ASSAY_FUZZ_SEED", 20260814);
  SCOPED_TRACE(seed);
  Random random(seed);
  int valid = 0;
  for (std::uint64_t i = setting("ASSAY_FUZZ_CASES", 20'000); i > 0; --i) {
    const std::string input = any_input(random);
    write_anew(file, input);
    const auto loaded = spec::load(file);
    if (loaded) {
      ++valid;
    } else {
      expect_clear(loaded.error(), file, input);
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(valid, 100) << "some truncations and mutations leave a valid spec";
}

std::string repeat(const std::string& piece, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += piece;
  return text;
}

// Far more than a stack has room for, under 1 MiB, of what a name can be made of.
std::vector<std::string> deep_names() {
  std::vector<std::string> names;
  for (const char* part : {"a", "\"q\"", "\"!\"", "\"=\"", "\"a b\"", "\"\\n\"", "\"\\\"\"", "''",
                           "'='", "'\\'", "'#'", " a ", "\"é\""}) {
    names.push_back(part + repeat("." + std::string(part), 100'000));
  }
  return names;
}

// Deep in two ways at once: tables in tables, each of a dotted name.
std::vector<std::string> deep_values() {
  const std::string name = "\"!\"" + repeat(".\"=\"", 15);
  return {repeat("[", 100'000),
          repeat("{a=", 100'000),
          repeat("{a.a.a.a.a.a.a.a.a.a.a.a = ", 10'000),
          repeat("{" + name + " = ", 14) + "1" + repeat("}", 14),
          repeat("[{" + name + " = ", 7) + "1" + repeat("}]", 7),
          repeat("[{" + name + " = ", 5'000),
          "{" + deep_names()[2] + " = 1}",
          "[{a = 1}, {" + deep_names()[5] + " = 1}]"};
}

void expect_short_usage_error(const base::Result<spec::Loaded>& loaded, const std::string& input) {
  ASSERT_FALSE(loaded.has_value()) << input.substr(0, 100);
  EXPECT_EQ(loaded.error().code, base::ExitCode::kUsage);
  EXPECT_LT(base::display_width(loaded.error().line()), 1000U) << "a clear line is a short one";
}

TEST(SpecFuzz, DeepAndWideInputsEnd) {
  base::testing::TempDir directory;
  const std::string file = (directory.path() / "f.toml").string();
  std::vector<std::string> inputs = {
      repeat("[[a]]\n", 50'000),
      repeat("\"", 300'000),
      "a = \"" + repeat("\\u0041", 100'000) + "\"",
      "[model]\nlayers = " + repeat("9", 300'000),
      "[model]\nnorm = \"" + repeat("9", 300'000) + "\"",
      "[model]\nextends = \"" + repeat("9", 300'000) + "\"",
      "[device]\nname = \"x\"\nmemory = \"" + repeat("9", 300'000) + "\"",
      repeat("k", 500'000) + " = 1",
      "a = [" + repeat("1,", 400'000) + "]"};
  for (const std::string& name : deep_names()) {
    inputs.push_back(name + "=1");
    inputs.push_back("[" + name + "]");
    inputs.push_back("[[" + name + "]]");
  }
  for (const std::string& value : deep_values()) inputs.push_back("a = " + value);
  for (const std::string& input : inputs) {
    write_anew(file, input);
    expect_short_usage_error(spec::load(file), input);
  }
}

TEST(SpecFuzz, DeepAndWideOverridesEnd) {
  std::vector<std::string> overrides = {repeat("a.", 30'000) + "a=1", repeat("k", 100'000) + "=1",
                                        "model=" + repeat("9", 100'000), repeat("=", 100'000)};
  for (const std::string& name : deep_names()) {
    overrides.push_back(name + "=1");
    overrides.push_back("a=" + name);
  }
  for (const std::string& value : deep_values()) overrides.push_back("a=" + value);
  for (const std::string& text : overrides) {
    const std::vector<std::string> set = {text};
    expect_short_usage_error(spec::load("tiny", {.overrides = set}), text);
  }
}

// toml++ asserts some of what it then reports, and calls some letters unreachable; neither may show
// in a build without NDEBUG or with sanitizers.
TEST(SpecFuzz, EveryShortCutOffTextIsAnError) {
  base::testing::TempDir directory;
  const std::string file = (directory.path() / "f.toml").string();
  const std::string pieces = "a.=[]{}\"'\\#,\n 1-:T";
  const std::size_t count = pieces.size();
  for (std::size_t i = 0; i < count * count * count; ++i) {
    const std::string input = {pieces[i % count], pieces[i / count % count],
                               pieces[i / count / count]};
    write_anew(file, input);
    const auto loaded = spec::load(file);
    ASSERT_FALSE(loaded.has_value());
    expect_clear(loaded.error(), file, input);
  }
}

TEST(SpecFuzz, EveryLetterMayStandAnywhere) {
  base::testing::TempDir directory;
  const std::string file = (directory.path() / "f.toml").string();
  for (const std::string letter : {"\u00a0", "é", "ß", "\u0499", "\u1680", "\u1700", "\u2000",
                                   "\u2028", "\u2100", "日", "\u3000", "\ufefe", "\ufeff", "😀"}) {
    for (const std::string& input :
         {letter, "a" + letter, "a" + letter + "=1", "a =" + letter, "a = 1" + letter,
          "[a" + letter + "]", "a = {" + letter + "}", "a = \"" + letter + "\"", "# " + letter}) {
      write_anew(file, input);
      const auto loaded = spec::load(file);
      ASSERT_FALSE(loaded.has_value());
      expect_clear(loaded.error(), file, input);
    }
  }
}

TEST(SpecFuzz, TheProgramExits64WithOneLine) {
  Random random(4242);
  for (int i = 0; i < 150; ++i) {
    const std::string input = any_input(random);
    const auto outcome = support::run({{support::program(), "presets", "check", "-"}, input});
    ASSERT_TRUE(outcome.exit_code == 0 || outcome.exit_code == 64) << outcome.exit_code << input;
    if (outcome.exit_code == 64) {
      EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
      EXPECT_EQ(outcome.out, "");
    }
  }
}

}  // namespace
}  // namespace assay
