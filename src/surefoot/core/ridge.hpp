// The ridge state: everything the observations say of theta.
//
// With V = ridge I + sum x x^T and b = sum x y it keeps V and b exact (compensated sums; the newest rows x wait in a
// short buffer and enter V together), and beside them M, the whitener: lower triangular with M^T M = V^-1, so that a
// width ||q||_{V^-1} = ||M q|| is a sum of squares and never negative. One observation costs O(d^2) (Carlson's
// square-root update); at fixed intervals, and whenever the bound on its rounding error is used up, M is computed
// afresh from V.
#pragma once
#include <cmath>

#include "archive.hpp"
#include "elementary.hpp"
#include "exact.hpp"
#include "factor.hpp"
#include "sums.hpp"
#include "vector.hpp"

namespace surefoot {

inline constexpr int RECENT = 16;           // rows that wait before they enter V together
inline constexpr int REFRESH_EVERY = 1024;  // observations between two fresh factorisations
inline constexpr double DRIFT_ALLOWED =
    1e-8;                                     // rounding error of a width at which a fresh factorisation is due at once
inline constexpr double DRIFT_USABLE = 1e-3;  // beyond this relative error a width is not worth its name

template <int D>
struct Ridge {
  double count = 0.0, fresh_log_det = 0.0, growth = 1.0, drift = 4.0 * EPS, fresh_drift = 4.0 * EPS, condition = 1.0;
  double energy = 0.0;     // b^T V^-1 b
  double age = 0.0;        // observations since M was fresh
  int waiting = 0;         // rows in `recent`
  int favourite = 0;       // a hint: the row that was chosen last
  double surprises = 0.0;  // sum e^2 D^2: squared errors of prediction, each times the leverage of its row
  Vector<D> theta;
  Matrix<D> whitener;
  Vector<D> step;  // V^-1 x for the newest observation x and the V before it: what scores follow
  SumVector<D> moment;
  Matrix<D> gram, gram_carry;  // V, without the rows that wait
  Vector<D, RECENT> recent;
  Vector<D, 2> scratch;
  double ridge;
  // Whether `surprises` must be as small as can be shown, which costs O(d^2) where a row lies beyond what was seen.
  bool looks_closely = true;
  // Where M stands for the next observation, if somebody keeps the old one: the new one is then written here.
  const Matrix<D>* handed_over = nullptr;

  Ridge(int dim, double ridge_)
      : theta(dim),
        whitener(dim),
        step(dim),
        moment(dim),
        gram(dim),
        gram_carry(dim),
        recent(dim),
        scratch(dim),
        ridge(ridge_) {
    whitener.identity(1.0 / std::sqrt(ridge));
    gram.identity(ridge);
  }

  int dim() const { return theta.size(); }

  // Whether a saved state is one of this ridge.
  bool is_sound(double ridge_) const { return ridge == ridge_; }

  // In the order in which states were always saved.
  template <class Visit>
  void each(Visit visit) {
    int size = dim();
    visit(size);
    if (size != dim()) throw DamagedState("it is of another dimension");
    for (double* number : {&count, &fresh_log_det, &growth, &drift, &fresh_drift, &condition, &energy, &age}) {
      visit(*number);
    }
    check_count(count);
    check_count(age);
    visit(waiting);
    if (waiting >= RECENT) throw DamagedState("more rows wait in it than there is room for");
    visit(favourite);
    visit(surprises);
    visit(theta);
    visit(whitener);
    visit(step);
    visit(moment);
    visit(gram);
    visit(gram_carry);
    visit(recent);
    visit(scratch);
    visit(ridge);
  }

  // ln(det V / ridge^d): as it was at the last fresh factorisation, and what det V has grown by since.
  double log_det() const { return fresh_log_det + log_of(growth); }

  double width(View<D> x) const { return std::sqrt(square_of_product(whitener, x.data())); }

  // How scores follow an observation: <theta, q> grows by error <step, q>, ||q||^2_{V^-1} falls by gain <step, q>^2.
  struct Change {
    double gain, error;
  };

