#!/usr/bin/env python3
"""Are causes that were planted confirmed by their experiments, and decoys refuted?

    bench/proof/plants.py run [--minutes N] [--family NAME]   # as root, with BPF; appends to plants.jsonl, and continues where it stopped
    bench/proof/plants.py table                               # PLANTS.md, from plants.jsonl

The set-ups are those of bench/causes, each family as often as the others. A set-up is recorded. Then `whyso prove` gets five minutes for the suspects that
whyso names, and with --versus it gets three minutes for each of two changes: the one that truly removes the cause, and a decoy, a setting that changes nothing.
The load without the cause is recorded, too: what was planted is a cause only where that is faster.
"""

import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "causes"))

from attempt import Failed, output, record
from generate import in_turn, setups
from limits import limited

RESULTS = HERE / "plants.jsonl"
# Of how gains are estimated. The bounds were tuned on set-ups of the first revision, and fitted on those of the second. The third was withdrawn while
# its first set-ups were measured. On those of the fourth all high bounds were raised. Estimates are reported on set-ups of this one.
REVISION, FITTED_ON, RAISED_ON = 5, 2, 4
# Of how experiments are made. They were mended where the first set-ups showed that they had to be, so those are reported by themselves.
EXPERIMENTS = 2
TRACK_RECORDS = HERE.parent.parent / "crates/remedy/track_records.toml"
TABLE = HERE / "PLANTS.md"
SUSPECTS_BUDGET, CHANGE_BUDGET = "5m", "3m"
# What the longest budget, its servers' starts and the recording afterwards may take together.
PROVE_SECONDS_MAX = 480
# Settings that no load of bench/causes depends on.
DECOYS = [
    ("group_concat_max_len", "2000"),
    ("lock_wait_timeout", "40000"),
    ("net_write_timeout", "61"),
    ("max_connect_errors", "150"),
    ("wait_timeout", "28000"),
]
# What bench/causes calls ordinary, and entries of several causes that one change removes.
SMALLEST_GAIN = 1.05


@contextmanager
def neighbours(count):
    """Like those of bench/causes, with the numbers of their processes."""
    spin = ["taskset", "-c", "0", sys.executable, "-c", "while True: pass"]
    started = [subprocess.Popen(spin) for _ in range(count)]
    try:
        yield [str(one.pid) for one in started]
    finally:
        for one in started:
            one.kill()
            one.wait()


def remedy(planted, without, folder, pids):
    """Returns what stands after --versus, or why the change can't be expressed there."""
    if planted.neighbours:
        return [word for pid in pids for word in ("--pause", pid)], ""
    if planted.flags != without.flags:
        return None, "it lies in options of the run"
    if planted.quota_cpus != without.quota_cpus:
        return None, "it lies in a limit around the server"
    words = []
    for name, value in without.settings.items():
        if planted.settings.get(name) != value:
            words += ["--set", f"{name}={value}"]
    if planted.sql != without.sql:
        file = folder / "without.sql"
        file.write_text(without.sql)
        words += ["--workload", str(file)]
    return (words, "") if words else (None, "it is not known")


