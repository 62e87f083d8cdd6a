"""What is measured in loops: a statement of inline PTX, the machine instruction that it becomes, and how its operands begin."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from importlib.resources import files
from string import Template

#: repetitions of a loop in one launch, of which the first warms the caches and is dropped
REPETITIONS = 6
#: statements in the two loops whose difference counts
LENGTHS = (32, 96)
#: times that a loop's branch is taken
ITERATIONS = 64
#: bytes of the array `in`, whose words `measure` sets
IN_BYTES = 1 << 18
_SHARED_WORDS = 8192
#: how ptxas spells an instruction that does nothing
_NOPS = "NOP|@!UPT UIADD3 URZ"


@dataclass(frozen=True)
class Loop:
    """A statement and what belongs to it.

    statement: CUDA C++; `{v}` is the number of its chain, `{w}` that of the next one, `{r}` the statement's own number.
    sass: pattern of the instruction that each statement becomes; helpers: of those that come with it, as often as the compiler likes.
    declare: the variables of chain `{v}`; setup: code before them; keep: an expression that holds what chain `{v}` has become.
    shared: whether it has shared memory, as `shared`, its address as `base`. lengths: statements of its two kernels.
    min_arch: the oldest architecture that has the instruction.
    """

    name: str
    statement: str
    sass: str
    declare: str
    keep: str = "v{v}"
    helpers: str = ""
    setup: str = ""
    shared: bool = False
    lengths: tuple[int, int] = LENGTHS
    min_arch: int = 0


def _asm(text: str, outputs: str, inputs: str = "") -> str:
    return f'asm volatile("{text}" : {outputs} : {inputs} : "memory");'


def _f32(name: str, ptx: str, sass: str, helpers: str = "") -> Loop:
    return Loop(name, _asm(ptx, '"+f"(v{v})'), sass, "float v{v} = __uint_as_float(in[{v}]);", helpers=helpers)


def _u32(
    name: str,
    ptx: str,
    sass: str,
    *,
    inputs: str = '"r"(k)',
    setup: str = "unsigned k = in[40];",
    helpers: str = "",
    arch: int = 0,
    lane: str = "",
) -> Loop:
    return Loop(
        name, _asm(ptx, '"+r"(v{v})', inputs), sass, f"unsigned v{{v}} = in[{{v}}]{lane};", helpers=helpers, setup=setup, min_arch=arch
    )


def _shfl(name: str, ptx: str, sass: str) -> Loop:
    # the compiler removes shuffles of a value that all lanes share
    return Loop(name, _asm(ptx, '"+r"(v{v})', '"r"(k)'), sass, "unsigned v{v} = in[{v}] + lane;", setup="unsigned k = in[40] + lane % 7;")


#: the chain of a lane stays on the lane's own words: 4 bytes times `parameter` apart, which makes the bank conflicts
_OWN_WORDS = (
    "unsigned a = base + {bytes} * lane * parameter; "
    "for (unsigned i = 0; i < {words}; ++i) shared[(a - base) / 4 + i] = a; __syncthreads();"
)


def _lds(name: str, kind: str, words: int, sass: str) -> Loop:
    # of a vector the compiler would load what is used
    volatile = "volatile." if words > 1 else ""
    registers = ["%0"] + [f"%{i}" for i in range(1, words)]
    target = "{{" + ", ".join(registers) + "}}" if words > 1 else "%0"
    rest = "".join(f', "=r"(x{{v}}_{i})' for i in range(1, words))
    declare = "unsigned v{v} = a;" + "".join(f" unsigned x{{v}}_{i};" for i in range(1, words))
    setup = _OWN_WORDS.format(bytes=4 * words, words=words)
    return Loop(name, _asm(f"ld.{volatile}shared.{kind} {target}, [%0];", '"+r"(v{v})' + rest), sass, declare, setup=setup, shared=True)


def _one_part(loop: Loop) -> Loop:
    """The same by the warps of one sub-partition alone; ptxas issues accesses of one warp no more often than every fourth cycle."""
    return replace(loop, name=f"{loop.name}_part", setup=f"{loop.setup} if (warp % 4) iterations = 0;")


def _sts(name: str, kind: str, words: int, sass: str) -> Loop:
    value = "{{" + ", ".join(f"%{i + 1}" for i in range(words)) + "}}" if words > 1 else "%1"
    sources = ", ".join(f'"r"(x{i})' for i in range(words))
    statement = f'asm volatile("st.shared.{kind} [%0 + {{r}} * 128], {value};" :: "r"(a), {sources} : "memory");'
    setup = f"unsigned a = base + {4 * words} * lane * parameter; " + "".join(f"unsigned x{i} = in[{i}]; " for i in range(words))
    return Loop(name, statement, sass, "unsigned v{v} = 0;", setup=setup, shared=True)


def _ldsm(name: str, count: int, sass: str) -> Loop:
    target = "{{" + ", ".join(f"%{i}" for i in range(count)) + "}}"
    rest = "".join(f', "=r"(x{{v}}_{i})' for i in range(1, count))
    declare = "unsigned v{v} = a;" + "".join(f" unsigned x{{v}}_{i};" for i in range(1, count))
    # lane l gets word l % 4 of row l / 4, which holds the address of row l
    setup = (
        "unsigned a = base + 16 * lane * parameter; "
        "if (lane < 8) for (unsigned j = 0; j < 4; ++j) shared[(a - base) / 4 + j] = base + 16 * (4 * lane + j) * parameter; "
        "__syncthreads();"
    )
    text = f"ldmatrix.sync.aligned.m8n8.x{count}.shared.b16 {target}, [%0];"
    return Loop(name, _asm(text, '"+r"(v{v})' + rest), sass, declare, setup=setup, shared=True)


def _mma(name: str, shape: str, types: str, a: int, b: int, sass: str, arch: int = 0) -> Loop:
    d = ", ".join(f"%{i}" for i in range(4))
    sources = ", ".join(f"%{4 + i}" for i in range(a)), ", ".join(f"%{4 + a + i}" for i in range(b))
    outputs = ", ".join(f'"+f"(v{{v}}_{i})' for i in range(4))
    inputs = ", ".join([f'"r"(a{i})' for i in range(a)] + [f'"r"(b{i})' for i in range(b)])
    text = f"mma.sync.aligned.{shape}.row.col.{types} {{{{{d}}}}}, {{{{{sources[0]}}}}}, {{{{{sources[1]}}}}}, {{{{{d}}}}};"
    setup = "".join(f"unsigned a{i} = in[48 + {i}]; " for i in range(a)) + "".join(f"unsigned b{i} = in[56 + {i}]; " for i in range(b))
    declare = "float " + ", ".join(f"v{{v}}_{i} = 0" for i in range(4)) + ";"
    keep = "v{v}_0 + v{v}_1 + v{v}_2 + v{v}_3"
    return Loop(name, _asm(text, outputs, inputs), sass, declare, keep=keep, setup=setup, helpers=_NOPS, min_arch=arch)


def _branches(name: str, branch: str, jump: str, skipped: int, lengths: tuple[int, int]) -> Loop:
    """Each statement jumps over (or runs through) the same instructions, so many that the compiler does not predicate them instead."""
    block = " ".join(["mul.rn.f32 %0, %0, 0f3F800001;"] * skipped)
    text = f"{{{{ @jumps{{v}} {branch} over; {block} over: }}}}"
    # branches upon one condition would be drawn together
    condition = f'asm volatile(".reg .pred jumps{{v}}; setp.ne.u32 jumps{{v}}, %0, 0;" :: "r"((unsigned)({jump})));'
    declare = "float v{v} = __uint_as_float(in[{v}]); " + condition
    helpers = r"FMUL|FFMA|ISETP|BSSY|BSYNC|WARPSYNC|NOP"
    sass = r"@!?U?P\d (?:P\d, )?BRA"
    return Loop(name, _asm(text, '"+f"(v{v})'), sass, declare, helpers=helpers, lengths=lengths)


LOOPS: dict[str, Loop] = {
    loop.name: loop
    for loop in (
        _f32("fadd", "add.rn.f32 %0, %0, 0f3F800001;", r"FADD "),
        _f32("fmul", "mul.rn.f32 %0, %0, 0f3F800001;", r"FMUL "),
        _f32("ffma", "fma.rn.f32 %0, %0, 0f3F000001, %0;", r"FFMA "),
        _f32("ex2", "ex2.approx.ftz.f32 %0, %0;", r"MUFU\.EX2 "),
        # of a value that all lanes share the compiler makes uniform instructions
        _u32("imad", "mad.lo.u32 %0, %0, %1, %0;", r"IMAD ", lane=" + lane"),
        Loop("lop3", _asm("lop3.b32 %0, %0, %1, %1, 0x3c;", '"+r"(v{v})', '"r"(v{w})'), r"LOP3\.LUT ", "unsigned v{v} = in[{v}];"),
        _u32("prmt", "prmt.b32 %0, %0, %0, %1;", r"PRMT ", lane=" + lane"),
        _f32("hadd2", "{{ .reg .f16 l, h; mov.b32 {{l, h}}, %0; cvt.f32.f16 %0, l; }}", r"HADD2\.F32 "),
        Loop(
            "imad_wide",
            _asm("{{ .reg .u32 l, h; mov.b64 {{l, h}}, %0; mul.wide.u32 %0, l, h; }}", '"+l"(v{v})'),
            r"IMAD\.WIDE\.U32 ",
            "unsigned long long v{v} = 0x300000005ull * (in[{v}] + lane);",
        ),
        Loop(
            "dadd",
            _asm("add.rn.f64 %0, %0, %1;", '"+d"(v{v})', '"d"(k)'),
            r"DADD ",
            "double v{v} = (double)in[{v}];",
            setup="double k = (double)in[40];",
        ),
        _shfl("shfl", "shfl.sync.bfly.b32 %0, %0, 1, 31, 0xffffffff;", r"SHFL\.BFLY "),
        _shfl("shfl_register", "shfl.sync.idx.b32 %0, %0, %1, 31, 0xffffffff;", r"SHFL\.IDX "),
        _u32("match", "match.any.sync.b32 %0, %0, 0xffffffff;", r"MATCH\.ANY ", inputs="", setup="", arch=70),
        _u32("redux", "redux.sync.add.s32 %0, %0, 0xffffffff;", r"REDUX\.SUM\.S32 ", inputs="", setup="", helpers=r"IMAD|MOV", arch=80),
        Loop(
            "ldc",
            _asm("ld.const.u32 %0, [%0];", '"+r"(v{v})'),
            r"LDC ",
            "unsigned v{v} = table + in[44] + 4 * {v};",
            setup='unsigned table; asm("{ .reg .u64 t; mov.u64 t, chain_table; cvt.u32.u64 %0, t; }" : "=r"(table));',
        ),
        _lds("lds", "u32", 1, r"LDS(?:\.U)? "),
        _one_part(_lds("lds", "u32", 1, r"LDS(?:\.U)? ")),
        _lds("lds64", "v2.u32", 2, r"LDS\.(?:U\.)?64 "),
        _lds("lds128", "v4.u32", 4, r"LDS\.(?:U\.)?128 "),
        _one_part(_lds("lds128", "v4.u32", 4, r"LDS\.(?:U\.)?128 ")),
        _sts("sts", "u32", 1, r"STS "),
        _one_part(_sts("sts", "u32", 1, r"STS ")),
        _sts("sts64", "v2.u32", 2, r"STS\.64 "),
        _sts("sts128", "v4.u32", 4, r"STS\.128 "),
        _one_part(_sts("sts128", "v4.u32", 4, r"STS\.128 ")),
        _ldsm("ldsm1", 1, r"LDSM\.16\.M88 "),
        _ldsm("ldsm2", 2, r"LDSM\.16\.M88\.2 "),
        _ldsm("ldsm4", 4, r"LDSM\.16\.M88\.4 "),
        _one_part(_ldsm("ldsm4", 4, r"LDSM\.16\.M88\.4 ")),
        Loop(
            "atoms",
            _asm("atom.shared.add.u32 %0, [%1], %0;", '"+r"(v{v})', '"r"(a)'),
            r"ATOMS\.ADD ",
            "unsigned v{v} = in[{v}];",
            setup="unsigned a = base + 4 * lane;",
            shared=True,
        ),
        Loop(
            "atoms_cas",
            _asm("atom.shared.cas.b32 %0, [%1], %0, %2;", '"+r"(v{v})', '"r"(a), "r"(k)'),
            r"ATOMS\.CAS ",
            "unsigned v{v} = in[{v}];",
            setup="unsigned a = base + 4 * lane, k = in[40];",
            shared=True,
        ),
        _mma("hmma_16816", "m16n8k16", "f32.f16.f16.f32", 4, 2, r"HMMA\.16816\.F32 ", 80),
        _mma("hmma_1688", "m16n8k8", "f32.f16.f16.f32", 2, 1, r"HMMA\.1688\.F32 "),
        Loop(
            "dmma",
            _asm(
                "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {{%0, %1}}, {{%2}}, {{%3}}, {{%0, %1}};",
                '"+d"(v{v}_0), "+d"(v{v}_1)',
                '"d"(j), "d"(k)',
            ),
            r"DMMA\.(?:884|8x8x4) ",
            "double v{v}_0 = 0, v{v}_1 = 0;",
            keep="v{v}_0 + v{v}_1",
            setup="double j = (double)in[40], k = (double)in[41];",
            helpers=_NOPS,
            min_arch=80,
        ),
        Loop("bar", 'asm volatile("bar.sync 0;" ::: "memory");', r"BAR\.SYNC", "unsigned v{v} = 0;"),
        # so few taken branches that they stay in the nearest instruction cache
        _branches("branch", "bra.uni", "in[48 + {v}]", 8, (4, 8)),
        _branches("diverge", "bra", "lane < in[52 + {v}] * parameter", 12, (16, 48)),
        Loop(
            "ldg",
            _asm("ld.global.u64 %0, [%0];", '"+l"(v{v})'),
            r"LDG\.E\.64(?:\.SYS)? ",
            "unsigned long long v{v} = *(const unsigned long long*)(in + 1024);",
        ),
        Loop(
            "ldgsts",
            'asm volatile("cp.async.cg.shared.global [%0], [%1 + {r} * 512], 16; cp.async.commit_group; cp.async.wait_group 0;" '
            ':: "r"(s), "l"(g) : "memory");',
            r"LDGSTS\.E\.BYPASS\.128 ",
            "unsigned v{v} = 0;",
            helpers=r"LDGDEPBAR|DEPBAR|IADD|IMAD|MOV",
            setup="unsigned s = base + 16 * lane; const char* g = (const char*)(in + 16384) + 16 * lane;",
            shared=True,
            min_arch=80,
        ),
    )
}


def entry(loop: str, chains: int, length: int) -> str:
    """The name of a kernel."""
    return f"fasim_{loop}_{chains}_{length}"


def source(loop: Loop, chains: int, length: int) -> str:
    """The kernel of a loop with so many statements, dealt to the chains in turn."""
    setup = [loop.setup] if loop.setup else []
    if loop.shared:
        words = f"__shared__ __align__(1024) unsigned shared[{_SHARED_WORDS}];"
        setup = [words, "const unsigned base = (unsigned)__cvta_generic_to_shared(shared);", *setup]
    setup += [loop.declare.format(v=v) for v in range(chains)]
    body = [loop.statement.format(v=r % chains, w=(r + 1) % chains, r=r) for r in range(length)]
    keep = [f"out[{v}] = (unsigned long long)({loop.keep.format(v=v)});" for v in range(chains)]
    text = (files(__package__) / "sources" / "loop.cu").read_text()
    lines = {"setup": (2, setup), "body": (6, body), "keep": (4, keep)}
    blocks = {part: "\n".join(" " * indent + line for line in found) for part, (indent, found) in lines.items()}
    return Template(text).substitute(name=entry(loop.name, chains, length), **blocks)


@functools.cache
def constants() -> str:
    """What all kernels share: the number of repetitions, and a table in the constant bank whose words hold their own addresses."""
    table = ", ".join(str(4 * i) for i in range(32))
    return f'#define REPETITIONS {REPETITIONS}\nextern "C" __constant__ unsigned chain_table[32] = {{{table}}};\n'
