"""Release files: wheels for old glibc, arm64 and musl, and the sdist, built, compared, audited and run.

`build` makes each file, `sbom` lists what is in it, `roots` makes systems without a compiler to run it in.
"""
