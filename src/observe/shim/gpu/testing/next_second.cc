extern "C" int marker() {
  return 2;
}
