// What every linear policy holds: what it was told, what it learned, what was played, what it remembers.
#pragma once
#include <cmath>

#include "ascent.hpp"
#include "catalogue.hpp"
#include "fresh_rows.hpp"
#include "likelihood.hpp"
#include "paper_radii.hpp"
#include "policy.hpp"
#include "question.hpp"

namespace surefoot {

inline constexpr double RARE = 0.2;     // rewards, in units of their bounds
inline constexpr double FEW = 64.0;     // rounds that do not tell yet whether rewards are rare
inline constexpr double GROWTH = 1.15;  // of the squared width with the logarithm of the rewards seen

template <int D>
struct LinearState {
  static constexpr int Dim = D;
  using Change = typename Ridge<D>::Change;
  Declared<LinearSettings> settings;
  Ridge<D> ridge;
  Ledger<D> ledger;
  Memory<D> memory;
  WithFixedRows<Catalogue<D>> catalogue;
  WithBoundedRewards<Likelihood<D>> likelihood;  // of bounded rewards, where it is used
  // Room to work, without meaning between rounds.
  PaperRadii radii;
  FreshRows<D> fresh;
  Whitened space;
  Given<D> facts;

  LinearState(int dim, const LinearSettings& settings_)
      : settings(settings_),
        ridge(dim, settings_.ridge),
        ledger(dim),
        memory(dim),
        space(dim, dim + Facts<D>::SPARE),
        facts(given + TANGENTS, dim) {
    // Only the residual radius is made of them.
    ridge.looks_closely = settings.radius == Radius::residual;
    declare_bounds();
    if (settings.radius == Radius::likelihood) memory.set.forget();  // the ball, as an ellipsoid
  }

  // Begins the likelihood set where the settings ask for it; where it stands, delta may have been spent anew.
  void declare_bounds() {
    if (!(settings.likelihood_delta > 0.0)) return;
    if (!likelihood) likelihood.emplace(dim(), settings);
    likelihood->log_delta = log_of(1.0 / settings.likelihood_delta);
  }

  int dim() const { return ridge.dim(); }
  // Rests on no ellipsoid.
  bool is_ball() const { return ridge.count == 0.0 || settings.radius == Radius::likelihood; }
  // What proposals are scored by: with bounded rewards the model that weighs them by their variance.
  Ridge<D>& scoring() { return likelihood ? likelihood->model : ridge; }
  // How optimistic they are. The likelihood set has no one width: that of a single direction serves, as nothing rests
  // on it. It grows with the rewards seen, whatever delta is: under a width that stays, an arm with a bad start is
  // never tried again. And unless rewards are rare a row of two thirds of the largest length must promise what was
  // earned so far, or it is never tried. Rare ones need no help, and a wider look around would cost rounds on the
  // baseline.
  double optimism() const {
    const Forecaster& seen = likelihood->forecaster;
    const double width = std::sqrt(larger(0.5 * likelihood->log_delta, GROWTH * log_of(1.0 + seen.rewards)));
    if (seen.rewards < RARE * (seen.rounds + FEW)) return width;
    const double earned = likelihood->low + seen.rewards / (seen.rounds * likelihood->scale);
    return larger(width, 1.5 * earned * std::sqrt(likelihood->model.ridge) / settings.feature_bound);
  }
  double radius() { return radius(false, Solo{}); }
  template <class Team>
  [[gnu::always_inline]] double radius(bool is_next, const Team& team) {
    const bool is_by_count = settings.radius == Radius::paper && settings.misfit == 0.0;
    return is_by_count ? radii.of(ridge.count, dim(), settings, is_next, team) : radius_of(settings, ridge);
  }
  template <class Question>
  [[gnu::always_inline]] Range range(double radius, const Question& q) const {
    return range_of(settings, ridge, memory, radius, q);
  }

  // Begins an empty ledger beside everything that was learned.
  void begin_ledger() {
    ledger = Ledger<D>(dim());
    memory.begin_ledger();
    memory.working.count = 0;
    if (likelihood) likelihood->begin_ledger();
  }

  // Learns an observation, and lets the scores of the catalogue follow. Returns how the set changed.
  template <class Team>
  [[gnu::always_inline]] Change absorb(View<D> x, double reward, const Team& team) {
    if constexpr (MAY_BE_BOUNDED) {
      if (likelihood) return absorb_bounded(x, reward, team);
    }
    return follow(ridge, x, reward, team);
  }