def prove(whyso, run, folder, recording, budget, enter, words):
    typed = [whyso, "prove", str(folder / recording), "--runs", str(folder), "--workload", str(folder / "workload.sql"), "--budget", budget]
    typed += ["--accept", "durability,memory,semantics", "--json", *words]
    program = subprocess.Popen(typed, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=enter)
    try:
        printed, complaint = program.communicate(timeout=PROVE_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        program.kill()
        program.communicate()
        return {"failed": f"it did not end within {PROVE_SECONDS_MAX} s"}
    if program.returncode != 0 or not printed:
        return {"failed": complaint.strip().splitlines()[-1] if complaint.strip() else f"exit {program.returncode}"}
    found = json.loads(printed)
    kept = ("cause", "share", "intervention", "design", "predicted_gain", "measured_gain", "slowed", "verdict", "why", "undone")
    return {"proofs": [{key: proof.get(key) for key in kept} for proof in found["proofs"]]}


def attempt(whyso, setup, folder):
    planted = setup.planted
    recorded = record(whyso, setup.build, planted, folder)
    result = {"setup": setup.name, "family": setup.family.name, "cause": setup.family.cause, "sealed": setup.is_sealed, "build": setup.build}
    result |= {"strength": setup.strength, "per_s": recorded["per_s"], "users": recorded["users"]}
    result["without_per_s"] = record(whyso, setup.build, setup.without, folder / "without")["per_s"]
    name = random.Random(setup.name).choice(DECOYS)
    with limited(folder, planted.writes_per_s, planted.reads_per_s, planted.quota_cpus) as enter, neighbours(planted.neighbours) as pids:
        pause = [word for pid in pids for word in ("--pause", pid)]
        result["suspects"] = prove(whyso, planted, folder, recorded["recording"], SUSPECTS_BUDGET, enter, pause)
        own, why = remedy(planted, setup.without, folder, pids)
        result["remedy"] = {"why": why} if own is None else prove(whyso, planted, folder, recorded["recording"], CHANGE_BUDGET, enter, ["--versus", *own])
        decoy = ["--versus", "--set", "=".join(name)]
        result["decoy"] = {"setting": name[0]} | prove(whyso, planted, folder, recorded["recording"], CHANGE_BUDGET, enter, decoy)
    return result


def stored():
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


def run(options):
    done = {result["setup"] for result in stored()}
    deadline = time.monotonic() + 60 * options.minutes
    here = json.loads(output([options.whyso, "server", "list", "--json"]))["builds"]
    builds = {build["name"] for build in here if build["at_hand"]}
    longest = 0.0
    for setup in in_turn(setups()):
        if setup.name in done or (options.family and setup.family.name not in options.family) or setup.build not in builds:
            continue
        began = time.monotonic()
        if began + longest > deadline:
            break
        with tempfile.TemporaryDirectory(prefix="whyso-plants-", dir="/var/tmp") as folder:
            try:
                result = attempt(options.whyso, setup, Path(folder))
            except Failed as error:
                result = {"setup": setup.name, "family": setup.family.name, "cause": setup.family.cause, "build": setup.build, "failed": str(error)}
        longest = max(longest, time.monotonic() - began)
        result |= {"revision": REVISION, "experiments": EXPERIMENTS, "date": time.strftime("%Y-%m-%d"), "seconds": round(time.monotonic() - began), "load_average": round(os.getloadavg()[1], 1)}
        with RESULTS.open("a") as out:
            out.write(json.dumps(result) + "\n")
        print(line_of(result), flush=True)


def proofs_of(result, part):
    return result.get(part, {}).get("proofs", [])


def line_of(result):
    def words(proof):
        gain = proof["measured_gain"]
        return f"{proof['cause']} {proof['verdict']}" + (f" x{gain['value']:.2f} ({gain['low']:.2f} to {gain['high']:.2f})" if gain else "")

    parts = [f"{part}: " + "; ".join(words(proof) for proof in proofs_of(result, part)) for part in ("suspects", "remedy", "decoy")]
    return f"{result['setup']} {result['seconds']} s | " + (result.get("failed") or " | ".join(parts))


# Leaving a statement out ends all of its work, and an estimate is about its cause alone.
# More memory for sorts removes a part of the cause at most.
OTHER_CHANGES = ("-without-statement", "-in-memory")


def outcomes(results):
    """Of estimates that an experiment tested: (cause, build, predicted, measured)."""
    found = []
    for result in results:
        proofs = [proof for proof in proofs_of(result, "suspects") if not proof["intervention"].endswith(OTHER_CHANGES)]
        first = first_of(result)
        if first and first["cause"] == result["cause"] and not any(proof["cause"] == result["cause"] and proof["measured_gain"] for proof in proofs):
            # What truly removes the planted cause tests the estimate, too.
            proofs += [proof | {"cause": result["cause"], "predicted_gain": first["predicted_gain"]} for proof in proofs_of(result, "remedy")]
        found += [(proof["cause"], result["build"], proof["predicted_gain"], proof["measured_gain"]) for proof in proofs if holds(proof) is not None]
    return found


def wide_enough(some, times):
    """How many hold once the high bound is higher by this factor."""
    return sum(gain["low"] <= measured["value"] <= gain["high"] * times for _, _, gain, measured in some)


def factor_for(some, wanted=0.8):
    """The smallest factor by which the high bound has to be higher so that this share of them holds; infinite where too many lie below the low one."""
    needed = sorted(max(1.0, measured["value"] / gain["high"]) if gain["low"] <= measured["value"] else math.inf for _, _, gain, measured in some)
    return needed[min(len(needed) - 1, math.ceil(wanted * len(needed)) - 1)] if needed else 1.0


def track_records(all_outcomes):
    lines = ["# What became of estimates of gains, as they were before each experiment. Made by bench/proof/plants.py table."]
    for cause in sorted({cause for cause, *_ in all_outcomes}):
        own = [outcome for outcome in all_outcomes if outcome[0] == cause]
        builds = ", ".join(f'"{build}"' for build in sorted({build for _, build, *_ in own}))
        lines += ["", f"[{cause}]", f"tests = {len(own)}", f"held = {wide_enough(own, 1.0)}", f"builds = [{builds}]"]
    TRACK_RECORDS.write_text("\n".join(lines) + "\n")


def share(part, whole):
    return f"{part} of {whole}" + (f" ({100 * part / whole:.0f} %)" if whole else "")


def holds(proof):
    """Whether the measured gain lies within the predicted bounds; None where one is missing."""
    predicted, measured = proof["predicted_gain"], proof["measured_gain"]
    return None if not predicted or not measured else predicted["low"] <= measured["value"] <= predicted["high"]


def is_cause(result):
    """Whether the load without what was planted is faster, by recordings of both."""
    return result.get("without_per_s", math.inf) >= SMALLEST_GAIN * result["per_s"]


def scores(results):
    """Questions and answers about these set-ups."""
    verdicts = lambda proofs: Counter(proof["verdict"] for proof in proofs)
    others = lambda count, *names: "; " + ", ".join(f"{name} {count[name]}" for name in (*names, "too-small", "not-testable"))
    own = [proof for result in results if is_cause(result) for proof in proofs_of(result, "remedy")]
    decoys = [proof for result in results for proof in proofs_of(result, "decoy")]
    named = [result for result in results if any(proof["cause"] == result["cause"] for proof in proofs_of(result, "suspects"))]
    measured = [proof for result in results if is_cause(result) for proof in proofs_of(result, "suspects") if proof["cause"] == result["cause"] and proof["measured_gain"]]
    comparable = [gains for result in results if len(gains := gains_of(result)) > 1 and gains[0][0] == 0]
    best = sum(max(gain for _, gain in gains) <= 1.1 * gains[0][1] for gains in comparable)
    firsts = [first for result in results if (first := first_of(result))]
    undone = all(proof["undone"] for part in ("suspects", "remedy", "decoy") for result in results for proof in proofs_of(result, part))
    seconds = sorted(result["seconds"] for result in results)
    faster = share(sum(map(is_cause, results)), len(results)) if all("without_per_s" in result for result in results) else "not recorded"
    of_remedies, of_decoys = verdicts(own), verdicts(decoys)
    return [
        ("set-ups", len(results)),
        ("the load is faster without what was planted, by 5 % or more", faster),
        ("of these, the true remedy is confirmed", share(of_remedies["confirmed"], len(own)) + others(of_remedies, "refuted")),
        ("of these, the planted cause is confirmed by whyso's own intervention, where there is one", share(verdicts(measured)["confirmed"], len(measured))),
        ("the planted cause is among the suspects", share(len(named), len(results))),
        ("the decoy is refuted", share(of_decoys["refuted"], len(decoys)) + others(of_decoys, "confirmed")),
        ("of several suspects that were tested, the first gains most (within a tenth)", share(best, len(comparable))),
        ("the first suspect has a predicted gain", share(sum(bool(proof["predicted_gain"]) for proof in firsts), len(firsts))),
        ("everything was put back", "yes" if undone else "no"),
        ("seconds a set-up, all three proofs (median)", seconds[len(seconds) // 2] if seconds else "—"),
    ]


def gains_of(result):
    """Of the suspects that were measured: place and gain."""
    return [(place, proof["measured_gain"]["value"]) for place, proof in enumerate(proofs_of(result, "suspects")) if proof["measured_gain"]]


def table():
    all_results = stored()
    results = [result for result in all_results if "failed" not in result]
    lines = ["# Planted causes, tested", "", "Made by `bench/proof/plants.py table` from [plants.jsonl](plants.jsonl).", ""]
    dates = sorted({result["date"] for result in all_results})
    builds = Counter(result["build"] for result in all_results)
    lines += [f"{len(all_results)} set-ups of {len({result['family'] for result in all_results})} families, from {dates[0]} to {dates[-1]}: "
              + ", ".join(f"{count} on {build}" for build, count in sorted(builds.items())) + f". {len(all_results) - len(results)} failed.", ""]
    parts = [[result for result in results if result.get("experiments", 1) == which] for which in (1, EXPERIMENTS)]
    lines += ["| question | before experiments were mended | afterwards |", "| --- | --- | --- |"]
    lines += [f"| {question} | {before} | {after} |" for (question, before), (_, after) in zip(*map(scores, parts))]
    lines += ["", "| estimates of gains | answer |", "| --- | --- |"]
    of_revision = lambda revision: [result for result in results if result.get("revision", 1) == revision]
    tuned_on, fitted_on, raised_on, results_of_now = map(of_revision, (1, FITTED_ON, RAISED_ON, REVISION))
    before, not_fitted, not_raised, tested_estimates = map(outcomes, (tuned_on, fitted_on, raised_on, results_of_now))
    track_records(outcomes([result for result in results if result.get("revision", 1) >= FITTED_ON]))
    lines.append(f"| set-ups that the estimates were tuned on: a measured gain lies within the bounds that were predicted before | {share(wide_enough(before, 1.0), len(before))} |")
    lines.append(f"| set-ups that they were fitted on: the same, before the fit | {share(wide_enough(not_fitted, 1.0), len(not_fitted))} |")
    lines.append(f"| set-ups that were measured after the fit ({len(raised_on)}): the same, with the fit | {share(wide_enough(not_raised, 1.0), len(not_raised))} |")
    causes = sorted({cause for cause, *_ in not_raised})
    left_out = sum(
        wide_enough([one for one in not_raised if one[0] == cause], factor_for([one for one in not_raised if one[0] != cause])) for cause in causes
    )
    lines.append(f"| the same, with high bounds raised until four of five hold for the other causes | {share(left_out, len(not_raised))} |")
    lines.append(f"| factor of that raise, over all causes: all high bounds have had it since | {factor_for(not_raised):.2f} |")
    lines.append(f"| median of high/low of the first suspect's predicted gain, of the same set-ups, with that raise | {median_width(raised_on, factor_for(not_raised))} |")
    lines.append(f"| set-ups that were measured after the raise ({len(results_of_now)}): a measured gain lies within the predicted bounds | {share(wide_enough(tested_estimates, 1.0), len(tested_estimates))} |")
    lines.append(f"| median of high/low of the first suspect's predicted gain, of the same | {median_width(results_of_now, 1.0)} |")
    lines += ["", "| set-up | true remedy | decoy | suspects, in whyso's order |", "| --- | --- | --- | --- |"]
    for result in all_results:
        if "failed" in result:
            lines.append(f"| {result['setup']} | {result['failed']} | | |")
            continue
        def cell(part):
            return "; ".join(proof_words(proof) for proof in proofs_of(result, part)) or result[part].get("failed") or result[part].get("why") or "no suspect"
        suspects = "; ".join(f"{proof['cause']} {proof_words(proof)}" for proof in proofs_of(result, "suspects")) or result["suspects"].get("failed", "none")
        lines.append(f"| {result['setup']} | {cell('remedy')} | {cell('decoy')} | {suspects} |")
    TABLE.write_text("\n".join(lines) + "\n")
    print("\n".join(lines[: 4 + 24]))


def median_width(results, times):
    """Of the first suspects' predicted gains, with high bounds that are higher by a factor."""
    firsts = [first["predicted_gain"] for result in results if (first := first_of(result)) and first["predicted_gain"]]
    widths = sorted(gain["high"] * times / gain["low"] for gain in firsts)
    return f"{widths[len(widths) // 2]:.2f}" if widths else "—"


def first_of(result):
    proofs = proofs_of(result, "suspects")
    return proofs[0] if proofs else None


def proof_words(proof):
    gain, predicted = proof["measured_gain"], proof["predicted_gain"]
    text = proof["verdict"]
    if gain:
        text += f" ×{gain['value']:.2f} ({gain['low']:.2f} to {gain['high']:.2f})"
    if predicted:
        text += f", predicted {predicted['low']:.2f} to {predicted['high']:.2f}"
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("--minutes", type=float, default=1e6, help="begin nothing that would end later")
    parser.add_argument("--family", action="append", help="only set-ups of this family; may be repeated")
    parser.add_argument("--whyso", default="whyso", help="the program [default: the one on the PATH]")
    options = parser.parse_args()
    table() if options.what == "table" else run(options)


if __name__ == "__main__":
    main()
