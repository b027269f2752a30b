"""What the data say of theta: ridge state, radius, confidence sets, action sets, feature maps."""

from surefoot.linear.actions import ActionSet, Catalogue, EuclideanBall, Optimum, Polytope, Vertices
from surefoot.linear.ellipsoid import Ball, Ellipsoid
from surefoot.linear.features import Disjoint, FeatureMap, Interactions, OneHot, Shared
from surefoot.linear.nested import Nested, Split
from surefoot.linear.radius import bound_theta

__all__ = [
    "ActionSet",
    "Ball",
    "Catalogue",
    "Disjoint",
    "Ellipsoid",
    "EuclideanBall",
    "FeatureMap",
    "Interactions",
    "Nested",
    "OneHot",
    "Optimum",
    "Polytope",
    "Shared",
    "Split",
    "Vertices",
    "bound_theta",
]
