// The kinds of linear facts <theta, normal> >= level that a gate knows, as a table: what each is called in a proof.
#pragma once
#include <array>
#include <string_view>
#include <vector>

#include "archive.hpp"
#include "vector.hpp"

namespace surefoot {

// Those before `given` change with the ledger and are gathered anew in every round (`gather`), in this order.
enum Kind : int {
  kept_least,
  kept_most,
  owed_least,
  owed_most,
  played_least,
  played_most,
  realised,
  proved_before,
  baseline_least,
  baseline_most,
  given,
  range_least = given,
  range_most,
  tangent,
  other = 100,                 // facts beyond the named ones are `other` + their place
  likelihood = other + given,  // a gate's own: tangents of the likelihood set, behind those that change with the ledger
};
inline constexpr int TANGENTS = 2;  // of the likelihood set, kept up to date

inline constexpr std::array<std::string_view, tangent> FACT_WORDS = {
    "least reward of the rounds that kept the baseline",
    "largest reward of the rounds that kept the baseline",
    "least reward of the baseline where the learner played",
    "largest reward of the baseline where the learner played",
    "declared range, over the learner's rounds",
    "declared range, over the learner's rounds",
    "rewards that the learner received",
    "proof of an earlier round",
    "least reward of the baseline",
    "largest reward of the baseline",
    "declared range of an action",
    "declared range of an action",
};

// One fact of a split: its piece of the question is weight times normal. A tangent belongs to the ball.
template <int D>
struct Fact {
  int kind = 0;
  double level = 0.0, weight = 0.0;
  Vector<D> normal;

  explicit Fact(int dim) : normal(dim) {}
};

// Facts that a search works with: room for the dimension and some more, tangents and facts that may be needed again.
template <int D>
struct Facts {
  static constexpr int SPARE = 8;
  int count = 0;
  std::vector<Fact<D>> places;

  Facts(int dim, int room) : places(static_cast<std::size_t>(room), Fact<D>(dim)) {}
  explicit Facts(int dim) : Facts(dim, dim + SPARE) {}

  int room() const { return static_cast<int>(places.size()); }
  Fact<D>& operator[](int k) { return places[static_cast<std::size_t>(k)]; }
  const Fact<D>& operator[](int k) const { return places[static_cast<std::size_t>(k)]; }

  // Takes over the facts in use.
  void take_over(const Facts& other) {
    count = other.count;
    if (count > room()) places.resize(static_cast<std::size_t>(count), other[0]);
    for (int k = 0; k < count; ++k) (*this)[k] = other[k];
  }

  // All places are saved, also those that are not in use.
  template <class Visit>
  void each(Visit visit) {
    for (Fact<D>& fact : places) {
      visit(fact.kind);
      const bool is_likelihood = fact.kind >= likelihood && fact.kind < likelihood + TANGENTS;
      if (fact.kind > tangent && !is_likelihood) damaged("a fact in it is of no kind");
      visit(fact.level);
      visit(fact.weight);
      visit(fact.normal);
    }
  }
};

// What is given to a search: normals and levels; a level of -inf says nothing.
template <int D>
struct Given {
  int count = 0;
  std::vector<double> normals;
  std::vector<double> levels;

  Given(int facts, int dim)
      : count(facts),
        normals(static_cast<std::size_t>(facts) * static_cast<std::size_t>(dim)),
        levels(static_cast<std::size_t>(facts)) {}

  double* normal(int k, int dim) { return normals.data() + static_cast<std::ptrdiff_t>(k) * dim; }
  const double* normal(int k, int dim) const { return normals.data() + static_cast<std::ptrdiff_t>(k) * dim; }
  double& level(int k) { return levels[static_cast<std::size_t>(k)]; }
  double level(int k) const { return levels[static_cast<std::size_t>(k)]; }
};

}  // namespace surefoot
