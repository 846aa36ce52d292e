class CTR:
    """A first counter of 16 bytes."""

    def __init__(self, nonce: bytes | memoryview) -> None:
        if len(nonce) != 16:
            raise ValueError("nonce must have 16 bytes")
        self.nonce = nonce
