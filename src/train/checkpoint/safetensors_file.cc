#include "train/checkpoint/safetensors_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/file.h"

namespace assay::checkpoint {
namespace {

base::Result<void> read_exactly(int fd, const std::string& where, std::int64_t offset,
                                std::span<std::byte> target) {
  ASSAY_TRY(const std::size_t size,
            base::read_at(fd, where, static_cast<std::uint64_t>(offset), target));
  if (size == target.size()) return {};
  return base::fail(
      header_error(where, offset + static_cast<std::int64_t>(size), "the file ends here"));
}

base::Result<std::int64_t> header_length(int fd, const std::string& where, std::int64_t size) {
  if (size < kLengthBytes) {
    return base::fail(header_error(where, size, "the file ends within its header's length"));
  }
  std::array<std::byte, kLengthBytes> bytes;
  ASSAY_TRY_VOID(read_exactly(fd, where, 0, bytes));
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    length |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  }
  if (length > static_cast<std::uint64_t>(kMostHeaderBytes)) {
    return base::fail(header_error(
        where, 0, fmt::format("the header would be {} bytes, over the limit of 100 MB", length)));
  }
  if (length > static_cast<std::uint64_t>(size - kLengthBytes)) {
    return base::fail(header_error(
        where, 0, fmt::format("the header would be {} bytes, but the file has {}", length, size)));
  }
  return static_cast<std::int64_t>(length);
}

}  // namespace

base::Result<SafetensorsFile> SafetensorsFile::open(const std::filesystem::path& path) {
  ASSAY_TRY(base::UniqueFd fd, base::open_regular(path));
  return open(std::move(fd), path.string());
}

base::Result<SafetensorsFile> SafetensorsFile::open(base::UniqueFd fd,
                                                    const std::string& where) try {
  SafetensorsFile file;
  file.fd_ = std::move(fd);
  file.where_ = where;
  ASSAY_TRY(const struct stat status, base::regular_status(file.fd_.get(), file.where_));
  ASSAY_TRY(const std::int64_t length, header_length(file.fd_.get(), file.where_, status.st_size));
  file.data_at_ = kLengthBytes + length;
  std::string json(static_cast<std::size_t>(length), '\0');
  ASSAY_TRY_VOID(read_exactly(file.fd_.get(), file.where_, kLengthBytes,
                              std::as_writable_bytes(std::span(json))));
  ASSAY_TRY(file.header_, parse_header(json, status.st_size - file.data_at_, file.where_));
  for (std::size_t i = 0; i < file.header_.tensors.size(); ++i) {
    file.by_name_.emplace(file.header_.tensors[i].info.name, i);
  }
  if (auto mapped =
          hash::MappedFile::map(file.fd_.get(), static_cast<std::size_t>(status.st_size))) {
    file.mapped_ = std::make_unique<hash::MappedFile>(std::move(*mapped));
  }
  return file;
} catch (const std::bad_alloc&) {
  return base::fail(base::unfit_error(where, "not enough memory for its header"));
}

const TensorPlace* SafetensorsFile::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &header_.tensors[found->second];
}

base::Result<std::span<const std::byte>> SafetensorsFile::bytes(const TensorPlace& place) const {
  if (!mapped_) return base::fail(base::unfit_error(where_, "cannot be mapped into memory"));
  return mapped_->bytes().subspan(static_cast<std::size_t>(data_at_ + place.begin),
                                  static_cast<std::size_t>(place.bytes()));
}

base::Result<void> SafetensorsFile::read(const TensorPlace& place, std::int64_t offset,
                                         std::span<std::byte> target) const {
  ASSAY_CHECK(offset >= 0 && offset <= place.bytes() &&
                  static_cast<std::int64_t>(target.size()) <= place.bytes() - offset,
              "reads must stay within the tensor");
  return read_exactly(fd_.get(), where_, data_at_ + place.begin + offset, target);
}

}  // namespace assay::checkpoint
