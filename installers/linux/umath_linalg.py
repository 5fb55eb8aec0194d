"""In place of NumPy's module of this name, which brings LAPACK along: the app solves no equations.

`numpy.linalg` imports it with NumPy itself, and asks for what is in it when it is called.
"""


def __getattr__(name: str) -> object:
    if name.startswith("__"):
        raise AttributeError(name)

    def left_out(*_: object, **__: object) -> None:
        raise NotImplementedError(f"the installed Slipstream has no LAPACK, which `{name}` needs")

    return left_out
