"""One function in many threads that start together."""

import threading


def in_threads(function, count=8):
    """The results of `function(i)` in threads i = 0, 1, ..., in order; raises the first error of a thread."""
    start, results, errors = threading.Barrier(count), [None] * count, []

    def run(i):
        try:
            start.wait()
            results[i] = function(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results
