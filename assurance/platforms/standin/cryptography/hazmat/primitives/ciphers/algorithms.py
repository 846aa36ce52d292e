class AES256:
    """A key of 32 bytes."""

    def __init__(self, key: bytes | memoryview) -> None:
        if len(key) != 32:
            raise ValueError("key must have 32 bytes")
        self.key = key
