// The standard library on a GPU: NVIDIA's libcu++, and what it lacks of what the core uses. Every standard header that
// the core includes leads here, but for <vector> and <deque> (`arena_vector.hpp`).
#pragma once
#include <cuda/std/array>
#include <cuda/std/bit>
#include <cuda/std/cmath>
#include <cuda/std/concepts>
#include <cuda/std/cstddef>
#include <cuda/std/cstdint>
#include <cuda/std/initializer_list>
#include <cuda/std/limits>
#include <cuda/std/optional>
#include <cuda/std/span>
#include <cuda/std/type_traits>
#include <cuda/std/utility>

namespace std {

// One by one: `move` and `forward` are the compiler's own, and may not be there twice.
using ::ceil;
using ::floor;
using ::memcpy;
using cuda::std::array;
using cuda::std::bit_cast;
using cuda::std::conditional_t;
using cuda::std::convertible_to;
using cuda::std::dynamic_extent;
using cuda::std::exchange;
using cuda::std::fabs;
using cuda::std::fmax;
using cuda::std::fmin;
using cuda::std::int64_t;
using cuda::std::is_same_v;
using cuda::std::isfinite;
using cuda::std::isinf;
using cuda::std::isnan;
using cuda::std::numeric_limits;
using cuda::std::optional;
using cuda::std::ptrdiff_t;
using cuda::std::remove_reference_t;
using cuda::std::same_as;
using cuda::std::size_t;
using cuda::std::span;
using cuda::std::sqrt;
using cuda::std::swap;
using cuda::std::uint32_t;
using cuda::std::uint64_t;

// Names of policies, which nothing reads on a GPU.
struct string_view {
  constexpr string_view(const char*) {}
};

template <class A>
constexpr const A& min(const A& x, const A& y) {
  return y < x ? y : x;
}
template <class A>
constexpr const A& max(const A& x, const A& y) {
  return x < y ? y : x;
}
template <class It, class A>
void fill(It first, It last, const A& value) {
  for (; first != last; ++first) *first = value;
}
template <class From, class To>
To copy(From first, From last, To to) {
  for (; first != last; ++first, ++to) *to = *first;
  return to;
}
template <class From, class Count, class To>
To copy_n(From first, Count count, To to) {
  return copy(first, first + count, to);
}
template <class A, class B>
bool equal(A first, A last, B other) {
  for (; first != last; ++first, ++other) {
    if (!(*first == *other)) return false;
  }
  return true;
}
template <class A, class B>
B swap_ranges(A first, A last, B other) {
  for (; first != last; ++first, ++other) swap(*first, *other);
  return other;
}
namespace ranges {
template <class Range, class A>
void fill(Range& range, const A& value) {
  std::fill(range.begin(), range.end(), value);
}
}  // namespace ranges
template <class It>
void sort(It first, It last) {
  for (It at = first; at != last; ++at) {
    for (It to = at; to != first && *to < *(to - 1); --to) swap(*to, *(to - 1));
  }
}
template <class It>
void nth_element(It first, It, It last) {
  sort(first, last);
}

}  // namespace std
