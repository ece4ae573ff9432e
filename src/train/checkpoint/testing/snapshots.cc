#include "train/checkpoint/testing/snapshots.h"

#include <random>
#include <thread>

#include "train/checkpoint/shared_write.h"

namespace assay::checkpoint::testing {
namespace {

Tensor noisy(std::string name, TensorDtype dtype, std::vector<std::int64_t> shape,
             std::uint64_t seed) {
  TensorInfo info{std::move(name), dtype, std::move(shape)};
  const auto bytes = static_cast<std::size_t>(info.bytes().value());
  return owned_tensor(std::move(info), noise(bytes, seed));
}

}  // namespace

std::vector<std::byte> noise(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

Snapshot snapshot_of_step(std::int64_t step, std::int64_t scale) {
  const auto seed = static_cast<std::uint64_t>(step) * 100;
  Snapshot snapshot;
  snapshot.state = {.step = step,
                    .tokens = step * 4096,
                    .seed = 18'446'744'073'709'551'615U,
                    .data_cursor = {{"shard", 3}, {"offset", step}},
                    .random_state = {{"philox", {1, 2, step}}},
                    .schedule = {{"kind", "cosine"}, {"warmup_steps", 100}},
                    .layout = "embedding 8x4\nlayers.0.qkv 12x4\n",
                    .extra = {{"note", "naïve"}}};
  snapshot.parts.push_back({"weights",
                            {noisy("embedding", TensorDtype::kBf16, {scale, 4}, seed + 1),
                             noisy("layers.0.qkv", TensorDtype::kF32, {3, scale}, seed + 2),
                             noisy("scales", TensorDtype::kF8E4m3, {scale + 1}, seed + 3),
                             noisy("nothing", TensorDtype::kI64, {0, scale}, seed + 4)},
                            {{"step", std::to_string(step)}}});
  snapshot.parts.push_back({"optimizer",
                            {noisy("first", TensorDtype::kF32, {scale * 2}, seed + 5),
                             noisy("remainders", TensorDtype::kU16, {scale}, seed + 6),
                             noisy("counts", TensorDtype::kI32, {2}, seed + 7),
                             noisy("position", TensorDtype::kI64, {}, seed + 8)}});
  return snapshot;
}

std::vector<Snapshot> spread(const Snapshot& whole, int ranks, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Snapshot> snapshots(static_cast<std::size_t>(ranks));
  for (Snapshot& snapshot : snapshots) snapshot.state = whole.state;
  for (const SnapshotPart& part : whole.parts) {
    for (Snapshot& snapshot : snapshots) {
      snapshot.parts.push_back({.name = part.name, .metadata = part.metadata});
      for (const Tensor& tensor : part.tensors) snapshot.parts.back().all.push_back(tensor.info);
    }
    for (const Tensor& tensor : part.tensors) {
      const std::int64_t elements = tensor.info.elements();
      const std::int64_t size = dtype_bytes(tensor.info.dtype);
      for (std::int64_t first = 0; first < elements;) {
        const std::int64_t left = elements - first;
        const auto some = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(left));
        const std::int64_t count = random() % 3 == 0 ? left : 1 + some;
        Snapshot& owner = snapshots[random() % snapshots.size()];
        Tensor piece = tensor;
        piece.elements = ElementRange{first, count};
        piece.data = tensor.data.subspan(static_cast<std::size_t>(first * size),
                                         static_cast<std::size_t>(count * size));
        owner.parts.back().tensors.push_back(std::move(piece));
        first += count;
      }
    }
  }
  return snapshots;
}

base::Result<Written> write_by_ranks(const std::filesystem::path& root,
                                     std::vector<Snapshot> snapshots, const WriteOptions& options) {
  const auto ranks = static_cast<std::int64_t>(snapshots.size());
  ASSAY_TRY(const RankOfWrite first, begin_shared(root, snapshots[0].state.step, ranks));
  std::vector<std::thread> threads;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    Snapshot& snapshot = snapshots[static_cast<std::size_t>(rank)];
    snapshot.share = RankOfWrite{.rank = rank, .ranks = ranks, .staging = first.staging};
    if (rank == 0) snapshot.share = first;
    if (rank == 0) continue;
    threads.emplace_back(
        [&root, &snapshot, &options] { static_cast<void>(write_shared(root, snapshot, options)); });
  }
  auto written = write_shared(root, snapshots[0], options);
  for (std::thread& thread : threads) thread.join();
  return written;
}

std::string difference(const Checkpoint& checkpoint, const Snapshot& expected) {
  if (checkpoint.manifest().state != expected.state) return "the state";
  if (checkpoint.parts().size() != expected.parts.size()) return "the parts";
  for (const SnapshotPart& part : expected.parts) {
    const auto set = checkpoint.part(part.name);
    if (!set) return set.error().line();
    if (set->tensors().size() != part.tensors.size()) return "the tensors of " + part.name;
    for (const Tensor& tensor : part.tensors) {
      const StoredTensor* found = set->find(tensor.info.name);
      if (found == nullptr || found->info != tensor.info) return tensor.info.name;
      std::vector<std::byte> copy(tensor.data.size());
      if (!set->read(*found, 0, copy) ||
          !std::equal(copy.begin(), copy.end(), tensor.data.begin())) {
        return "the bytes of " + tensor.info.name;
      }
    }
  }
  return "";
}

}  // namespace assay::checkpoint::testing
