"""Systems of equations: sizes, tests, mistakes, mutants, libraries."""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from cudalab.labs.evidence import Evidence, Finding
from cudalab.labs.inputs import Case, HostInputs
from cudalab.labs.libraries import CUPY, NUMPY, Compute, Libraries, Problem, Way
from cudalab.labs.teaching import Mutant, Params, PublicTest, Showcase, Sizes, Skeleton
from cudalab.labs.teaching import Teaching as Base

REFINED_FROM = ("FP32", "TF32", "FP16")  # cuSOLVER's arithmetic for factors that it refines
CONVERGES = "dominant"  # the distribution for which all of the course's iterations converge
# Launch plans that solve any system, and their numbers of operations for n unknowns.
DIRECT = {"lu": lambda n: 2 * n**3 // 3, "gauss_jordan": lambda n: n**3}
# The other launch plans, and the distributions of the tests that they solve besides CONVERGES.
SOME = {
    "richardson": ("tridiagonal", "unsymmetric", "spd"),
    "jacobi": ("unsymmetric",),
    "chebyshev": ("tridiagonal", "spd"),
    "conjugate_gradient": ("tridiagonal", "spd"),
    "descent": ("tridiagonal", "spd"),
    "cholesky": ("spd",),
}


class SolveLibraries(Libraries):
    """LAPACK, and cuSOLVER through CuPy."""

    names = (NUMPY, CUPY)

    def compute(self, problem: Problem) -> Compute:
        """Solve by LAPACK's LU factors with pivoting."""
        arrays, out = problem.arrays, problem.out

        def solve_system() -> None:
            out[...] = problem.xp.linalg.solve(arrays["a"], arrays["f"])

        return solve_system

    def cupy(self, problem: Problem) -> Sequence[Way]:
        """Solve by cuSOLVER's LU factors, and Cholesky factors if A is positive definite."""
        cupy, vendor, out = problem.xp, problem.vendor, problem.out
        a, f = problem.arrays["a"], problem.arrays["f"]
        factors = cupy.empty_like(a)

        def solve_lu() -> None:
            cupy.copyto(factors, a)  # both are overwritten
            cupy.copyto(out, f)
            vendor.lapack.gesv(factors, out)

        def solve_cholesky() -> None:
            out[...] = vendor.lapack.posv(a, f)

        def solve_refined(kind: str) -> None:
            out[...] = vendor.solve_refined(kind, a, f)

        ways = [Way(solve_lu, ["cuSOLVER's LU factors"])]
        if a.dtype == np.float32:
            ways += [
                Way(partial(solve_refined, kind), [f"cuSOLVER's factors in {kind}, refined"], kind)
                for kind in REFINED_FROM
            ]
        if bool((a == a.T).all()):
            try:
                with vendor.errstate(linalg="raise"):
                    solve_cholesky()
            except np.linalg.LinAlgError:
                return ways
            notes = ["cuSOLVER's Cholesky factor; only for positive definite matrices"]
            ways.append(Way(solve_cholesky, notes, "Cholesky"))
        return ways


class Teaching(Base):
    """Systems of equations."""

    topic = "convergence"
    usual_sizes = Sizes(
        bench={"cuda": 1024, "cpu": 128},
        timed={"cuda": 1024, "cpu": 128},
        sanitized=(63, 65),
        sample=2,
        is_order=True,
    )
    timed_dist = CONVERGES
    tests = (
        PublicTest("nothing at all", 0, "dominant"),
        PublicTest("one equation", 1, "dominant"),
        PublicTest("two equations", 2, "random"),
        PublicTest("tridiagonal", 5, "tridiagonal"),
        PublicTest("a warp and one", 33, "unsymmetric"),
        PublicTest("zeros on the diagonal", 63, "pivot"),
        PublicTest("symmetric", 64, "spd"),
        PublicTest("several blocks", 319, "random"),
    )
    kernel_tests = (
        *tests,
        PublicTest("a NaN", 40, "nan", refuse=True),
        PublicTest("one less than whole warps", 191, "random"),
        PublicTest("columns of different size", 287, "scaled"),
        PublicTest("fewer columns of different size", 191, "scaled"),
        PublicTest("a thousand equations", 1025, "random", large=True),
    )
    mutants = (Mutant("jacobi", "x0[row] + (f", "x0[row] - (f", "the wrong sign"),)
    showcases = (Showcase("richardson", "richardson_coalesced", "lanes that read far apart"),)
    skeleton = Skeleton("jacobi", ("solve/parts/residual.cuh", "solve/parts/spectrum.cuh"))
    libraries = SolveLibraries()
    scattered = True

    def public_tests(self, case: Case, dispatch: str | None) -> Sequence[PublicTest]:
        """The tests, more of them for kernels; a kernel gets systems that its method solves."""
        if dispatch is None:
            return super().public_tests(case, dispatch)
        if dispatch not in SOME:
            return self.kernel_tests
        solved = SOME[dispatch]

        def solvable(dist: str) -> str:
            dist = "spd" if dist == "random" else dist
            return dist if dist in solved else CONVERGES

        return [
            one if one.refuse else one._replace(dist=solvable(one.dist))
            for one in self.kernel_tests
        ]

    def flops(self, params: Params) -> int:
        """2/3 n^3 for LU factors and 2 n^2 for the substitutions."""
        n = int(params["n"])
        return 2 * n**3 // 3 + 2 * n * n

    def own_flops(self, dispatch: str, inputs: HostInputs) -> int:
        """The operations of a direct method, or of one product with A in an iteration."""
        n = int(inputs.params["n"])
        return DIRECT[dispatch](n) if dispatch in DIRECT else 2 * n * n

    def mistakes(self, e: Evidence) -> Iterator[Finding]:
        """Recognise a wrong sign, a transposed system, too few iterations, missing pivots."""
        a, f = (np.asarray(e.inputs.arrays[name], np.float64) for name in ("a", "f"))
        x = e.got.astype(np.float64)
        if not np.isfinite(x).all() or x.size == 0:
            return
        if not x.any():
            yield Finding("zeros", "x is 0", "the iteration did not begin, or x was never written")
        elif np.allclose(a @ x, -f, rtol=1e-3, atol=1e-3 * float(np.abs(f).max())):
            yield Finding(
                "the sign",
                "A x = -f",
                "the course's iteration is x + alpha (A x - f): mind the sign",
            )
        elif x.size > 1 and np.allclose(a.T @ x, f, rtol=1e-3, atol=1e-3 * float(np.abs(f).max())):
            yield Finding("transposed", "x solves the transposed system", "a[row * n + col]")
        else:
            diagonal = np.diag(a)
            if diagonal.all() and e.same(f / diagonal):
                yield Finding(
                    "one iteration", "x is f over the diagonal", "iterate until it converges"
                )
            elif (np.abs(diagonal) < 1e-6 * np.abs(a).max()).any():
                yield Finding(
                    "needs pivoting",
                    "there are zeros or tiny numbers on the diagonal",
                    "exchange rows so that each pivot is the greatest of its column",
                )
            else:
                yield Finding(
                    "not converged",
                    "x does not solve the system as well as it must",
                    "more iterations, a smaller tolerance, or another method",
                    "cudalab explain convergence",
                )
