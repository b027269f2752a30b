// The loops over a log: the policies' own rounds, fed with logged ones instead of simulated ones.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine.hpp"
#include "linear_state.hpp"

namespace surefoot {

// How a logged round answers a decision, and what became of a row.
enum class Evaluator { rejection, importance, full };
enum class Fate : std::int64_t { rejected, baseline, learner };

// Logged rows. `rewards` has one column, the logged action's, or one per action for the full evaluator. Where every
// action has a theta of its own, a round is its context alone, of `width` numbers, which stands in the block of each.
struct LoggedRows {
  int count, actions, dim, columns;
  const double *features, *rewards;
  const std::int64_t *baselines, *taken;
  const bool* usable;
  double known;  // the baseline's mean reward
  bool is_told;
  const bool* offered = nullptr;  // of every row, which actions; null: all of them
  int width = 0;                  // of a context; 0: rows are whole

  double reward(int t, int column) const { return rewards[static_cast<std::ptrdiff_t>(t) * columns + column]; }
};

// The rows of one round, those that are offered among them, and which of all actions these are.
class OfferedRows {
 public:
  const double *all = nullptr, *rows = nullptr;

  void gather(const LoggedRows& log, int t) {
    rows = all = log.width > 0 ? spread(log, t) : log.features + static_cast<std::ptrdiff_t>(t) * log.actions * log.dim;
    count_ = log.actions;
    if (log.offered == nullptr) return;
    actions_.clear();
    gathered_.clear();
    for (int a = 0; a < log.actions; ++a) {
      if (!log.offered[static_cast<std::ptrdiff_t>(t) * log.actions + a]) continue;
      const double* row = row_of(log, a);
      actions_.push_back(a);
      gathered_.insert(gathered_.end(), row, row + log.dim);
    }
    rows = gathered_.data();
    count_ = static_cast<int>(actions_.size());
  }

  // Of all actions.
  const double* row_of(const LoggedRows& log, int action) const {
    return all + static_cast<std::ptrdiff_t>(action) * log.dim;
  }
  int count() const { return count_; }
  // Of the blocks, where row i has block i.
  int width(const LoggedRows& log) const { return log.offered == nullptr ? log.width : 0; }
  int action(int place) const { return actions_.empty() ? place : actions_[static_cast<std::size_t>(place)]; }
  // An action that is not offered has none.
  int place(int action) const {
    if (actions_.empty()) return action;
    const auto found = std::ranges::find(actions_, action);
    return found == actions_.end() ? -1 : static_cast<int>(found - actions_.begin());
  }

 private:
  int count_ = 0;
  std::vector<int> actions_;
  std::vector<double> gathered_, spread_;

  // A context in every action's block. The blocks of one round are those of the next, and beside them are zeros.
  const double* spread(const LoggedRows& log, int t) {
    spread_.resize(static_cast<std::size_t>(log.actions) * static_cast<std::size_t>(log.dim));
    const double* context = log.features + static_cast<std::ptrdiff_t>(t) * log.width;
    for (int a = 0; a < log.actions; ++a) {
      std::copy_n(context, log.width, spread_.data() + static_cast<std::ptrdiff_t>(a) * (log.dim + log.width));
    }
    return spread_.data();
  }
};

struct PlayedRows {
  std::int64_t *chosen, *fates;
  double* margins;
};

// What a rejected row leaves as it was: all that deciding changes, but the `dual` set, which every question chooses
// anew.
template <class State>
class Undo {
 public:
  // Without room for facts yet: there may be as many as dimensions.
  explicit Undo(const State& state) : ledger_(state.ledger), remembered_(state.memory), working_(state.dim(), 0) {}

  void note(const State& state) {
    ledger_ = state.ledger;
    remembered_ = state.memory;
    working_.take_over(state.memory.working);
    if (state.likelihood) likelihood_.note(*state.likelihood);
  }
  template <class Offer, class Record>
  void put_back(State& state, const Offer& offer, const Record& record) const {
    state.ledger = ledger_;
    static_cast<Remembered&>(state.memory) = remembered_;
    state.memory.working.take_over(working_);
    if (!state.likelihood) return;
    const auto proposal = offer.proposal(record.action), displaced = offer.displaced(record.action);
    likelihood_.put_back(*state.likelihood, proposal, displaced, record.is_learner);
  }

 private:
  using Remembered = decltype(State::memory)::Rounds;
  decltype(State::ledger) ledger_;
  Remembered remembered_;
  decltype(State::memory.working) working_;
  DecidedLikelihood<State::Dim> likelihood_;
};

// Takes one policy through logged rows, whose lengths were checked once for all policies. A rejected row leaves the
// policy as it was, and nothing is learned.
template <Policy P>
void replay(Player<P>& player, Evaluator evaluator, const LoggedRows& log, const PlayedRows& out) {
  auto& state = player.state;
  Undo undo(state);
  OfferedRows offered;
  for (int t = 0; t < log.count; ++t) {
    out.chosen[t] = -1;
    out.fates[t] = static_cast<std::int64_t>(Fate::rejected);
    out.margins[t] = std::numeric_limits<double>::quiet_NaN();
    if (!log.usable[t]) continue;
    // The ridge state needs no copy: deciding changes hints in it, and nothing that it says.
    if (evaluator == Evaluator::rejection) undo.note(state);
    const int baseline = static_cast<int>(log.baselines[t]);
    // The round's number matters to plain arms only, which a log has none of.
    offered.gather(log, t);
    const int today = offered.place(baseline);
    const Situation now{offered.rows, offered.count(),   log.dim, false, today, log.known, log.is_told,
                        1.0,          offered.width(log)};
    auto offer = P::meet(state, now);
    offer.is_checked = true;
    offer.is_claimed = false;
    decide<P>(state, offer, player.record, Solo{});
    const bool is_learner = player.record.is_learner;
    const int row = is_learner ? offered.action(player.record.action) : baseline,
              taken = static_cast<int>(log.taken[t]);
    out.chosen[t] = row;
    if (evaluator == Evaluator::rejection && row != taken) {
      undo.put_back(state, offer, player.record);
      continue;
    }
    if (evaluator == Evaluator::importance) {
      // Every logged row is learned from, whoever played it, as a warm start does: any data may enter the set.
      state.absorb(view<P::Dim>(offered.row_of(log, taken), log.dim), log.reward(t, 0), Solo{});
    } else if (P::teaches(state, is_learner)) {
      const double reward = log.reward(t, evaluator == Evaluator::full ? row : 0);
      player.learn({offered.row_of(log, row), row, is_learner, reward}, Solo{});
    }
    out.fates[t] = static_cast<std::int64_t>(is_learner ? Fate::learner : Fate::baseline);
    out.margins[t] = player.record.guaranteed - player.record.required;
  }
}

}  // namespace surefoot
