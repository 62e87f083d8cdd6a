"""Logic, shifts, moves and bit fields against the pseudo-code of PTX, bit by bit."""

import fasim.isa.rows  # noqa: F401  the import fills the table
from tests.isa.oracle import check_all, disagreements, number, rows_of, signed


def table(lut, *sources):
    """A boolean function of any number of sources, one bit at a time."""
    return sum(1 << i for i in range(32) if lut >> sum((s >> i & 1) << k for k, s in enumerate(reversed(sources))) & 1)


def funnel(a, b, n, left):
    both = b << 32 | a
    return (both << n) >> 32 if left else both >> n


def logic():
    oracles = {
        "lop3.b32": lambda a, b, c, lut: table(lut, a, b, c),
        "lop3.or.b32": lambda a, b, c, q, lut: (table(lut, a, b, c), table(lut, a, b, c) != 0 or q),
        "lop3.and.b32": lambda a, b, c, q, lut: (table(lut, a, b, c), table(lut, a, b, c) != 0 and q),
        "shf.l.clamp.b32": lambda a, b, c: funnel(a, b, min(c, 32), True),
        "shf.r.clamp.b32": lambda a, b, c: funnel(a, b, min(c, 32), False),
        "shf.l.wrap.b32": lambda a, b, c: funnel(a, b, c % 32, True),
        "shf.r.wrap.b32": lambda a, b, c: funnel(a, b, c % 32, False),
    }
    for t in ("pred", "b16", "b32", "b64"):
        oracles |= {f"and.{t}": lambda a, b: a & b, f"or.{t}": lambda a, b: a | b, f"xor.{t}": lambda a, b: a ^ b, f"not.{t}": lambda a: ~a}
        if t != "pred":
            n = int(t[1:])
            oracles |= {
                f"cnot.{t}": lambda a: a == 0,
                f"shl.{t}": lambda a, s, n=n: a << s if s < n else 0,
                f"shr.b{n}": lambda a, s, n=n: a >> min(s, n),
                f"shr.u{n}": lambda a, s, n=n: a >> min(s, n),
                f"shr.s{n}": lambda a, s, n=n: signed(a, n) >> min(s, n),
            }
    return oracles


def test_logic():
    luts = [(0x96,), (0xE8,), (0x1B,), (0,), (0xFF,)]
    check_all(logic(), rows_of("logic"), dict.fromkeys(("lop3.b32", "lop3.or.b32", "lop3.and.b32"), luts))


def test_every_lop3():
    from fasim.isa.instructions.logic import look_up
    from fasim.numerics.lanes.numpy_backend import lanes

    sources = (0xF0, 0xCC, 0xAA)
    for lut in range(256):
        result = look_up(lut, tuple(lanes(s, "u32") for s in sources))
        value = result if isinstance(result, int) else int(result.raw[0])
        assert value & 0xFF == lut


def field(type_):
    n = int(type_[1:])

    def bfe(a, b, c):
        position, length = (b & 0xFF, c & 0xFF) if n == 32 else (min(b, n), min(c, n))
        if type_[0] == "u" or length == 0:
            sign = 0
        else:
            sign = a >> min(position + length - 1, n - 1) & 1
        return sum((a >> (position + i) & 1 if i < length and position + i < n else sign) << i for i in range(n))

    return bfe


def insert(n):
    def bfi(a, b, c, d):
        position, length = (c & 0xFF, d & 0xFF) if n == 32 else (min(c, n), min(d, n))
        for i in range(length):
            if position + i < n:
                b = b & ~(1 << (position + i)) | (a >> i & 1) << (position + i)
        return b

    return bfi


def find(type_, shift_amount):
    n = int(type_[1:])

    def bfind(a):
        if type_[0] == "s" and a >> (n - 1):
            a = ~a & ((1 << n) - 1)
        for i in range(n - 1, -1, -1):
            if a >> i & 1:
                return n - 1 - i if shift_amount else i
        return -1

    return bfind


def fns(mask, base, offset):
    offset = signed(offset, 32)
    if offset == -(2**31):  # the machine code's answer
        return 0
    if offset == 0:
        return base if base < 32 and mask >> base & 1 else -1
    position, count, step = base, abs(offset) - 1, 1 if offset > 0 else -1
    while 0 <= position < 32:
        if mask >> position & 1:
            if count == 0:
                return position
            count -= 1
        position += step
    return -1


def permuted(a, b, selectors):
    source = (b << 32 | a).to_bytes(8, "little")
    result = 0
    for i, selector in enumerate(selectors):
        byte = source[selector & 7]
        result |= (byte if not selector & 8 else 0xFF * (byte >> 7)) << 8 * i
    return result


def prmt_mode(mode):
    """Selectors of bytes 0 to 3, by formula rather than by table."""
    return {
        "f4e": lambda c: [c + i for i in range(4)],
        "b4e": lambda c: [(c - i) % 8 for i in range(4)],
        "rc8": lambda c: [c] * 4,
        "ecl": lambda c: [max(i, c) for i in range(4)],
        "ecr": lambda c: [min(i, c) for i in range(4)],
        "rc16": lambda c: [(c & 1) * 2 + i % 2 for i in range(4)],
    }[mode]


def permuted_by(choose):
    return lambda a, b, c: permuted(a, b, choose(c & 3))


def extend(type_, clamp):
    def szext(a, b):
        if clamp and b >= 32:
            return a
        return number(a, f"{type_[0]}{b % 32}") if b % 32 else 0

    return szext


def bmsk(a, b, clamp):
    if clamp and a >= 32:
        return 0
    length = min(b, 32) if clamp else b % 32
    return ((1 << length) - 1) << a % 32


