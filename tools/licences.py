#!/usr/bin/env python3
"""Check that every package in the dependency tree can be used under permissive licences.

    licences.py              check the packages of Cargo.lock
    licences.py --self-test  check the evaluation of licence expressions

The packages are those of all targets and features, development and build dependencies included.
"""

import json
import pathlib
import re
import subprocess
import sys

ALLOWED = {
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
}

OPERATORS = {"OR", "AND", "WITH"}


def permissive(expression):
    """Whether the SPDX expression can be satisfied with ALLOWED alone; ValueError if it is malformed.

    Grammar, loosest binding first ("/" is the separator that cargo accepted before SPDX expressions):

        either = both (("OR" | "/") both)*
        both   = single ("AND" single)*
        single = "(" either ")" | name ["WITH" name]
    """
    tokens = re.findall(r"[()/]|[^\s()/]+", expression)
    position = 0

    def accept(*wanted):
        nonlocal position
        if position < len(tokens) and tokens[position] in wanted:
            position += 1
            return True
        return False

    def name():
        nonlocal position
        if position == len(tokens):
            raise ValueError("ends too early")
        token = tokens[position]
        if token in OPERATORS or not re.fullmatch(r"[A-Za-z0-9.:-]+\+?", token):
            raise ValueError(f"unexpected '{token}'")
        position += 1
        return token

    # The operands are always parsed before they are combined: a short-circuit would skip their tokens.
    def either():
        result = both()
        while accept("OR", "/"):
            operand = both()
            result = result or operand
        return result

    def both():
        result = single()
        while accept("AND"):
            operand = single()
            result = result and operand
        return result

    def single():
        if accept("("):
            result = either()
            if not accept(")"):
                raise ValueError("missing ')'")
            return result
        # "X+" means X or any later version, so X itself will do.
        licence = name().removesuffix("+")
        if accept("WITH"):
            licence += " WITH " + name()
        return licence in ALLOWED

    result = either()
    if position < len(tokens):
        raise ValueError(f"unexpected '{tokens[position]}'")
    return result


def complaint(licence):
    """What is wrong with a package's licence field; None if nothing is."""
    if not licence:
        return "no licence field"
    try:
        return None if permissive(licence) else f"not permissive: {licence}"
    except ValueError as error:
        return f"malformed licence '{licence}': {error}"


def check():
    root = pathlib.Path(__file__).resolve().parent.parent
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--all-features"]
    run = subprocess.run(command, cwd=root, stdout=subprocess.PIPE)
    if run.returncode != 0:
        print("licences: cargo metadata failed")
        return 1
    packages = json.loads(run.stdout)["packages"]
    offending = 0
    for package in sorted(packages, key=lambda p: (p["name"], p["version"])):
        problem = complaint(package["license"])
        if problem:
            print(f"licences: {package['name']} {package['version']}: {problem}")
            offending += 1
    if offending:
        return 1
    print(f"licences: {len(packages)} packages, all permissive")
    return 0


MALFORMED = "malformed"

SELF_TEST = [
    ("MIT", True),
    ("GPL-3.0", False),
    ("NoSuchLicence", False),
    ("MIT OR GPL-3.0", True),
    ("GPL-3.0 OR MIT", True),
    ("GPL-2.0 OR GPL-3.0", False),
    ("MIT AND GPL-3.0", False),
    ("GPL-3.0 AND MIT", False),
    ("MIT AND ISC", True),
    # AND binds tighter than OR.
    ("MIT OR ISC AND GPL-3.0", True),
    ("GPL-3.0 AND ISC OR MIT", True),
    ("(MIT OR ISC) AND GPL-3.0", False),
    ("GPL-3.0 AND (ISC OR MIT)", False),
    ("(MIT OR Apache-2.0) AND Unicode-3.0", True),
    ("((MIT))", True),
    ("MIT OR Apache-2.0 OR LGPL-2.1-or-later", True),
    # The old separator.
    ("MIT/Apache-2.0", True),
    ("GPL-3.0 / MIT", True),
    ("GPL-2.0/GPL-3.0", False),
    # An exception is allowed only together with its licence, and only that one.
    ("Apache-2.0 WITH LLVM-exception", True),
    ("Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT", True),
    ("GPL-3.0 WITH LLVM-exception", False),
    ("Apache-2.0 WITH Classpath-exception-2.0", False),
    ("LLVM-exception", False),
    ("Apache-2.0+", True),
    ("GPL-3.0+", False),
    ("", MALFORMED),
    ("MIT OR", MALFORMED),
    ("OR MIT", MALFORMED),
    ("MIT Apache-2.0", MALFORMED),
    ("MIT, Apache-2.0", MALFORMED),
    ("(MIT", MALFORMED),
    ("MIT)", MALFORMED),
    ("()", MALFORMED),
    ("MIT WITH", MALFORMED),
    ("MIT//ISC", MALFORMED),
    ("(MIT OR ISC) WITH LLVM-exception", MALFORMED),
]


def self_test():
    failed = 0
    for expression, expected in SELF_TEST:
        try:
            result = permissive(expression)
        except ValueError:
            result = MALFORMED
        if result != expected:
            print(f"licences: self-test: '{expression}' gave {result}, expected {expected}")
            failed += 1
    for licence in (None, "", "GPL-3.0", "MIT OR"):
        if complaint(licence) is None:
            print(f"licences: self-test: no complaint about the licence field {licence!r}")
            failed += 1
    if failed:
        return 1
    print(f"licences: self-test of {len(SELF_TEST)} expressions passed")
    return 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(self_test())
    if sys.argv[1:]:
        sys.exit("usage: licences.py [--self-test]")
    sys.exit(check())
