#!/usr/bin/env python3
"""Kills a study at random moments, and goes on with it each time.

killed.py WHYSO DIR [KILLS]: the program, a folder that does not exist yet, and how often (50). Says whether any start
that was done was lost or done twice, and whether what was done in the end is what an undisturbed study would have done.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
# A start of this study takes two to three seconds.
LONGEST_S = 5.0


def starts(folder):
    """What was done, in order. A line that a kill cut is none."""
    done = []
    try:
        with open(os.path.join(folder, "starts.jsonl"), encoding="utf-8") as lines:
            for line in lines:
                try:
                    start = json.loads(line)["start"]
                except ValueError:
                    continue
                done.append((start["pair"], start["block"], start["cell"]))
    except FileNotFoundError:
        pass
    return done


def begin(whyso, folder, file):
    """Goes on with the study, or begins it."""
    if os.path.exists(os.path.join(folder, "study.json")):
        command = [whyso, "study", "resume", folder, "--json"]
    else:
        command = [whyso, "study", "run", file, "--out", folder, "--json"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def main():
    whyso, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    kills = int(sys.argv[3]) if len(sys.argv) > 3 else 50
    file = os.path.join(HERE, "killed.toml")
    random.seed(1)
    killed, rounds, lost, twice, left = 0, 0, 0, 0, 0
    while killed < kills:
        rounds += 1
        place = f"{folder}-{rounds}"
        before = []
        while True:
            study = begin(whyso, place, file)
            try:
                study.wait(timeout=random.uniform(0.05, LONGEST_S) if killed < kills else 600)
                ended = True
            except subprocess.TimeoutExpired:
                study.send_signal(signal.SIGKILL)
                study.wait()
                killed += 1
                ended = False
            after = starts(place)
            if after[: len(before)] != before:
                lost += 1
            twice += len(after) - len(set(after))
            before = after
            if ended and study.returncode == 0:
                break
            time.sleep(0.1)
        kept = json.load(open(os.path.join(place, "study.json"), encoding="utf-8"))
        blocks, cells = kept["spec"]["repeats"], 2
        wanted = {(True, block, 0) for block in range(2)}
        wanted |= {(False, block, cell) for block in range(blocks) for cell in range(cells)}
        left += len(wanted ^ set(before))
        runs = len(os.listdir(os.path.join(place, "runs")))
        print(f"study {rounds}: {killed} kills so far; {len(before)} starts done, {runs} recordings", flush=True)
    print(f"{killed} kills over {rounds} studies: {lost} starts lost, {twice} done twice, {left} missing or too many")
    return 1 if lost or twice or left else 0


if __name__ == "__main__":
    sys.exit(main())
