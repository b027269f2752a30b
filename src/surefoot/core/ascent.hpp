// The ascent over a working set of facts: the weights at which they prove most, in closed form face by face.
//
// On the face where only the working facts have weight the maximum of h.mu - ||p - A^T mu|| has a closed form; on the
// way there a weight that would turn negative leaves (`search.hpp` says what the letters mean). If the value would rise
// without bound, no theta satisfies all facts.
#pragma once
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "split.hpp"

namespace surefoot {

enum class Status { found, refuted };

inline constexpr double DEPENDENT = 1e-11;  // squared sine below which a normal counts as a combination of the others
inline constexpr double SMOOTH = 1e-7;  // the norm is smoothed if so little is left of the question: at its corner any
                                        // weight is optimal
inline constexpr double CONTRADICTION = 1e-6;  // relative gap between facts that is a contradiction, and not rounding

// Facts in the whitened space, and room to work: A, h, p and u, kept between searches so that none allocates.
struct Whitened {
  int dim, room;
  Zeros normals, lower;  // large, and little of them is used
  std::vector<double> gaps, p, u, theta, direction, outward, inward, rest;

  Whitened(int dim_, int room_)
      : dim(dim_),
        room(room_),
        normals(square(room, dim)),
        lower(square(room, room)),
        gaps(line(room)),
        p(line(dim)),
        u(line(dim)),
        theta(line(dim)),
        direction(line(room)),
        outward(line(room)),
        inward(line(room)),
        rest(line(dim)) {}

  double* normal(int k) { return normals.data() + static_cast<std::ptrdiff_t>(k) * dim; }
  double& factor(int i, int j) { return factor_row(i)[j]; }
  double* factor_row(int i) { return lower.data() + static_cast<std::ptrdiff_t>(i) * room; }

 private:
  static std::size_t line(int n) { return static_cast<std::size_t>(n); }
  static std::size_t square(int n, int m) { return static_cast<std::size_t>(n) * static_cast<std::size_t>(m); }
};

template <int D>
class Ascent {
 public:
  Ascent(const Region<D>& region, Facts<D>& work, Whitened& space) : region_(region), work_(work), at_(space) {}

  // Removes a fact from the working set; the order of the others stays.
  void drop(int k) {
    factored_ = std::min(factored_, k);
    for (int i = k; i + 1 < work_.count; ++i) {
      std::swap(work_[i], work_[i + 1]);
      std::swap_ranges(at_.normal(i), at_.normal(i) + at_.dim, at_.normal(i + 1));
      gap(i) = gap(i + 1);
    }
    work_.count -= 1;
  }

  // A fact as the ascent sees it: a = radius M g and h = l - <c, g>.
  void whiten(int k) {
    factored_ = std::min(factored_, k);
    region_.whiten(work_[k].normal.data(), at_.normal(k));
    gap(k) = work_[k].level - dot(work_[k].normal.data(), region_.center.data(), at_.dim);
  }

  // p - A^T mu for the weights of the working facts.
  void rest(const std::vector<double>& weights) {
    for (int j = 0; j < at_.dim; ++j) at_.rest[index(j)] = at_.p[index(j)];
    for (int k = 0; k < work_.count; ++k) add_scaled(at_.rest.data(), -weights[index(k)], at_.normal(k), at_.dim);
  }

  double value() {
    double sum = 0.0;
    for (int k = 0; k < work_.count; ++k) {
      at_.direction[index(k)] = work_[k].weight;
      sum += work_[k].weight * gap(k);
    }
    rest(at_.direction);
    return sum - std::sqrt(square_length(at_.rest.data(), at_.dim));
  }

