// In the place of the core's `exact.hpp`, which it includes: what a product's rounding lost is one instruction of a
// GPU.
#pragma once
#include "core/exact.hpp"

namespace surefoot {

__forceinline__ Rounded<Quad> two_product(double x, Quad y) {
  const double product = x * y.own;
  return {Quad(product), Quad(fused(x, y.own, -product))};
}

}  // namespace surefoot
