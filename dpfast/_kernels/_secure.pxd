# One word of a SecureBitGenerator for the other kernels, without the calls of Python that enter and leave its lock.

from libc.stdint cimport uint64_t


cdef uint64_t secure_word(object bit_generator) except? 1
