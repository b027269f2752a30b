// A round that was not played as it was decided: taken back, and booked as it was played.
//
// Only the ledger is put right. Its reward has not been learned, so the confidence set needs nothing.
#pragma once
#include "linear_state.hpp"

namespace surefoot {

// How a round stands in the ledger.
template <int D>
struct Booking {
  View<D> features, displaced;
  bool is_learner;
};

// `known` is the baseline's mean, where a policy needs it.
template <int D>
void rebook(LinearState<D>& state, const Booking<D>& decided, const Booking<D>& played, double known) {
  state.ledger.take_back(decided.features, decided.displaced, known, decided.is_learner);
  if (played.is_learner) {
    state.ledger.book_learner(played.features, played.displaced, known);
  } else {
    state.ledger.book_baseline(played.displaced, known);
  }
}

// The same for a policy that remembers what it knows of the baseline, [low, high], and what it proved last.
template <int D>
void rebook_remembered(LinearState<D>& state, const Booking<D>& decided, const Booking<D>& played, double low,
                       double high) {
  rebook(state, decided, played, 0.0);
  if (state.likelihood) {
    state.likelihood->take_back(decided.features, decided.displaced, decided.is_learner);
    state.likelihood->book(played.features, played.displaced, played.is_learner);
  }
  if (decided.is_learner != played.is_learner) {
    state.memory.move_baseline(state.settings, low, high, played.is_learner);
  }
  state.memory.forget_proof();
}

}  // namespace surefoot
