// Malformed files: refused with file and offset, or read within their bounds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "base/testing/temp_dir.h"
#include "train/checkpoint/safetensors_file.h"

namespace assay::checkpoint {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string reference_text() {
  std::ifstream stream(ASSAY_CHECKPOINT_FIXTURES "/reference.safetensors", std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void spill(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// A file with this header and this many bytes of data.
std::string file_of(const std::string& json, std::size_t data_bytes) {
  std::string text(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) text[i] = static_cast<char>(json.size() >> (8 * i));
  return text + json + std::string(data_bytes, 'x');
}

struct Hostile {
  const char* json;
  std::size_t data_bytes;
  const char* message;
};

class HostileHeader : public ::testing::TestWithParam<Hostile> {};

TEST_P(HostileHeader, IsRefusedWithAnOffset) {
  const auto header =
      parse_header(GetParam().json, static_cast<std::int64_t>(GetParam().data_bytes), "f");
  ASSERT_FALSE(header);
  EXPECT_THAT(header.error().line(), HasSubstr(GetParam().message));
  EXPECT_THAT(header.error().line(), ::testing::StartsWith("f: byte "));
}

#define T(type, shape, begin, end) \
  "{\"dtype\":\"" type "\",\"shape\":[" shape "],\"data_offsets\":[" begin "," end "]}"
INSTANTIATE_TEST_SUITE_P(
    All, HostileHeader,
    ::testing::Values(
        Hostile{"", 0, "byte 8: the header does not start with '{'"},
        Hostile{" {}", 0, "does not start"}, Hostile{"{", 0, "not valid JSON"},
        Hostile{"{} x", 0, "byte 11: the header is not valid JSON"},
        Hostile{"{\"a\":1}", 0, "a number is not allowed here"},
        Hostile{"{\"a\":[]}", 0, "a list is not allowed here"},
        Hostile{"{\"\xff\":1}", 0, "not valid JSON"},
        Hostile{"{\"__metadata__\":{\"a\":{}}}", 0, "an object is not allowed here"},
        Hostile{"{\"__metadata__\":{\"a\":1}}", 0, "a number is not allowed here"},
        Hostile{"{\"__metadata__\":{\"a\":\"\",\"a\":\"\"}}", 0, "'a' appears twice"},
        Hostile{"{\"a\":{}}", 0, "has no valid dtype"},
        Hostile{"{\"a\":" T("U8", "1", "0", "1") ",\"a\":" T("U8", "1", "1", "2") "}", 2,
                "'a' appears twice"},
        Hostile{"{\"a\":" T("F33", "1", "0", "4") "}", 4, "unknown type 'F33'"},
        Hostile{"{\"a\":" T("F32", "2", "0", "4") "}", 4,
                "8 bytes by its shape and 4 by its offsets"},
        Hostile{"{\"a\":" T("F32", "-1", "0", "4") "}", 4, "negative"},
        Hostile{"{\"a\":" T("F32", "1.0", "0", "4") "}", 4, "not an integer"},
        Hostile{"{\"a\":" T("F32", "99999999999999999999", "0", "4") "}", 4, "too large"},
        Hostile{"{\"a\":" T("F32", "9223372036854775808", "0", "4") "}", 4, "too large"},
        Hostile{"{\"a\":" T("F32", "4294967296,4294967296", "0", "0") "}", 0, "too large to count"},
        Hostile{"{\"a\":" T("U8", "1", "1", "0") "}", 1, "by its offsets"},
        Hostile{"{\"a\":" T("U8", "4", "0", "4") "}", 3, "ends beyond the file"},
        Hostile{"{\"a\":" T("U8", "9223372036854775807", "0", "9223372036854775807") "}", 3,
                "ends beyond the file"},
        Hostile{"{\"a\":" T("U8", "4", "0", "4") "}", 5, "1 bytes belong to no tensor"},
        Hostile{"{\"a\":" T("U8", "2", "1", "3") "}", 3, "leaves a gap"},
        Hostile{"{\"a\":" T("U8", "3", "0", "3") ",\"b\":" T("U8", "2", "2", "4") "}", 4,
                "overlaps the one before it"},
        Hostile{"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", 0, "'dtype' appears twice in 'a'"},
        Hostile{"{\"a\":{\"shape\":[[1]]}}", 0, "a list is not allowed here"},
        Hostile{"{\"a\":{\"other\":1}}", 0, "unknown key 'other'"},
        Hostile{"{\"a\":{\"data_offsets\":\"x\"}}", 0, "a string is not allowed here"}));
#undef T

TEST(Safetensors, ListsAndNestingWithoutEndAreRefused) {
  std::string list = "{\"a\":{\"shape\":[0";
  for (int i = 0; i < 100'000; ++i) list += ",0";
  EXPECT_FALSE(parse_header(list + "]}}", 0, "f"));
  EXPECT_FALSE(parse_header("{\"a\":" + std::string(1'000'000, '['), 0, "f"));
}

TEST(Safetensors, LengthsBeyondTheFileAreRefused) {
  base::testing::MemoryDir directory;
  const fs::path path = directory.path() / "f";
  spill(path, std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10));
  EXPECT_THAT(SafetensorsFile::open(path).error().line(), HasSubstr("over the limit of 100 MB"));
  spill(path, file_of("{}", 0).substr(0, 9));
  EXPECT_THAT(SafetensorsFile::open(path).error().line(), HasSubstr("but the file has 9"));
  spill(path, "short");
  EXPECT_THAT(SafetensorsFile::open(path).error().line(), HasSubstr("byte 5: the file ends"));
  EXPECT_FALSE(SafetensorsFile::open(directory.path()));
}

TEST(Safetensors, EveryTruncationIsRefused) {
  base::testing::MemoryDir directory;
  const fs::path path = directory.path() / "f";
  const std::string whole = reference_text();
  ASSERT_FALSE(whole.empty());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    spill(path, whole.substr(0, length));
    EXPECT_FALSE(SafetensorsFile::open(path)) << length;
  }
  spill(path, whole + "x");
  EXPECT_FALSE(SafetensorsFile::open(path));
}

// A modified file may have other contents; it must be refused or read within its bounds.
TEST(Safetensors, ChangedBytesNeverLeadOutOfTheFile) {
  base::testing::MemoryDir directory;
  const fs::path path = directory.path() / "f";
  const std::string whole = reference_text();
  std::mt19937 random(1);
  for (int round = 0; round < 4000; ++round) {
    std::string text = whole;
    const std::size_t at = static_cast<std::size_t>(round) % whole.size();
    text[at] = static_cast<char>(random());
    if (round % 3 == 0) text[random() % text.size()] = static_cast<char>(random());
    spill(path, text);
    const auto file = SafetensorsFile::open(path);
    if (!file) continue;
    std::int64_t sum = 0;
    for (const TensorPlace& place : file->header().tensors) {
      EXPECT_EQ(place.begin, sum);
      EXPECT_EQ(file->bytes(place)->size(), static_cast<std::size_t>(place.bytes()));
      sum = place.end;
    }
    EXPECT_LT(sum, static_cast<std::int64_t>(whole.size()));
  }
}

}  // namespace
}  // namespace assay::checkpoint
