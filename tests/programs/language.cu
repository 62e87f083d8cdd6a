// What compiled C++ does with integers, control flow, functions, objects and memory.
#include <cstdint>
using u32 = unsigned; using u64 = unsigned long long; using i64 = long long; using u128 = unsigned __int128; using i128 = __int128;
#define I (blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void wide_mul(u64* lo, u64* hi, const u64* a, const u64* b) {
    u128 p = (u128)a[I] * b[I] + ((u128)b[I] << 31);
    lo[I] = (u64)p; hi[I] = (u64)(p >> 64);
}
extern "C" __global__ void wide_div(i64* q, i64* r, const i64* a, const i64* b) {
    i128 x = (i128)a[I] * 1000003 - 17, y = b[I] | 1;
    q[I] = (i64)(x / y); r[I] = (i64)(x % y);
}
extern "C" __global__ void int_div(int* o, const int* a, const int* b) {
    int d = b[I] == 0 ? 3 : b[I];
    o[8 * I] = a[I] / d; o[8 * I + 1] = a[I] % d; o[8 * I + 2] = (u32)a[I] / (u32)d; o[8 * I + 3] = (u32)a[I] % (u32)d;
    o[8 * I + 4] = a[I] / 7; o[8 * I + 5] = a[I] % -13; o[8 * I + 6] = (short)a[I] / (signed char)(d | 1); o[8 * I + 7] = (u32)a[I] / 641u;
}
extern "C" __global__ void long_div(i64* o, const i64* a, const i64* b) {
    i64 d = b[I] == 0 ? 5 : b[I];
    o[4 * I] = a[I] / d; o[4 * I + 1] = a[I] % d; o[4 * I + 2] = (u64)a[I] / (u64)d; o[4 * I + 3] = (u64)a[I] % (u64)d;
}
extern "C" __global__ void bits(u32* o, const u32* a, const u32* b) {
    u32 x = a[I], y = b[I]; u32* p = o + 16 * I;
    p[0] = __popc(x); p[1] = __clz(x); p[2] = __ffs(x); p[3] = __brev(x); p[4] = __byte_perm(x, y, 0x5410); p[5] = __funnelshift_l(x, y, y & 63);
    p[6] = __funnelshift_r(x, y, x & 63); p[7] = __mulhi((int)x, (int)y); p[8] = __umulhi(x, y); p[9] = __sad((int)x, (int)y, 7); p[10] = __usad(x, y, 9);
    p[11] = __uhadd(x, y); p[12] = (u32)__rhadd((int)x, (int)y); p[13] = __dp4a((int)x, (int)y, 5); p[14] = __funnelshift_lc(x, y, y & 63); p[15] = __dp2a_lo((int)x, (int)y, 1);
}
extern "C" __global__ void bits64(u64* o, const u64* a, const u64* b) {
    u64 x = a[I], y = b[I]; u64* p = o + 8 * I;
    p[0] = __popcll(x); p[1] = __clzll(x); p[2] = __ffsll(x); p[3] = __brevll(x); p[4] = __umul64hi(x, y); p[5] = (u64)__mul64hi((i64)x, (i64)y);
    p[6] = (x << (y & 63)) | (x >> ((64 - (y & 63)) & 63)); p[7] = (u64)((i64)x >> (y & 63));
}
extern "C" __global__ void simd_video(u32* o, const u32* a, const u32* b) {
    u32 x = a[I], y = b[I]; u32* p = o + 8 * I;
    p[0] = __vadd4(x, y); p[1] = __vsub2(x, y); p[2] = __vmaxs4(x, y); p[3] = __vminu2(x, y); p[4] = __vabsdiffu4(x, y); p[5] = __vcmpgtu4(x, y);
    p[6] = __vaddus4(x, y); p[7] = __vsubss2(x, y);
}
extern "C" __global__ void crc32(u32* o, const unsigned char* data, int n) {
    u32 c = 0xffffffffu;
    for (int i = 0; i < n; i++) { c ^= data[I * n + i]; for (int k = 0; k < 8; k++) c = (c >> 1) ^ (0xedb88320u & (0u - (c & 1))); }
    o[I] = ~c;
}
extern "C" __global__ void sha_like(u64* o, u64 seed) {
    u64 s[4]; for (int i = 0; i < 4; i++) s[i] = seed + I * 0x9e3779b97f4a7c15ull * (i + 1);
    for (int r = 0; r < 20; r++) { u64 t = s[1] << 17; s[2] ^= s[0]; s[3] ^= s[1]; s[1] ^= s[2]; s[0] ^= s[3]; s[2] ^= t; s[3] = (s[3] << 45) | (s[3] >> 19); }
    o[I] = s[0] + s[3];
}
extern "C" __global__ void collatz(int* steps) {
    u64 x = I + 1; int n = 0;
    while (true) { if (x == 1) break; if (x & 1) { x = 3 * x + 1; n++; continue; } x >>= 1; n++; }
    steps[I] = n;
}
extern "C" __global__ void nested_loops(int* o, int m) {
    int t = I, s = 0;
    for (int i = 0; i < t % 9; i++) {
        if (i == 5) continue;
        for (int j = i; j < m; j++) { if ((j * t) % 7 == 3) break; if (j & 1) continue; int k = j; do { s += k ^ t; k -= 2; } while (k > 0); }
        if (s > 400) goto done;
    }
    s += 10000;
done:
    o[t] = s;
}
extern "C" __global__ void irreducible(int* o, int n) {
    int t = I, s = 0, i = 0;
    if (t % 3 == 0) goto middle;
    if (t % 3 == 1) goto bottom;
top:
    s += 1;
middle:
    s = s * 3 + t; if (s % 5 == 0) goto bottom; i++;
bottom:
    s ^= i; i++; if (i < n) { if (s & 1) goto middle; goto top; }
    o[t] = s;
}
__device__ __noinline__ int ackermann(int a, int b) { return a == 0 ? b + 1 : b == 0 ? ackermann(a - 1, 1) : ackermann(a - 1, ackermann(a, b - 1)); }
extern "C" __global__ void recursion(int* o) { o[I] = ackermann(I % 3, I % 5); }
__device__ bool is_odd(int n); __device__ __noinline__ bool is_even(int n) { return n == 0 || is_odd(n - 1); }
__device__ __noinline__ bool is_odd(int n) { return n != 0 && is_even(n - 1); }
extern "C" __global__ void mutual(int* o) { o[I] = is_even(I) ? 2 : 3; }
__device__ __noinline__ void hanoi(int n, int a, int b, int c, int* moves) { if (n == 0) return; hanoi(n - 1, a, c, b, moves); *moves = *moves * 5 + a * 3 + b; hanoi(n - 1, c, b, a, moves); }
extern "C" __global__ void towers(int* o) { int m = 0; hanoi(I % 6, 0, 1, 2, &m); o[I] = m; }
__device__ __noinline__ void quicksort(int* a, int l, int r) {
    if (l >= r) return; int p = a[(l + r) / 2], i = l, j = r;
    while (i <= j) { while (a[i] < p) i++; while (a[j] > p) j--; if (i <= j) { int t = a[i]; a[i++] = a[j]; a[j--] = t; } }
    quicksort(a, l, j); quicksort(a, i, r);
}
extern "C" __global__ void local_sort(int* o, const int* in) { int a[24]; for (int i = 0; i < 24; i++) a[i] = in[I * 24 + i]; quicksort(a, 0, 23); for (int i = 0; i < 24; i++) o[I * 24 + i] = a[i]; }
extern "C" __global__ void local_histogram(int* o, const int* in) {
    unsigned char h[16] = {}; for (int i = 0; i < 40; i++) h[in[(I * 7 + i) & 255] & 15]++;
    int best = 0; for (int i = 1; i < 16; i++) if (h[i] > h[best]) best = i; o[I] = best * 256 + h[best];
}
extern "C" __global__ void sieve(int* o) { bool c[64]; for (int i = 0; i < 64; i++) c[i] = false; int n = 0; for (int i = 2; i < 64; i++) { if (!c[i]) { n += i <= 2 + (int)I; for (int j = 2 * i; j < 64; j += i) c[j] = true; } } o[I] = n; }

