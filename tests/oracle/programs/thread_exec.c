/* A thread that is not the first one execs: the process goes on under the first one's number. */
#include "must.h"

#include <pthread.h>
static void* exec_cp(void* unused) {
  say_and_close(MUST(open("before.txt", O_WRONLY | O_CREAT, 0644)), "before");
  execlp("cp", "cp", "in.txt", "copied.txt", NULL);
  return unused;
}
int main(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, exec_cp, NULL);
  pthread_join(thread, NULL);
  return 1;
}
