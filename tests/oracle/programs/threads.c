/* Eight threads that open, create and rename at once. */
#include "must.h"

#include <pthread.h>
static void* work(void* argument) {
  long number = (long)argument;
  char name[64], moved[64];
  for (int i = 0; i < 12; ++i) {
    snprintf(name, sizeof name, "thread%ld_%d.txt", number, i);
    say_and_close(MUST(open(name, O_WRONLY | O_CREAT, 0644)), name);
    drain(MUST(open(i % 2 ? "in.txt" : name, O_RDONLY)));
    if (i % 3 != 0) continue;
    snprintf(moved, sizeof moved, "moved%ld_%d.txt", number, i);
    MUST(rename(name, moved));
  }
  return NULL;
}
int main(void) {
  pthread_t threads[8];
  for (long i = 0; i < 8; ++i) pthread_create(&threads[i], NULL, work, (void*)i);
  for (int i = 0; i < 8; ++i) pthread_join(threads[i], NULL);
  return 0;
}
