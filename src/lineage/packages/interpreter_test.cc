#include "lineage/packages/interpreter.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/process/capture.h"
#include "base/testing/temp_dir.h"

namespace assay::lineage {
namespace {

TEST(Interpreter, LanguagesByTheNamesOfPrograms) {
  EXPECT_EQ(language_of("/usr/bin/python3.11"), "python");
  EXPECT_EQ(language_of("python3.13t"), "python");
  EXPECT_EQ(language_of("/opt/node"), "node");
  EXPECT_EQ(language_of("/usr/lib/R/bin/exec/R"), "r");
  for (const char* other : {"/usr/bin/python3-config", "/bin/sh", "Rust", "nodemon", "", "/"}) {
    EXPECT_FALSE(language_of(other)) << other;
  }
}

// readelf is the oracle.
TEST(Interpreter, TheBuildIsTheLinkers) {
  const auto perl = interpreter_at("/usr/bin/perl");
  if (!perl) GTEST_SKIP() << "no perl";
  const auto notes = base::run_captured({.arguments = {"readelf", "-n", perl->real}});
  if (!notes || !notes->ok()) GTEST_SKIP() << "no readelf";
  const std::size_t at = notes->output.find("Build ID: ");
  if (at == std::string::npos) GTEST_SKIP() << "it has none";
  EXPECT_EQ(perl->build, notes->output.substr(at + 10, 16));
}

TEST(Interpreter, FactsAndBack) {
  const Interpreter one{"/p/.venv/bin/python", "/usr/bin/python3.11", "python", "3.11.2", "ab"};
  const auto back = interpreter_of(to_fact(one));
  ASSERT_TRUE(back);
  EXPECT_EQ(to_text(*back), "python 3.11.2, build ab, /usr/bin/python3.11");
  EXPECT_EQ(back->started, one.started);
  EXPECT_FALSE(interpreter_of({.kind = store::PathFact::Kind::kAbsent}));
}

// Whatever is in the file: nothing is read beyond it, and it is always the same build.
RC_GTEST_PROP(Interpreter, AnyFile, (const std::string& bytes, bool elf)) {
  const base::testing::MemoryDir folder;
  const std::string path = folder.path() / "python3.11";
  std::string content = bytes;
  if (elf) {
    // A header whose tables lead anywhere.
    content.insert(0, std::string("\x7F"
                                  "ELF\x02\x01\x01",
                                  7) +
                          std::string(9, '\0'));
    content.resize(std::max<std::size_t>(content.size(), 64), '\x05');
    content[54] = 56;
    content[55] = 0;
  }
  std::ofstream(path, std::ios::binary) << content;
  const auto found = interpreter_at(path);
  RC_ASSERT(found.has_value());
  RC_ASSERT(!found->build.empty());
  RC_ASSERT(interpreter_at(path)->build == found->build);
}

}  // namespace
}  // namespace assay::lineage
