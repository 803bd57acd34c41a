"""CEL, the language of rules in CRDs and admission policies, with the libraries that Kubernetes adds to it.

CEL's own parser reads an expression; checking and running are done here, on plain JSON values as they lie, since
converting an object for every rule would cost more than the rule. ``compile_expression`` gives a Program, once;
``Program.evaluate`` gives a value or raises CelError. Anything but True fails a rule.
"""

from shoal.cluster.apiserver.cel.program import Program, compile_expression
from shoal.cluster.apiserver.cel.syntax import CompileError
from shoal.cluster.apiserver.cel.values import CelError

__all__ = ["CelError", "CompileError", "Program", "compile_expression"]
