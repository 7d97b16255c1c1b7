"""The untyped parts of Numba and llvmlite that the builder needs."""

from importlib import import_module
from typing import Any

cgutils: Any = import_module("numba.core.cgutils")
codegen: Any = import_module("numba.core.codegen")
compiler: Any = import_module("numba.core.compiler")
cpu_target: Any = import_module("numba.core.registry").cpu_target
CPUCallConv: Any = import_module("numba.core.callconv").CPUCallConv
CPUContext: Any = import_module("numba.core.cpu").CPUContext
global_compiler_lock: Any = import_module("numba.core.compiler_lock").global_compiler_lock
intrinsic: Any = import_module("numba.extending").intrinsic
ir: Any = import_module("llvmlite.ir")
llvm: Any = import_module("llvmlite.binding")
Lower: Any = import_module("numba.core.lowering").Lower
populate_array: Any = import_module("numba.np.arrayobj").populate_array
typeof: Any = import_module("numba").typeof
types: Any = import_module("numba.core.types")
