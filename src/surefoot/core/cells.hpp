// Distinct rows of features, and what happened on each: rewards that were learned, or rounds that were booked.
#pragma once
#include <bit>
#include <cstdint>
#include <vector>

#include "archive.hpp"
#include "vector.hpp"

namespace surefoot {

inline constexpr int CELLS = 1024;  // rows that are told apart

struct Cell {
  double successes = 0.0, failures = 0.0;            // rewards in units of their bounds, and what they fell short of 1
  double played = 0.0, kept = 0.0, displaced = 0.0;  // by the learner; by the baseline; the baseline's, not played

  bool is_learned() const { return successes + failures > 0.0; }
  // Of a row whose rewards say nothing on one side, a range says more than they do.
  bool is_silent() const { return !(successes > 0.0 && failures > 0.0); }
};

// In the order in which they came.
template <int D>
struct Cells {
  int dim_;
  std::vector<Cell> all;
  std::vector<double> rows;
  std::vector<std::uint64_t> keys;

  explicit Cells(int dim) : dim_(dim) {}

  int count() const { return static_cast<int>(all.size()); }
  bool is_full() const { return count() == CELLS; }
  int dim() const { return D == any ? dim_ : D; }
  View<D> row(int i) const { return view<D>(rows.data() + static_cast<std::ptrdiff_t>(i) * dim(), dim()); }
  Cell& operator[](int i) { return all[static_cast<std::size_t>(i)]; }
  const Cell& operator[](int i) const { return all[static_cast<std::size_t>(i)]; }

  // The place of a row, or -1.
  int find(View<D> x) const {
    const std::uint64_t key = key_of(x);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (keys[i] != key) continue;
      const View<D> there = row(static_cast<int>(i));
      if (std::equal(x.begin(), x.end(), there.begin())) return static_cast<int>(i);
    }
    return -1;
  }

  // Where there is room.
  int add(View<D> x) {
    all.emplace_back();
    rows.insert(rows.end(), x.begin(), x.end());
    keys.push_back(key_of(x));
    return count() - 1;
  }

  // Forgets those that came after the first `count`.
  void keep_first(int count) { resize(static_cast<std::size_t>(count)); }

  // Keeps those of which `stays(i)` is true, in their order.
  template <class Stays>
  void thin(Stays stays) {
    std::size_t left = 0;
    const auto d = static_cast<std::size_t>(dim());
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!stays(static_cast<int>(i))) continue;
      all[left] = all[i];
      keys[left] = keys[i];
      std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(i * d), d,
                  rows.begin() + static_cast<std::ptrdiff_t>(left * d));
      ++left;
    }
    resize(left);
  }

  template <class Visit>
  void each(Visit visit) {
    int size = count();
    visit(size);
    if (size > CELLS) damaged("it holds more rows than there is room for");
    resize(static_cast<std::size_t>(size));
    for (double& number : rows) visit(number);
    for (int i = 0; i < size; ++i) {
      Cell& cell = (*this)[i];
      for (double* number : {&cell.successes, &cell.failures, &cell.played, &cell.kept, &cell.displaced}) {
        visit(*number);
        if (!(*number >= 0.0)) damaged("a row in it was met less than never");
      }
      keys[static_cast<std::size_t>(i)] = key_of(row(i));
    }
  }

 private:
  void resize(std::size_t size) {
    all.resize(size);
    keys.resize(size);
    rows.resize(size * static_cast<std::size_t>(dim()));
  }

  static std::uint64_t key_of(View<D> x) {
    std::uint64_t key = 0x9e3779b97f4a7c15ULL;
    for (const double number : x) {
      // 0.0 and -0.0 are equal, and must have one key.
      key = (key ^ std::bit_cast<std::uint64_t>(number + 0.0)) * 0xff51afd7ed558ccdULL;
      key ^= key >> 32;
    }
    return key;
  }
};

}  // namespace surefoot
