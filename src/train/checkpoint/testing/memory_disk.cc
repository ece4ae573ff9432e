// The tests' temporary folders are in memory, where there is room: every checkpoint waits for the
// disk several times, which would be most of the tests' time and says nothing about the code. A
// TMPDIR that is set stays.
#include <unistd.h>

#include <cstdlib>

namespace assay::checkpoint::testing {
namespace {

[[maybe_unused]] const bool in_memory =
    ::access("/dev/shm", R_OK | W_OK | X_OK) == 0 && ::setenv("TMPDIR", "/dev/shm", 0) == 0;

}  // namespace
}  // namespace assay::checkpoint::testing
