"""Integer arithmetic, extended precision and cvt between integers against Python's integers."""

import random

import fasim.isa.rows  # noqa: F401  the import fills the table
from tests.harness import run_row
from tests.isa.oracle import check_all, number, rows_of, signed

TYPES = [f"{letter}{n}" for n in (16, 32, 64) for letter in "us"]


def quotient(a, b):
    """Division toward zero; hardware gives all ones for a zero divisor."""
    if b == 0:
        return -1
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def remainder(a, b):
    return -1 if b == 0 else a - b * quotient(a, b)


def clamp(x, type_="s32"):
    n = int(type_[1:])
    low, high = (-(1 << (n - 1)), (1 << (n - 1)) - 1) if type_[0] == "s" else (0, (1 << n) - 1)
    return min(max(x, low), high)


def typed(type_, function, *others):
    """The oracle of numbers of one type (the last operands may have others) as one of patterns."""
    return lambda *patterns: function(*(number(p, t) for p, t in zip(patterns, [type_] * (len(patterns) - len(others)) + list(others))))


def halved(type_, function):
    def oracle(a, b):
        low, high = (function(number(a >> s, type_), number(b >> s, type_)) & 0xFFFF for s in (0, 16))
        return high << 16 | low

    return oracle


def arithmetic():
    oracles = {}
    for t in TYPES:
        n = int(t[1:])
        oracles |= {
            f"add.{t}": typed(t, lambda a, b: a + b),
            f"sub.{t}": typed(t, lambda a, b: a - b),
            f"mul.lo.{t}": typed(t, lambda a, b: a * b),
            f"mul.hi.{t}": typed(t, lambda a, b, n=n: (a * b) >> n),
            f"mad.lo.{t}": typed(t, lambda a, b, c: a * b + c),
            f"mad.hi.{t}": typed(t, lambda a, b, c, n=n: ((a * b) >> n) + c),
            f"sad.{t}": typed(t, lambda a, b, c: c + abs(a - b)),
            f"div.{t}": typed(t, quotient),
            f"rem.{t}": typed(t, remainder),
            f"min.{t}": typed(t, min),
            f"max.{t}": typed(t, max),
        }
        if n < 64:
            oracles[f"mul.wide.{t}"] = typed(t, lambda a, b: a * b)
            oracles[f"mad.wide.{t}"] = typed(t, lambda a, b, c: a * b + c, f"{t[0]}{2 * n}")
        if t[0] == "s":
            oracles[f"abs.{t}"] = typed(t, abs)
            oracles[f"neg.{t}"] = typed(t, lambda a: -a)
    oracles |= {
        "add.sat.s32": typed("s32", lambda a, b: clamp(a + b)),
        "sub.sat.s32": typed("s32", lambda a, b: clamp(a - b)),
        "mad.hi.sat.s32": typed("s32", lambda a, b, c: clamp(((a * b) >> 32) + c)),
        "mad24.hi.sat.s32": lambda a, b, c: clamp(((signed(a, 24) * signed(b, 24)) >> 16) + signed(c, 32)),
    }
    for name, function in (("min", min), ("max", max)):
        for t in ("u16", "s16"):
            oracles[f"{name}.{t}x2"] = halved(t, function)
        for spelling in ("relu.s16x2", "s16x2.relu"):
            oracles[f"{name}.{spelling}"] = halved("s16", lambda a, b, f=function: max(f(a, b), 0))
        for spelling in ("relu.s32", "s32.relu"):
            oracles[f"{name}.{spelling}"] = typed("s32", lambda a, b, f=function: max(f(a, b), 0))
    for t in ("u16", "s16"):
        oracles[f"add.{t}x2"] = halved(t, lambda a, b: a + b)
    for t in ("u32", "s32"):
        for part, shift in (("lo", 0), ("hi", 16)):

            def mul24(a, b, c=0, t=t, shift=shift):
                return ((number(a, t[0] + "24") * number(b, t[0] + "24")) >> shift) + c

            oracles[f"mul24.{part}.{t}"] = oracles[f"mad24.{part}.{t}"] = mul24
    for a in "us":
        for b in "us":
            for name, size, first in ((f"dp4a.{a}32.{b}32", 8, 0), (f"dp2a.lo.{a}32.{b}32", 16, 0), (f"dp2a.hi.{a}32.{b}32", 16, 2)):

                def dot(x, y, c, a=a, b=b, size=size, first=first):
                    return c + sum(number(x >> size * i, f"{a}{size}") * number(y >> 8 * (first + i), f"{b}8") for i in range(32 // size))

                oracles[name] = dot
    return oracles


def test_arithmetic():
    check_all(arithmetic(), rows_of("integer"))


def carries():
    oracles = {}
    for n in (32, 64):
        ones = (1 << n) - 1
        for letter in "us":

            def flag(total, n=n):
                return total, total >> n & 1

            def product(a, b, part, n=n, letter=letter):
                full = number(a, f"{letter}{n}") * number(b, f"{letter}{n}")
                return (full >> n if part == "hi" else full) & ((1 << n) - 1)

            t = f"{letter}{n}"
            oracles |= {
                f"add.cc.{t}": lambda a, b, flag=flag: flag(a + b),
                f"addc.{t}": lambda a, b, cc: a + b + cc,
                f"addc.cc.{t}": lambda a, b, cc, flag=flag: flag(a + b + cc),
                f"sub.cc.{t}": lambda a, b, flag=flag, ones=ones: flag(a + (b ^ ones) + 1),
                f"subc.{t}": lambda a, b, cc: a - b - (1 - cc),
                f"subc.cc.{t}": lambda a, b, cc, flag=flag, ones=ones: flag(a + (b ^ ones) + cc),
            }
            for part in ("lo", "hi"):
                oracles |= {
                    f"mad.{part}.cc.{t}": lambda a, b, c, p=part, f=product, flag=flag: flag(f(a, b, p) + c),
                    f"madc.{part}.{t}": lambda a, b, c, cc, p=part, f=product: f(a, b, p) + c + cc,
                    f"madc.{part}.cc.{t}": lambda a, b, c, cc, p=part, f=product, flag=flag: flag(f(a, b, p) + c + cc),
                }
    return oracles


def test_carry():
    check_all(carries(), rows_of("carry"))


def test_long_numbers():
    """Chains over four words, as 128-bit arithmetic is compiled."""
    rng = random.Random(7)
    for first, middle, last, exact in (
        ("add.cc.u32", "addc.cc.u32", "addc.u32", lambda a, b: a + b),
        ("sub.cc.u32", "subc.cc.u32", "subc.u32", lambda a, b: a - b),
    ):
        a, b = ([rng.choice((rng.getrandbits(128), (1 << 128) - 1, 1 << 64, 0, 1)) for _ in range(32)] for _ in range(2))
        flag, words = None, []
        for i, name in enumerate((first, middle, middle, last)):
            operands = [[x >> 32 * i & 0xFFFFFFFF for x in v] for v in (a, b)]
            word, *rest = run_row(name, operands if flag is None else [*operands, flag])
            words.append(word)
            flag = rest[0] if rest else None
        got = [sum(int(w[lane]) << 32 * i for i, w in enumerate(words)) for lane in range(32)]
        assert got == [exact(x, y) & ((1 << 128) - 1) for x, y in zip(a, b)], first


def conversions():
    oracles = {}
    types = [f"{letter}{n}" for n in (8, 16, 32, 64) for letter in "us"]
    for target in types:
        for source in types:
            for sat in ("", ".sat"):
                for shape in ("", "d16", "d32", "d64", "a64", "d16a64", "d32a64", "d64a64"):

                    def convert(a, source=source, target=target, sat=sat):
                        value = number(a, source)
                        return number(clamp(value, target) if sat else value, target)

                    oracles[f"cvt{sat}.{target}.{source}" + (f":{shape}" if shape else "")] = convert
    for size in (2, 4, 8, 16):
        for letter in "us":

            def pack(a, b, c=0, size=size, kind=f"{letter}{size}"):
                a, b = (clamp(number(x, "s32"), kind) & ((1 << size) - 1) for x in (a, b))
                return c << 2 * size | a << size | b

            oracles[f"cvt.pack.sat.{letter}{size}.s32" + (".b32" if size < 16 else "")] = pack
    existing = rows_of("convert_integer")
    return {name: oracle for name, oracle in oracles.items() if name in existing}


def test_conversions():
    check_all(conversions(), rows_of("convert_integer"))


def test_saturation_exists_where_it_can_happen():
    names = rows_of("convert_integer")
    for source, target, possible in (
        ("s32", "u32", True),
        ("u8", "s8", True),
        ("u16", "u32", False),
        ("s8", "u64", True),
        ("s32", "s32", False),
    ):
        assert (f"cvt.sat.{target}.{source}" in names) == possible


def video():
    operations = {
        "vadd": lambda a, b: a + b,
        "vsub": lambda a, b: a - b,
        "vavrg": lambda a, b: (a + b + (a + b >= 0)) >> 1,
        "vabsdiff": lambda a, b: abs(a - b),
        "vmin": min,
        "vmax": max,
    }
    relations = {
        "eq": lambda a, b: a == b,
        "ne": lambda a, b: a != b,
        "lt": lambda a, b: a < b,
        "le": lambda a, b: a <= b,
        "gt": lambda a, b: a > b,
        "ge": lambda a, b: a >= b,
    }
    oracles = {}
    for name in rows_of("video"):
        head, *rest = name.split(".")
        count, size = int(head[-1]), 32 // int(head[-1])
        if head[:-1] == "vset":
            (a_type, b_type), function, d_type = rest[:2], relations[rest[2]], "u"
        else:
            (d_type, a_type, b_type), function = rest[:3], operations[head[:-1]]

        def oracle(a, b, c, name=name, d=d_type[0], ta=a_type[0], tb=b_type[0], f=function, count=count, size=size):
            results = [int(f(number(a >> size * i, f"{ta}{size}"), number(b >> size * i, f"{tb}{size}"))) for i in range(count)]
            if name.endswith(".add"):
                return c + sum(results)
            if name.endswith(".sat"):
                results = [clamp(r, f"{d}{size}") for r in results]
            return sum((r & ((1 << size) - 1)) << size * i for i, r in enumerate(results))

        oracles[name] = oracle
    return oracles


def test_video():
    check_all(video(), rows_of("video"))
