#include "train/checkpoint/diff.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "train/checkpoint/tensor.h"
#include "train/checkpoint/verification.h"

namespace assay::checkpoint {
namespace {

constexpr std::int64_t kChunkBytes = std::int64_t{4} << 20;

void compare_chunk(std::span<const std::byte> a, std::span<const std::byte> b, std::int64_t first,
                   TensorDifference& found) {
  const auto size = static_cast<std::size_t>(dtype_bytes(found.a.dtype));
  for (std::size_t at = 0; at < a.size(); at += size) {
    if (std::memcmp(&a[at], &b[at], size) == 0) continue;
    const double left = element_value(found.a.dtype, a.subspan(at, size));
    const double right = element_value(found.a.dtype, b.subspan(at, size));
    if (found.differing++ == 0) {
      found.first = first + static_cast<std::int64_t>(at / size);
      found.first_a = left;
      found.first_b = right;
    }
    if (std::isnan(left) || std::isnan(right)) {
      ++found.nans;
    } else if (left != right) {  // of two infinities the difference is not a number
      found.largest = std::max(found.largest, element_difference(found.a.dtype, a.subspan(at, size),
                                                                 b.subspan(at, size)));
    }
  }
}

class Comparison {
 public:
  Comparison(const Checkpoint& a, const Checkpoint& b, const DiffOptions& options)
      : a_(a), b_(b), options_(options) {}

  base::Result<Difference> run() {
    for (StateDifference& one : diff_state(a_.manifest().state, b_.manifest().state)) {
      (is_note(one.key) ? result_.notes : result_.state).push_back(std::move(one));
    }
    const std::vector<std::string> in_a = a_.parts();
    const std::vector<std::string> in_b = b_.parts();
    for (const std::string& part : in_a) {
      const bool both = std::ranges::find(in_b, part) != in_b.end();
      ASSAY_TRY_VOID(both ? compare_part(part) : list_part(a_, part, TensorRelation::kOnlyInA));
    }
    for (const std::string& part : in_b) {
      if (std::ranges::find(in_a, part) != in_a.end()) continue;
      ASSAY_TRY_VOID(list_part(b_, part, TensorRelation::kOnlyInB));
    }
    return std::move(result_);
  }

 private:
  [[nodiscard]] bool is_note(const std::string& key) const {
    return std::ranges::any_of(options_.notes, [&](const std::string& note) {
      return key == note || key.starts_with(note + ".");
    });
  }

  base::Result<void> list_part(const Checkpoint& from, const std::string& part,
                               TensorRelation relation) {
    ASSAY_TRY(const TensorSet set, from.part(part));
    for (const StoredTensor& tensor : set.tensors()) add_lone(part, tensor.info, relation);
    return {};
  }

  void add_lone(const std::string& part, const TensorInfo& info, TensorRelation relation) {
    TensorDifference lone{.part = part, .name = info.name, .relation = relation};
    (relation == TensorRelation::kOnlyInA ? lone.a : lone.b) = info;
    result_.tensors.push_back(std::move(lone));
  }

  base::Result<void> compare_part(const std::string& part) {
    ASSAY_TRY(const TensorSet a, a_.part(part));
    ASSAY_TRY(const TensorSet b, b_.part(part));
    const bool same = is_same(part);
    for (const StoredTensor& tensor : a.tensors()) {
      const StoredTensor* other = b.find(tensor.info.name);
      if (other == nullptr) {
        add_lone(part, tensor.info, TensorRelation::kOnlyInA);
        continue;
      }
      TensorDifference found{
          .part = part, .name = tensor.info.name, .a = tensor.info, .b = other->info};
      ++result_.compared_tensors;
      if (tensor.info != other->info) {
        found.relation = TensorRelation::kOtherShape;
        result_.tensors.push_back(std::move(found));
        continue;
      }
      if (same) {
        count(*tensor.info.bytes());
        continue;
      }
      ASSAY_TRY_VOID(compare_values({&a, &tensor}, {&b, other}, found));
      if (found.differing > 0) result_.tensors.push_back(std::move(found));
    }
    for (const StoredTensor& tensor : b.tensors()) {
      if (a.find(tensor.info.name) != nullptr) continue;
      add_lone(part, tensor.info, TensorRelation::kOnlyInB);
    }
    return {};
  }

  // Whether the tensors are in files of the same names, contents and pieces: then hashing the files
  // has compared them.
  [[nodiscard]] bool is_same(const std::string& part) const {
    const auto names = a_.files_of({part});
    if (names != b_.files_of({part})) return false;
    const auto of_part = [&](const Manifest& manifest) {
      const auto found = std::ranges::find(manifest.parts, part, &StoredPart::name);
      return found == manifest.parts.end() ? StoredPart{} : *found;
    };
    const auto record = [](const Manifest& manifest, const std::string& name) {
      return *std::ranges::find(manifest.files, name, &FileRecord::name);
    };
    return of_part(a_.manifest()) == of_part(b_.manifest()) &&
           std::ranges::all_of(names, [&](const std::string& name) {
             return record(a_.manifest(), name) == record(b_.manifest(), name);
           });
  }

  void count(std::int64_t bytes) {
    result_.compared_bytes += bytes;
    if (options_.progress) options_.progress(bytes);
  }

  struct Source {
    const TensorSet* set;
    const StoredTensor* tensor;
  };
  base::Result<void> compare_values(const Source& a, const Source& b, TensorDifference& found) {
    const std::int64_t bytes = *found.a.bytes();
    const std::int64_t size = dtype_bytes(found.a.dtype);
    found.elements = found.a.elements();
    for (std::int64_t at = 0; at < bytes; at += kChunkBytes) {
      const std::int64_t size_at = std::min(kChunkBytes, bytes - at);
      chunk_a_.resize(static_cast<std::size_t>(size_at));
      chunk_b_.resize(chunk_a_.size());
      ASSAY_TRY_VOID(a.set->read(*a.tensor, at, chunk_a_));
      ASSAY_TRY_VOID(b.set->read(*b.tensor, at, chunk_b_));
      if (chunk_a_ != chunk_b_) compare_chunk(chunk_a_, chunk_b_, at / size, found);
      count(size_at);
    }
    return {};
  }

  const Checkpoint& a_;
  const Checkpoint& b_;
  const DiffOptions& options_;
  Difference result_;
  std::vector<std::byte> chunk_a_;
  std::vector<std::byte> chunk_b_;
};

}  // namespace

base::Result<Difference> diff(const Checkpoint& a, const Checkpoint& b,
                              const DiffOptions& options) {
  Verification of_a(a);
  Verification of_b(b);
  auto found = Comparison(a, b, options).run();
  found = of_a.finish(std::move(found));
  return of_b.finish(std::move(found));
}

}  // namespace assay::checkpoint
