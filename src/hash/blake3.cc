#include "hash/blake3.h"

#include "base/check.h"
#include "hash/segments.h"

namespace assay::hash {
namespace {

class Memory : public Source {
 public:
  explicit Memory(std::span<const std::byte> data) : data_(data) {}
  base::Result<std::size_t> feed(Subtree& subtree, std::uint64_t offset,
                                 std::size_t length) const override {
    subtree.add(data_.subspan(offset, length));
    return length;
  }

 private:
  std::span<const std::byte> data_;
};

}  // namespace

Digest blake3(std::span<const std::byte> data, unsigned threads, const Kernel& kernel) {
  const auto hashed =
      hash_segments(Memory(data), data.size(), {.threads = threads, .kernel = &kernel});
  ASSAY_CHECK(hashed.has_value(), "hashing memory cannot fail");
  return hashed->digest;
}

}  // namespace assay::hash
