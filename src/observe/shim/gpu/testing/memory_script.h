// `gpu_probe memory ACTION…`: executes actions on memory in order, over the fake driver or a real
// one (tests/gpu/memory). An action is [LABEL=]NAME[:NUMBER…]; its result is printed if it has a
// label.
//
//   alloc:N managed:N async:N fromnew:N pitch:W:H array:N array3d:N mipmap:W:LEVELS
//   create:N[:DEVICE]
//       allocate; allocations are numbered from 0 in the order of these actions
//   free:I  map:I  unmap:I  retain:I   on the I-th allocation
//   ctx destroy primary release reset module device:N stream spin:MS sync
//   info infonull total:DEVICE nvml:I nvml2:I     memory queries of the program
//   graph:N capture:N launch trim      a graph with an allocation, its launch
//   loop:TIMES:N pairs:TIMES:N hoard:TIMES:N anynodes:TIMES:N
//       a graph with several: one at a time, two at a time, all at once; built node by node
//   begin:MODE end relax elsewhere:N   captures, and what may invalidate them
//   churn:ROUNDS:MOST churnpool:ROUNDS:MOST       allocate and free at random, from four threads
//   shell:NAME exec:NAME bury:NAME     run the command in variable NAME; exec it; run it and leave
//   it
//                                      as a zombie
//   fork kill exit sleep:MS
#pragma once

int memory_script(int count, char** actions);
