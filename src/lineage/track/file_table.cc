#include "lineage/track/file_table.h"

#include <algorithm>

namespace assay::lineage {
namespace {

std::uint64_t hash_of_identity(std::uint64_t device, std::uint64_t inode) {
  return base::mixed_bits(inode + device * 0x9E37'79B9'7F4A'7C15);
}

}  // namespace

FileId FileTable::add(const wire::Stamp* stamp, std::uint16_t flags) {
  File file;
  file.flags = flags;
  const FileId id = files_.add(file);
  if (stamp != nullptr) {
    set_state(id, *stamp);
    identify(id, *stamp);
  }
  return id;
}

FileId FileTable::find(std::uint64_t device, std::uint64_t inode) const {
  return index_.find(hash_of_identity(device, inode), [&](FileId id) {
    return files_[id].inode == inode && devices_[files_[id].device] == device;
  });
}

bool FileTable::is(FileId id, const wire::Stamp& stamp) const {
  return files_[id].inode == stamp.inode && devices_[files_[id].device] == stamp.device;
}

// When a file's identity changes, its old slot in the index is given to a placeholder file without
// names, so that the index never points to the wrong file.
void FileTable::identify(FileId id, const wire::Stamp& stamp) {
  File& file = files_[id];
  const auto hash_of_id = [&](FileId other) {
    return hash_of_identity(devices_[files_[other].device], files_[other].inode);
  };
  if (file.inode != 0 && !is(id, stamp)) {
    File ghost;
    ghost.inode = file.inode;
    ghost.device = file.device;
    const std::uint64_t hash = hash_of_id(id);
    if (find(devices_[file.device], file.inode) == id) index_.replace(hash, id, files_.add(ghost));
  }
  const std::uint64_t hash = hash_of_identity(stamp.device, stamp.inode);
  const FileId before = find(stamp.device, stamp.inode);
  files_[id].inode = stamp.inode;
  files_[id].device = device_number(stamp.device);
  if (before == id) return;
  if (before != 0) {
    index_.replace(hash, before, id);
  } else {
    index_.insert(hash, id, hash_of_id);
  }
}

void FileTable::set_state(FileId id, const wire::Stamp& stamp) {
  File& file = files_[id];
  file.size = stamp.size;
  file.mtime_ns = stamp.mtime_ns;
  file.ctime_ns = stamp.ctime_ns;
}

wire::Stamp FileTable::stamp(FileId id) const {
  const File& file = files_[id];
  return {devices_[file.device], file.inode, file.size, file.mtime_ns, file.ctime_ns};
}

void FileTable::set_digest(FileId id, const hash::Digest& digest) {
  files_[id].digest = digests_.add(digest);
}

std::uint16_t FileTable::device_number(std::uint64_t device) {
  const auto found = std::ranges::find(devices_, device);
  if (found != devices_.end()) return static_cast<std::uint16_t>(found - devices_.begin());
  devices_.push_back(device);
  return static_cast<std::uint16_t>(devices_.size() - 1);
}

}  // namespace assay::lineage
