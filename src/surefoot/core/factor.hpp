// Triangular factors: V = L L^T, the inverse of L, and how much the two amplify rounding.
#pragma once
#include <cmath>

#include "sums.hpp"
#include "vector.hpp"

namespace surefoot {

// L; false where V is not positive definite in floating point. Rows of L begin where it was told that they do.
template <int D>
bool cholesky(const Matrix<D>& gram, Matrix<D>& lower) {
  const int d = gram.dim();
  for (int i = 0; i < d; ++i) {
    const int from = lower.from(i);
    for (int j = from; j <= i; ++j) {
      const double entry = gram(i, j) - dot(lower.row(i) + from, lower.row(j) + from, j - from);
      if (i > j) {
        lower(i, j) = entry / lower(j, j);
      } else if (entry > 0.0) {
        lower(j, j) = std::sqrt(entry);
      } else {
        return false;  // NaN ends up here, too
      }
    }
  }
  return true;
}

// The inverse of L, of which only the lower triangle is read and written.
template <int D>
void invert(const Matrix<D>& lower, Matrix<D>& inverse) {
  const int d = lower.dim();
  inverse.fill(0.0);
  for (int i = 0; i < d; ++i) {
    // Along rows, which lie in memory in one piece.
    for (int k = 0; k < i; ++k) add_scaled(inverse.row(i), -lower(i, k), inverse.row(k), k + 1);
    for (int j = 0; j < i; ++j) inverse(i, j) /= lower(i, i);
    inverse(i, i) = 1.0 / lower(i, i);
  }
}

// M x for a lower triangular M, each entry when it is asked for.
template <int D>
struct Product {
  const Matrix<D>& lower;
  const double* x;

  double operator[](int i) const {
    const int from = lower.from(i);
    return dot(lower.row(i) + from, x + from, lower.reach(i) - from);
  }

  // Calls `use(i, entry)` for some rows, which M ties together: four of them at once, with the bits of one alone.
  template <class Use>
  [[gnu::always_inline]] void each(int begin, int end, Use use) const {
    int i = begin;
    for (; i < end && i % 4 != 0; ++i) use(i, (*this)[i]);
    for (; i + 4 <= end; i += 4) {
      const Quad entries = four<Register>(i);
      for (int k = 0; k < 4; ++k) use(i + k, entries[k]);
    }
    for (; i < end; ++i) use(i, (*this)[i]);
  }

 private:
  // The zeros above the diagonal are read, too.
  template <class Number>
  [[gnu::always_inline]] Quad four(int i) const {
    constexpr int PARTS = WIDE / WIDTH<Number>;
    const int whole = i & ~(WIDE - 1);
    const double* const rows[4] = {lower.row(i), lower.row(i + 1), lower.row(i + 2), lower.row(i + 3)};
    Number sums[4][PARTS] = {};
    for (int j = lower.from(i); j < whole; j += WIDE) {
      for (int part = 0; part < PARTS; ++part) {
        const int at = j + part * WIDTH<Number>;
        const auto given = take<Number>(x + at);
        for (int k = 0; k < 4; ++k) sums[k][part] += take<Number>(rows[k] + at) * given;
      }
    }
    // With the last of the second four a group of eight is whole.
    const bool is_second = i != whole;
    if (is_second) {
      for (int part = 0; part < PARTS; ++part) {
        const int at = whole + part * WIDTH<Number>;
        sums[3][part] += take<Number>(rows[3] + at) * take<Number>(x + at);
      }
    }
    const Square halves = turned({halved(sums[0]), halved(sums[1]), halved(sums[2]), halved(sums[3])});
    Quad totals = (halves.a + halves.c) + (halves.b + halves.e);
    for (int j = whole; j <= i; j += 4) {
      const Quad given = take<Quad>(x + j);
      const auto terms = [&](int k) { return take<Quad>(rows[k] + j) * given; };
      const Square columns = turned({terms(0), terms(1), terms(2), is_second ? Quad{} : terms(3)});
      totals = (((totals + columns.a) + columns.b) + columns.c) + columns.e;
    }
    return totals;
  }
};

// In four dimensions all at once; each sum in the order of `dot`.
template <>
struct Product<4> {
  Quad entries;

