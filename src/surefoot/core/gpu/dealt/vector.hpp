// In the place of the core's `vector.hpp`, which it includes: vectors and matrices of four dimensions, dealt to four
// lanes. A lane has its coordinate of a vector, and its column of a matrix.
#pragma once
#include "core/vector.hpp"

namespace surefoot {

// A lane reads its own number alone.
template <class Number>
  requires std::is_same_v<Number, Quad>
__forceinline__ Number part(View<4> row, int) {
  return Quad(row.data()[own_place()]);
}

// A coordinate that may be written.
struct Coordinate {
  double& own;
  int place;

  operator double() const { return of_lane(own, place); }
  void operator=(double value) const { own = own_place() == place ? value : own; }
};

template <int Each>
class Vector<4, Each, true> {
 public:
  explicit Vector(int) {}

  static constexpr int size() { return 4 * Each; }
  Dealt<double> data() { return {own_}; }
  Dealt<const double> data() const { return {own_}; }
  Coordinate operator[](int i) { return {own_[i / 4], i % 4}; }
  double operator[](int i) const { return data()[i]; }
  double own() const { return own_[0]; }
  void fill(double value) {
    for (double& number : own_) number = value;
  }

 private:
  double own_[Each] = {};
};

template <>
class Matrix<4, true> {
 public:
  explicit Matrix(int) {}

  static constexpr int dim() { return 4; }
  static constexpr int stride() { return 4; }
  Dealt<double> data() { return {column_}; }
  Dealt<const double> data() const { return {column_}; }
  Dealt<double> row(int i) { return data() + 4 * i; }
  Dealt<const double> row(int i) const { return data() + 4 * i; }
  void fill(double value) {
    for (double& entry : column_) entry = value;
  }
  void identity(double scale) {
    fill(0.0);
    diagonal(scale);
  }
  void diagonal(double scale) {
    for (int i = 0; i < 4; ++i) column_[i] = own_place() == i ? scale : column_[i];
  }
  double own(int i) const { return column_[i]; }

 private:
  double column_[4] = {};
};

}  // namespace surefoot
