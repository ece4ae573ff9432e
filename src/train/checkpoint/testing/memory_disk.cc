// Puts the tests' temporary folders in memory if possible: every checkpoint syncs the disk several
// times, which would be most of the tests' run time. A TMPDIR that is already set is kept.
#include <unistd.h>

#include <cstdlib>

namespace assay::checkpoint::testing {
namespace {

[[maybe_unused]] const bool in_memory =
    ::access("/dev/shm", R_OK | W_OK | X_OK) == 0 && ::setenv("TMPDIR", "/dev/shm", 0) == 0;

}  // namespace
}  // namespace assay::checkpoint::testing
