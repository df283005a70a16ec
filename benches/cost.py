"""Cost of a message: two model steps, one tool call, the reply and its delivery reports, one message at a time.

cost.py FIGURES PROGRAM MESSAGES

FIGURES is the benchmark `figures`, and PROGRAM the program under test. Each tool runs the program twice, with 20
messages and with MESSAGES more. The difference, divided by MESSAGES, contains neither the start nor the stop of the program.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

FEW = 20


def run(figures, program, texts, folder, tool):
    """Runs the benchmark with the program inside `tool`, and returns what the benchmark prints."""
    wrapper = folder / "program"
    first = folder / "first"
    first.unlink(missing_ok=True)
    # The first run of the program only creates the tables, and is killed.
    wrapper.write_text(f"""#!/bin/sh
if ! [ -e '{first}' ]; then touch '{first}'; exec '{program}' "$@"; fi
exec {tool} '{program}' "$@"
""")
    wrapper.chmod(0o755)
    environment = {**os.environ, "DIALARR_UNDER_TEST": str(wrapper), "COST_TEXTS": str(texts)}
    command = [figures, "alone", "--bench"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{tool or 'the program alone'}: {done.stdout}{done.stderr}")
    return done.stdout


def number(pattern, text):
    return int(re.search(pattern, text).group(1).replace(",", ""))


def measure_alone(run_texts, folder):
    return [("voluntary context switches", number(r"switches: (\d+)", run_texts("")))]


def measure_disk(run_texts, folder):
    trace = folder / "trace"
    # -D: the program keeps the process that the benchmark stops.
    run_texts(f"/usr/bin/env strace -D -f -y -o '{trace}' -e trace=fdatasync,fsync,pwrite64")
    syncs = written = 0
    for line in trace.read_text().splitlines():
        if re.search(r"f(data)?sync\(\d+<[^>]*-wal>", line):
            syncs += 1
        elif write := re.search(r"pwrite64\(\d+<[^>]*-wal>.*, (\d+), \d+", line):
            written += int(write.group(1))
    return [("syncs of the write-ahead log", syncs), ("bytes in the write-ahead log", written)]


def measure_instructions(run_texts, folder):
    log = folder / "instructions"
    run_texts(f"/usr/bin/env valgrind --tool=callgrind --callgrind-out-file=/dev/null --log-file='{log}'")
    return [("instructions of the program", number(r"Collected *: *(\d+)", log.read_text()))]


def measure_allocations(run_texts, folder):
    log = folder / "allocations"
    run_texts(f"/usr/bin/env valgrind --leak-check=no --undef-value-errors=no --log-file='{log}'")
    return [("allocations", number(r"heap usage: ([\d,]+) allocs", log.read_text()))]


def main():
    figures, program, texts = sys.argv[1], Path(sys.argv[2]).resolve(), int(sys.argv[3])
    print(f"per message, of {texts} messages after {FEW}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for measure in (measure_alone, measure_disk, measure_instructions, measure_allocations):
            few, many = (
                measure(lambda tool, sent=sent: run(figures, program, sent, folder, tool), folder)
                for sent in (FEW, FEW + texts)
            )
            for (what, before), (_, after) in zip(few, many):
                print(f"{what}: {(after - before) / texts:,.1f}", flush=True)


main()
