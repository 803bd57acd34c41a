/* NVML's interface, as far as it is called: two GPUs that answer, and one that is lost. NVML_CODE makes it refuse. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { unsigned long long total, free, used; } memory;

int nvmlInit_v2(void) { const char *code = getenv("NVML_CODE"); return code ? atoi(code) : 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 3; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
    *device = (void *)(0x700000000000ull + index);
    return index == 1 ? 15 : 0;
}
static unsigned index_of(void *device) { return (unsigned)((unsigned long long)device - 0x700000000000ull); }
int nvmlDeviceGetUUID(void *device, char *text, unsigned length) {
    snprintf(text, length, "GPU-0000000%u-1111-2222-3333-444444444444", index_of(device));
    return 0;
}
int nvmlDeviceGetName(void *device, char *text, unsigned length) {
    snprintf(text, length, "NVIDIA H100 80GB HBM3");
    return 0;
}
int nvmlDeviceGetMemoryInfo(void *device, memory *found) { found->total = 81559ull << 20; return 0; }
int nvmlDeviceGetMinorNumber(void *device, unsigned *minor) { *minor = 7 - index_of(device); return 0; }
