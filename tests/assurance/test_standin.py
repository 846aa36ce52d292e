"""The stand-in for `cryptography` of `assurance/platforms` gives the same bytes, and the answers of NIST SP 800-38A."""

import subprocess
import sys
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CTR, GCM

ROOT = Path(__file__).parents[2]
KEY = "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4"  # F.5.5, CTR-AES256.Encrypt
COUNTER = "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"
PLAIN = (
    "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
    "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710"
)
CODED = (
    "601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5"
    "2b0930daa23de94ce87017ba2d84988ddfc9c58db67aada613c2dd08457941a6"
)
PROGRAM = """
import sys, cryptography
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CTR, GCM
assert "standin" in cryptography.__file__
key, counter, data = map(bytes.fromhex, sys.stdin.read().split())
out = bytearray(len(data) - 5)
encryptor = Cipher(AES256(memoryview(key)), (GCM if len(counter) == 12 else CTR)(memoryview(counter))).encryptor()
start = encryptor.update(data[:5])
assert encryptor.update_into(data[5:], memoryview(out)) == len(out)
print((start + out).hex())
"""


def stand_in(*texts):
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, 'assurance/platforms/standin'){PROGRAM}"]
    done = subprocess.run(command, cwd=ROOT, input=" ".join(texts), capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_known_answers():
    assert stand_in(KEY, COUNTER, PLAIN) == CODED


def test_equals_the_library():
    data = np.random.default_rng(1).bytes(2**17)
    counter = "ff" * 16  # the counter runs over
    expected = Cipher(AES256(bytes.fromhex(KEY)), CTR(bytes.fromhex(counter))).encryptor().update(data)
    assert stand_in(KEY, counter, data.hex()) == expected.hex()
    expected = Cipher(AES256(bytes.fromhex(KEY)), GCM(bytes.fromhex(counter[:24]))).encryptor().update(data)
    assert stand_in(KEY, counter[:24], data.hex()) == expected.hex()