  Change absorb(View<D> x, double reward) {
    const int d = dim();
    const Matrix<D>& before = D == any && handed_over != nullptr ? *handed_over : whitener;
    handed_over = nullptr;
    const Product<D> whitened{before, x.data()};
    double leverage = 0.0;
    for (int i = 0; i < d; ++i) {
      scratch[i] = whitened[i];
      leverage += scratch[i] * scratch[i];
    }
    const double surprise = reward - dot(theta.data(), x.data(), d);
    // Before theta and M change: what counts is the error of the prediction made without this reward.
    book_surprise(x, surprise, std::fabs(reward) + size_of_dot(theta.data(), x.data(), d), leverage);
    accumulate(x, reward);
    update_whitener(before);
    count += 1.0;
    age += 1.0;
    growth *= 1.0 + leverage;
    // Each update adds rounding errors that the conditioning of M amplifies; that may have grown since it was
    // measured, at most as fast as the root of det V.
    drift += (d + 4.0) * EPS * condition * std::sqrt(growth * (1.0 + leverage));
    if (age >= REFRESH_EVERY || drift > larger(DRIFT_ALLOWED, 2.0 * fresh_drift)) refresh();
    estimate();
    return {1.0 / (1.0 + leverage), surprise / (1.0 + leverage)};
  }

  // V, once the rows that wait have entered it.
  Matrix<D> whole_gram() {
    fold();
    Matrix<D> whole(dim());
    for (int i = 0; i < whole.size(); ++i) whole.data()[i] = gram.data()[i] + gram_carry.data()[i];
    return whole;
  }

  // M afresh from V, with a bound on its error; where V is too ill-conditioned to factor, the old M stays.
  bool refresh() {
    const int d = dim();
    const Matrix<D> whole = whole_gram();
    Matrix<D> lower(d), inverse(d);
    age = 0.0;
    if (!cholesky(whole, lower)) {
      fresh_drift = drift;  // the next attempt then waits until the drift has doubled
      return false;
    }
    invert(lower, inverse);
    fresh_log_det = 0.0;
    // A difference of logarithms would cancel.
    for (int i = 0; i < d; ++i) fresh_log_det += 2.0 * log_of(lower(i, i) / std::sqrt(ridge));
    whitener = inverse;
    growth = 1.0;
    condition = surefoot::condition(inverse, lower);
    drift = fresh_drift = drift_of_fresh(d, condition);
    return true;
  }

  // The relative rounding error of a width by a fresh factorisation.  (Higham 2002, th. 10.3, sec. 14.2)
  static double drift_of_fresh(int d, double conditioning) {
    // V itself is off by (RECENT + 2) EPS at most, L L^T by (d + 1) EPS, M L by d EPS, each relative to |M||L| twice.
    return (3.0 * d + RECENT + 8.0) * EPS * (conditioning * conditioning);
  }

 private:
  // Adds e^2 D^2 to `surprises`, as large as rounding lets it be; `size` adds up what e is made of.
  [[gnu::always_inline]] void book_surprise(View<D> x, double surprise, double size, double leverage) {
    const int d = dim();
    double off, share;
    // The center is off by 2 drift sqrt(energy) in the norm of V, so <theta, x> by that times the width of x; a
    // squared width is off by 2 drift. The little more is for a width and an energy that are themselves off.
    if (drift <= DRIFT_USABLE) {
      off = 2.0 * drift * (1.0 + 4.0 * drift) * std::sqrt(energy * leverage);
      share = (1.0 + 3.0 * drift + (d + 8.0) * EPS) * (leverage / (1.0 + leverage));
      // Where that would show in the radius, look closer; rows beyond what was seen are few, and have it largest.
      if (looks_closely && (leverage > 1.0 || !(off <= 1e-4 * std::fabs(surprise) + 1e-6 * size)))
        off = std::fmin(center_error(x), off);
    } else {
      off = center_error(x);
      share = 1.0;
    }
    const double most = std::fabs(surprise) + off + (d + 4.0) * EPS * size;
    surprises += most * most * share;
  }

