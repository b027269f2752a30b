// States as plain numbers, and back: each struct lists its members once, in the order in which they are saved.
#pragma once
#include <cmath>
#include <span>
#include <vector>

#include "damage.hpp"
#include "exact.hpp"
#include "vector.hpp"

namespace surefoot {

// A count is kept as a double, since it stands among doubles in sums; above 2^53 it would no longer count.
inline void check_count(double number) {
  if (!(number >= 0.0 && number <= 0x1p53 && number == std::floor(number))) {
    damaged("a count in it is no whole number of at least 0");
  }
}

// Writes members one after the other.
struct Writer {
  std::vector<double> numbers;

  void operator()(double value) { numbers.push_back(value); }
  void operator()(int value) { numbers.push_back(value); }
  void operator()(bool value) { numbers.push_back(value ? 1.0 : 0.0); }
  void block(const double* first, int count) { numbers.insert(numbers.end(), first, first + count); }
};

// Reads them back; a number that its member cannot hold is damage.
struct Reader {
  std::span<const double> numbers;
  std::size_t at = 0;

  double next() {
    if (at == numbers.size()) damaged("it is too short");
    return numbers[at++];
  }
  void operator()(double& value) { value = next(); }
  void operator()(int& value) {
    const double number = next();
    check_count(number);
    if (number > 1e9) damaged("a count in it is too large");
    value = static_cast<int>(number);
  }
  void operator()(bool& value) { value = next() > 0.0; }
  void block(double* first, int count) {
    for (int i = 0; i < count; ++i) first[i] = next();
  }
  void end() const {
    if (at != numbers.size()) damaged("it is too long");
  }
};

template <class Archive, class Member>
void keep(Archive& archive, Member& member) {
  if constexpr (requires { archive.block(member.data(), member.size()); }) {
    archive.block(member.data(), member.size());
  } else {
    archive(member);
  }
}

template <class Archive>
void keep(Archive& archive, Sum& sum) {
  archive(sum.value);
  archive(sum.carry);
}

template <class Archive, int D>
void keep(Archive& archive, SumVector<D>& sums) {
  keep(archive, sums.value);
  keep(archive, sums.carry);
}

template <class Archive, int D>
void keep(Archive& archive, Matrix<D>& matrix) {
  for (int i = 0; i < matrix.dim(); ++i) archive.block(matrix.row(i), matrix.dim());
}

template <class State>
std::vector<double> saved(State& state) {
  Writer writer;
  state.each([&](auto& member) { keep(writer, member); });
  return std::move(writer.numbers);
}

// Into a copy first: what raises has changed nothing.
template <class State>
void restore(State& state, std::span<const double> numbers) {
  State copy = state;
  Reader reader{numbers};
  copy.each([&](auto& member) { keep(reader, member); });
  reader.end();
  // What is not saved follows from what is.
  if constexpr (requires { copy.after_reading(); }) copy.after_reading();
  state = std::move(copy);
}

}  // namespace surefoot
