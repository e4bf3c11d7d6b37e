// Kernels that ask for threadIdx in each way but by a function that they call by its name. Each
// writes its thread's number to `out`; `in` is not read.

__device__ int number() {
    return (int)threadIdx.x;
}
namespace apart {
__device__ int number() {
    return (int)threadIdx.x;
}
}  // namespace apart

struct Base {
    int zero = 0;
    __device__ int inherited() const { return number() + zero; }
};
template <class Derived>
struct Chain {
    __device__ int chained() const { return static_cast<const Derived*>(this)->own(); }
};
struct Place : Base, Chain<Place> {
    int first, second = number();
    __device__ Place() : first(number()) {}
    __device__ int method() const { return number(); }
    __device__ int of_namespace() const { return apart::number(); }
    __device__ int own() const { return method() + zero; }
    __device__ static int fixed() { return number(); }
    template <int factor>
    __device__ int times() const {
        return factor * number();
    }
    __device__ int operator()() const { return number(); }
    __device__ operator int() const { return number(); }
    __device__ int standard(int at = number()) const { return at; }
};
__device__ int operator+(const Place& place, int more) {
    return place.zero + number() + more;
}
template <int k>
__device__ int special() {
    return -1;
}
template <>
__device__ int special<3>() {
    return number();
}
template <class F>
__device__ int handed(F f) {
    return f();
}

extern "C" __global__ void by_method(const T* in, T* out) {
    Place p;
    out[threadIdx.x] = p.method();
}
extern "C" __global__ void by_constructor(const T* in, T* out) {
    Place p;
    out[threadIdx.x] = p.first;
}
extern "C" __global__ void by_member(const T* in, T* out) {
    Place p;
    out[threadIdx.x] = p.second;
}
extern "C" __global__ void by_base(const T* in, T* out) {
    Place p;
    out[threadIdx.x] = p.inherited();
}
extern "C" __global__ void by_crtp(const T* in, T* out) {
    Place p;
    out[threadIdx.x] = p.chained();
}
extern "C" __global__ void by_namespace(const T* in, T* out) {
    Place p;
    out[threadIdx.x] = p.of_namespace();
}
extern "C" __global__ void by_static(const T* in, T* out) {
    out[threadIdx.x] = Place::fixed();
}
extern "C" __global__ void by_template(const T* in, T* out) {
    Place p;
    out[threadIdx.x] = p.times<1>();
}
extern "C" __global__ void by_call(const T* in, T* out) {
    Place p;
    out[threadIdx.x] = p();
}
extern "C" __global__ void by_conversion(const T* in, T* out) {
    Place p;
    int i = p;
    out[threadIdx.x] = i;
}
extern "C" __global__ void by_default(const T* in, T* out) {
    Place p;
    out[threadIdx.x] = p.standard();
}
extern "C" __global__ void by_operator(const T* in, T* out) {
    Place p;
    out[threadIdx.x] = p + 0;
}
extern "C" __global__ void by_special(const T* in, T* out) {
    out[threadIdx.x] = special<3>();
}
extern "C" __global__ void by_functor(const T* in, T* out) {
    out[threadIdx.x] = handed(Place());
}
extern "C" __global__ void by_lambda(const T* in, T* out) {
    const auto f = [] { return number(); };
    out[threadIdx.x] = handed(f);
}
__device__ int converted(Place place) {
    int i = place;
    return i;
}
extern "C" __global__ void by_parameter(const T* in, T* out) {
    Place p;
    int i = converted(p);
    __syncthreads();
    out[threadIdx.x] = i;
}
