#include "train/data/mapping.h"

#include <sys/mman.h>

#include <cerrno>

namespace assay::data {

void Mapping::Unmap::operator()(const std::byte* at) const {
  ::munmap(const_cast<std::byte*>(at), size);
}

base::Result<Mapping> Mapping::of(int fd, std::size_t size, const std::string& where) {
  Mapping mapping;
  if (size == 0) return mapping;
  if (auto guarded = hash::MappedFile::map(fd, size)) {
    mapping.guarded_.emplace(std::move(*guarded));
    mapping.bytes_ = mapping.guarded_->bytes();
    return mapping;
  }
  void* at = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return base::fail(base::system_error(where, "cannot map", errno));
  mapping.unguarded_ = {static_cast<const std::byte*>(at), Unmap{size}};
  mapping.bytes_ = {mapping.unguarded_.get(), size};
  return mapping;
}

}  // namespace assay::data
