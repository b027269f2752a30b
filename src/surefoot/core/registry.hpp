// Every policy of the core. A new one is a line here.
#pragma once
#include "clucb.hpp"
#include "clucb2.hpp"
#include "conservative_ucb.hpp"
#include "lucb.hpp"
#include "safe_lucb.hpp"
#include "ucb.hpp"

namespace surefoot {

// Calls `bind` for each policy: those over features in the paper's dimension, for which every loop is unrolled, and in
// any.
template <class Bind>
void each_linear_policy(Bind bind) {
  bind.template operator()<Lucb>();
  bind.template operator()<Clucb>();
  bind.template operator()<Clucb2>();
  bind.template operator()<SafeLucb>();
}

template <class Bind>
void each_arm_policy(Bind bind) {
  bind.template operator()<Ucb>();
  bind.template operator()<ConservativeUcb>();
}

static_assert(Policy<Lucb<4>> && Policy<Clucb<4>> && Policy<Clucb2<4>> && Policy<SafeLucb<4>>);
static_assert(Policy<Lucb<any>> && Policy<Clucb<any>> && Policy<Clucb2<any>> && Policy<SafeLucb<any>>);
static_assert(Policy<Ucb> && Policy<ConservativeUcb>);

}  // namespace surefoot
