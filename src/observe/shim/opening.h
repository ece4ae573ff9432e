// The decision at every open: which instruction makes it, and whether it is recorded.
#pragma once

#include <sys/types.h>

namespace assay::shim {

// What openat(2) would return: a descriptor or a negative error number.
long open_file(int directory, const char* path, int flags, mode_t mode);

// Whether open takes a mode with these flags.
bool takes_mode(int flags);

// Records that (directory, path) does not exist, as the kernel reported. Does not change errno.
void note_absent(int directory, const char* path);
// Records that the program lists the folder (directory, path). Does not change errno.
void note_listed(int directory, const char* path);
// Records that the program was told about the existing (directory, path), with its size or without.
void note_queried(int directory, const char* path, bool size);

}  // namespace assay::shim
