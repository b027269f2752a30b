// A struct of doubles as the array it is saved as, and back.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "bindings/arrays.hpp"

namespace surefoot {

// Raises ValueError unless there are as many numbers as there should be.
inline void check_size(std::size_t found, std::size_t expected, const char* what) {
  if (found == expected) return;
  throw nanobind::value_error(
      (std::string(what) + " must hold " + std::to_string(expected) + " numbers, but got " + std::to_string(found))
          .c_str());
}

// Structs of doubles and nothing else, whose members are saved in the order in which they are listed.
template <class Struct>
concept Saved = std::is_trivially_copyable_v<Struct> && sizeof(Struct) % sizeof(double) == 0;

template <Saved Struct>
using NumbersOf = std::array<double, sizeof(Struct) / sizeof(double)>;

template <Saved Struct>
Struct read(const double* saved) {
  NumbersOf<Struct> numbers;
  std::copy_n(saved, numbers.size(), numbers.begin());
  return std::bit_cast<Struct>(numbers);
}

template <Saved Struct>
Array save(const Struct& state) {
  const auto numbers = std::bit_cast<NumbersOf<Struct>>(state);
  return array_of({numbers.begin(), numbers.end()}, {numbers.size()});
}

template <Saved Struct>
void load(Struct& state, const VectorIn& saved) {
  check_size(saved.size(), NumbersOf<Struct>().size(), "What is saved");
  state = read<Struct>(saved.data());
}

// The same of several, one row each.
template <Saved Struct>
Array save_rows(const std::vector<Struct>& structs) {
  std::vector<double> all;
  for (const Struct& one : structs) {
    const auto numbers = std::bit_cast<NumbersOf<Struct>>(one);
    all.insert(all.end(), numbers.begin(), numbers.end());
  }
  return array_of(std::move(all), {structs.size(), NumbersOf<Struct>().size()});
}

template <Saved Struct>
void load_rows(std::vector<Struct>& structs, const MatrixIn& saved) {
  check_size(saved.shape(0), structs.size(), "What is saved");
  check_size(saved.shape(1), NumbersOf<Struct>().size(), "What is saved");
  for (std::size_t i = 0; i < structs.size(); ++i) structs[i] = read<Struct>(&saved(i, 0));
}

}  // namespace surefoot
