"""Compiled code counts from the front: an index that is computed is never negative.

numba lets a negative index count from the end, as Python does, and tests for it at every access. The processor then
cannot take neighbours together, and loops over long vectors run up to twenty times slower. Nothing in this package
uses such an index, so while its functions are compiled every computed index is declared unsigned. Constant indices,
`x[-1]` among them, stay as they are.
"""

from typing import Any

from numba.core import ir, types
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.ir_utils import build_definitions, mk_unique_var
from numba.core.untyped_passes import ReconstructSSA
from numba.extending import intrinsic


@intrinsic
def unsigned(typing_context: Any, index: Any) -> Any:
    """The same index, with no sign where it is a whole number or has some among its parts."""

    def same(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return args[0]

    return _counted(index)(index), same


def _counted(index: Any) -> Any:
    plain: Any = types.unliteral(index)
    if isinstance(plain, (types.Tuple, types.UniTuple)):
        return types.Tuple([_counted(part) for part in plain.types])
    return types.uintp if plain == types.intp else plain


@register_pass(mutates_CFG=False, analysis_only=False)
class CountFromFront(FunctionPass):
    """Pass every computed index through `unsigned`."""

    _name = "surefoot_count_from_front"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Rewrite the function, before its types are known."""
        blocks = state.func_ir.blocks
        changes = [_rewrite(block) for block in blocks.values()]
        if any(changes):
            # numba keeps a table of who defines what, and does not notice new variables by itself.
            state.func_ir._definitions = build_definitions(blocks)
        return any(changes)


def _rewrite(block: Any) -> bool:
    body: list[Any] = []
    for statement in block.body:
        access = statement if isinstance(statement, ir.SetItem) else getattr(statement, "value", None)
        if isinstance(access, ir.SetItem) or (isinstance(access, ir.Expr) and access.op == "getitem"):
            declared, function = (ir.Var(block.scope, mk_unique_var(f"${name}"), access.loc) for name in "iu")
            body.append(ir.Assign(ir.Global("unsigned", unsigned, access.loc), function, access.loc))
            body.append(ir.Assign(ir.Expr.call(function, [access.index], (), access.loc), declared, access.loc))
            access.index = declared
        body.append(statement)
    has_changed = len(body) > len(block.body)
    block.body = body
    return has_changed


class Compiler(CompilerBase):
    """numba's own compiler with that one step more."""

    def define_pipelines(self) -> list[Any]:
        """The steps, in order."""
        steps = DefaultPassBuilder.define_nopython_pipeline(self.state)
        # Before types are inferred: afterwards numba has chosen the signed access.
        steps.add_pass_after(CountFromFront, ReconstructSSA)
        steps.finalize()
        return [steps]
