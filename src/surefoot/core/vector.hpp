// Vectors and square matrices whose size is known when they are compiled (the paper's 4) or when they are made (any).
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

#include "common.hpp"
#include "lanes.hpp"

namespace surefoot {

inline constexpr int any = -1;  // in place of a dimension: known when a policy is made

// Where four numbers are read at once, none of them lies across two lines of the cache.
template <int D>
inline constexpr std::size_t alignment = D != any && D % 4 == 0 ? 4 * sizeof(double) : alignof(double);

template <int D>
using View = std::span<const double, D == any ? std::dynamic_extent : static_cast<std::size_t>(D)>;

// So many numbers: `Each` of them for every unit of the dimension.
template <int D, int Each = 1>
class Vector {
 public:
  explicit Vector(int dim) {
    if constexpr (D == any) values_.resize(static_cast<std::size_t>(dim) * Each);
  }

  int size() const { return D == any ? static_cast<int>(values_.size()) : D * Each; }
  double* data() { return values_.data(); }
  const double* data() const { return values_.data(); }
  double& operator[](int i) { return values_[static_cast<std::size_t>(i)]; }
  double operator[](int i) const { return values_[static_cast<std::size_t>(i)]; }
  void fill(double value) { std::fill(values_.begin(), values_.end(), value); }
  operator View<D>() const
    requires(Each == 1)
  {
    return View<D>(values_.data(), static_cast<std::size_t>(size()));
  }

 private:
  alignas(alignment<D>) std::conditional_t<D == any, Zeros, std::array<double, D == any ? 0 : D * Each>> values_{};
};

// A view of d numbers.
template <int D>
View<D> view(const double* first, int dim) {
  return View<D>(first, static_cast<std::size_t>(dim));
}

// Of a row in memory, the numbers from place i on.
template <class Number, std::size_t N>
Number part(std::span<const double, N> row, int i) {
  return take<Number>(row.data() + i);
}

template <int D>
class Matrix {
 public:
  explicit Matrix(int dim) : dim_(dim), stride_((dim + WIDE - 1) / WIDE * WIDE) {
    if constexpr (D == any) values_.resize(static_cast<std::size_t>(dim) * static_cast<std::size_t>(stride()));
  }

  int dim() const { return D == any ? dim_ : D; }
  // From one row to the next: whole groups of eight, with zeros behind the last column.
  int stride() const { return D == any ? stride_ : D; }
  // With those zeros.
  int size() const { return dim() * stride(); }
  double* data() { return values_.data(); }
  const double* data() const { return values_.data(); }
  double* row(int i) { return values_.data() + static_cast<std::ptrdiff_t>(i) * stride(); }
  const double* row(int i) const { return values_.data() + static_cast<std::ptrdiff_t>(i) * stride(); }
  double& operator()(int i, int j) { return row(i)[j]; }
  double operator()(int i, int j) const { return row(i)[j]; }
  void fill(double value) { std::fill(values_.begin(), values_.end(), value); }
  // How much of row i of a lower triangle to read: in a dimension that is compiled the zeros above the diagonal, too,
  // which cost less than loops of different lengths.
  int reach(int i) const { return D == any ? i + 1 : D; }
  // And from which column on: before it row i is known to be zero. Whole groups of eight, so that sums keep their
  // order.
  int from([[maybe_unused]] int i) const {
    if constexpr (D != any)
      return 0;
    else
      return begins_.empty() ? 0 : begins_[static_cast<std::size_t>(i)];
  }
  // Row i begins at the column `begin(i)`.
  template <class Begin>
  void begin_rows(Begin begin) {
    if constexpr (D == any) {
      begins_.resize(static_cast<std::size_t>(dim()));
      for (int i = 0; i < dim(); ++i) begins_[static_cast<std::size_t>(i)] = begin(i) & ~7;
    }
  }
  // Rows begin where those of another matrix do.
  void begin_rows_as(const Matrix& other) { begins_ = other.begins_; }

  void identity(double scale) {
    fill(0.0);
    diagonal(scale);
  }
  // Beside zeros the identity.
  void diagonal(double scale) {
    for (int i = 0; i < dim(); ++i) (*this)(i, i) = scale;
  }

 private:
  int dim_, stride_;
  alignas(alignment<D>) std::conditional_t<D == any, Zeros, std::array<double, D == any ? 0 : D * D>> values_{};
  struct Nothing {};
  [[no_unique_address]] std::conditional_t<D == any, std::vector<int>, Nothing> begins_;
};

// Rows of features, which belong to somebody else.
template <int D>
struct Rows {
  const double* first;
  int count;
  int dim_;
  int width = 0;  // where row i is zero but for block i: of a block

  int dim() const { return D == any ? dim_ : D; }
  View<D> operator[](int i) const { return view<D>(first + static_cast<std::ptrdiff_t>(i) * dim(), dim()); }
};

}  // namespace surefoot
