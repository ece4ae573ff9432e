/* open_by_handle_at: a file opened without any name. For root. */
#include "must.h"
static int by_handle(const char* path, int flags) {
  union {
    struct file_handle handle;
    char space[sizeof(struct file_handle) + MAX_HANDLE_SZ];
  } buffer;
  int mount;
  buffer.handle.handle_bytes = MAX_HANDLE_SZ;
  if (name_to_handle_at(AT_FDCWD, path, &buffer.handle, &mount, 0) != 0)
    NOT_HERE("no file handles");
  int fd = open_by_handle_at(AT_FDCWD, &buffer.handle, flags);
  if (fd < 0) NOT_HERE("open_by_handle_at is not allowed");
  return fd;
}
int main(void) {
  drain(by_handle("in.txt", O_RDONLY));
  say_and_close(by_handle("old.txt", O_WRONLY | O_TRUNC), "cut by handle");
  return 0;
}
