"""Measures two commands in turn, A B A B …, and prints the medians and the ratios pair by pair.

usage: measure.py --runs N [--name A --name B] -- COMMAND -- COMMAND

What is measured is the whole process, as the operating system accounts for it: wall and processor seconds, peak resident memory. One run of
each is not counted, so that the files are in the cache. Pairs are compared since a shared machine is quicker at one time than at another.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from statistics import median

# Linux counts in KiB, macOS in bytes.
MEMORY_UNIT = 1 if sys.platform == "darwin" else 1024
FIGURES = [("wall s", 2), ("processor s", 2), ("peak MiB", 0)]


def run(command):
    """Seconds, processor seconds and peak MiB of one run."""
    with tempfile.TemporaryFile() as said:
        started = time.monotonic()
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(child.pid, 0)
        wall = time.monotonic() - started
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            said.seek(0)
            sys.exit(f"{' '.join(command)}: exit code {child.returncode}\n{said.read().decode(errors='replace')}")
    return wall, used.ru_utime + used.ru_stime, used.ru_maxrss * MEMORY_UNIT / (1 << 20)


def commands(arguments):
    """The parts between `--`."""
    parts = [[]]
    for argument in arguments:
        if argument == "--":
            parts.append([])
        else:
            parts[-1].append(argument)
    return parts


def main():
    own, *measured = commands(sys.argv[1:])
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--name", action="append", default=[])
    options = parser.parse_args(own)
    if len(measured) != 2 or not all(measured):
        parser.error("expected two commands, each after --")
    for command in measured:
        run(command)
    pairs = [tuple(run(command) for command in measured) for _ in range(options.runs)]
    names = (options.name + ["A", "B"])[:2] if len(options.name) < 2 else options.name[:2]
    print(f"{'median of ' + str(options.runs):<14}" + "".join(f"{name:>12}" for name in names) + f"{'ratio':>8}{'least':>8}{'most':>8}")
    for at, (figure, digits) in enumerate(FIGURES):
        ratios = [first[at] / second[at] for first, second in pairs]
        medians = [median(pair[side][at] for pair in pairs) for side in (0, 1)]
        print(f"{figure:<14}" + "".join(f"{value:>12.{digits}f}" for value in medians) + f"{median(ratios):>8.2f}{min(ratios):>8.2f}{max(ratios):>8.2f}")


if __name__ == "__main__":
    main()
