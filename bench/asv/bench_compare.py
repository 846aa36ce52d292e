"""The jobs of `bench.compare`, a group at a time and at a hundredth of their sizes, and their first floors."""

from bench.compare.jobs import GROUPS

OPEN = {"threads", "streams", "dask"}  # their files and threads are open while their jobs are listed only


class Groups:
    """All jobs of a group one after the other, or what they are compared with first, if that is a call."""

    params = (sorted(GROUPS.keys() - OPEN), ["dpfast", "floor"])
    param_names = ("group", "line")
    timeout = 300

    def setup(self, group, line):
        jobs = list(GROUPS[group](lambda n: n // 100))
        runs = [job.run if line == "dpfast" else job.floors[0].run for job in jobs if job.floors]
        self.runs = [run for run in runs if callable(run)]
        if not self.runs:
            raise NotImplementedError  # another library is not installed

    def time_group(self, group, line):
        for run in self.runs:
            run()
