"""What is put in again without the parts that nothing calls answers as before."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from installers.slipstream_package import elf, lighter
from installers.slipstream_package.errors import PackageError

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or not shutil.which("cc"),
    reason="libraries of Linux, linked by its compiler",
)


def package(name: str) -> Path:
    spec = find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def asked(code: str, **environment: str) -> str:
    """What a Python says that runs `code`, with the same in its search path besides."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def numpy(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with NumPy as the installed app has it."""
    folder = tmp_path_factory.mktemp("internal")
    whole = package("numpy")
    if not any(whole.with_name("numpy.libs").glob("libscipy_openblas64_*")):
        pytest.skip("this NumPy is no wheel with OpenBLAS")
    for name in ("numpy", "numpy.libs"):
        shutil.copytree(whole.with_name(name), folder / name)
    for library in (folder / "numpy.libs").iterdir():
        (folder / library.name).symlink_to(f"numpy.libs/{library.name}")
    lighter.lighten_numpy(folder)
    assert all(file.exists() for file in folder.iterdir())
    assert [file.name[:20] for file in (folder / "numpy.libs").iterdir()] == [
        "libscipy_openblas64_"
    ]
    return str(folder)


# Whole numbers that are small enough for every sum to be exact, whatever the order.
PRODUCTS = """
import numpy as np
draw = iter(range(10**9))
def matrix(kind, *shape):
    count = int(np.prod(shape))
    values = np.array([next(draw) * 7 % 19 - 9 for _ in range(count)], dtype=object)
    if kind in "FD":
        values = values + 1j * np.array([next(draw) * 5 % 17 - 8 for _ in range(count)], object)
    return values.reshape(shape).astype(kind)
def views(a):
    yield a
    yield np.asfortranarray(a)
    yield np.repeat(np.repeat(a, 2, 0), 3, 1)[::2, ::3]
    yield a[::-1, ::-1].copy()[::-1, ::-1]
def exact(a, b):
    return np.asarray(a.astype(object) @ b.astype(object)).astype(a.dtype)
checked = 0
for kind in "fdFD":
    for m, k, n in [(1, 1, 1), (2, 3, 5), (17, 16, 9), (4, 33, 1), (1, 40, 8), (3, 0, 2)]:
        for a in views(matrix(kind, m, k)):
            for b in views(matrix(kind, k, n)):
                assert (a @ b == exact(a, b)).all(), (kind, m, k, n)
                assert (np.dot(a, b[:, 0]) == exact(a, b[:, :1])[:, 0]).all()
                assert (np.dot(a[0], b) == exact(a[:1], b)[0]).all()
                assert np.dot(a[0], b[:, 0]) == exact(a[:1], b[:, :1])[0, 0]
                assert np.vdot(a[0], b[:, 0]) == exact(a[:1].conj(), b[:, :1])[0, 0]
                into = np.full((m, n), np.nan, kind)
                assert (np.matmul(a, b, out=into) == exact(a, b)).all()
                checked += 1
            assert (a @ a.T == exact(a, a.T)).all()
            assert (a.T @ a == exact(a.T, a)).all()
            assert (np.dot(a, np.array(2, kind)) == a + a).all()
            if k:
                scalar = np.array([[3]], kind)
                assert (np.dot(scalar, a[:1]) == 3 * a[:1]).all()
                assert (np.dot(a[:, :1], scalar) == 3 * a[:, :1]).all()
long = np.arange(1000, dtype="d") % 7
assert np.dot(long, long) == float(sum(int(v) ** 2 for v in long))
assert np.isnan(np.dot(np.array([np.nan, 1.0]), np.array([0.0, 1.0])))
print(checked, np.__file__)
"""


def test_numpy_multiplies_without_openblas(numpy: str) -> None:
    checked, file = asked(PRODUCTS, PYTHONPATH=numpy).split()
    assert file.startswith(numpy)
    assert int(checked) == 4 * 6 * 16


def test_what_needs_lapack_says_so(numpy: str) -> None:
    code = """
import numpy as np
try:
    np.linalg.inv(np.eye(2))
except NotImplementedError as error:
    print(error, np.__file__)
"""
    told = asked(code, PYTHONPATH=numpy)
    assert "has no LAPACK, which `inv` needs" in told
    assert numpy in told


