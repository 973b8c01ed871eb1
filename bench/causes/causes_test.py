#!/usr/bin/env python3
"""Tests the arithmetic of scores.py, and which set-ups are made."""

import tempfile
import unittest
from collections import Counter
from pathlib import Path

import generate
import mixtures
import results
import scores
from attempt import recipe
from setups import Run
import split
from split import sealed


def run(*suspects, generator_cpu=0.1, possible=()):
    """A run's result, in which each view names the same: pairs of a cause and its share."""
    answer = {"suspects": [list(one) for one in suspects], "possible": list(possible)}
    return {"per_s": 100.0, "generator_cpu": generator_cpu, "named": {"full": answer, "without-stacks": answer}}


def result(cause, gain, *suspects, without=(("cpu", 0.9),), generator_cpu=0.1, possible=()):
    return {
        "cause": cause,
        "true_gain": gain,
        "planted": run(*suspects, possible=possible),
        "without": run(*without, generator_cpu=generator_cpu),
    }


def mixture(gains, *suspects):
    return {"causes": ["row-lock", "sleep"], "true_gains": gains, "both": run(*suspects)}


FAILED = {"cause": "row-lock", "failed": "planted: no server"}


class Scores(unittest.TestCase):
    def test_the_interval_is_wilsons(self):
        low, high = scores.Rate(8, 10).interval
        self.assertAlmostEqual(low, 0.4902, 4)
        self.assertAlmostEqual(high, 0.9433, 4)
        self.assertEqual(scores.Rate(0, 0).interval, (0.0, 1.0))
        self.assertEqual(str(scores.Rate(0, 5)), "0 of 5: 0% (0%–43%)")

    def test_strength_is_what_the_plant_costs(self):
        names = [scores.strength(result("sleep", gain)) for gain in (0.9, 1.24, 1.25, 1.99, 2.0)]
        self.assertEqual(names, ["weak", "weak", "medium", "medium", "strong"])

    def test_a_weak_plant_is_not_counted_and_a_failed_one_is_not_right(self):
        some = scores.counted([result("sleep", 1.1, ("sleep", 0.3)), result("sleep", 3, ("sleep", 0.7)), FAILED])
        rate = scores.rate(some, lambda one: scores.is_named(one, "full", 1))
        self.assertEqual((rate.hits, rate.count), (1, 2))
        self.assertFalse(scores.is_confidently_wrong(FAILED, "full"))
        self.assertFalse(scores.is_quiet(FAILED, "full"))

    def test_confidently_wrong_is_a_cause_in_first_place_and_the_true_one_not_among_three(self):
        four = [("cpu", 0.4), ("runqueue", 0.2), ("spin", 0.2), ("sleep", 0.2)]
        self.assertTrue(scores.is_confidently_wrong(result("sleep", 3, *four), "full"))
        self.assertFalse(scores.is_confidently_wrong(result("spin", 3, *four), "full"))
        self.assertFalse(scores.is_confidently_wrong(result("sleep", 3, ("unknown", 0.9)), "full"))
        self.assertFalse(scores.is_confidently_wrong(result("sleep", 3), "full"))

    def test_a_cause_that_is_possible_counts_only_behind_unknown(self):
        unknown = result("checkpoint", 3, ("unknown", 0.9), possible=["checkpoint"])
        other = result("checkpoint", 3, ("cpu", 0.9), possible=["checkpoint"])
        self.assertTrue(scores.is_first_or_possible(unknown, "full"))
        self.assertFalse(scores.is_first_or_possible(other, "full"))

    def test_without_a_plant_ordinary_work_is_no_alarm_and_a_full_generator_neither(self):
        self.assertTrue(scores.is_quiet(result("sleep", 3, without=[("cpu", 0.9), ("row-lock", 0.19)]), "full"))
        self.assertEqual(scores.false_alarms(result("sleep", 3, without=[("row-lock", 0.2)]), "full"), ["row-lock"])
        idle = result("sleep", 3, without=[("generator", 0.5)], generator_cpu=0.5)
        full = result("sleep", 3, without=[("generator", 0.5)], generator_cpu=0.9)
        self.assertEqual((scores.is_quiet(idle, "full"), scores.is_quiet(full, "full")), (False, True))

    def test_precision_counts_other_plants_and_false_alarms(self):
        some = [
            result("sleep", 3, ("sleep", 0.9)),
            result("row-lock", 3, ("sleep", 0.9)),
            result("row-lock", 3, ("row-lock", 0.9), without=[("sleep", 0.5)]),
            FAILED,
        ]
        precision, recall = scores.precision(some, "sleep", "full"), scores.recall(some, "row-lock", "full")
        self.assertEqual((precision.hits, precision.count), (1, 3))
        self.assertEqual((recall.hits, recall.count), (1, 3))
        self.assertEqual(scores.confusion(some, "full")["row-lock"], Counter({"sleep": 1, "row-lock": 1, "(failed)": 1}))
        found, precise = scores.by_strength([*some, result("sleep", 3, ("unknown", 1.0))], "strong", "full")
        self.assertEqual((found.hits, found.count, precise.hits, precise.count), (2, 4, 2, 3))

    def test_a_predicted_gain_is_held_against_the_measured_one(self):
        one = result("sleep", 3.0, ("sleep", 0.9))
        self.assertFalse(scores.has_estimate(one, "full"))
        one["planted"]["named"]["full"]["gains"] = {"sleep": [1.5, 2.8]}
        self.assertTrue(scores.has_estimate(one, "full") and scores.holds_gain(one, "full"))
        one["true_gain"] = 3.2
        self.assertFalse(scores.holds_gain(one, "full"))

    def test_of_two_causes_the_one_whose_removal_gains_more_is_first(self):
        self.assertTrue(scores.is_first_right(mixture([3.0, 1.5], ("row-lock", 0.6), ("sleep", 0.3)), "full"))
        self.assertFalse(scores.is_first_right(mixture([1.5, 3.0], ("row-lock", 0.6), ("sleep", 0.3)), "full"))
        self.assertTrue(scores.is_first_right(mixture([2.9, 3.0], ("row-lock", 0.6)), "full"))
        self.assertTrue(scores.has_both(mixture([3.0, 1.5], ("cpu", 0.4), ("sleep", 0.3), ("row-lock", 0.3)), "full", 3))
        self.assertFalse(scores.has_both(mixture([3.0, 1.5], ("cpu", 0.4), ("sleep", 0.3), ("row-lock", 0.3)), "full", 2))
        self.assertFalse(scores.cost_both(mixture([3.0, 1.1])))
        self.assertTrue(scores.is_mixture_weak(mixture([1.2, 1.1])))


