/* Names with everything a name may hold: newline, quotes, UTF-8, bytes that are no UTF-8. */
#include "must.h"
static const char* const kNames[] = {
    "new\nline",
    "quote\"s'and`ticks`",
    "back\\slash",
    "sp ace ",
    "\xc3\xb6\xe2\x82\xac",
    "bad\xff\xfe utf",
    "\x1b[31mred",
    "<angle> (deleted)",
    "-dash",
    "tab\there",
    "$HOME",
    "*?",
    "\x01",
    "trailing.",
};
int main(void) {
  for (unsigned i = 0; i < sizeof kNames / sizeof *kNames; ++i) {
    say_and_close(MUST(open(kNames[i], O_WRONLY | O_CREAT | O_EXCL, 0644)), kNames[i]);
    char moved[128];
    snprintf(moved, sizeof moved, "data/%s", kNames[i]);
    if (i % 2) MUST(rename(kNames[i], moved));
  }
  drain(MUST(open("was\nthere\xff", O_RDONLY))); /* set up beforehand */
  return 0;
}
