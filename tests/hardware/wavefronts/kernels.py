"""CUDA source of the measuring kernels: one instruction a step, its addresses and predicate from a table."""

from __future__ import annotations

#: bytes of one lane and the PTX of a step: d target address, s source address, p predicate, n source bytes, r0..r3 registers, q u64
LOADS = {
    "LDS.U8": (1, "ld.shared.u8 %r0,[%d];"),
    "LDS.S8": (1, "ld.shared.s8 %r0,[%d];"),
    "LDS.U16": (2, "ld.shared.u16 %r0,[%d];"),
    "LDS.S16": (2, "ld.shared.s16 %r0,[%d];"),
    "LDS.32": (4, "ld.shared.b32 %r0,[%d];"),
    "LDS.64": (8, "ld.shared.v2.b32 {%r0,%r1},[%d];"),
    "LDS.128": (16, "ld.shared.v4.b32 {%r0,%r1,%r2,%r3},[%d];"),
    "LD.U8": (1, "ld.u8 %r0,[%g];"),
    "LD.S8": (1, "ld.s8 %r0,[%g];"),
    "LD.U16": (2, "ld.u16 %r0,[%g];"),
    "LD.S16": (2, "ld.s16 %r0,[%g];"),
    "LD.32": (4, "ld.b32 %r0,[%g];"),
    "LD.64": (8, "ld.v2.b32 {%r0,%r1},[%g];"),
    "LD.128": (16, "ld.v4.b32 {%r0,%r1,%r2,%r3},[%g];"),
}
STORES = {
    "STS.8": (1, "st.shared.u8 [%d],%r0;"),
    "STS.16": (2, "st.shared.u16 [%d],%r0;"),
    "STS.32": (4, "st.shared.b32 [%d],%r0;"),
    "STS.64": (8, "st.shared.v2.b32 [%d],{%r0,%r1};"),
    "STS.128": (16, "st.shared.v4.b32 [%d],{%r0,%r1,%r2,%r3};"),
    "ST.8": (1, "st.u8 [%g],%r0;"),
    "ST.16": (2, "st.u16 [%g],%r0;"),
    "ST.32": (4, "st.b32 [%g],%r0;"),
    "ST.64": (8, "st.v2.b32 [%g],{%r0,%r1};"),
    "ST.128": (16, "st.v4.b32 [%g],{%r0,%r1,%r2,%r3};"),
}
MATRICES = {
    f"{name}.x{n}{t}": (
        16,
        f"{ptx}.sync.aligned.m8n8.x{n}{'.trans' if t else ''}.shared.b16 " + (f"{regs},[%d];" if name == "LDSM" else f"[%d],{regs};"),
    )
    for name, ptx in (("LDSM", "ldmatrix"), ("STSM", "stmatrix"))
    for n, regs in ((1, "{%r0}"), (2, "{%r0,%r1}"), (4, "{%r0,%r1,%r2,%r3}"))
    for t in ("", ".T")
}
COPIES = {
    **{f"LDGSTS.ca{n}": (n, f"cp.async.ca.shared.global [%d],[%s],{n};") for n in (4, 8, 16)},
    "LDGSTS.cg16": (16, "cp.async.cg.shared.global [%d],[%s],16;"),
}
FILLS = {f"{op}.zfill": (n, text[:-1] + ",%n;") for op, (n, text) in COPIES.items()}
_KINDS = {"add": "u32", "min": "s32", "max": "u32", "inc": "u32", "dec": "u32", "and": "b32", "or": "b32", "xor": "b32"}
_WIDE = {"add": "u64", "min": "s64", "max": "u64", "and": "b64", "or": "b64", "xor": "b64"}
ATOMICS = {
    **{f"ATOMS.{k}": (4, f"atom.shared.{k}.{t} %r1,[%d],%r0;") for k, t in _KINDS.items()},
    "ATOMS.exch": (4, "atom.shared.exch.b32 %r1,[%d],%r0;"),
    "ATOMS.cas": (4, "atom.shared.cas.b32 %r1,[%d],%r0,%r2;"),
    **{f"ATOMS.{k}.64": (8, f"atom.shared.{k}.{t} %q,[%d],%q;") for k, t in _WIDE.items()},
    "ATOMS.exch.64": (8, "atom.shared.exch.b64 %q,[%d],%q;"),
    "ATOMS.cas.64": (8, "atom.shared.cas.b64 %q,[%d],%q,%q;"),
    "ATOMS.cas.16": (2, "{.reg .b16 x;cvt.u16.u32 x,%r0;atom.shared.cas.b16 x,[%d],x,x;cvt.u32.u16 %r1,x;}"),
    "ATOMS.add.f32": (4, "atom.shared.add.f32 %r1,[%d],%r0;"),
    "ATOMS.add.f64": (8, "atom.shared.add.f64 %q,[%d],%q;"),
    "ATOMS.add.f16x2": (4, "atom.shared.add.noftz.f16x2 %r1,[%d],%r0;"),
    **{f"RED.shared.{k}": (4, f"red.shared.{k}.{t} [%d],%r0;") for k, t in _KINDS.items()},
    **{f"RED.shared.{k}.64": (8, f"red.shared.{k}.{t} [%d],%q;") for k, t in _WIDE.items()},
    "RED.shared.add.f32": (4, "red.shared.add.f32 [%d],%r0;"),
    "RED.shared.add.f64": (8, "red.shared.add.f64 [%d],%q;"),
    "ATOM.add": (4, "atom.add.u32 %r1,[%g],%r0;"),
}
#: no access to shared memory, but the same data path
SHUFFLES = {"SHFL": (4, "shfl.sync.bfly.b32 %r0,%r0,1,31,0xffffffff;")}
STEPS = {**LOADS, **STORES, **MATRICES, **COPIES, **FILLS, **ATOMICS, **SHUFFLES}
#: words of the table for a step: offsets, sources, predicates, source bytes
TABLE_WORDS = 4 * 32
OPERANDS = {"%r0": "%0", "%r1": "%1", "%r2": "%2", "%r3": "%3", "%q": "%4", "%d": "%5", "%s": "%6", "%g": "%7", "%n": "%9"}


