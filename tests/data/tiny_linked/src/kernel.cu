__global__ void scale(float* values, int count, float factor) {
  int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < count) values[index] *= factor;
}

extern "C" void launch_scale(float* values, int count, float factor) {
  scale<<<(count + 255) / 256, 256>>>(values, count, factor);
}
