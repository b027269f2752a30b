// Sums and products together with what their rounding lost, so that a million terms leave no error behind.
#pragma once
#include <cmath>

#include "sums.hpp"
#include "vector.hpp"

namespace surefoot {

template <class Number>
struct Rounded {
  Number value, lost;
};

// total + term as a float, and what that rounding lost.  (Knuth)
template <class Number>
inline Rounded<Number> two_sum(Number total, Number term) {
  const Number both = total + term, kept = both - total;
  return {both, (total - (both - kept)) + (term - kept)};
}

template <class Number>
struct Halves {
  Number high, low;
};

// 53 bits cut by 2^27 + 1 into two halves, whose products are exact.  (Veltkamp)
template <class Number>
inline Halves<Number> halves(Number x) {
  const Number shifted = 134217729.0 * x, high = shifted - (shifted - x);
  return {high, x - high};
}

// x y as a float, and what that rounding lost.  (Dekker)
template <class Number>
inline Rounded<Number> two_product(double x, Number y) {
  const Number product = x * y;
  const auto [x_high, x_low] = halves(x);
  const auto [y_high, y_low] = halves(y);
  return {product, ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low};
}

// A sum and the carry of its rounding.
struct Sum {
  double value = 0.0, carry = 0.0;

  void add(double term) {
    const auto [sum, lost] = two_sum(value, term);
    value = sum;
    carry += lost;
  }

  // Compensation would turn an infinity into NaN: a sum that is not finite says nothing, and stays so.
  void add_any(double term) {
    if (std::isfinite(value) && std::isfinite(term)) {
      add(term);
    } else {
      value += term;
    }
  }

  double total() const { return value + carry; }
  // With one more term: carry and term first, since both are small beside the sum.
  double with(double term) const { return value + (carry + term); }
};

// A vector of such sums.
template <int D>
struct SumVector {
  Vector<D> value, carry;

  explicit SumVector(int dim) : value(dim), carry(dim) {}

  // From place i on, as many as there are terms.
  template <class Number>
  [[gnu::always_inline]] void add(int i, Number terms) {
    const auto sums = value.data() + i, carries = carry.data() + i;
    const auto [sum, lost] = two_sum(take<Number>(sums), terms);
    put(sums, sum);
    put(carries, take<Number>(carries) + lost);
  }
  void add(View<D> terms) {
    side_by_side(value.size(), [&]<class Number>(int i) { add(i, part<Number>(terms, i)); });
  }
  void subtract(View<D> terms) {
    for (int i = 0; i < value.size(); ++i) add(i, -terms[static_cast<std::size_t>(i)]);
  }
  template <class Number = double>
  Number total(int i) const {
    return take<Number>(value.data() + i) + take<Number>(carry.data() + i);
  }
  template <class Number>
  Number with(int i, Number terms) const {
    return take<Number>(value.data() + i) + (take<Number>(carry.data() + i) + terms);
  }
};

}  // namespace surefoot
