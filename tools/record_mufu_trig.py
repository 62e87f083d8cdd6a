"""Record MUFU.SIN, COS, TANH and the 16-bit MUFU forms on an sm_90 GPU: python tools/record_mufu_trig.py OUTDIR

Needs cupy and nvcc; writes OUTDIR/{checks,lists,tanh,sin,cos}.npz, some 5 MB together, in a minute or two.
`ptx` results are those of sin.approx.ftz.f32 and so on; `mufu` results are those of the same kernels with the constant 1 / (2 pi)
of FMUL.RZ patched to 1.0 in the machine code, so that MUFU gets its argument, in turns, as it is.
"""

# ruff: noqa: E501  (the CUDA source)

import os
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

import cupy as cp
import numpy as np

SOURCE = r"""
typedef unsigned int u32; typedef unsigned long long u64;
#define FN(name,ins) static __device__ __forceinline__ u32 name(u32 x){float y;asm volatile(ins " %0,%1;":"=f"(y):"f"(__uint_as_float(x)));return __float_as_uint(y);}
FN(f_sin,"sin.approx.ftz.f32") FN(f_cos,"cos.approx.ftz.f32") FN(f_tanh,"tanh.approx.f32")
FN(f_sinn,"sin.approx.f32") FN(f_cosn,"cos.approx.f32")
#define FH(name,ins) static __device__ __forceinline__ u32 name(u32 x){unsigned short y;asm volatile(ins " %0,%1;":"=h"(y):"h"((unsigned short)x));return y;}
FH(f_tanh_f16,"tanh.approx.f16") FH(f_tanh_bf16,"tanh.approx.bf16") FH(f_ex2_f16,"ex2.approx.f16") FH(f_ex2_bf16,"ex2.approx.ftz.bf16")
#define FW(name,ins) static __device__ __forceinline__ u32 name(u32 x){u32 y;asm volatile(ins " %0,%1;":"=r"(y):"r"(x));return y;}
FW(f_tanh_f16x2,"tanh.approx.f16x2") FW(f_tanh_bf16x2,"tanh.approx.bf16x2") FW(f_ex2_f16x2,"ex2.approx.f16x2") FW(f_ex2_bf16x2,"ex2.approx.ftz.bf16x2")
#define LIST(f) extern "C" __global__ void list_##f(const u32*in,u32*out,u32 n){u32 i=blockIdx.x*blockDim.x+threadIdx.x;if(i<n)out[i]=f_##f(in[i]);}
LIST(sin) LIST(cos) LIST(tanh) LIST(sinn) LIST(cosn) LIST(tanh_f16) LIST(tanh_bf16) LIST(ex2_f16) LIST(ex2_bf16)
LIST(tanh_f16x2) LIST(tanh_bf16x2) LIST(ex2_f16x2) LIST(ex2_bf16x2)
// one block handles 2^15 consecutive patterns of one exponent e; grid = 256 * 256 blocks (all of 0 .. 2^31-1)
static __device__ u32 trunc_at(u32 x,int n){ // |t| truncated to a multiple of 2^-n
  int e=(int)(x>>23)-127; int drop=23-(e+n); if(drop<=0) return x; if(drop>23) return 0; return x>>drop<<drop; }
static __device__ u32 frac_of(u32 x){ int e=(int)(x>>23)-127; if(e<0||e==128) return x; if(e>=23) return 0;
  u32 m=(x&0x7fffff)<<e&0x7fffff; return __float_as_uint((float)m*0x1p-23f); }
#define COUNT(c,slot) { u32 v=(c); v=__reduce_add_sync(~0u,v); if((threadIdx.x&31)==0&&v) atomicAdd(&cnt[(slot)*256+e],v); }
// slots: 0 sym mismatch, 1 differs from frac(t), 2 NaN or |y|>1, 3 y==0, 4 y==x, 5 y==1, 6 y(x+1)<y(x), 8+n trunc_at(n) differs for n=0..55
#define CHECK(f,flip) extern "C" __global__ void check_##f(u32*cnt){ u32 b=blockIdx.x, e=b>>8, x0=b<<15; u32 c0=0,c1=0,c2=0,c3=0,c4=0,c5=0,c6=0; \
  for(u32 i=threadIdx.x;i<32768;i+=blockDim.x){u32 x=x0+i,y=f_##f(x); c0+=f_##f(x|0x80000000u)!=(y^flip); c1+=f_##f(frac_of(x))!=y; c2+=(y&0x7fffffff)>0x3f800000; \
    c3+=(y&0x7fffffff)==0; c4+=y==x; c5+=y==0x3f800000; c6+=(int)f_##f(x+1)<(int)y; } \
  COUNT(c0,0) COUNT(c1,1) COUNT(c2,2) COUNT(c3,3) COUNT(c4,4) COUNT(c5,5) COUNT(c6,6) }
CHECK(sin,0x80000000u) CHECK(cos,0u) CHECK(tanh,0x80000000u)
#define TRUNC(f) extern "C" __global__ void trunc_##f(u32*cnt,int n0,int n1){ u32 b=blockIdx.x, e=b>>8, x0=b<<15; \
  for(int n=n0;n<n1;n++){u32 c=0; for(u32 i=threadIdx.x;i<32768;i+=blockDim.x){u32 x=x0+i; c+=f_##f(trunc_at(x,n))!=f_##f(x);} COUNT(c,8+n) } }
TRUNC(sin) TRUNC(cos)
"""
ONE_OVER_TWO_PI, ONE = b"\x83\xf9\x22\x3e", b"\x00\x00\x80\x3f"


