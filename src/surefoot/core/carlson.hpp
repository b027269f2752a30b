// Carlson's square-root update: the whitener M after one more observation.  (Carlson 1973)
#pragma once
#include "blocks.hpp"
#include "factor.hpp"
#include "sums.hpp"
#include "vector.hpp"

namespace surefoot {

template <int D>
class Carlson {
 public:
  explicit Carlson(int dim) : shrinks_(dim), shares_(dim) {}

  // M for V + x x^T, given M x: in x's block, from the old M, which may be the same. Leaves V^-1 x in the block of
  // `step`.
  template <class At>
  [[gnu::always_inline]] void update(const Matrix<D>& old, At projected, Span block, Matrix<D>& whitener,
                                     Vector<D>& step) {
    weigh(projected, block);
    // By name, since a compiler must take it that what is written may be where a row stands.
    const auto shrinks = shrinks_.data(), shares = shares_.data();
    const std::ptrdiff_t apart = whitener.stride();
    const auto first_old = old.data();
    const auto first_new = whitener.data(), steps = step.data();
    each_strip(block.begin, block.end, [&]<class Number, int Many>(int j) {
      Number so_far[Many] = {};
      auto from = first_old + j * apart + j;
      auto to = first_new + j * apart + j;
      for (int i = j; i < block.end; ++i, from += apart, to += apart) {
        const double shrink = shrinks[i], share = shares[i], entry = projected[i];
        for (int k = 0; k < Many; ++k) {
          const auto was = take<Number>(from + k * WIDTH<Number>);
          put(to + k * WIDTH<Number>, shrink * (was - share * so_far[k]));
          so_far[k] += entry * was;
        }
      }
      for (int k = 0; k < Many; ++k) put(steps + j + k * WIDTH<Number>, so_far[k]);
    });
  }

 private:
  Vector<D> shrinks_, shares_;  // of every row

  // Quotients and roots, of four rows side by side.
  template <class At>
  [[gnu::always_inline]] void weigh(At projected, Span block) {
    double before = 1.0;
    int i = block.begin;
    for (; i + 4 <= block.end; i += 4) {
      const Quad entries = take<Quad>(projected + i);
      const std::array<double, 4> squares = squares_of(projected + i);
      const double first = before + squares[0], second = first + squares[1], third = second + squares[2];
      const Quad befores{before, first, second, third};
      before = third + squares[3];
      put(shrinks_.data() + i, root(befores / Quad{first, second, third, before}));
      put(shares_.data() + i, entries / befores);
    }
    for (; i < block.end; ++i) {
      const double entry = projected[i], after = before + entry * entry;
      shrinks_[i] = root(before / after);
      shares_[i] = entry / before;
      before = after;
    }
  }
};

}  // namespace surefoot
