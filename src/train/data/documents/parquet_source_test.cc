// The process that reads Parquet files, simulated by a shell script: it may write much, or nothing.
#include "train/data/documents/parquet_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/testing/temp_dir.h"

namespace assay::data {
namespace {

class ParquetReader : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* before = std::getenv("ASSAY_PARQUET_PYTHON");
    if (before != nullptr) before_ = before;
  }
  void TearDown() override {
    if (before_.empty()) {
      ::unsetenv("ASSAY_PARQUET_PYTHON");
    } else {
      ::setenv("ASSAY_PARQUET_PYTHON", before_.c_str(), 1);
    }
  }
  base::Result<std::string> text_of(const std::string& script,
                                    std::chrono::milliseconds timeout = std::chrono::minutes(1)) {
    const auto path = directory_.path() / "python";
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    ::setenv("ASSAY_PARQUET_PYTHON", path.c_str(), 1);
    ASSAY_TRY(const auto source, open_parquet({.path = "x.parquet"}, "text", nullptr, timeout));
    std::string text(1 << 20, '\0');
    ASSAY_TRY(const std::size_t size, source->read(text));
    text.resize(size);
    return text;
  }

  base::testing::TempDir directory_;
  std::string before_;
};

// More than a pipe holds: it would block until somebody reads it.
TEST_F(ParquetReader, MaySayMuchBesides) {
  const auto text = text_of("head -c 500000 /dev/zero | tr '\\0' w >&2; echo '{\"text\": \"a\"}'");
  ASSERT_TRUE(text) << text.error().line();
  EXPECT_EQ(*text, "{\"text\": \"a\"}\n");
}

TEST_F(ParquetReader, IsQuotedWhenItFails) {
  const auto refused = text_of("printf 'has no column|name another' >&2; exit 64");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().line(), "x.parquet: has no column; name another");
  const auto failed = text_of("head -c 500000 /dev/zero | tr '\\0' w >&2; exit 5");
  ASSERT_FALSE(failed);
  EXPECT_LT(failed.error().line().size(), 5000U);
  EXPECT_THAT(failed.error().line(), ::testing::HasSubstr("www"));
}

TEST_F(ParquetReader, IsNotWaitedForForEver) {
  const auto text = text_of("sleep 100", std::chrono::seconds(1));
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().line(),
            "x.parquet: its reader has sent nothing for 1 s; is its file system mounted?");
}

}  // namespace
}  // namespace assay::data
