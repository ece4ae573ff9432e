#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fstream>

#include "base/testing/temp_dir.h"
#include "train/checkpoint/safetensors_file.h"
#include "train/checkpoint/safetensors_writer.h"
#include "train/checkpoint/testing/snapshots.h"

namespace assay::checkpoint {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const fs::path kReference = fs::path(ASSAY_CHECKPOINT_FIXTURES) / "reference.safetensors";

std::string slurp(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

template <class T>
std::vector<T> values(const SafetensorsFile& file, const std::string& name) {
  const TensorPlace* place = file.find(name);
  if (place == nullptr) return {};
  std::vector<T> out(static_cast<std::size_t>(place->bytes()) / sizeof(T));
  EXPECT_TRUE(file.read(*place, 0, std::as_writable_bytes(std::span(out))));
  return out;
}

TEST(Safetensors, ReadsWhatTheReferenceWrote) {
  const auto file = SafetensorsFile::open(kReference);
  ASSERT_TRUE(file) << file.error().line();
  EXPECT_EQ(file->header().metadata,
            (Metadata{{"format", "np"}, {"made by", "the reference — 参考"}}));
  EXPECT_EQ(file->header().tensors.size(), 7U);
  const TensorPlace* qkv = file->find("layers.0.qkv");
  ASSERT_NE(qkv, nullptr);
  EXPECT_EQ(qkv->info.shape, (std::vector<std::int64_t>{3, 4}));
  EXPECT_EQ(values<float>(*file, "layers.0.qkv")[11], 11.0F / 8);
  EXPECT_EQ(values<std::int32_t>(*file, "embedding"),
            (std::vector<std::int32_t>{1, -2, 30000, -40000}));
  EXPECT_EQ(values<std::uint16_t>(*file, "tokens"), (std::vector<std::uint16_t>{1, 65535, 7}));
  EXPECT_EQ(values<std::int64_t>(*file, "position"), std::vector{std::int64_t{1} << 40});
  EXPECT_EQ(values<std::uint8_t>(*file, "naïve \"name\""), std::vector<std::uint8_t>{255});
  EXPECT_EQ(file->find("nothing")->bytes(), 0);
  EXPECT_EQ(file->find("else"), nullptr);
}

// The reference implementation as oracle, if Python has the package `safetensors`.
TEST(Safetensors, TheReferenceReadsWhatWeWrite) {
  const char* named = std::getenv("ASSAY_SAFETENSORS_PYTHON");
  const std::string python = named != nullptr ? named : "python3";
  if (std::system((python + " -c 'import safetensors' 2>/dev/null").c_str()) != 0) {
    GTEST_SKIP() << "no Python with safetensors; set ASSAY_SAFETENSORS_PYTHON to one";
  }
  base::testing::MemoryDir directory;
  const fs::path path = directory.path() / "ours.safetensors";
  for (const SnapshotPart& part : testing::snapshot_of_step(7).parts) {
    fs::remove(path);
    ASSERT_TRUE(write_safetensors(path, part.tensors, part.metadata));
    std::string expected;
    for (const Tensor& tensor : part.tensors) {
      expected += fmt::format("{} {} {} ", tensor.info.name, dtype_name(tensor.info.dtype),
                              fmt::join(tensor.info.shape, ","));
      for (const std::byte byte : tensor.data) expected += fmt::format("{:02x}", byte);
      expected += '\n';
    }
    const fs::path out = directory.path() / "out";
    ASSERT_EQ(std::system((python + " " ASSAY_CHECKPOINT_FIXTURES "/print_reference.py " +
                           path.string() + " > " + out.string())
                              .c_str()),
              0);
    EXPECT_EQ(slurp(out), expected);
  }
}

TEST(Safetensors, HeadersEndAtMultiplesOfEight) {
  base::testing::MemoryDir directory;
  for (int length = 0; length < 20; ++length) {
    const fs::path path = directory.path() / std::to_string(length);
    const Tensor tensor{{std::string(static_cast<std::size_t>(length), 'n'), TensorDtype::kU8, {0}},
                        {}};
    ASSERT_TRUE(write_safetensors(path, {&tensor, 1}));
    EXPECT_EQ(fs::file_size(path) % 8, 0U);
    EXPECT_TRUE(SafetensorsFile::open(path));
  }
}

RC_GTEST_PROP(SafetensorsProperty, RoundTrips, ()) {
  base::testing::MemoryDir directory;
  const fs::path path = directory.path() / "f";
  const auto names = *rc::gen::unique<std::vector<std::string>>(
      rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127)));
  std::vector<Tensor> tensors;
  for (const std::string& name : names) {
    const auto dtype = static_cast<TensorDtype>(*rc::gen::inRange(0, 8));
    const auto shape = *rc::gen::resize(
        3, rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(0, 6)));
    TensorInfo info{name, dtype, shape};
    const auto bytes = static_cast<std::size_t>(info.bytes().value());
    tensors.push_back(owned_tensor(std::move(info), testing::noise(bytes, bytes + name.size())));
  }
  const auto written = write_safetensors(path, tensors, {{"k\n\"", "v\\"}});
  RC_ASSERT(written.has_value());
  RC_ASSERT(written->bytes == static_cast<std::int64_t>(fs::file_size(path)));
  const auto file = SafetensorsFile::open(path);
  RC_ASSERT(file.has_value());
  RC_ASSERT(file->header().tensors.size() == tensors.size());
  RC_ASSERT(file->header().metadata.at("k\n\"") == "v\\");
  for (const Tensor& tensor : tensors) {
    const TensorPlace* place = file->find(tensor.info.name);
    RC_ASSERT(place != nullptr);
    RC_ASSERT(place->info == tensor.info);
    const auto bytes = file->bytes(*place);
    RC_ASSERT(std::equal(bytes->begin(), bytes->end(), tensor.data.begin(), tensor.data.end()));
  }
}

TEST(Safetensors, WritingRefusesWhatCouldNotBeRead) {
  base::testing::MemoryDir directory;
  const fs::path path = directory.path() / "f";
  const std::vector<std::byte> four(4);
  const auto line = [&](std::vector<Tensor> tensors) {
    const auto written = write_safetensors(path, tensors);
    return written ? std::string() : written.error().line();
  };
  EXPECT_THAT(line({{{"a", TensorDtype::kF32, {2}}, four}}),
              HasSubstr("'a' of shape [2] and type F32 has 4 bytes"));
  EXPECT_THAT(line({{{"a", TensorDtype::kF32, {1}}, four}, {{"a", TensorDtype::kF32, {1}}, four}}),
              HasSubstr("two tensors are called 'a'"));
  EXPECT_THAT(line({{{"__metadata__", TensorDtype::kF32, {1}}, four}}), HasSubstr("__metadata__"));
  EXPECT_THAT(line({{{"\xff", TensorDtype::kF32, {1}}, four}}), HasSubstr("not UTF-8"));
  const std::vector<TensorInfo> infos = {{"a", TensorDtype::kF32, {2}}};
  auto writer = SafetensorsWriter::create(path, infos);
  ASSERT_TRUE(writer) << writer.error().line();
  ASSERT_TRUE(writer->append(four));
  EXPECT_THAT(writer->finish().error().line(), HasSubstr("4 bytes of its tensors were not given"));
  EXPECT_FALSE(SafetensorsWriter::create(path, infos)) << "a file that is there is not overwritten";
}

}  // namespace
}  // namespace assay::checkpoint
