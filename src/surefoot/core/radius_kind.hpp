// The kinds of radius (`radius.hpp`), by the numbers that Python gives them.
#pragma once

namespace surefoot {

enum class Radius { paper, logdet, amm, dual, residual, likelihood, best, last = best };

}  // namespace surefoot
