#!/usr/bin/env python3
"""Tests of guide.py: what it takes from a page, and what it makes of it."""

import tempfile
import unittest
from pathlib import Path

import guide

PAGE = """
# Title

```sh status=0,1
whyso doctor   # a remark
# a comment
whyso run x \\
  --users 1
```

1. A step:

   ```sh checked
   sudo whyso setup-tracing --undo
   ```

```toml file=a.toml
name = "a"
```

`whyso run --users` and `--slo`
"""

PROGRAM = """#!/bin/sh
case "$*" in
"--help-all") printf 'Commands:\\n  run  Run\\n  server  Builds\\n\\nOptions:\\n' ;;
"server --help") printf 'Commands:\\n  list  List\\n\\n' ;;
"run --help") printf 'Options:\\n  --users <N>\\n  --slo <X>\\n' ;;
"server list --help") printf 'Options:\\n  --json\\n' ;;
esac
"""


class GuideTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.place = Path(self.folder.name)
        self.program = self.place / "whyso"
        self.program.write_text(PROGRAM)
        self.program.chmod(0o755)

    def tearDown(self):
        self.folder.cleanup()

    def test_blocks_and_commands_are_found(self):
        blocks = [(language, info, block) for _, language, info, block in guide.BLOCK.findall(PAGE)]
        self.assertEqual([(language, info) for language, info, _ in blocks], [("sh", "status=0,1"), ("sh", "checked"), ("toml", "file=a.toml")])
        self.assertEqual(guide.commands(blocks[0][2]), ["whyso doctor   # a remark", "whyso run x    --users 1"])

    def test_calls_of_whyso_are_found(self):
        self.assertEqual(guide.whyso_commands("sudo whyso a --b # whyso c"), [["a", "--b"]])
        self.assertEqual(guide.whyso_commands("X=1 whyso a; whyso b | grep whyso"), [["a"], ["b"]])
        self.assertEqual(guide.whyso_commands("ssh host"), [])

    def test_unknown_options_and_commands_are_found(self):
        program_help = guide.Help(self.program)
        self.assertEqual(program_help.unknown(["run", "x", "--users", "1", "--slo=p99"]), [])
        self.assertEqual(program_help.unknown(["run", "--user", "1"]), ["--user"])
        self.assertEqual(program_help.unknown(["server", "list", "--json", "--x"]), ["--x"])
        self.assertEqual(program_help.unknown(["rum"]), ["rum"])
        # What follows -- belongs to another program.
        self.assertEqual(program_help.unknown(["run", "--", "other", "--x"]), [])

    def test_a_wrong_command_fails_the_walk(self):
        walk = guide.Walk(self.program, self.place, "/s", True)
        walk.every = walk.help.every_option()
        book = self.place / "book"
        book.mkdir()
        page = book / "page.md"
        page.write_text("```sh\nexit 3\n```\n\n```sh status=3\nexit 3\n```\n\n```sh prints=seen\necho unseen; echo hidden\n```\n\n`--slow`\n")
        walk.page(book, page)
        self.assertEqual(len(walk.failures), 2, walk.failures)
        self.assertIn("exit 3", walk.failures[0])
        self.assertIn("--slow", walk.failures[1])
        page.write_text("```sh prints=seen\necho hidden\n```\n")
        walk.page(book, page)
        self.assertEqual(len(walk.failures), 3, walk.failures)

    def test_files_of_a_page_are_written_and_checked_commands_do_not_run(self):
        walk = guide.Walk(self.program, self.place, "/s", True)
        walk.every = walk.help.every_option()
        book = self.place / "book"
        book.mkdir()
        page = book / "page.md"
        page.write_text("```toml file=a.toml\na = 1\n```\n\n```sh checked\ntouch made\n```\n")
        walk.page(book, page)
        self.assertEqual((self.place / "a.toml").read_text(), "a = 1\n")
        self.assertFalse((self.place / "made").exists())
        self.assertEqual(walk.failures, [])

    def test_addresses_and_runs_are_replaced(self):
        walk = guide.Walk(self.program, self.place, "/s", True)
        run = self.place / "runs" / "one"
        run.mkdir(parents=True)
        (run / "run.json").write_text("{}")
        line = walk.addressed("whyso record --dsn mysql://bench@db1:3306/shop; whyso why RUN")
        self.assertEqual(line, "whyso record --dsn 'mysql://root@localhost/shop?socket=/s'; whyso why runs/one")

    def test_times_and_data_become_less(self):
        self.assertEqual(guide.shortened(["why", "RUN"]), ["why", "RUN"])
        self.assertEqual(guide.shortened(["record", "--for", "60s", "--", "x", "--for", "60s"])[:3], ["record", "--for", "4s"])
        short = guide.shortened(["run", "x", "--users", "1,2,3", "--seconds", "60", "--rows", "100000"])
        self.assertIn("--no-repeat", short)
        self.assertEqual(short[short.index("--seconds") + 1], "1")
        self.assertEqual(short[short.index("--rows") + 1], "1000")
        self.assertNotIn("--dsn", short)
        self.assertEqual(guide.shortened(["run", "x"], "D")[-6:-4], ["--dsn", "D"])
        self.assertNotIn("--dsn", guide.shortened(["run", "x", "--set", "a=1"], "D"))
        self.assertNotIn("--dsn", guide.shortened(["record", "--dsn", "E"], "D")[3:])


if __name__ == "__main__":
    unittest.main()
