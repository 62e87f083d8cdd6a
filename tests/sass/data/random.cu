// Two programs of a generator of random ones, as it wrote them: test_kinds.py says what their machine code for sm_120 has.
#include <cuda_fp16.h>
extern "C" __global__ void leaves_by_a_table(unsigned long long* o, const unsigned* in, int n) { int i=blockIdx.x*blockDim.x+threadIdx.x; __shared__ short sm[64];
  sm[threadIdx.x]=i; unsigned loc[8]={1,2,3,4,5,6,7,(unsigned)n};
 int a=in[i],b=(int)in[i+1]>>20; unsigned c=in[i+2],d=n; long long e=((long long)(int)in[i+3]<<13)+c,f=-n; unsigned long long g=((unsigned long long)in[i+4]<<32)|in[i+5],h=in[i+6]; float x=(int)in[i+7]*1e-8f,y=n*.5f; double z=(int)in[i+8]*1e-7,w=1.5; short s=in[i+9],t=n;
  t = (short)(a * (int)(z));
  for (int j0 = 0; j0 < (int)(3u & 7); j0++) { b = (-3);
  c = min(d, (unsigned)(__umulhi(d,(unsigned)((b < b) ? 461206u : 4294967295u)))); } switch ((7u | (unsigned)__clz((1u & d))) % 6) { case 0: if ((int)__brev((int)b) != (int)((4051323043ull <= 8002860252ull) ? b : (b + (0)))) { s = (short)(int)((~a) % (((83) & 0xffff) + 3));
  e = e;
  c = d; } break; case 1: d = 4294967295u; case 2: g = (~(unsigned long long)(__umul64hi(g,(unsigned long long)(short)173))); break; case 4: s = (short)33; break; default: d = (max((unsigned)(__umulhi(d,d)), (778990u << (4294967295u & 31))) + d); } for (int j0 = 0; j0 < (int)(((unsigned)__clz(d) & (unsigned)(__umulhi(d,c))) & 7); j0++) { b = (int)__brev((int)(int)(b % ((b & 0xffff) + 3))); } if (fminf(fmaf(y,3.0279f,x),fabsf(y)) >= x) { f = ((long long)(fmax(w,z)) ^ ((-375173194089ll) | ((829990414159ll) - (-869760696286ll))));
  for (int j1 = 0; j1 < (int)(((unsigned)((c & c) / (((c * c) & 1023) | 1)) + min((7u << (d & 31)), (d << (728424u & 31)))) & 7); j1++) { for (int j2 = 0; j2 < (int)((unsigned)(x) & 7); j2++) { a = (int)__popc(a); } } loc[c & 7] ^= 4294967295u;
  c += loc[(d - (unsigned)__brev((2147483648u | c))) & 7]; } else { switch ((unsigned)(fma((double)h,rint(w),fmax(w,z))) % 6) { case 0: b = (int)__brev(((b ^ a) >> (4294967295u & 31))); break; case 1: c = d; case 2: for (int j2 = 0; j2 < (int)((d << ((unsigned)__popc((unsigned)__brev(4294967295u)) & 31)) & 7); j2++) { d = (((d * d) << ((unsigned)((b > b) ? d : 4294967295u) & 31)) | (unsigned)__popc((d ^ c)));
  if (5292697553ull == (unsigned long long)11943551579507271152ull) { b = (((int)(a / ((b & 1023) | 1)) ^ (b >> (c & 31))) >> ((unsigned)__popc((c | d)) & 31)); } } break; case 4: e = (long long)((long long)(__mul64hi((~(22950618092ll)),(138765919775ll))) / (((long long)f & 1023) | 1)); break; default: b = (int)(__mulhi((min(b, (-38)) - b),(int)__brev((a & b)))); } z = w; } c = (((d & d) * (4294967295u >> (d & 31))) ^ 3u);
  c = (unsigned)__popc((~(unsigned)(c % ((c & 0xffff) + 3))));
  w = -0.09421;
  b = min((~(a >> (2147483648u & 31))), (int)(__mulhi((a & b),(int)((unsigned)b << (4294967295u & 31)))));
  o[4*i]=a^((unsigned long long)b<<32)^c^((unsigned long long)d<<17)^s^t^sm[threadIdx.x]^loc[3];
  o[4*i+1]=e^f;
  o[4*i+2]=g^h^((unsigned long long)__float_as_uint(x)<<32)^__float_as_uint(y);
  o[4*i+3]=__double_as_longlong(z)^(__double_as_longlong(w)*3); }
