"""A stand-in for `cryptography` in test environments that have no wheel of it: AES-256 by libcrypto, with ctypes.

It has what dpfast calls, with the same bytes (tests/assurance/test_standin.py compares both with the answers of NIST SP
800-38A), and is never installed with dpfast.
"""

import ctypes
import ctypes.util

from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CTR, GCM

_crypto = ctypes.CDLL(ctypes.util.find_library("crypto"))
for _name, _result, *_arguments in (
    ("EVP_CIPHER_CTX_new", ctypes.c_void_p),
    ("EVP_CIPHER_CTX_free", None, ctypes.c_void_p),
    ("EVP_aes_256_ctr", ctypes.c_void_p),
    ("EVP_aes_256_gcm", ctypes.c_void_p),
    ("EVP_EncryptInit_ex", ctypes.c_int, *[ctypes.c_void_p] * 3, *[ctypes.c_char_p] * 2),
    ("EVP_EncryptUpdate", ctypes.c_int, *[ctypes.c_void_p] * 3, ctypes.c_char_p, ctypes.c_int),
):
    _function = getattr(_crypto, _name)
    _function.restype, _function.argtypes = _result, _arguments


class Cipher:
    """AES-256 in counter mode, or in the mode of Galois and counter, whose tag is never asked for."""

    def __init__(self, algorithm: AES256, mode: CTR | GCM) -> None:
        self._cipher = _crypto.EVP_aes_256_gcm() if isinstance(mode, GCM) else _crypto.EVP_aes_256_ctr()
        self._key, self._nonce = algorithm.key, mode.nonce

    def encryptor(self) -> "Encryptor":
        return Encryptor(self._cipher, bytes(self._key), bytes(self._nonce))


class Encryptor:
    """A context of libcrypto, which the object owns."""

    def __init__(self, cipher: int, key: bytes, nonce: bytes) -> None:
        self._context = _crypto.EVP_CIPHER_CTX_new()
        if not self._context:
            raise MemoryError
        if _crypto.EVP_EncryptInit_ex(self._context, cipher, None, key, nonce) != 1:
            raise OSError("EVP_EncryptInit_ex failed")

    def __del__(self) -> None:
        _crypto.EVP_CIPHER_CTX_free(self._context)

    def update_into(self, data: bytes, buffer: memoryview) -> int:
        """Write the cipher text of `data` to a writable buffer of at least its length; returns the length."""
        if len(buffer) < len(data):
            raise ValueError(f"buffer must have at least {len(data)} bytes")
        if not data:
            return 0
        first, written = ctypes.c_char.from_buffer(buffer), ctypes.c_int()
        if _crypto.EVP_EncryptUpdate(self._context, ctypes.byref(first), ctypes.byref(written), data, len(data)) != 1:
            raise OSError("EVP_EncryptUpdate failed")
        return written.value

    def update(self, data: bytes) -> bytes:
        """The cipher text of `data`."""
        buffer = bytearray(len(data))
        self.update_into(data, memoryview(buffer))
        return bytes(buffer)
