"""Other libraries, data formats, the C level and the command line. What is not installed is skipped."""
