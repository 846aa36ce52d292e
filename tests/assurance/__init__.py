"""Parts of assurance/ that do not need its tools, and the ties of its scripts to the sources that they describe."""
