// What the store's tests share: a scratch project directory, programs that know more migrations
// than the real one, and an independent reader.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/testing/temp_dir.h"
#include "store/location.h"
#include "store/migrations.h"

namespace assay::store::testing {

class StoreTest : public ::testing::Test {
 protected:
  StoreTest();

  [[nodiscard]] const std::filesystem::path& scratch() const { return scratch_; }
  // A new, empty directory inside scratch().
  [[nodiscard]] std::filesystem::path directory(const std::string& name) const;

 private:
  // In memory, because a kill (unlike a power loss) does not need a disk.
  base::testing::MemoryDir folder_;
  std::filesystem::path scratch_;
};

// A program whose schema has this many versions: the real first one, then synthetic ones. Version 2
// adds table `entry`, version 3 rebuilds it.
StoreProgram program_with(int versions);

// "" or the error's line.
template <class T>
std::string line_of(const base::Result<T>& result) {
  return result ? std::string() : result.error().line();
}

std::string read(const std::filesystem::path& path);
void write(const std::filesystem::path& path, const std::string& contents);
// When this process started, from the kernel; independent of the code under test.
std::int64_t own_start_ticks();
unsigned mode_of(const std::filesystem::path& path);

// What the sqlite3 shell prints for this SQL; nothing where the shell is not installed.
std::optional<std::string> sqlite3_shell(const std::filesystem::path& database,
                                         const std::string& sql);

}  // namespace assay::store::testing