 private:
  template <class Team>
  [[gnu::always_inline]] Change follow(Ridge<D>& scored, View<D> x, double reward, const Team& team) {
    return catalogue ? catalogue->learn(scored, x, reward, team) : scored.absorb(x, reward, team);
  }

  template <class Team>
  [[gnu::noinline]] Change absorb_bounded(View<D> x, double reward, const Team& team) {
    const Change change = ridge.absorb(x, reward, team);
    if (!likelihood->is_possible(reward)) {
      memory.refuted = REFUTED;
      return change;
    }
    const double root = std::sqrt(likelihood->learn(x, reward));
    Vector<D> weighed(dim());
    for (int i = 0; i < dim(); ++i) weighed[i] = root * x[static_cast<std::size_t>(i)];
    follow(likelihood->model, weighed, root * reward, team);
    return change;
  }
};

// One round as it is offered to a linear policy: rows, or two vectors where a set without rows found the proposal.
template <int D>
struct Offer {
  Rows<D> rows;
  bool is_catalogue = false;
  bool is_checked = false;            // the lengths of the rows were checked before
  bool is_next = false;               // the settings are those of the round before
  bool is_claimed = true;             // whether somebody will read what a gate found where its answer is known
  int baseline = -1;                  // the row that is played today; -1: none is needed
  double known = 0.0;                 // its mean reward, where a policy needs it
  double low = 0.0, high = INFINITE;  // what is known of it, where a policy can do without
  int order = FREE;
  const double *chosen = nullptr, *today = nullptr;

  View<D> proposal(int action) const { return chosen != nullptr ? view<D>(chosen, rows.dim()) : rows[action]; }
  View<D> displaced(int action) const {
    return today != nullptr ? view<D>(today, rows.dim()) : rows[baseline < 0 ? action : baseline];
  }
};

template <int D>
Offer<D> linear_offer(const Situation& now) {
  Offer<D> offer{.rows = {now.rows, now.actions, now.dim, now.width}};
  offer.is_catalogue = now.is_catalogue;
  offer.is_next = now.is_next;
  offer.is_claimed = now.is_read;
  offer.baseline = now.baseline;
  offer.known = now.known;
  if (now.is_told) offer.low = offer.high = now.known;
  return offer;
}

// The row with the largest UCB over the confidence set.
template <int D, class Team>
[[gnu::always_inline]] inline Proposal most_optimistic(LinearState<D>& state, const Offer<D>& offer, Record<D>& record,
                                                       const Team& team) {
  record.beta = state.radius(offer.is_next, team);
  const double explored = state.settings.exploration;
  const double beta = state.likelihood ? state.optimism() : explored > 0.0 ? explored : record.beta;
  if constexpr (MAY_BE_FRESH) {
    if (!offer.is_catalogue)
      return state.fresh.propose(state.settings, state.scoring(), offer.rows, beta, team, offer.is_checked);
  }
  return state.catalogue->propose(state.settings, state.scoring(), beta, team);
}

// Whether no theta of the declared length lets the baseline earn what it is said to earn at least; noted for good.
template <int D>
[[gnu::always_inline]] inline bool is_too_high(LinearState<D>& state, View<D> displaced, double least) {
  const LinearSettings& s = state.settings;
  if (!s.watchful || state.memory.refuted != 0.0) return state.memory.refuted == TOO_HIGH;
  const double length = std::sqrt(square_length(displaced.data(), state.dim()));
  // An alarm must rest on more than rounding.
  if (least > s.theta_bound * length * (1.0 + 1e-9) + s.misfit) state.memory.refuted = TOO_HIGH;
  return state.memory.refuted == TOO_HIGH;
}

// Counts the round: z and v if the learner plays, w if the baseline does.  (paper, Algorithms 1 and 2)
template <int D>
[[gnu::always_inline]] inline void book_linear(LinearState<D>& state, const Offer<D>& offer, Record<D>& record,
                                               double known) {
  const View<D> proposal = offer.proposal(record.action), displaced = offer.displaced(record.action);
  if (record.is_learner) {
    state.ledger.book_learner(proposal, displaced, known);
  } else {
    state.ledger.book_baseline(displaced, known);
  }
  const View<D> played = record.is_learner ? proposal : displaced;
  side_by_side(state.dim(), [&]<class Number>(int i) __attribute__((always_inline)) {
    put(record.features.data() + i, take<Number>(played.data() + i));
  });
}

}  // namespace surefoot