  // Weights at which the facts make up all of the question, where they can, in `direction`: at that corner the smoothed
  // norm leaves a little of it to the ellipsoid.
  bool fill() {
    if (work_.count == 0 || factorise() >= 0) return false;
    std::vector<double>&whole = at_.direction, &more = at_.inward;
    for (int k = 0; k < work_.count; ++k) whole[index(k)] = dot(at_.normal(k), at_.p.data(), at_.dim);
    solve(whole, work_.count);
    // Once more for what rounding has left.
    rest(whole);
    for (int k = 0; k < work_.count; ++k) more[index(k)] = dot(at_.normal(k), at_.rest.data(), at_.dim);
    solve(more, work_.count);
    for (int k = 0; k < work_.count; ++k) whole[index(k)] = larger(0.0, whole[index(k)] + more[index(k)]);
    return true;
  }

  // Moves the weights to the best of their face, dropping facts on the way; leaves the minimiser in u.
  Status climb() {
    const double size = std::sqrt(square_length(at_.p.data(), at_.dim));
    // Every pass returns or drops a fact, so this ends.
    while (work_.count > 0) {
      const int odd = factorise();
      if (odd >= 0) {
        if (leave_face(odd) == Status::refuted) return Status::refuted;
        continue;
      }
      const auto [who, is_refuted] = step(size);
      if (is_refuted) return Status::refuted;
      if (who < 0) return Status::found;
      drop(who);
    }
    for (int j = 0; j < at_.dim; ++j) at_.u[index(j)] = size > 0.0 ? -at_.p[index(j)] / size : 0.0;
    return Status::found;
  }

 private:
  const Region<D>& region_;
  Facts<D>& work_;
  Whitened& at_;
  int factored_ = 0;  // rows of the factor that are up to date

  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  double& gap(int k) { return at_.gaps[index(k)]; }

  // Cholesky of A A^T; the first fact whose normal depends on those before it, or -1. A row of it depends on the facts
  // up to its own alone, so that the first ones stay while others come and go.
  int factorise() {
    for (int i = factored_; i < work_.count; factored_ = ++i) {
      for (int j = 0; j <= i; ++j) {
        const double square = dot(at_.normal(i), at_.normal(j), at_.dim);
        const double entry = square - dot(at_.factor_row(i), at_.factor_row(j), j);
        if (i > j) {
          at_.factor(i, j) = entry / at_.factor(j, j);
        } else if (entry <= DEPENDENT * square || square == 0.0) {
          return i;
        } else {
          at_.factor(i, i) = std::sqrt(entry);
        }
      }
    }
    return -1;
  }

  // x = (A A^T)^-1 x for the first `count` facts.
  void solve(std::vector<double>& x, int count) {
    for (int i = 0; i < count; ++i)
      x[index(i)] = (x[index(i)] - dot(at_.factor_row(i), x.data(), i)) / at_.factor(i, i);
    for (int i = count - 1; i >= 0; --i) {
      for (int k = i + 1; k < count; ++k) x[index(i)] -= at_.factor(k, i) * x[index(k)];
      x[index(i)] /= at_.factor(i, i);
    }
  }

  struct Block {
    int who;
    double step;
  };

  // Which weight turns negative first along the direction, and after which step; (-1, most) if none does.
  Block blocking(const std::vector<double>& direction, double most) const {
    Block found{-1, most};
    const double least = -1e-12 * largest(direction.data(), work_.count);  // rounding of zero
    for (int k = 0; k < work_.count; ++k) {
      const double along = direction[index(k)];
      if (along < least && -work_[k].weight / along < found.step) found = {k, -work_[k].weight / along};
    }
    return found;
  }

  // Whether weights along a ray prove <theta, 0> > 0 despite rounding: only then is it certain that no theta is left.
  // In the whitened space, rounding of an ill-conditioned set, or of one that says nothing, may look the same.
  bool contradicts(const std::vector<double>& ray) const {
    const Vector<D> nothing(at_.dim);
    const double most = largest(ray.data(), work_.count);
    // A ray has no length of its own: any scale proves as much, and this one cannot overflow.
    const auto weight = [&](int k) { return larger(0.0, ray[index(k)] / most); };
    const auto [value, error] = weigh(region_, nothing.data(), work_, work_.count, weight);
    return value - error > 0.0;
  }

