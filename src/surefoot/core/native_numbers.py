"""Functions of single numbers and draws, with types: the same bits on every machine."""

from surefoot.core import native

log, log1p, exp, expm1, normal_quantile = native.log, native.log1p, native.exp, native.expm1, native.normal_quantile
philox, uniform_at, normal_at = native.philox, native.uniform_at, native.normal_at
