"""Arguments as text."""

from __future__ import annotations

import numpy as np
import pytest

from fasim.errors import UsageError
from fasim.numerics.dtypes import DTYPES, bf16_bits, to_float64
from fasim.sm import values as v

FILLED = [
    ("q=f16[2,3]:zeros", np.zeros((2, 3), np.float16)),
    ("q=f32[2x3]:ones", np.ones((2, 3), np.float32)),
    ("q=i8[3]:full(-7)", np.full(3, -7, np.int8)),
    ("q=u64[2]:full(0xffffffffffffffff)", np.full(2, 2**64 - 1, np.uint64)),
    ("q=f64[2]:full(-inf)", np.full(2, -np.inf)),
    ("q=i16[2,2]:arange", np.array([[0, 1], [2, 3]], np.int16)),
    ("q=bool[2]:ones", np.array([True, True])),
    ("q=bf16[2]:full(1.5)", np.full(2, 0x3FC0, np.uint16)),
    ("q=bf16[3]:arange", np.array([0, 0x3F80, 0x4000], np.uint16)),
    ("q=i32[2]:uninit", np.full(2, -1, np.int32)),
    ("q=u8[0]:zeros", np.zeros(0, np.uint8)),
    ("q=f32[4]:normal", np.random.default_rng([9, 4]).standard_normal(4, dtype=np.float32)),
    ("q=f16[4]:normal", np.random.default_rng([9, 4]).standard_normal(4, dtype=np.float32).astype(np.float16)),
    ("q=f64[4]:uniform(-1,3)", 4 * np.random.default_rng([9, 4]).random(4) - 1),
    ("q=i32[50]:randint(-5,5)", np.random.default_rng([9, 4]).integers(-5, 5, 50, dtype=np.int32)),
    ("q=u64[50]:randint(0,0x10000000000000000)", np.random.default_rng([9, 4]).integers(0, 2**64, 50, dtype=np.uint64)),
]


@pytest.mark.parametrize(("text", "want"), FILLED, ids=[text for text, _ in FILLED])
def test_arrays(text, want):
    got = v.parse_argument(text, 4, 9)
    assert got.name == "q"
    assert got.value.dtype == want.dtype and got.value.shape == want.shape
    assert got.value.tobytes() == want.tobytes()
    assert got.value.flags.writeable and got.value.flags.c_contiguous


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_takes_bits(dtype):
    first, again, other = (v.parse_argument(f"{dtype}[64]:bits", 0, seed).value for seed in (0, 0, 1))
    assert first.tobytes() == again.tobytes() != other.tobytes()
    assert first.dtype == DTYPES[dtype]
    if dtype != "bool":
        assert len(np.unique(first.view(np.uint8))) > 20


SCALARS = [
    ("n=i32:128", np.int32(128)),
    ("n=u8:0xff", np.uint8(255)),
    ("n=f16:0.1", np.float16(0.1)),
    ("n=bf16:1.0", np.uint16(0x3F80)),
    ("n=f32:0x1.8p1", np.float32(3)),
    ("n=bool:true", np.bool_(True)),
    ("n=-3", -3),
    ("n=2.5", 2.5),
    ("n=null", None),
    ("7", 7),
]


@pytest.mark.parametrize(("text", "want"), SCALARS)
def test_scalars(text, want):
    got = v.parse_argument(text, 0, 0).value
    assert type(got) is type(want) and got == want


