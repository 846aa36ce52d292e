"""One file for each module or kernel of the library; a subject with many tests has several."""
