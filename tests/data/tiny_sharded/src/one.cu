__global__ void add_one(float* values) { values[threadIdx.x] += 1.0f; }

extern "C" int launch_one(float* values) {
  add_one<<<1, 32>>>(values);
  return 1;
}
