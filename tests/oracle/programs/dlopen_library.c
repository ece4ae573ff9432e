/* dlopen of a library in the tree: the loader's own open, which no interposed symbol sees. */
#include "must.h"

#include <dlfcn.h>
int main(void) {
  void* library = dlopen("./libanswer.so", RTLD_NOW);
  if (!library) return 1;
  int (*answer)(void) = (int (*)(void))dlsym(library, "answer");
  return answer && answer() == 42 ? 0 : 1;
}
