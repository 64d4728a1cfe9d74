__global__ void add(float *values, float amount, int count) {
  int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < count) values[index] += amount;
}

extern "C" int tiny_device_count(void) {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

extern "C" int tiny_add(float *values, float amount, int count) {
  float *device = nullptr;
  cudaError_t status = cudaMalloc(&device, count * sizeof(float));
  if (status != cudaSuccess) return (int)status;
  cudaMemcpy(device, values, count * sizeof(float), cudaMemcpyHostToDevice);
  add<<<(count + 255) / 256, 256>>>(device, amount, count);
  status = cudaMemcpy(values, device, count * sizeof(float), cudaMemcpyDeviceToHost);
  cudaFree(device);
  return (int)status;
}
