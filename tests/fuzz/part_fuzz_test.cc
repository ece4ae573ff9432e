// Files in which the ranks of a job hand over what they recorded (lineage/record/part.h), damaged
// in ways that their digest does not show, as a program of another version or somebody with bad
// intentions would make them: each is refused in one printable line that names the file, or what it
// says is added to what the other ranks say, and the store takes the run.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <span>

#include "base/testing/temp_dir.h"
#include "base/text.h"
#include "hash/blake3.h"
#include "lineage/record/merge_parts.h"
#include "lineage/record/part.h"
#include "lineage/record/run_results.h"
#include "store/run_reader.h"
#include "store/run_row.h"
#include "store/run_writer.h"
#include "store/store.h"
#include "store/testing/runs.h"

namespace assay {
namespace {

using lineage::Part;
using Bits = std::mt19937_64;

constexpr const char* kFile = "/out/ranks/.parts-job/rank-1.part";
constexpr std::size_t kMagicBytes = sizeof "assay part 2\n" - 1;
constexpr std::size_t kDigestBytes = 32;

std::size_t some_below(Bits& random, std::size_t limit) {
  return random() % limit;
}

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

Part part_of(int rank) {
  const lineage::FilterRule kept{"project", true, "it is in the project"};
  const std::string name = std::to_string(rank);
  Part part;
  part.rank = rank;
  part.host = "n" + name;
  part.recorder = "0123456789abcdef";
  part.run = "fedcba9876543210";
  part.started_unix_ns = 1'700'000'000'000'000'000;
  part.wait_status = 0;
  part.dropped = 1;
  part.usage = {1, 2, 3, 4, 5};
  part.gpu.use = {{"kernels", 10, 0}, {"matmuls", 1, 1'000'000}};
  part.gpu.memory = {{"GPU-" + name, 1024}};
  part.gpu.collectives = {{"00ff", 3, "all-gather", "bf16", 12, 4096}};
  part.gpu.shares = {{"GPU-" + name, 5, 500, "high", true, 6, 7}};
  const auto digest = store::testing::digest_of(name);
  part.input({"/p/common", digest, 10}, kept);
  part.input({"/p/in-" + name, digest, 10}, kept);
  part.output({"/p/common-out", digest, 20, store::OutputStatus::kModified, "", digest}, kept);
  part.output({"/p/moved-" + name, digest, 20, store::OutputStatus::kRenamed, "/p/from", {}}, kept);
  part.left_out({"/p/tmp-" + name, true, true}, {"gone", false, "it is gone"});
  part.process({12, 1, {"train", "--x"}, "/bin/train", 5, 6, 0});
  part.missed({"changed", "/p/common was changed by another program during the run"});
  part.problems = {{"context", "git: not there"}};
  return part;
}

// A digest that is right, whatever the bytes are.
std::string with_digest(std::string bytes) {
  if (bytes.size() < kMagicBytes + kDigestBytes) return bytes;
  const auto content = std::span(bytes).subspan(kMagicBytes + kDigestBytes);
  const hash::Digest digest = hash::blake3(std::as_bytes(content));
  std::memcpy(bytes.data() + kMagicBytes, digest.bytes.data(), kDigestBytes);
  return bytes;
}

std::string damaged(Bits& random, std::string bytes) {
  static const std::vector<std::int64_t> kNumbers = {-1,
                                                     0,
                                                     1,
                                                     2,
                                                     255,
                                                     std::int64_t{1} << 31,
                                                     std::int64_t{1} << 40,
                                                     std::numeric_limits<std::int64_t>::min(),
                                                     std::numeric_limits<std::int64_t>::max()};
  constexpr std::size_t kContent = kMagicBytes + kDigestBytes;
  for (std::size_t i = 1 + some_below(random, 3); i > 0 && bytes.size() > kContent + 8; --i) {
    const std::size_t at = kContent + some_below(random, bytes.size() - kContent - 8);
    const std::int64_t number = kNumbers[some_below(random, kNumbers.size())];
    switch (some_below(random, 8)) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes.erase(at, 1 + some_below(random, 16));
        break;
      case 2:
        bytes.insert(at, reinterpret_cast<const char*>(&number), sizeof number);
        break;
      case 3:
        bytes.resize(at);
        break;
      default:
        std::memcpy(bytes.data() + at, &number, sizeof number);
    }
  }
  return with_digest(std::move(bytes));
}

base::Result<void> store_run(store::Store& store, const std::filesystem::path& folder, Part whole) {
  store::RunRecord run = store::testing::run_of("train");
  ASSAY_TRY(run.uid, store::random_uid());
  ASSAY_TRY(run.id, store::begin_run(store, run));
  run.status = store::RunStatus::kDone;
  run.dropped = whole.dropped;
  run.usage = whole.usage;
  ASSAY_TRY(lineage::StagedResults results, lineage::StagedResults::create(folder, {}));
  const store::GpuWork gpu = whole.gpu;
  lineage::replay(std::move(whole), results);
  ASSAY_TRY(store::RunWriter writer, store::RunWriter::begin(store, run.id));
  ASSAY_TRY_VOID(results.write(writer));
  ASSAY_TRY_VOID(writer.add_gpu(gpu));
  ASSAY_TRY_VOID(writer.finish(run));
  ASSAY_TRY_VOID(store::load_run(store, run.id));
  return {};
}

TEST(PartFuzz, AnyPartIsRefusedByNameOrStored) {
  const base::testing::MemoryDir directory;
  auto store = store::Store::create(store::location_in(directory.path()), {});
  ASSERT_TRUE(store) << store.error().line();
  const std::uint64_t seed = from_environment("ASSAY_FUZZ_SEED", 20261116);
  SCOPED_TRACE(seed);
  Bits random(seed);
  const std::string good = encode(part_of(1));
  ASSERT_EQ(with_digest(good), good);
  int taken = 0;
  int refused = 0;
  for (std::uint64_t i = from_environment("ASSAY_FUZZ_CASES", 20'000); i > 0; --i) {
    const std::string bytes = damaged(random, good);
    auto part = lineage::decode(bytes, kFile);
    if (!part) {
      ++refused;
      const std::string line = part.error().line();
      EXPECT_EQ(line, base::printable(line));
      EXPECT_TRUE(line.starts_with(std::string(kFile) + ": ")) << line;
      EXPECT_GT(line.size(), std::strlen(kFile) + 10) << line;
      continue;
    }
    std::vector<Part> parts;
    parts.push_back(part_of(0));
    parts.push_back(*std::move(part));
    parts.push_back(part_of(2));
    const Part whole = lineage::merge_parts(std::move(parts));
    EXPECT_GE(whole.usage.read_bytes, 8) << "those of the ranks whose parts are whole";
    // A transaction takes longer than everything else.
    if (++taken % 16 == 0) {
      const auto stored = store_run(*store, directory.path(), whole);
      ASSERT_TRUE(stored) << stored.error().line();
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(taken, 100) << "paths and small numbers may be any";
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace assay