  template <class At>
  [[gnu::always_inline]] Product(const Matrix<4>& lower, At x) {
    const Quad given = take<Quad>(x);
    const auto row = [&](int i) { return take<Quad>(lower.row(i)) * given; };
    entries = totals({row(0), row(1), row(2), row(3)});
  }

  template <class Use>
  [[gnu::always_inline]] void each(int begin, int end, Use use) const {
    const std::array<double, 4> all = spread(entries);
    for (int i = begin; i < end; ++i) use(i, all[static_cast<std::size_t>(i)]);
  }
};

// ||M x||^2, added up row after row.
template <int D, class At>
double square_of_product(const Matrix<D>& lower, At x) {
  double square = 0.0;
  const Product<D> product{lower, x};
  product.each(0, lower.dim(), [&](int, double entry) { square += entry * entry; });
  return square;
}

// Calls `work<Number, Many>(j)` for columns in strips: Many times a Number side by side, from column j on. What is
// added up along columns stays in registers from row to row.
template <class Work>
[[gnu::always_inline]] inline void each_strip(int begin, int end, Work work) {
  constexpr int MANY = 2 * WIDE / WIDTH<Register>;  // while one sum waits, the others continue
  int j = begin;
  for (; j + 2 * WIDE <= end; j += 2 * WIDE) work.template operator()<Register, MANY>(j);
  side_by_side(end - j, [&]<class Number>(int behind) { work.template operator()<Number, 1>(j + behind); });
}

// M^T x for a lower triangular M, of some coordinates that M ties to no others; zeros above its diagonal are read, too.
template <int D, class From, class To>
[[gnu::always_inline]] inline void multiply_transposed(const Matrix<D>& lower, int begin, int end, From x, To out) {
  each_strip(begin, end, [&]<class Number, int Many>(int j) {
    Number sums[Many] = {};
    for (int i = j; i < end; ++i) {
      const auto row = lower.row(i) + j;
      const double scale = x[i];
      for (int k = 0; k < Many; ++k) sums[k] += scale * take<Number>(row + k * WIDTH<Number>);
    }
    for (int k = 0; k < Many; ++k) put(out + j + k * WIDTH<Number>, sums[k]);
  });
}

// Copies what stands below the diagonal of some rows and columns to above it.
template <class Symmetric>
void mirror(Symmetric& matrix, int begin, int end) {
  for (int j = begin; j < end; j += 4) {
    int i = j + 4;
    for (; i + 4 <= end; i += 4) {
      const auto part = [&](int k) { return take<Quad>(matrix.row(i + k) + j); };
      const Square columns = turned({part(0), part(1), part(2), part(3)});
      put(matrix.row(j) + i, columns.a);
      put(matrix.row(j + 1) + i, columns.b);
      put(matrix.row(j + 2) + i, columns.c);
      put(matrix.row(j + 3) + i, columns.e);
    }
    // What is left: beside the last four rows, and next to the diagonal.
    const int last = j + 4 < end ? j + 4 : end;
    for (int row = j; row < last; ++row) {
      for (int column = row + 1; column < last; ++column) matrix.row(row)[column] = matrix.row(column)[row];
      for (int column = i; column < end; ++column) matrix.row(row)[column] = matrix.row(column)[row];
    }
  }
}

// The largest row sum and the largest column sum of |M||L|, of the rows and columns from `first` on.
struct LargestSums {
  double row = 0.0, column = 0.0;

  void take_in(const LargestSums& other) {
    row = larger(other.row, row);
    column = larger(other.column, column);
  }
  // A bound on the spectral norm.
  double condition() const { return std::sqrt(row * column); }
};

template <int D>
LargestSums largest_sums(const Matrix<D>& inverse, const Matrix<D>& lower, int first = 0) {
  const int d = lower.dim();
  Vector<D> rows(d), columns(d);  // row sums of |L|, column sums of |M|
  for (int i = 0; i < d; ++i) {
    for (int j = 0; j <= i; ++j) {
      rows[i] += std::fabs(lower(i, j));
      columns[j] += std::fabs(inverse(i, j));
    }
  }
  LargestSums most;
  for (int i = first; i < d; ++i) {
    double row = 0.0, column = 0.0;
    for (int j = 0; j <= i; ++j) row += std::fabs(inverse(i, j)) * rows[j];
    for (int j = i; j < d; ++j) column += columns[j] * std::fabs(lower(j, i));
    most.take_in({row, column});
  }
  return most;
}

}  // namespace surefoot
