class CTR:
    """A first counter of 16 bytes."""

    def __init__(self, nonce: bytes | memoryview) -> None:
        if len(nonce) != 16:
            raise ValueError("nonce must have 16 bytes")
        self.nonce = nonce


class GCM:
    """A nonce of 12 bytes."""

    def __init__(self, nonce: bytes | memoryview) -> None:
        if len(nonce) != 12:
            raise ValueError("nonce must have 12 bytes")
        self.nonce = nonce
