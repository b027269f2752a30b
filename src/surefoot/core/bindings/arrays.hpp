// NumPy arrays in and out.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "exact.hpp"
#include "vector.hpp"

namespace surefoot {

namespace nb = nanobind;

using VectorIn = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using MatrixIn = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using CubeIn = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using CountsIn = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using FlagsIn = nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using VectorOut = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using MatrixOut = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using CountsOut = nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Array = nb::ndarray<nb::numpy, double>;

inline std::span<const double> numbers(const VectorIn& array) { return {array.data(), array.size()}; }

// An array of its own that holds these numbers.
inline Array array_of(std::vector<double> values, std::initializer_list<std::size_t> shape) {
  auto kept = std::make_unique<std::vector<double>>(std::move(values));
  double* first = kept->data();
  const nb::capsule owner(kept.release(), [](void* p) noexcept {
    const std::unique_ptr<std::vector<double>> last(static_cast<std::vector<double>*>(p));
  });
  return {first, shape, owner};
}

template <class Numbers>
Array copied(const Numbers& values) {
  const auto count = static_cast<std::size_t>(values.size());
  return array_of({values.data(), values.data() + count}, {count});
}

template <int D>
Array copied(const Matrix<D>& matrix) {
  const auto d = static_cast<std::size_t>(matrix.dim());
  std::vector<double> values;
  values.reserve(d * d);
  for (int i = 0; i < matrix.dim(); ++i) values.insert(values.end(), matrix.row(i), matrix.row(i) + d);
  return array_of(std::move(values), {d, d});
}

template <int D>
Array total_of(const SumVector<D>& sums) {
  std::vector<double> totals(static_cast<std::size_t>(sums.value.size()));
  for (std::size_t i = 0; i < totals.size(); ++i) totals[i] = sums.total(static_cast<int>(i));
  return array_of(std::move(totals), {static_cast<std::size_t>(sums.value.size())});
}

// Features that must have this dimension: the Python side has checked them, and this keeps every pointer honest.
inline void check_size(std::size_t found, int dim) {
  if (std::cmp_not_equal(found, dim)) throw nb::value_error("arrays must have the policy's dimension");
}

// Numbers of rows, each of them one of so many.
inline void check_rows(const CountsIn& rows, int count) {
  const std::int64_t* first = rows.data();
  bool are_rows = true;  // without a way out of the loop, which is then worked on by vector units
  for (std::size_t t = 0; t < rows.size(); ++t) are_rows &= (first[t] >= 0) & (first[t] < count);
  if (!are_rows) throw nb::value_error("there is no such row");
}

template <int D>
View<D> view_of(const VectorIn& array, int dim) {
  check_size(array.size(), dim);
  return view<D>(array.data(), dim);
}

inline bool is_aligned(const void* first) { return reinterpret_cast<std::uintptr_t>(first) % alignof(double) == 0; }

// Rows as a caller gives them, if they can be read as they stand: as a buffer, which is had with fewer calls and less
// room than an array.
class GivenRows {
 public:
  explicit GivenRows(nb::handle given)
      : is_held_(PyObject_GetBuffer(given.ptr(), &view_, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) == 0) {
    if (!is_held_) PyErr_Clear();
  }
  GivenRows(const GivenRows&) = delete;
  GivenRows& operator=(const GivenRows&) = delete;
  ~GivenRows() {
    if (is_held_) PyBuffer_Release(&view_);
  }

  // Whether they are rows of this dimension, at least one.
  bool have(int dim) const {
    return is_held_ && view_.ndim == 2 && view_.shape[1] == dim && view_.shape[0] > 0 &&
           std::cmp_less_equal(view_.shape[0], std::numeric_limits<int>::max()) &&
           std::string_view(view_.format) == "d" && is_aligned(view_.buf);
  }
  template <int D>
  Rows<D> rows() const {
    return {static_cast<const double*>(view_.buf), static_cast<int>(view_.shape[0]), static_cast<int>(view_.shape[1])};
  }

 private:
  Py_buffer view_;
  bool is_held_;
};

template <int D>
Rows<D> rows_of(const MatrixIn& array, int dim) {
  check_size(array.shape(1), dim);
  return {array.data(), static_cast<int>(array.shape(0)), dim};
}

}  // namespace surefoot
