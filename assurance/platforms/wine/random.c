/* bcryptprimitives.dll, from which Rust takes random bytes, and which wine 8 does not have: by an older function. */
unsigned char __stdcall SystemFunction036(void *memory, unsigned long size);

__declspec(dllexport) int __stdcall ProcessPrng(unsigned char *memory, unsigned long long size)
{
    for (; size >> 30; memory += 1 << 30, size -= 1 << 30)
        SystemFunction036(memory, 1 << 30);
    return SystemFunction036(memory, (unsigned long)size);
}
