// Two libraries with the same function. The first looks it up with RTLD_NEXT, which finds the
// second's.
#include <dlfcn.h>

extern "C" int marker() {
  return 1;
}
extern "C" int next_marker() {
  auto* next = reinterpret_cast<int (*)()>(::dlsym(RTLD_NEXT, "marker"));
  return next == nullptr ? 0 : next();
}
