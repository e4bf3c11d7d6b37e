// Clusters: neighbouring blocks of a grid that run at the same time and may use each other's shared
// memory (compute capability 9.0). A kernel says with __cluster_dims__ how many form one.

// Between the two: nobody has passed the second before all threads of all blocks of the cluster
// have called the first. What they had written to shared memory by then is visible after it.
__device__ inline void arrive_in_cluster() {
    asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
}
__device__ inline void wait_for_cluster() {
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}
__device__ inline void sync_cluster() {
    arrive_in_cluster();
    wait_for_cluster();
}

// The place in the shared memory of the cluster's block `rank` at which this block has `shared`: an
// address for the functions below. That block must have started, and must not have ended.
__device__ inline unsigned address_in_block(const float* shared, unsigned rank) {
    unsigned address = (unsigned)__cvta_generic_to_shared(shared);
    asm volatile("mapa.shared::cluster.u32 %0, %0, %1;" : "+r"(address) : "r"(rank));
    return address;
}
// Sixteen bytes from there, or to there.
__device__ inline float4 read_from_block(unsigned address) {
    float4 v;
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(address)
                 : "memory");
    return v;
}
__device__ inline void write_to_block(unsigned address, float4 v) {
    asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(address), "f"(v.x),
                 "f"(v.y), "f"(v.z), "f"(v.w)
                 : "memory");
}
