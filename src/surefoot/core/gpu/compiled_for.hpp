// In the place of the core's `compiled_for.hpp`: RADIUS and IS_FIXED are what this program is compiled for.
#pragma once
#include "radius_kind.hpp"

namespace surefoot {

inline constexpr bool SETTINGS_CHANGE = false;

template <Radius Kind>
inline constexpr bool MAY_BE = Kind == static_cast<Radius>(RADIUS);
inline constexpr bool COUNTS_SURPRISES = MAY_BE<Radius::residual>;  // nothing else is made of them here

// Lies where the host wrote it.
template <class A>
using Declared = const A&;

// As large as what the host writes.
struct DeclaredRadius {
  Radius declared;

  DeclaredRadius(Radius kind) : declared(kind) {}
  constexpr operator Radius() const { return static_cast<Radius>(RADIUS); }
};

// What is not there: nothing that would use it is compiled.
template <class A>
struct Never {
  constexpr explicit operator bool() const { return false; }
  constexpr bool has_value() const { return false; }
  template <class... Given>
  A& emplace(Given&&...) {
    __trap();
    return **this;
  }
  A& operator*() const { __builtin_unreachable(); }
  A* operator->() const { __builtin_unreachable(); }
};

template <class A>
struct Always {
  A value;

  constexpr explicit operator bool() const { return true; }
  constexpr bool has_value() const { return true; }
  A& emplace() { return value; }
  A& operator*() { return value; }
  A* operator->() { return &value; }
};

template <bool Is, class A>
struct Choice {
  using Type = Always<A>;
};
template <class A>
struct Choice<false, A> {
  using Type = Never<A>;
};

inline constexpr bool MAY_BE_BOUNDED = false;
inline constexpr bool MAY_BE_FRESH = !IS_FIXED;
template <class A>
using WithBoundedRewards = Never<A>;
template <class A>
using WithFixedRows = typename Choice<IS_FIXED, A>::Type;

}  // namespace surefoot
