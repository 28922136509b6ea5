"""summarise.py - add up the reports of one test run.

    summarise.py REPORTS FAILED

REPORTS holds one XML file for each unit-test program and one for lit. FAILED is 1 if a program of the run ended with an
error; it counts as one failure of its own where no report tells of any, such as a crash before the report is written.
"""

import glob
import os
import sys
import xml.etree.ElementTree as tree


def count(path):
    """(passed, failed, skipped) of one gtest or lit report."""
    passed = failed = skipped = 0
    for case in tree.parse(path).getroot().iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif case.find("skipped") is not None or case.get("status") == "notrun":
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


def main():
    directory, run_failed = sys.argv[1], sys.argv[2] != "0"
    counts = [count(path) for path in sorted(glob.glob(os.path.join(directory, "*.xml")))]
    passed, failed, skipped = (sum(column) for column in zip(*counts)) if counts else (0, 0, 0)
    if run_failed and failed == 0:
        failed = 1
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