def bitfields():
    oracles = {
        "prmt.b32": lambda a, b, c: permuted(a, b, [c >> 4 * i & 15 for i in range(4)]),
        "prmt.b32:imm": lambda a, b, c: permuted(a, b, [c >> 4 * i & 15 for i in range(4)]),
        "fns.b32": fns,
        "bmsk.clamp.b32": lambda a, b: bmsk(a, b, True),
        "bmsk.wrap.b32": lambda a, b: bmsk(a, b, False),
    }
    for mode in ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16"):
        oracles[f"prmt.b32.{mode}"] = permuted_by(prmt_mode(mode))
    for n in (32, 64):
        oracles |= {
            f"bfi.b{n}": insert(n),
            f"popc.b{n}": lambda a: bin(a).count("1"),
            f"clz.b{n}": lambda a, n=n: n - a.bit_length(),
            f"brev.b{n}": lambda a, n=n: int(f"{a:0{n}b}"[::-1], 2),
        }
        for t in (f"u{n}", f"s{n}"):
            oracles |= {f"bfe.{t}": field(t), f"bfind.{t}": find(t, False), f"bfind.shiftamt.{t}": find(t, True)}
    for t in ("u32", "s32"):
        oracles |= {f"szext.clamp.{t}": extend(t, True), f"szext.wrap.{t}": extend(t, False)}
    return oracles


def test_bitfields():
    check_all(bitfields(), rows_of("bitfield"), {"prmt.b32:imm": [(0x5410,), (0xFEDC,), (0x7632,), (0x0123,)]})


def test_fns_over_small_masks():
    """Random offsets rarely hit: walk through all of a small range."""
    import numpy as np

    from tests.harness import run_row

    for offset in range(-6, 7):
        masks = [(lane * 0x9E3779B1 + offset) & 0xFFFFFFFF for lane in range(32)]
        bases = [(lane * 7 + 3) % 32 for lane in range(32)]
        (got,) = run_row("fns.b32", [masks, bases, offset & 0xFFFFFFFF])
        want = [fns(m, b, offset & 0xFFFFFFFF) & 0xFFFFFFFF for m, b in zip(masks, bases)]
        assert np.array_equal(got, np.array(want, np.uint32)), offset


def test_field_positions_and_lengths():
    """Positions and lengths inside of the register, which random 32-bit operands seldom are."""
    from tests.harness import run_row

    for name, oracle, n in (
        ("bfe.u32", field("u32"), 32),
        ("bfe.s32", field("s32"), 32),
        ("bfe.s64", field("s64"), 64),
        ("bfe.u64", field("u64"), 64),
    ):
        value = 0xA5C3_9617_DEAD_BEEF & ((1 << n) - 1)
        for length in range(0, n + 2, 3):
            positions = [(2 * lane + length) % (n + 3) for lane in range(32)]
            (got,) = run_row(name, [value, positions, length])
            assert [int(x) for x in got] == [oracle(value, p, length) & ((1 << n) - 1) for p in positions], (name, length)


def moves():
    oracles = {"mov.pred": lambda a: a}
    for t in [f"{letter}{n}" for n in (16, 32, 64) for letter in "bus"] + ["f32", "f64"]:
        oracles |= {f"mov.{t}": lambda a: a, f"selp.{t}": lambda a, b, c: a if c else b}
        oracles[f"slct.{t}.s32"] = lambda a, b, c: b if c >> 31 else a
    for whole, count in ((16, 2), (32, 2), (32, 4), (64, 2), (64, 4), (128, 2)):
        n = whole // count
        unpack = lambda a, n=n, count=count: tuple(a >> n * i for i in range(count))  # noqa: E731
        if whole < 128:
            oracles[f"mov.b{whole}:pack{count}"] = lambda *parts, n=n: sum(p << n * i for i, p in enumerate(parts))
            oracles[f"mov.b{whole}:unpack{count}"] = unpack
    for name in ("mov.b128", "mov.b128:pack2", "mov.b128:unpack2"):
        oracles[name] = lambda low, high: (low, high)
    return oracles


def test_moves():
    others = {name for name in rows_of("move") if name.startswith(("slct", "cvta", "isspacep"))}
    check_all(moves(), rows_of("move") - others)


def test_slct_by_float():
    def at_least_zero(c, ftz):
        exponent, fraction, negative = c >> 23 & 0xFF, c & 0x7FFFFF, c >> 31
        if exponent == 0xFF and fraction:
            return False
        zero = exponent == 0 and (ftz or fraction == 0)
        return zero or not negative

    wrong = []
    for t in ("u32", "f64", "b16"):
        for ftz in ("", ".ftz"):
            wrong += disagreements(f"slct{ftz}.{t}.f32", lambda a, b, c, ftz=ftz: a if at_least_zero(c, bool(ftz)) else b)
    assert not wrong, wrong[:5]


def test_address_windows_are_disjoint():
    from fasim.isa.machine import GLOBAL_BASE
    from tests.harness import run_row

    generic = {}
    for space in ("shared", "local", "param", "global"):
        (generic[space],) = run_row(f"cvta.{space}.u64", [0x40 if space != "global" else GLOBAL_BASE])
        (back,) = run_row(f"cvta.to.{space}.u64", [generic[space]])
        assert int(back[0]) == (0x40 if space != "global" else GLOBAL_BASE)
    for space in generic:
        for other, address in generic.items():
            (inside,) = run_row(f"isspacep.{space}", [address])
            assert inside.all() == (space == other) and inside.any() == (space == other), (space, other)
