#!/usr/bin/env python3
"""Records a MariaDB's answers, byte for byte, for the tests of the scanner.

    record.py SOCKET SCHEMA FOLDER

SOCKET: of a throw-away server whose root has no password, started with --local-infile=1. SCHEMA must hold sbtest1
with at least 1,000 rows. Writes one file for each way in which the two sides may agree; a line each: name, form of
the answer, hexadecimal bytes.
"""

import socket
import struct
import sys

LONG_PASSWORD, CONNECT_WITH_DB, LOCAL_FILES, PROTOCOL_41 = 1, 8, 0x80, 0x200
TRANSACTIONS, SECURE, MULTI_STATEMENTS = 0x2000, 0x8000, 0x10000
MULTI_RESULTS, PS_MULTI_RESULTS, PLUGIN_AUTH, DEPRECATE_EOF = 0x20000, 0x40000, 0x80000, 0x1000000
CACHE_METADATA = 0x10

BASE = (CONNECT_WITH_DB | LOCAL_FILES | PROTOCOL_41 | TRANSACTIONS | SECURE | MULTI_STATEMENTS | MULTI_RESULTS
        | PS_MULTI_RESULTS | PLUGIN_AUTH)
MODES = {
    "classic": (BASE | LONG_PASSWORD, 0),
    "deprecate_eof": (BASE | LONG_PASSWORD | DEPRECATE_EOF, 0),
    # Without LONG_PASSWORD, MariaDB reads its own capabilities too.
    "cache_metadata": (BASE | DEPRECATE_EOF, CACHE_METADATA),
    "cache_metadata_classic": (BASE, CACHE_METADATA),
}


class Connection:
    def __init__(self, path, schema, capabilities, extended):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.socket.settimeout(0.2)
        self.answer()
        login = struct.pack("<IIB19sI", capabilities, 1 << 24, 45, b"", extended)
        login += b"root\0\0" + schema.encode() + b"\0mysql_native_password\0"
        self.send(login, 1)
        assert self.answer()[4] == 0

    def send(self, payload, sequence=0):
        self.socket.sendall(struct.pack("<I", len(payload))[:3] + bytes([sequence]) + payload)

    def answer(self):
        """Everything up to a silence of 0.2 s."""
        received = b""
        while True:
            try:
                piece = self.socket.recv(1 << 16)
            except socket.timeout:
                return received
            if not piece:
                return received
            received += piece

    def ask(self, command, argument=b""):
        self.send(bytes([command]) + argument)
        return self.answer()

    def execute(self, statement, *numbers):
        body = struct.pack("<IBI", statement, 0, 1)
        if numbers:
            body += b"\0" * ((len(numbers) + 7) // 8) + b"\1" + b"\3\0" * len(numbers)
            body += b"".join(struct.pack("<i", number) for number in numbers)
        return self.ask(0x17, body)


def record(path, schema, capabilities, extended):
    connection = Connection(path, schema, capabilities, extended)
    lines = []

    def keep(name, form, answer):
        lines.append(f"{name} {form} {answer.hex()}")
        return answer

    def query(name, sql):
        return keep(name, "text", connection.ask(3, sql.encode()))

    def prepare(name, sql):
        answer = keep(name, "prepare", connection.ask(0x16, sql.encode()))
        return struct.unpack("<I", answer[5:9])[0]

    def execute(name, statement, *numbers):
        return keep(name, "binary", connection.execute(statement, *numbers))

    keep("ping", "text", connection.ask(0x0e))
    query("update", "UPDATE sbtest1 SET k = k + 1 WHERE id <= 3")
    query("rows", "SELECT id, NULL, REPEAT('x', 300) FROM sbtest1 WHERE id <= 3")
    query("no_rows", "SELECT id FROM sbtest1 WHERE id < 0")
    query("syntax_error", "SELEC 1")
    query("error_among_rows", "SELECT id, (SELECT 1 UNION SELECT IF(id > 2, 2, 1)) FROM sbtest1 ORDER BY id LIMIT 5")
    query("several_results", "SELECT 1; UPDATE sbtest1 SET k = k WHERE id = -1; SELECT id FROM sbtest1 LIMIT 2")
    query("several_results_then_error", "SELECT 1; SELECT * FROM missing")
    query("make_procedure", "CREATE OR REPLACE PROCEDURE p() BEGIN SELECT 1; SELECT id FROM sbtest1 LIMIT 2; END")
    query("procedure", "CALL p()")
    point = prepare("prepare_point", "SELECT c FROM sbtest1 WHERE id=?")
    between = prepare("prepare_range", "SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ?")
    update = prepare("prepare_update", "UPDATE sbtest1 SET k=k+1 WHERE id=?")
    begin = prepare("prepare_begin", "BEGIN")
    commit = prepare("prepare_commit", "COMMIT")
    call = prepare("prepare_call", "CALL p()")
    keep("prepare_error", "prepare", connection.ask(0x16, b"SELECT * FROM missing"))
    execute("begin", begin)
    execute("point_first", point, 5)
    execute("point_again", point, 6)
    execute("point_none", point, -5)
    execute("range", between, 1, 100)
    execute("execute_update", update, 7)
    execute("commit", commit)
    execute("execute_call", call)
    keep("reset", "text", connection.ask(0x1a, struct.pack("<I", point)))
    execute("execute_unknown", 12345)
    query("local_infile", "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE sbtest1 (c)")
    return lines


def main():
    path, schema, folder = sys.argv[1:]
    for mode, (capabilities, extended) in MODES.items():
        with open(f"{folder}/{mode}.hex", "w") as file:
            file.write("\n".join(record(path, schema, capabilities, extended)) + "\n")


if __name__ == "__main__":
    main()