def symbol(kind: str, op: str, part: int = 0) -> str:
    """Name of a kernel."""
    return f"{kind}_{op.replace('.', '_')}_{part}"


def kernel(kind: str, op: str, steps: int, part: int = 0) -> str:
    """A kernel of `steps` accesses; arguments: table, source buffer, output."""
    text = STEPS[op][1]
    for name, operand in OPERANDS.items():
        text = text.replace(name, operand)
    always = any(name in op for name in ("LDSM", "STSM", "LDGSTS", "SHFL"))
    asm = f"{{.reg .pred p;setp.ne.b32 p,%8,0;{'' if always else '@p '}{text}}}"
    if text.startswith("{"):
        asm = f"{{.reg .pred p;setp.ne.b32 p,%8,0;@!p bra done;{text}done:}}"
    # results of loads that always execute are kept apart from the next step's
    keep = " r4 ^= r0 + r1 + r2 + r3;" if "LDSM" in op else ""
    leave = "if (!table[64 + threadIdx.x]) return;\n" if "LDGSTS" in op else ""
    step = (
        "#define STEP(i) { const int *row = table + (i) * 128 + threadIdx.x; unsigned d = base + row[0];"
        "const char *s = source + row[32]; unsigned long long g = generic + row[0];"
        f'asm volatile("{asm}" : "+r"(r0), "+r"(r1), "+r"(r2), "+r"(r3), "+l"(q) : "r"(d), "l"(s), "l"(g), "r"(row[64]), "r"(row[96])'
        ' : "memory");' + keep + " __syncwarp(); }\n"
    )
    return (
        step + f'extern "C" __global__ void {symbol(kind, op, part)}(const int *table, const char *source, unsigned *out) {{\n'
        "__shared__ __align__(1024) unsigned char memory[8192 + 1024];\n"
        "unsigned base = (unsigned)__cvta_generic_to_shared(memory);\n"
        # the generic address goes through memory, or the compiler knows its state space
        "volatile unsigned long long *hidden = (volatile unsigned long long *)(out + 1024);\n"
        "hidden[threadIdx.x] = (unsigned long long)memory; unsigned long long generic = hidden[threadIdx.x];\n"
        + leave
        + "unsigned r4 = 0, r0 = threadIdx.x, r1 = 0, r2 = 1, r3 = 2; unsigned long long q = threadIdx.x;\n"
        + "".join(f"STEP({i})\n" for i in range(steps))
        + 'asm volatile("cp.async.wait_all;" ::: "memory"); out[threadIdx.x] = r0 ^ r1 ^ r2 ^ r3 ^ r4 ^ (unsigned)q;\n}\n#undef STEP\n'
    )