WRONG = [
    ("q=f17[2]:zeros", "no element type 'f17'.*did you mean f16"),
    ("q=float[2]:zeros", "no element type 'float'"),
    ("q=f16[2]", r"say what is in the array, for example f16\[2\]:zeros"),
    ("q=f16[2]:zero", "no initialiser 'zero'.*did you mean zeros"),
    ("q=f16[2]:full", r"write full\(v\)"),
    ("q=f16[2]:full(x)", "'x' is not a number"),
    ("q=f16[2]:full(1e6)", "do not fit into f16"),
    ("q=i8[2]:full(128)", "128 does not fit into i8"),
    ("q=i8[300]:arange", "0 to 299 do not fit into i8"),
    ("q=i32[2]:normal", "normal gives floating-point numbers"),
    ("q=f32[2]:uniform(1)", "uniform takes two bounds"),
    ("q=i32[2]:randint(3,3)", "is empty"),
    ("q=u8[2]:randint(0,257)", "does not fit into u8"),
    ("q=f16[2,-1]:zeros", r"shape \[2,-1\]"),
    ("q=f16[]:zeros", "is not a list of whole numbers"),
    ("q=f64[1000000,1000000,1000000]:zeros", "takes 8,000,000,000,000,000,000 bytes"),
    ("q=f64[99999999999999999999,99999999999999999999]:zeros", "bytes of memory free"),
    ("n=i32:1.5", "not a whole number"),
    ("n=i32:3000000000", "3000000000 does not fit into i32"),
    ("n=f32:1e99", "do not fit into f32"),
    ("n=bool:2", "not true or false"),
    ("n=many", "neither TYPE"),
    ("n=", "neither TYPE"),
    ("q=@absent.npy", "no file 'absent.npy'"),
]


@pytest.mark.parametrize(("text", "message"), WRONG, ids=[text for text, _ in WRONG])
def test_refused(text, message):
    with pytest.raises(UsageError, match=message):
        v.parse_argument(text, 0, 0)


def test_files(tmp_path):
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(tmp_path / "a.npy", np.asfortranarray(values.astype(">f4")))
    np.savez(tmp_path / "b.npz", one=values, scalar=np.int32(7))
    np.save(tmp_path / "objects.npy", np.array([{}], object), allow_pickle=True)
    np.save(tmp_path / "text.npy", np.array(["a"]))
    (tmp_path / "damaged.npy").write_bytes(b"\x93NUMPY nothing")

    def parse(text):
        return v.parse_argument(text.replace("@", f"@{tmp_path}/"), 0, 0)

    got = parse("q=@a.npy")
    assert got.value.tobytes() == values.tobytes() and got.dtype == "f32" and got.value.dtype.isnative
    assert parse("q=@b.npz:one").value.tobytes() == values.tobytes()
    assert parse("q=@b.npz:scalar").value == 7
    assert parse("q=bf16@a.npy").value.tobytes() == bf16_bits(values).tobytes()
    assert parse("q=i8@a.npy").value.tolist() == values.tolist()
    for text, message in [
        ("q=@b.npz", "has 2 arrays; write .*b.npz:NAME with one of: one, scalar"),
        ("q=@b.npz:two", "has no array 'two'"),
        ("q=@a.npy:two", "holds one array without names"),
        ("q=@objects.npy", "cannot read"),
        ("q=@text.npy", "no type that a kernel reads"),
        ("q=@damaged.npy", "cannot read"),
    ]:
        with pytest.raises(UsageError, match=message):
            parse(text)


def test_bf16_rounds_once_and_to_even():
    """Every bf16 is kept; half-way values go to even; values beyond the largest are infinite."""
    bits = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)
    numbers = to_float64(bits, "bf16")
    finite = np.isfinite(numbers)
    assert (bf16_bits(numbers)[finite] == bits[finite]).all()
    assert (bf16_bits(numbers)[np.isnan(numbers)] == 0x7FFF).all()
    one = 0x3F80
    ulp = 2.0**-7
    exact = np.array([1 + ulp / 2, 1 + 1.5 * ulp, 1 + ulp / 2 + 1e-15, 1 + ulp / 2 - 1e-15, 3.4e38, -3.4e38, 2.0**-134, 2.0**-134 + 1e-50])
    assert bf16_bits(exact).tolist() == [one, one + 2, one + 1, one, 0x7F80, 0xFF80, 0, 1]