  // A fact that is a combination of others: weight moves between them and it, and the rest of q stays.
  Status leave_face(int odd) {
    std::vector<double>& mix = at_.inward;
    for (int k = 0; k < odd; ++k) mix[index(k)] = dot(at_.normal(k), at_.normal(odd), at_.dim);
    solve(mix, odd);
    double gain = gap(odd), total = std::fabs(gap(odd));
    for (int k = 0; k < odd; ++k) {
      gain -= mix[index(k)] * gap(k);
      total += std::fabs(mix[index(k)] * gap(k));
    }
    const double sign = gain >= 0.0 ? 1.0 : -1.0;
    std::vector<double>& direction = at_.direction;
    for (int k = 0; k < work_.count; ++k) direction[index(k)] = k < odd ? -sign * mix[index(k)] : 0.0;
    direction[index(odd)] = sign;
    auto [who, step] = blocking(direction, INFINITE);
    if (who < 0) {
      if (gain > CONTRADICTION * total && contradicts(direction)) return Status::refuted;
      // Nothing was proved but rounding: the fact that depends on the others leaves.
      who = odd;
      step = 0.0;
    }
    for (int k = 0; k < work_.count; ++k) work_[k].weight += step * direction[index(k)];
    drop(who);
    return Status::found;
  }

  struct Step {
    int who;  // the fact whose weight turned negative first, or -1 at the best of the face
    bool is_refuted;
  };

  Step step(double size) {
    const int count = work_.count, d = at_.dim;
    std::vector<double>&outward = at_.outward, &inward = at_.inward;
    for (int k = 0; k < count; ++k) outward[index(k)] = gap(k);
    solve(outward, count);
    double square = 0.0;
    for (int k = 0; k < count; ++k) square += outward[index(k)] * gap(k);
    for (int k = 0; k < count; ++k) inward[index(k)] = dot(at_.normal(k), at_.p.data(), d);
    solve(inward, count);
    rest(inward);
    // As many facts as dimensions leave nothing but rounding.
    if (count == d) std::ranges::fill(at_.rest, 0.0);
    double scale = 1.0;
    Block block{-1, 0.0};
    const std::vector<double>* direction = &outward;
    if (square < 1.0) {
      scale = std::sqrt(square_length(at_.rest.data(), d) / (1.0 - square));
      scale = size > 0.0 ? larger(scale, SMOOTH * size) : 1.0;
      for (int k = 0; k < count; ++k) inward[index(k)] += scale * outward[index(k)];
      const double least = 1e-12 * largest(inward.data(), count);
      for (int k = 0; k < count; ++k) {
        const double goal = std::fabs(inward[index(k)]) > least ? inward[index(k)] : 0.0;  // rounding of zero
        inward[index(k)] = goal - work_[k].weight;
      }
      direction = &inward;
      block = blocking(inward, 1.0);
    } else {  // no u of the ellipsoid meets all of them with equality: the value rises along this ray without bound
      block = blocking(outward, INFINITE);
      if (block.who < 0) {
        if (square > 1.0 + CONTRADICTION && contradicts(outward)) return {-1, true};
        block.step = 0.0;
      }
    }
    for (int k = 0; k < count; ++k) {
      work_[k].weight = larger(0.0, work_[k].weight + block.step * (*direction)[index(k)]);
    }
    if (block.who < 0) {
      for (int j = 0; j < d; ++j) at_.u[index(j)] = square < 1.0 ? -at_.rest[index(j)] / scale : 0.0;
      for (int k = 0; k < count; ++k) add_scaled(at_.u.data(), outward[index(k)], at_.normal(k), d);
    }
    return {block.who, false};
  }
};

}  // namespace surefoot