struct Shape { int tag; __device__ Shape(int t) : tag(t) {} __device__ virtual ~Shape() {} __device__ virtual float area() const { return -1; } __device__ virtual int sides() const = 0; };
struct Square : Shape { float a; __device__ Square(float a) : Shape(1), a(a) {} __device__ float area() const override { return a * a; } __device__ int sides() const override { return 4; } };
struct Polygon : Shape { int n; float* w; __device__ Polygon(int n, float* w) : Shape(2), n(n), w(w) {} __device__ ~Polygon() { w[0] += 100; } __device__ float area() const override { float s = 0; for (int i = 0; i < n; i++) s += w[i]; return s; } __device__ int sides() const override { return n; } };
struct Blob final : Shape { __device__ Blob() : Shape(3) {} __device__ int sides() const override { return 0; } };
extern "C" __global__ void objects(float* o) {
    float w[5] = {1, 2, 3, 4, (float)I}; Square sq(I * 0.5f); Polygon* po = new Polygon(3 + I % 3, w); Blob bl;
    Shape* all[3] = {&sq, po, &bl}; Shape* s = all[I % 3]; Shape* t = all[(I / 3) % 3];
    float r = s->area() + t->sides() * 10.0f + s->tag; delete po; o[I] = r + w[0];
}
template <int N> struct Poly { double c[N]; template <class F> __device__ double eval(double x, F f) const { double r = c[N - 1]; for (int i = N - 2; i >= 0; i--) r = f(r * x, c[i]); return r; } };
extern "C" __global__ void lambdas(double* o, Poly<4> p, double k) { auto add = [k](double a, double b) { return a + b * k; }; o[I] = p.eval(I * 0.25, add); }
struct Odd { char a; short b; int c; double d; char e[3]; float2 f; i64 g; };
__device__ __noinline__ Odd twist(Odd a, int i) { a.a += i; a.b *= 3; a.c ^= i; a.d += a.b; a.e[i % 3] = 7; a.f.x = a.f.y + i; a.g -= a.c; return a; }
extern "C" __global__ void structs(double* o, Odd s) { Odd r = twist(s, I); r = twist(r, I + 1); o[I] = r.a + r.b * 2. + r.c * 3. + r.d + r.e[0] + r.e[1] * 5. + r.e[2] * 7. + r.f.x + (double)r.g; }
typedef double (*unary)(double);
__device__ double half_of(double x) { return x * 0.5; } __device__ double square(double x) { return x * x; } __device__ double minus(double x) { return -x; }
__device__ unary functions[3] = {half_of, square, minus};
__constant__ int squares[8] = {0, 1, 4, 9, 16, 25, 36, 49}; __device__ int cubes[8] = {0, 1, 8, 27, 64, 125, 216, 343};
__constant__ const int* tables[2] = {squares, cubes + 1}; __device__ const char* words[3] = {"alpha", "be", ""};
extern "C" __global__ void pointers(double* o) { double x = I + 1; for (int i = 0; i < 4; i++) x = functions[(I + i) % 3](x); o[I] = x; }
extern "C" __global__ void relocated(int* o) { const char* w = words[I % 3]; int n = 0; while (w[n]) n++; o[I] = tables[I & 1][I % 7] * 100 + n; }
__device__ u32 tally = 5; __device__ float grid_values[4][3];
extern "C" __global__ void remember(u32* o) { o[I] = atomicAdd(&tally, I); atomicAdd(&grid_values[I % 4][I % 3], 0.5f); }
extern "C" __global__ void vector_types(float4* o, const float4* a, const uchar4* b, const short2* c, double2* d) { float4 x = a[I]; uchar4 y = b[I]; short2 z = c[I]; o[I] = make_float4(x.w + y.x, x.z - y.y, x.y * z.x, x.x + z.y); d[I] = make_double2(x.x, z.x / 3.0); }
extern "C" __global__ void switch_dense(int* o, int n) { int t = I, r = n; for (int i = 0; i < 6; i++) switch ((t + i * r) & 15) { case 0: r += 3; break; case 1: r *= 5; case 2: r ^= t; break; case 3: r = -r; break; case 4: r <<= 1; break; case 5: r |= 64; case 6: case 7: r -= i; break; case 9: r += i; continue; case 12: r ^= 0x55; break; case 15: o[t] = r; return; default: r++; } o[t] = r; }
extern "C" __global__ void shape3d(int* o, int w, int h, int d) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x >= w || y >= h || z >= d) return; o[(z * h + y) * w + x] = threadIdx.x + 10 * threadIdx.y + 100 * threadIdx.z + 1000 * blockIdx.x + 10000 * blockIdx.y + 100000 * blockIdx.z + 1000000 * (gridDim.z * blockDim.y);
}
extern "C" __global__ void heap(int* o) { int** p = (int**)malloc(4 * sizeof(int*)); for (int i = 0; i < 4; i++) { p[i] = new int[i + 1]; for (int j = 0; j <= i; j++) p[i][j] = I * j; } int s = 0; for (int i = 0; i < 4; i++) { s += p[i][i]; delete[] p[i]; } free(p); o[I] = s; }
struct Packed { unsigned a : 5, b : 11, c : 16; signed d : 7; unsigned e : 25; };
extern "C" __global__ void bitfields(u32* o, u32 x) { Packed p; p.a = x + I; p.b = x * I; p.c = x ^ I; p.d = I * 3; p.e = x >> 3; p.b += p.a; o[2 * I] = p.a | p.b << 5 | p.c << 16; o[2 * I + 1] = p.d * 3 + p.e; }
extern "C" __global__ void float_bits(u32* o, const float* a, const double* b) { u32* p = o + 6 * I; p[0] = __float_as_uint(a[I]); p[1] = (u32)(int)a[I]; p[2] = __float2uint_ru(a[I]); p[3] = (u32)__double2int_rd(b[I]); p[4] = __double2hiint(b[I]); p[5] = __double2loint(b[I]); }
extern "C" __global__ void saxpy_ptr(float* y, const float* __restrict__ x, float a, int n, bool flip) { for (int i = I; i < n; i += gridDim.x * blockDim.x) y[i] = flip ? fmaf(-a, __ldg(x + i), y[i]) : fmaf(a, x[i], y[i]); }