class SetUps(unittest.TestCase):
    def test_a_mixture_is_of_one_part_and_of_two_causes_that_one_run_can_have(self):
        made = mixtures.mixtures()
        self.assertEqual([one.name for one in made], [one.name for one in mixtures.mixtures()])
        self.assertEqual(len({one.name for one in made}), len(made))
        for one in made:
            first, second = one.families
            self.assertEqual(first.name in sealed(), second.name in sealed(), one.name)
            self.assertNotEqual(first.cause, second.cause)
            self.assertTrue(one.build in first.builds and one.build in second.builds)
            self.assertEqual(len({recipe(one.build, part) for part in one.runs.values()}), 3, one.name)
        self.assertEqual(Counter(one.is_sealed for one in made), {True: 12, False: 12})

    def test_runs_that_contradict_each_other_are_not_composed(self):
        one = Run("SELECT 1;\n", users=4, settings={"a": "1"})
        both = mixtures.composed(one, Run("SELECT 2;\n", users=8, settings={"b": "2"}))
        self.assertEqual((both.sql, both.users, both.settings), ("SELECT 1;\nSELECT 2;\n", 8, {"a": "1", "b": "2"}))
        self.assertIsNone(mixtures.composed(one, Run("", settings={"a": "2"})))
        self.assertIsNone(mixtures.composed(one, Run("", own_cpus=False)))
        self.assertIsNone(mixtures.composed(one, Run("", rows=500)))

    def test_a_new_family_changes_nothing_of_what_is_sealed(self):
        self.assertEqual((len(split.SEALED_FIRST), len(split.OPEN_FIRST)), (11, 22))
        self.assertLessEqual(split.SEALED_FIRST, sealed())
        self.assertFalse(split.OPEN_FIRST & sealed())
        share = sum(split.is_sealed(f"new-{number}") for number in range(3_000)) / 3_000
        self.assertAlmostEqual(share, split.SEALED_SHARE, delta=0.03)

    def test_the_order_has_every_family_before_any_family_again(self):
        tune = generate.to_tune_on()
        families = {one.family.name for one in tune}
        self.assertEqual({one.family.name for one in tune[: len(families)]}, families)
        self.assertFalse(families & sealed())

    def test_a_run_without_a_source_differs_in_this_source(self):
        setup = generate.to_tune_on()[0]
        live = setup.live_runs
        self.assertIn("--no-trace", live["without-tracer"].flags)
        self.assertEqual((live["without-tracer"].stacks, live["without-stacks"].stacks), ("", "none"))
        self.assertEqual(live["without-pfs"].settings["performance_schema"], "OFF")
        self.assertEqual(len({recipe(setup.build, one) for one in [setup.planted, *live.values()]}), 5)


class Log(unittest.TestCase):
    def test_an_opening_is_one_line_and_its_score_is_appended(self):
        with tempfile.TemporaryDirectory() as place:
            log = Path(place) / "sealed.log"
            results.log_opening("abc", 66, log)
            results.log_opening("def", 3, log)
            results.log_score("first right 2 of 3", log)
            lines = log.read_text().splitlines()
        self.assertEqual(len(lines), 2)
        self.assertTrue(lines[0].endswith("rules abc: 66 sealed set-ups"))
        self.assertTrue(lines[1].endswith("rules def: 3 sealed set-ups; first right 2 of 3"))


if __name__ == "__main__":
    unittest.main()
