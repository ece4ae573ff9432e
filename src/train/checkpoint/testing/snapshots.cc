#include "train/checkpoint/testing/snapshots.h"

#include <random>

namespace assay::checkpoint::testing {
namespace {

Tensor noisy(std::string name, Dtype dtype, std::vector<std::int64_t> shape, std::uint64_t seed) {
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
                            {noisy("embedding", Dtype::kBf16, {scale, 4}, seed + 1),
                             noisy("layers.0.qkv", Dtype::kF32, {3, scale}, seed + 2),
                             noisy("scales", Dtype::kF8E4m3, {scale + 1}, seed + 3),
                             noisy("nothing", Dtype::kI64, {0, scale}, seed + 4)},
                            {{"step", std::to_string(step)}}});
  snapshot.parts.push_back({"optimizer",
                            {noisy("first", Dtype::kF32, {scale * 2}, seed + 5),
                             noisy("remainders", Dtype::kU16, {scale}, seed + 6),
                             noisy("counts", Dtype::kI32, {2}, seed + 7),
                             noisy("position", Dtype::kI64, {}, seed + 8)}});
  return snapshot;
}

std::string difference(const Checkpoint& checkpoint, const Snapshot& expected) {
  if (checkpoint.manifest().state != expected.state) return "the state";
  for (const Part& part : expected.parts) {
    const auto set = checkpoint.part(part.name);
    if (!set) return set.error().line();
    std::size_t count = 0;
    for (const SafetensorsFile& file : set->files()) {
      count += file.header().tensors.size();
      if (file.header().metadata != part.metadata) return "the metadata of " + part.name;
    }
    if (count != part.tensors.size()) return "the tensors of " + part.name;
    for (const Tensor& tensor : part.tensors) {
      const auto found = set->find(tensor.info.name);
      if (!found || found->place->info != tensor.info) return tensor.info.name;
      const auto mapped = found->file->bytes(*found->place);
      if (!mapped ||
          !std::equal(mapped->begin(), mapped->end(), tensor.data.begin(), tensor.data.end())) {
        return "the mapped bytes of " + tensor.info.name;
      }
      std::vector<std::byte> copy(tensor.data.size());
      if (!found->file->read(*found->place, 0, copy) ||
          !std::equal(copy.begin(), copy.end(), tensor.data.begin())) {
        return "the copied bytes of " + tensor.info.name;
      }
    }
  }
  return "";
}

}  // namespace assay::checkpoint::testing
