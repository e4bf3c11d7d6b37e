// Integer and floating-point intrinsics.

extern "C" __global__ void combine_bits(const unsigned* xs, const unsigned* ys, unsigned* out) {
    const int i = threadIdx.x;
    const unsigned x = xs[i], y = ys[i];
    const unsigned long long both = (unsigned long long)x << 32 | y;
    unsigned* mine = out + 16 * i;
    mine[0] = __popc(x);
    mine[1] = __clz(x);
    mine[2] = __ffs(x);
    mine[3] = __brev(x);
    mine[4] = __byte_perm(x, y, 0x2416);
    mine[5] = __umulhi(x, y);
    mine[6] = (unsigned)__mulhi((int)x, (int)y);
    mine[7] = __funnelshift_l(x, y, y & 31);
    mine[8] = __funnelshift_r(x, y, y & 31);
    mine[9] = __popcll(both);
    mine[10] = __clzll(both);
    mine[11] = __ffsll(both);
    mine[12] = (unsigned)(__brevll(both) >> 32);
    mine[13] = (unsigned)(__umul64hi(both, both) >> 32);
    mine[14] = min(x, y);
    mine[15] = (unsigned)max((int)x, (int)y);
}

// Results that IEEE 754 fixes to the last bit.
extern "C" __global__ void compute_exactly(const float* xs, const float* ys, float* out) {
    const int i = threadIdx.x;
    const float x = xs[i], y = ys[i];
    float* mine = out + 16 * i;
    mine[0] = sqrtf(fabsf(x));
    mine[1] = fmaf(x, y, -x);
    mine[2] = floorf(x);
    mine[3] = ceilf(x);
    mine[4] = rintf(x);
    mine[5] = truncf(x);
    mine[6] = fminf(x, y);
    mine[7] = fmaxf(x, y);
    mine[8] = copysignf(x, y);
    mine[9] = __fadd_rn(x, y);
    mine[10] = __fmul_rn(x, y);
    mine[11] = __fdiv_rn(x, y);
    mine[12] = __frcp_rn(y);
    mine[13] = (float)__float2int_rn(x);
    mine[14] = (float)__float2int_rz(x);
    mine[15] = __uint_as_float(__float_as_uint(x) ^ 0x80000000u);
}

// Results that are good to a few units in the last place (of arguments in (0, 8)).
extern "C" __global__ void compute_closely(const float* xs, const float* ys, float* out) {
    const int i = threadIdx.x;
    const float x = xs[i], y = ys[i];
    float* mine = out + 16 * i;
    mine[0] = rsqrtf(x);
    mine[1] = expf(x);
    mine[2] = logf(x);
    mine[3] = sinf(x);
    mine[4] = cosf(x);
    mine[5] = tanhf(x);
    mine[6] = powf(x, y);
    mine[7] = exp2f(x);
    mine[8] = log2f(x);
    mine[9] = atan2f(x, y);
    mine[10] = hypotf(x, y);
    mine[11] = __expf(x);
    mine[12] = __fdividef(x, y);
    mine[13] = __saturatef(x - y);
    mine[14] = (float)sqrt((double)x);
    mine[15] = (float)exp((double)-x);
}
