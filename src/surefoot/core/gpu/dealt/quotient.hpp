// Roots and quotients without a branch: where each has one of its own for numbers that are not ordinary, a compiler
// works on one after the other. Both are rounded correctly wherever nothing on the way leaves the normal numbers, which
// the host sees to (`are_ordinary` in `surefoot.simulation.gpu_programs`).  (Markstein 1990)
#pragma once
#include <cmath>

namespace surefoot {

#ifdef __CUDA_ARCH__
// x y + z, rounded once; its mark tells it from what a compiler might fuse.
__forceinline__ double fused(double x, double y, double z) {
  double sum;
  asm("fma.rn.f64 %0, %1, %2, %3; // exact" : "=d"(sum) : "d"(x), "d"(y), "d"(z));
  return sum;
}

__forceinline__ double quotient(double x, double y) {
  double rough;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(rough) : "d"(y));
  rough =
      __hiloint2double(__double2hiint(rough), 1);  // as in CUDA's own: else a y of ones alone ends beside its quotient
  const double off = fused(-y, rough, 1.0), closer = fused(fused(off, off, off), rough, rough);
  const double reciprocal = fused(fused(-y, closer, 1.0), closer, closer), found = x * reciprocal;
  // What is left of x, with the sign that keeps a zero's.
  return fused(-fused(y, found, -x), reciprocal, found);
}

__forceinline__ double root(double x) {
  double rough;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(rough) : "d"(x));
  const double off = fused(-x, rough * rough, 1.0);
  const double inverse = fused(fused(off, 0.375, 0.5), rough * off, rough), found = x * inverse;
  return x == 0.0 ? x : fused(fused(-found, found, x), 0.5 * inverse, found);
}
#else
inline double fused(double x, double y, double z) { return __builtin_fma(x, y, z); }
inline double quotient(double x, double y) { return x / y; }
inline double root(double x) { return std::sqrt(x); }
#endif

}  // namespace surefoot