extern "C" __global__ void leaves_on_two_conditions(unsigned long long* o, const unsigned* in, int n) { int i=blockIdx.x*blockDim.x+threadIdx.x; __shared__ short sm[64];
  sm[threadIdx.x]=i; unsigned loc[8]={1,2,3,4,5,6,7,(unsigned)n};
 int a=in[i],b=(int)in[i+1]>>20; unsigned c=in[i+2],d=n; long long e=((long long)(int)in[i+3]<<13)+c,f=-n; unsigned long long g=((unsigned long long)in[i+4]<<32)|in[i+5],h=in[i+6]; float x=(int)in[i+7]*1e-8f,y=n*.5f; double z=(int)in[i+8]*1e-7,w=1.5; short s=in[i+9],t=n;
  h = (unsigned long long)(x);
  if ((unsigned)__brev(max(c, c)) > ((c - d) | d)) { a = ((int)min(a, (-17)) & (int)((int)__brev((-46)) % (((int)(y) & 0xffff) + 3))); } for (int j0 = 0; j0 < (int)(min(max((unsigned)__popc(c), (unsigned)__clz(d)), min(d, (unsigned)(((short)-280 > s) ? d : d))) & 7); j0++) { t = (short)(int)((d != c) ? (int)((e > e) ? b : b) : (int)((unsigned)(8) << (c & 31)));
  for (int j1 = 0; j1 < (int)((1u << (7u & 31)) & 7); j1++) { c = c;
  d += __ballot_sync(__activemask(), (((long long)(short)-230 > (long long)((long long)((unsigned long long)e << (d & 63)) % (((long long)((d >= d) ? f : e) & 0xffff) + 3))) && ((858607132ull <= 5369794355519994775ull) && (y < x)))) * 0 + __popc(c); } d = c; } c = d;
  s = s;
  sm[threadIdx.x] = (short)b;
  for (int j0 = 0; j0 < (int)((unsigned)__clz((unsigned)((x - 1.7492f))) & 7); j0++) { loc[((c - (65045u * d)) << ((unsigned)((unsigned)b / ((d & 1023) | 1)) & 31)) & 7] ^= (unsigned)(((unsigned)(d / ((2147483648u & 1023) | 1)) >> (966506u & 31)) / ((4294967295u & 1023) | 1));
  c += loc[(c - (unsigned)(__umulhi((c ^ d),3u))) & 7];
  for (int j1 = 0; j1 < (int)(c & 7); j1++) { for (int j2 = 0; j2 < (int)((unsigned)(max(4294967295u, d) / ((c & 1023) | 1)) & 7); j2++) { if (((int)(b / ((((44) >> (7u & 31)) & 1023) | 1)) < (int)((int)((unsigned)b << (c & 31)) / (((~a) & 1023) | 1))) || (((int)((-62) % ((b & 0xffff) + 3)) < (-24)) || ((short)264 <= t))) { a = (int)((unsigned)(int)(long long)(f / ((e & 1023) | 1)) << (7u & 31)); } else { e = min((long long)((f > (658370834836ll)) ? (~e) : (736669932557ll)), ((long long)__clzll((-358922821081ll)) - ((17282900444ll) + (802607098606ll))));
  d = (~((unsigned)__popc(d) & (unsigned)__brev(3u)));
  c = d; } a = (~(((70) >> (c & 31)) - (int)((a >= a) ? a : (-73)))); } } if ((short)max((short)-285,(short)(-29)) >= t) break; }
 o[4*i]=a^((unsigned long long)b<<32)^c^((unsigned long long)d<<17)^s^t^sm[threadIdx.x]^loc[3];
  o[4*i+1]=e^f;
  o[4*i+2]=g^h^((unsigned long long)__float_as_uint(x)<<32)^__float_as_uint(y);
  o[4*i+3]=__double_as_longlong(z)^(__double_as_longlong(w)*3); }
