#include "control/secret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <set>
#include <thread>
#include <vector>

#include "base/testing/temp_dir.h"

namespace assay::control {
namespace {

using base::testing::TempDir;
using ::testing::HasSubstr;
using namespace std::chrono_literals;  // NOLINT

TEST(Secret, TheVariableWins) {
  const TempDir folder;
  const auto secret =
      find_secret({{"ASSAY_JOB_SECRET", "0123456789abcdef"}}, folder.path(), 0, 0ms);
  ASSERT_TRUE(secret);
  EXPECT_EQ(secret->text(), "0123456789abcdef");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  const auto short_one = find_secret({{"ASSAY_JOB_SECRET", "123"}}, folder.path(), 0, 0ms);
  ASSERT_FALSE(short_one);
  EXPECT_THAT(short_one.error().line(), HasSubstr("ASSAY_JOB_SECRET: the secret has 3 characters"));
  EXPECT_THAT(find_secret({}, "", 0, 0ms).error().line(), HasSubstr("no run folder"));
}

TEST(Secret, RankZeroMakesTheFileAndOthersWaitForIt) {
  const TempDir folder;
  const auto alone = find_secret({}, folder.path(), 3, 20ms);
  ASSERT_FALSE(alone);
  EXPECT_THAT(alone.error().line(), HasSubstr("rank 3 found no job secret after 0.02 s"));
  std::string read;
  std::thread other([&] {
    const auto secret = find_secret({}, folder.path(), 3, 60s);
    if (secret) read = secret->text();
  });
  const auto made = find_secret({}, folder.path(), 0, 0ms);
  other.join();
  ASSERT_TRUE(made) << made.error().line();
  EXPECT_EQ(made->text().size(), 64U);
  EXPECT_EQ(read, made->text());
  struct stat status {};
  ASSERT_EQ(::stat((folder.path() / ".assay-secret").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  // When restarted, rank 0 uses the same secret: a rank may already have read it.
  EXPECT_EQ(find_secret({}, folder.path(), 0, 0ms)->text(), made->text());
  remove_secret_file(folder.path());
  remove_secret_file(folder.path());
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Secret, ManyWritersAgree) {
  const TempDir folder;
  std::vector<std::string> texts(16);
  std::vector<std::thread> threads;
  for (std::string& text : texts) {
    threads.emplace_back([&] { text = find_secret({}, folder.path(), 0, 0ms)->text(); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::set<std::string>(texts.begin(), texts.end()).size(), 1U);
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    EXPECT_EQ(entry.path().filename(), ".assay-secret");
    ++files;
  }
  EXPECT_EQ(files, 1);
}

TEST(Secret, WhatOthersCanReadOrReplaceIsRefused) {
  const TempDir folder;
  const std::filesystem::path path = folder.path() / ".assay-secret";
  std::ofstream(path) << std::string(64, 'a');
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  EXPECT_THAT(find_secret({}, folder.path(), 0, 0ms).error().line(),
              HasSubstr("others may read the job's secret (mode 644)"));
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  EXPECT_TRUE(find_secret({}, folder.path(), 1, 0ms));
  std::ofstream(path) << "x";
  EXPECT_THAT(find_secret({}, folder.path(), 1, 0ms).error().line(), HasSubstr("1 characters"));
  std::filesystem::remove(path);
  std::filesystem::create_symlink("/etc/hostname", path);
  EXPECT_FALSE(find_secret({}, folder.path(), 0, 0ms));
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  EXPECT_FALSE(find_secret({}, folder.path(), 0, 0ms));
  EXPECT_FALSE(find_secret({}, folder.path() / "missing", 0, 0ms));
}

}  // namespace
}  // namespace assay::control
