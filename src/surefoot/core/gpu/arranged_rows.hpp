// The rows of a run as its catalogue reads them: columns. Where they are dealt, `dealt/arranged_rows.hpp` stands in its
// place.
#pragma once
#include "scores.hpp"

namespace surefoot::gpu {

inline std::size_t numbers_for(int actions) { return static_cast<std::size_t>(padded(actions)) * DIM; }

inline void arrange_rows(Rows<DIM> rows, double* out) {
  Columns<DIM> columns;
  columns.values.refer_to(out, numbers_for(rows.count));
  columns.assign(rows);
}

}  // namespace surefoot::gpu
