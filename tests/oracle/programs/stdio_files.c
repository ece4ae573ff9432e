/* The fopen family in all its modes, freopen and mkstemp. */
#include "must.h"
static FILE* opened(const char* path, const char* mode) {
  FILE* file = fopen(path, mode);
  if (!file) exit(1);
  return file;
}
int main(void) {
  char line[100];
  FILE* in = opened("in.txt", "r");
  if (!fgets(line, sizeof line, in)) return 1;
  FILE* out = opened("out.txt", "w");
  fputs(line, out);
  fclose(out);
  FILE* log = opened("old.txt", "a");
  fputs("appended\n", log);
  fclose(log);
  FILE* both = opened("data/a.txt", "r+");
  if (!fgets(line, sizeof line, both)) return 1;
  fseek(both, 0, SEEK_SET);
  fputs("R", both);
  fclose(both);
  FILE* fresh = opened("fresh.txt", "w+x");
  fputs("fresh", fresh);
  rewind(fresh);
  if (!fgets(line, sizeof line, fresh)) return 1;
  in = freopen("data/b.txt", "r", in);
  if (!in || !fgets(line, sizeof line, in)) return 1;
  char name[] = "madeXXXXXX"; /* the name differs from run to run, so it does not stay */
  int made = MUST(mkstemp(name));
  say(made, "x");
  MUST(rename(name, "made.txt"));
  return 0;
}
