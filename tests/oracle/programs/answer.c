/* The library that dlopen_library.c loads. */
int answer(void) {
  return 42;
}
