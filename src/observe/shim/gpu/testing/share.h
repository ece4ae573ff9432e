// A program that keeps the fake GPU busy, for tests of shares.
#pragma once

#include <string>
#include <vector>

// KIND BEGIN WINDOW WINDOWS KERNELS…: launches kernels of so many microseconds (FAKECUDA_LAUNCH_NS
// is a microsecond) in turn, in windows of so many milliseconds from a time on (CLOCK_MONOTONIC, in
// milliseconds), and prints what it had of the GPU in each, and how long each was, in microseconds.
// KIND: launch, ex, cooperative, graph, threads (two of them), sync (waits for each kernel),
// onegrid (their grids are the same) or copies (of 300 KiB, one after each kernel).
int share(void* library, const std::vector<std::string>& words);
