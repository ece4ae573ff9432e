#include "lineage/redact/secret_search.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/testing/temp_dir.h"

namespace assay::lineage {
namespace {

// Put together here, so that this file has no secret in it.
const std::string kToken = std::string("ghp") + "_16C7e42F292c6912E7710c838347Ae178B4a";
const std::string kDashes = "-----";

TEST(SecretSearch, PrivateKeysOfAnyKindButNoCertificates) {
  for (const char* kind : {"PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY",
                           "ENCRYPTED PRIVATE KEY", "PGP PRIVATE KEY BLOCK"}) {
    EXPECT_TRUE(contains_secret("x = '" + kDashes + "BEGIN " + kind + kDashes + "\nMIIE"));
  }
  EXPECT_TRUE(contains_secret("---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nP2/56"));
  EXPECT_TRUE(contains_secret(std::string("PuTTY-User-Key") + "-File-3: ssh-ed25519\n"));
  EXPECT_FALSE(contains_secret(kDashes + "BEGIN CERTIFICATE" + kDashes + "\nMIIE"));
  EXPECT_FALSE(contains_secret(kDashes + "BEGIN PUBLIC KEY" + kDashes + "\nPRIVATE KEY"));
}

class SecretSearchInFiles : public ::testing::Test {
 protected:
  bool found_in(const std::string& text) {
    const auto path = directory_.path() / "file";
    std::ofstream(path, std::ios::binary) << text;
    return file_contains_secret(path);
  }
  base::testing::TempDir directory_;
};

// Wherever the token lies, in particular across the ends of pieces of 64 KiB.
TEST_F(SecretSearchInFiles, LargeTextIsSearchedAtEveryPlace) {
  std::string lines;
  while (lines.size() < (5U << 18)) lines += "the quick brown fox\n";
  const std::string one_line(5U << 18, '.');
  EXPECT_FALSE(found_in(lines));
  EXPECT_FALSE(found_in(one_line));
  for (const std::string& text : {lines, one_line}) {
    for (const std::size_t at : {std::size_t{0}, std::size_t{65535}, std::size_t{65536 - 20},
                                 std::size_t{1U << 20}, text.size() - 50}) {
      std::string with = text;
      with.replace(at, kToken.size() + 2, " " + kToken + " ");
      EXPECT_TRUE(found_in(with)) << at;
    }
  }
}

TEST_F(SecretSearchInFiles, LargeBinaryFilesAreData) {
  std::string data(2U << 20, '\0');
  data += " " + kToken;
  EXPECT_FALSE(found_in(data));
  EXPECT_TRUE(found_in(data.substr(data.size() - 1000))) << "a small one is searched";
  EXPECT_FALSE(file_contains_secret(directory_.path() / "not there"));
}

}  // namespace
}  // namespace assay::lineage
