/* Threads share the working directory, until one of them says unshare(CLONE_FS). */
#include "must.h"

#include <pthread.h>
#include <sched.h>
static pthread_barrier_t turn;
static void* other(void* unused) {
  pthread_barrier_wait(&turn); /* main has gone to data/ */
  drain(MUST(open("a.txt", O_RDONLY)));
  MUST(unshare(CLONE_FS));
  MUST(chdir(".."));
  pthread_barrier_wait(&turn);
  pthread_barrier_wait(&turn); /* main has made its file */
  say_and_close(MUST(open("made_by_thread.txt", O_WRONLY | O_CREAT, 0644)), "t");
  MUST(rename("made_by_thread.txt", "renamed_by_thread.txt"));
  return unused;
}
int main(void) {
  pthread_t thread;
  pthread_barrier_init(&turn, NULL, 2);
  pthread_create(&thread, NULL, other, NULL);
  MUST(chdir("data"));
  pthread_barrier_wait(&turn);
  pthread_barrier_wait(&turn);
  say_and_close(MUST(open("made_by_main.txt", O_WRONLY | O_CREAT, 0644)), "m");
  MUST(unlink("b.txt"));
  pthread_barrier_wait(&turn);
  pthread_join(thread, NULL);
  return 0;
}
