// Which coordinates of theta the observations tie together: intervals outside of which V and M hold nothing but zeros.
//
// Rows of one theta per action are zero beyond their action's block, so that V is block diagonal: 34 actions of 29
// features are 34 problems of 29, not one of 986. Nothing is declared. Every coordinate begins as a block of its own,
// blocks grow together where a row spans them, and rows without zeros make one block of all at once. What is skipped
// are exact zeros, and sums keep their order (`sums.hpp`): the bits are those of the whole matrix.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "sums.hpp"
#include "vector.hpp"

namespace surefoot {

// Coordinates from `begin` to before `end`.
struct Span {
  int begin, end;

  int size() const { return end - begin; }
  bool empty() const { return begin >= end; }
};

// Whether eight numbers are zero, of whichever sign: their bits but the first are.
inline bool are_zero(const double* x) {
  std::uint64_t bits[WIDE], any_bit = 0;
  std::memcpy(bits, x, sizeof bits);
  for (const std::uint64_t one : bits) any_bit |= one;
  return any_bit << 1 == 0;
}

// Where a row may differ from zero.
inline Span span_of(const double* x, int n) {
  int begin = 0, end = n;
  while (begin + WIDE <= n && are_zero(x + begin)) begin += WIDE;
  while (begin < n && x[begin] == 0.0) ++begin;
  while (end - WIDE >= begin && are_zero(x + end - WIDE)) end -= WIDE;
  while (end > begin && x[end - 1] == 0.0) --end;
  return {begin, end};
}

// A dimension that is compiled is small: one block of all.
template <int D>
struct Blocks {
  explicit Blocks(int) {}

  static constexpr bool is_one() { return true; }
  static constexpr Span join(View<D>) { return {0, D}; }
  static constexpr Span at(int) { return {0, D}; }
};

template <>
struct Blocks<any> {
  explicit Blocks(int dim) : spans_(static_cast<std::size_t>(dim)) {
    for (int i = 0; i < dim; ++i) spans_[static_cast<std::size_t>(i)] = {i, i + 1};
  }

  int dim() const { return static_cast<int>(spans_.size()); }
  bool is_one() const { return at(0).size() == dim(); }
  Span at(int i) const { return spans_[static_cast<std::size_t>(i)]; }

  // All blocks that a span touches; they lie side by side.
  Span around(Span span) const { return span.empty() ? span : Span{at(span.begin).begin, at(span.end - 1).end}; }

  // Makes one block of all that a row touches, and returns it.
  Span join(View<any> x) { return is_one() ? Span{0, dim()} : join(span_of(x.data(), dim())); }
  Span join(Span span) {
    const Span whole = around(span);
    if (!whole.empty() && at(whole.begin).end != whole.end) {
      std::fill(spans_.begin() + whole.begin, spans_.begin() + whole.end, whole);
    }
    return whole;
  }

 private:
  std::vector<Span> spans_;  // of every coordinate, the block it belongs to
};

}  // namespace surefoot
