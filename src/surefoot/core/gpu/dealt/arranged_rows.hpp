// In the place of `arranged_rows.hpp`: the first two numbers of every row, then the others, in places for whole slabs.
#pragma once
#include "vector.hpp"

namespace surefoot::gpu {

inline std::size_t numbers_for(int) { return 4 * 32 * SLABS; }

inline void arrange_rows(Rows<4> rows, double* out) {
  for (int i = 0; i < 32 * SLABS; ++i) {
    for (int j = 0; j < 4; ++j) {
      out[(j / 2 * 32 * SLABS + i) * 2 + j % 2] = i < rows.count ? rows.first[4 * i + j] : 0.0;
    }
  }
}

}  // namespace surefoot::gpu
