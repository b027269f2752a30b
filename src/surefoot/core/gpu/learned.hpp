// What a run ends with, beside its counts: the numbers in which any rounding of any round would show.
#pragma once
#include "linear_state.hpp"

namespace surefoot::gpu {

// In the order of `learned_by` in `surefoot.simulation.engine`: theta, M row by row, b, z, v and w, and the UCB of what
// was proposed last.
template <int D>
void write_learned(const LinearState<D>& state, const Record<D>& record, double* out) {
  const auto write = [&](double number) { *out++ = number; };
  for (int i = 0; i < D; ++i) write(state.ridge.theta[i]);
  for (int i = 0; i < D; ++i) {
    const auto row = state.ridge.whitener.row(i);
    for (int j = 0; j < D; ++j) write(row[j]);
  }
  for (const SumVector<D>* sums :
       {&state.ridge.moment, &state.ledger.played, &state.ledger.displaced, &state.ledger.conserved}) {
    for (int i = 0; i < D; ++i) write(sums->value[i] + sums->carry[i]);
  }
  write(record.optimism);
}

}  // namespace surefoot::gpu
