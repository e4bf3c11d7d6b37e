// Clusters: neighbouring blocks of a grid that run at the same time and may use each other's shared
// memory, which is then called distributed (compute capability 9.0). A kernel says with
// __cluster_dims__ how many form one.
#pragma once

// A barrier of the cluster in two halves: no thread passes the second before all threads of all
// blocks have called the first. What they wrote to shared memory before that is then visible.
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

// The address of `shared` in the shared memory of the cluster's block `rank`, for the functions
// below. That block must have started and must not have ended.
__device__ inline unsigned address_in_block(const float* shared, unsigned rank) {
    unsigned address = (unsigned)__cvta_generic_to_shared(shared);
    asm volatile("mapa.shared::cluster.u32 %0, %0, %1;" : "+r"(address) : "r"(rank));
    return address;
}
// Loads or stores sixteen bytes at such an address.
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
