"""Other libraries, data formats, the C level and the command line. Tests of missing libraries are skipped."""
