// Signatures of cuBLAS's matmuls, by shape, for the fake library and for programs that call it.
#pragma once

namespace fakeblas {

using Data = const void*;

template <typename N>
struct Shapes {
  using PLAIN = int(void*, int, int, N, N, N, Data, Data, N, Data, N, Data, void*, N);
  using ARRAYS = int(void*, int, int, N, N, N, Data, Data, N, Data, N, Data, void*, N, N);
  using STRIDES = int(void*, int, int, N, N, N, Data, Data, N, long long, Data, N, long long, Data,
                      void*, N, long long, N);
  using TYPES = int(void*, int, int, N, N, N, Data, Data, int, N, Data, int, N, Data, void*, int,
                    N);
  using EX = int(void*, int, int, N, N, N, Data, Data, int, N, Data, int, N, Data, void*, int, N,
                 int, int);
  using ARRAYS_EX = int(void*, int, int, N, N, N, Data, Data, int, N, Data, int, N, Data, void*,
                        int, N, N, int, int);
  using STRIDES_EX = int(void*, int, int, N, N, N, Data, Data, int, N, long long, Data, int, N,
                         long long, Data, void*, int, N, long long, N, int, int);
};

using LtMatmul = int(void*, void*, Data, Data, void*, Data, void*, Data, Data, void*, void*, void*,
                     Data, void*, unsigned long, void*);

}  // namespace fakeblas