  // By how much <theta, x> may be off, judged by what V theta misses of b, whatever the drift: with r = b - V theta it
  // is <r, V^-1 x>, and no more than ||r|| ||x|| / ridge.
  double center_error(View<D> x) {
    const int d = dim();
    const Matrix<D> whole = whole_gram();
    double reach = 0.0, square = 0.0;
    for (int i = 0; i < d; ++i) reach += std::sqrt(whole(i, i)) * std::fabs(theta[i]);
    for (int i = 0; i < d; ++i) {
      const double missed = moment.total(i) - dot(whole.row(i), theta.data(), d);
      const double size = std::fabs(moment.total(i)) + size_of_dot(whole.row(i), theta.data(), d);
      // V itself is off by (RECENT + 2) EPS at most, relative to the roots of its diagonal.
      const double most =
          std::fabs(missed) + EPS * ((d + 4.0) * size + (RECENT + 2.0) * std::sqrt(whole(i, i)) * reach);
      square += most * most;
    }
    const double length = std::sqrt(square_length(x.data(), d)), scale = std::sqrt(ridge);
    return (std::sqrt(square) / scale) * (length / scale) * (1.0 + (d + 8.0) * EPS);
  }

  [[gnu::always_inline]] void accumulate(View<D> x, double reward) {
    const int d = dim();
    double* row = recent.data() + waiting * d;
    side_by_side(d, [&]<class Number>(int i) {
      const auto features = take<Number>(x.data() + i);
      const auto [product, cut] = two_product(reward, features);
      moment.add(i, product);
      put(moment.carry.data() + i, take<Number>(moment.carry.data() + i) + cut);
      put(row + i, features);
    });
    waiting += 1;
    if (waiting == RECENT) fold();
  }

  // The rows that wait enter V.
  void fold() {
    const int d = dim();
    for (int i = 0; i < d && waiting > 0; ++i) {
      side_by_side(d, [&]<class Number>(int j) { fold_at<Number>(i, j); });
    }
    waiting = 0;
  }

  // One entry of it, or several side by side.
  template <class Number>
  void fold_at(int i, int j) {
    const int d = dim();
    Number terms{};
    for (int k = 0; k < waiting; ++k) terms += recent[k * d + i] * take<Number>(recent.data() + k * d + j);
    double *sum = gram.row(i) + j, *carry = gram_carry.row(i) + j;
    const auto [value, lost] = two_sum(take<Number>(sum), terms);
    put(sum, value);
    put(carry, take<Number>(carry) + lost);
  }

  // Carlson's update of M for V + x x^T, given M x in the scratch; leaves V^-1 x in `step`.  (Carlson 1973)
  [[gnu::always_inline]] void update_whitener(const Matrix<D>& old) {
    const int d = dim();
    step.fill(0.0);
    double before = 1.0;
    int i = 0;
    // Quotients and roots of four rows side by side; where rows are long, those of one are ready before the last is.
    for (; D != any && i + 4 <= d; i += 4) {
      const Quad entries = take<Quad>(scratch.data() + i), squares = entries * entries;
      const double first = before + squares[0], second = first + squares[1], third = second + squares[2];
      const Quad befores{before, first, second, third};
      before = third + squares[3];
      const Quad shrinks = root(befores / Quad{first, second, third, before}), shares = entries / befores;
      for (int k = 0; k < 4; ++k) carry_over(old, i + k, shrinks[k], shares[k], entries[k]);
    }
    for (; i < d; ++i) {
      const double entry = scratch[i], after = before + entry * entry;
      carry_over(old, i, root(before / after), entry / before, entry);
      before = after;
    }
  }

  // One row of that: the new row may stand where the old one does.
  [[gnu::always_inline]] void carry_over(const Matrix<D>& old, int i, double shrink, double share, double entry) {
    const double* from = old.row(i);
    double* to = whitener.row(i);
    side_by_side(old.reach(i), [&]<class Number>(int j) {
      const auto was = take<Number>(from + j), so_far = take<Number>(step.data() + j);
      put(to + j, shrink * (was - share * so_far));
      put(step.data() + j, so_far + entry * was);
    });
  }

  // theta = M^T (M b), and the energy b^T V^-1 b.
  [[gnu::always_inline]] void estimate() {
    const int d = dim();
    side_by_side(d, [&]<class Number>(int i) { put(scratch.data() + i, moment.template total<Number>(i)); });
    const Product<D> whitened{whitener, scratch.data()};
    theta.fill(0.0);
    energy = 0.0;
    for (int i = 0; i < d; ++i) {
      const double entry = whitened[i];
      energy += entry * entry;
      add_scaled(theta.data(), entry, whitener.row(i), whitener.reach(i));
    }
  }
};

}  // namespace surefoot