def test_a_numpy_that_asks_for_more_is_not_shipped(
    numpy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(numpy, tmp_path, dirs_exist_ok=True)
    source = (lighter.TEMPLATES / "blas.c").read_text(encoding="utf-8")
    shutil.copy(lighter.TEMPLATES / "umath_linalg.py", tmp_path)
    (tmp_path / "blas.c").write_text(source.replace("DOT_REAL(s, float)\n", ""))
    monkeypatch.setattr(lighter, "TEMPLATES", tmp_path)
    with pytest.raises(PackageError, match=r"asks for scipy_cblas_sdot64_: see blas\.c"):
        lighter.lighten_numpy(tmp_path)


# All that Python can ask of Qt which Qt asks of ICU.
LOCALES = """
import functools, json
from PySide6.QtCore import QCollator, QDateTime, QLocale, QStringConverter, QTimeZone
words = ("zebra Zebra \\u00e4hnlich \\u00c4hre apfel \\u00d6l \\u00f1u nu ccc chci \\u010daj cesta "
         "\\u4e2d \\u6587 \\u4e00 \\uc544 \\uac00 \\u3042 \\u30a2 \\uff71 cot\\u00e9 c\\u00f4te "
         "\\u00e5 z \\u00f8 \\u0142 i \\u0131 \\u0130 I 10 9").split()
told = {"codecs": QStringConverter.availableCodecs()}
for name in "C en_US de_AT sv_SE cs_CZ es_ES tr_TR ja_JP zh_CN zh_TW ko_KR da_DK th_TH".split():
    locale = QLocale(name)
    order = QCollator(locale)
    told[name] = [sorted(words, key=functools.cmp_to_key(order.compare)),
                  [locale.toUpper(word) + locale.toLower(word) for word in words]]
    for zone in (b"Europe/Berlin", b"Asia/Kolkata", b"US/Pacific"):
        told[name] += [QTimeZone(zone).displayName(kind, form, locale)
                       for kind in (QTimeZone.StandardTime, QTimeZone.DaylightTime)
                       for form in (QTimeZone.LongName, QTimeZone.ShortName)]
print(json.dumps(told))
"""


@pytest.fixture
def icu(tmp_path: Path) -> Path:
    """A folder with copies of Qt's core and its ICU."""
    whole = package("PySide6") / "Qt/lib"
    files = [*whole.glob("libicu*.so.*"), *whole.glob("libQt6Core.so.6")]
    if len(files) != 4:
        pytest.skip("this Qt is no wheel with an ICU of its own")
    for file in files:
        shutil.copy(file, tmp_path)
    return tmp_path


def test_qt_sorts_converts_and_names_as_with_all_of_icu(icu: Path) -> None:
    (data,) = icu.glob("libicudata.so.*")
    whole = data.stat().st_size
    before = lighter.read_items(elf.only_object(data)[1])
    lighter.lighten_icu(icu)
    assert data.stat().st_size < whole / 2
    items = lighter.read_items(elf.only_object(data)[1])
    assert set(items) < set(before)
    assert all(items[name].rstrip(b"\0") == before[name].rstrip(b"\0") for name in items)
    with_all = json.loads(asked(LOCALES))
    # It has the name of the whole one, which is not loaded then.
    less = json.loads(asked(LOCALES, LD_PRELOAD=str(data)))
    assert less == with_all
    assert with_all["sv_SE"] != with_all["de_AT"]
    assert len(with_all["codecs"]) > 100


def test_a_qt_that_calls_more_of_icu_is_not_shipped(
    icu: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lighter, "QT_CALLS", re.compile(r"uc(nv|ol)_\w+|u_strTo\w+|UCNV_\w+"))
    with pytest.raises(PackageError, match=r"Qt calls ucal_close, .* of ICU"):
        lighter.lighten_icu(icu)


def test_other_data_are_not_taken_for_icus(tmp_path: Path) -> None:
    with pytest.raises(PackageError, match="not in the form that is known"):
        lighter.read_items(bytes(64))
    source = tmp_path / "two.c"
    source.write_text("const char first[4], second[4];\n")
    library = tmp_path / "libicudata.so.1"
    lighter._compile(library, source)
    with pytest.raises(PackageError, match="has 2 names"):
        elf.only_object(library)