def compile_kernels():
    """The sm_90 cubin of SOURCE."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory)
        (path / "k.cu").write_text(SOURCE)
        subprocess.run(["nvcc", "-arch=sm_90", "-O2", "-cubin", "-o", path / "k.cubin", path / "k.cu"], check=True)
        return (path / "k.cubin").read_bytes()


CUBIN = compile_kernels()
if not CUBIN.count(ONE_OVER_TWO_PI):
    raise SystemExit("the machine code holds no constant 1 / (2 pi): the compiler loads it in another way")
out_dir = sys.argv[1]
os.makedirs(out_dir, exist_ok=True)


def load(blob):
    with tempfile.NamedTemporaryFile(suffix=".cubin", delete=False) as f:
        f.write(blob)
    return cp.RawModule(path=f.name)


PTX = load(CUBIN)
MUFU = load(CUBIN.replace(ONE_OVER_TWO_PI, ONE))
T0 = time.time()


def say(*a):
    print(f"{time.time() - T0:6.1f}s", *a, flush=True)


def run(mod, name, x):
    x = cp.asarray(x, dtype=cp.uint32)
    y = cp.empty_like(x)
    n = x.size
    mod.get_function("list_" + name)(((n + 255) // 256,), (256,), (x, y, np.uint32(n)))
    return cp.asnumpy(y)


def pack(store, key, y):
    """First value, then differences, in 2, 4, 8, 16 or 32 bits each; `key` holds (first, min difference, bits, count)."""
    d = np.diff(y.astype(np.int64))
    lo = int(d.min())
    d -= lo
    hi = int(d.max())
    bits = next(b for b in (2, 4, 8, 16, 32) if hi < 1 << b)
    if bits < 8:
        per = 8 // bits
        d = np.concatenate([d, np.zeros(-len(d) % per, np.int64)]).astype(np.uint8).reshape(-1, per)
        p = np.zeros(len(d), np.uint8)
        for i in range(per):
            p |= d[:, i] << np.uint8(bits * i)
    else:
        p = d.astype({8: np.uint8, 16: np.uint16, 32: np.uint32}[bits])
    store[key] = np.array([int(y[0]), lo, bits, len(y)], np.int64)
    store[key + "_d"] = p


def save(name, store):
    path = os.path.join(out_dir, name + ".npz")
    np.savez_compressed(path, **store)
    say("saved", path, os.path.getsize(path))


B = 1 << 23
selftest = run(PTX, "sin", np.array([0x3F800000], np.uint32))[0]
quarter = run(MUFU, "sin", np.array([0x3E800000], np.uint32))[0]
say(f"sin.approx(1.0) = {selftest:08x}, MUFU.SIN(0.25) = {quarter:08x}")

# 1. exhaustive per-exponent counts over all 2^31 positive patterns
checks = {}
for level, mod in (("ptx", PTX), ("mufu", MUFU)):
    for f in ("sin", "cos", "tanh"):
        if f == "tanh" and level == "mufu":
            continue
        cnt = cp.zeros(64 * 256, cp.uint32)
        mod.get_function("check_" + f)((65536,), (256,), (cnt,))
        if level == "mufu":
            mod.get_function("trunc_" + f)((65536,), (256,), (cnt, np.int32(16), np.int32(48)))
        checks[f"{level}_{f}"] = cp.asnumpy(cnt).reshape(64, 256)
        say("checked", level, f)
save("checks", checks)

# 2. lists: every 16-bit input, special values, random arguments in every binade
lists = {}
x16 = np.arange(65536, dtype=np.uint32)
for f in ("tanh_f16", "tanh_bf16", "ex2_f16", "ex2_bf16"):
    y = run(PTX, f, x16)
    lists[f] = y.astype(np.uint16)
    pair = run(PTX, f + "x2", x16 | (x16[::-1] << np.uint32(16)))
    lists[f + "_x2_differs"] = np.array(int((pair != (y | (y[::-1] << np.uint32(16)))).sum()))
sp = np.concatenate(
    [
        np.arange(0, 64),
        0x00800000 + np.arange(-32, 32),
        0x7F800000 + np.arange(-32, 32),
        [0x7FC00000, 0x7FFFFFFF, 0x7FA12345],
        0x3F800000 + np.arange(-32, 32),
        0x40490FDB + np.arange(-32, 32),
        0x3FC90FDB + np.arange(-32, 32),
        0x40C90FDB + np.arange(-32, 32),
        0x3F000000 + np.arange(-32, 32),
        0x3E800000 + np.arange(-32, 32),
        0x3F400000 + np.arange(-32, 32),
        0x33000000 + np.arange(-32, 32),
    ]
)
sp = np.concatenate([sp, sp + 0x80000000]).astype(np.uint32)
i = np.arange(512 * 1024, dtype=np.uint64)  # top 9 bits: sign and exponent; mantissa: a multiplicative hash
rnd = ((i >> np.uint64(10)) << np.uint64(23) | ((i * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(41))).astype(np.uint32)
lists["special_x"] = sp
lists["random_x_crc"] = np.array(zlib.crc32(rnd.tobytes()))
for f in ("sin", "cos", "tanh", "sinn", "cosn"):
    lists["ptx_" + f + "_special"] = run(PTX, f, sp)
    if f in ("sin", "cos"):
        lists["mufu_" + f + "_special"] = run(MUFU, f, sp)
        lists["mufu_" + f + "_random"] = run(MUFU, f, rnd)
    y = run(PTX, f, rnd)
    if len(f) == 4 and f != "tanh":
        lists["ptx_" + f + "_differs"] = np.flatnonzero(y != run(PTX, f[:3], rnd))
    else:
        lists["ptx_" + f + "_random"] = y
save("lists", lists)

# 3. tanh, the binades that were not swept
store = {}
for e in [*range(115, 125), 129, 130]:
    pack(store, str(e), run(PTX, "tanh", (e << 23) + np.arange(B, dtype=np.uint32)))
save("tanh", store)

# 4. MUFU.SIN and MUFU.COS of t: small binades, and the whole turn in steps of 2^-24
for f in ("sin", "cos"):
    store = {}
    for e in range(115, 123):
        pack(store, str(e), run(MUFU, f, (e << 23) + np.arange(B, dtype=np.uint32)))
    t = (np.arange(1 << 24, dtype=np.float64) * 2.0**-24).astype(np.float32).view(np.uint32)
    for q in range(4):
        pack(store, f"turn{q}", run(MUFU, f, t[q << 22 : (q + 1) << 22]))
    save(f, store)
say("done")
