// A library whose constructor opens a file, loaded so that it runs before the shim's.
#include <fcntl.h>
#include <unistd.h>

namespace {
[[gnu::constructor]] void early() {
  close(open("folder/file", O_RDONLY));
}
}  // namespace
