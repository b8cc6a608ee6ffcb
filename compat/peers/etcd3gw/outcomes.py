"""Runs etcd3gw's own functional tests on the server that TOOZ_TEST_HTTP_URL and TOOZ_TEST_ETCD_PORT name. Prints the outcomes as JSON."""
import contextlib
import json
import sys
import unittest


class Outcomes(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.passed = []

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed.append(name_of(test))


def name_of(test):
    return test.id().rpartition(".")[2]


suite = unittest.defaultTestLoader.loadTestsFromName("etcd3gw.tests.test_etcd3gw")
outcomes = Outcomes()
# The tests print as well.
with contextlib.redirect_stdout(sys.stderr):
    suite.run(outcomes)
report = {
    "passed": sorted(outcomes.passed),
    "failed": {name_of(test): why for test, why in outcomes.failures + outcomes.errors},
    "skipped": {name_of(test): why for test, why in outcomes.skipped},
}
print(json.dumps(report))
