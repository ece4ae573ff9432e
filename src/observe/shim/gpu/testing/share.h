// A program that keeps the fake GPU busy, for tests of shares.
#pragma once

#include <string>
#include <vector>

// KIND BEGIN WINDOW WINDOWS KERNELS…: launches kernels of the given microseconds in turn
// (FAKECUDA_LAUNCH_NS is a microsecond), in windows of WINDOW milliseconds from BEGIN on
// (CLOCK_MONOTONIC, in milliseconds), and prints the GPU time it got in each window and the
// window's length, in microseconds. KIND: launch, ex, cooperative, graph, threads (two of them),
// sync (waits for each kernel), onegrid (their grids are the same) or copies (of 300 KiB, one after
// each kernel).
int share(void* library, const std::vector<std::string>& arguments);
