// `gpu_probe memory WORD…`: does to memory what the words say, one after the other, over the fake
// driver or a card's (tests/gpu/memory). A word is [LABEL=]WHAT[:NUMBER…]; what it answers is told
// if it has a label.
//
//   alloc:N managed:N async:N fromnew:N pitch:W:H array:N array3d:N mipmap:W:LEVELS
//   create:N[:DEVICE]
//       get memory; what is got has numbers, from 0 on, in the order of these words
//   free:I  map:I  unmap:I  retain:I   of the I-th of them
//   ctx destroy primary release reset module device:N stream spin:MS sync
//   info infonull total:DEVICE nvml:I nvml2:I     what the program is told
//   graph:N capture:N launch trim      a graph with an allocation, its launch
//   loop:TIMES:N pairs:TIMES:N hoard:TIMES:N anynodes:TIMES:N
//       a graph with several: one at a time, two at a time, all at once; made by hand
//   begin:MODE end relax elsewhere:N   captures, and what may end them
//   churn:ROUNDS:MOST churnpool:ROUNDS:MOST       get and free by chance, from four threads
//   shell:NAME exec:NAME bury:NAME     runs what the variable says, becomes it, or lets it run to
//                                      its end and leaves it there as a zombie
//   fork kill exit sleep:MS
#pragma once

int memory_script(int count, char** words);
