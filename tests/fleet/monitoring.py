"""Checks packaging/monitoring with a Prometheus that scrapes a gateway: every rule is evaluated, and every query of the
dashboard finds something.

Usage: tests/fleet/monitoring.py http://HOST:PORT KEY

Needs the Debian package prometheus. The key has the role Metrics."""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlencode, urlsplit
from urllib.request import urlopen

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from gateway import find_free_port, wait_for  # noqa: E402

FOLDER = Path(__file__).resolve().parents[2] / "packaging" / "monitoring"
# What the gateway of the test does not have: answers of 5xx in two scrapes.
EMPTY_QUERIES = ("status=~",)


def main():
    gateway, key = sys.argv[1:]
    subprocess.run(["promtool", "check", "rules", "--lint=all", "--lint-fatal", FOLDER / "rules.yaml"], check=True)
    tests = Path(__file__).with_name("rules-test.yaml")
    subprocess.run(["promtool", "test", "rules", tests], check=True)
    untested = set(re.findall(r"- alert: (\w+)", (FOLDER / "rules.yaml").read_text()))
    untested -= set(re.findall(r"- alertname: (\w+)\n +eval_time: \w+\n +exp_alerts:", tests.read_text()))
    if untested:
        raise SystemExit(f"{tests.name} has no test in which these alerts fire: {', '.join(sorted(untested))}")
    work = Path(tempfile.mkdtemp(prefix="penstock-monitoring."))
    address = f"127.0.0.1:{find_free_port()}"
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(FOLDER / "rules.yaml")],
        "scrape_configs": [{"job_name": "penstock", "authorization": {"credentials": key},
                            "static_configs": [{"targets": [urlsplit(gateway).netloc]}]}],
    }
    (work / "prometheus.yaml").write_text(json.dumps(config))
    command = ["prometheus", f"--config.file={work}/prometheus.yaml", f"--storage.tsdb.path={work}/data", f"--web.listen-address={address}"]
    with open(work / "log", "wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        check_rules(address, work)
        count = check_dashboard(address, work)
    finally:
        server.terminate()
        server.wait()
        shutil.rmtree(work)
    print(f"packaging/monitoring: every rule is evaluated, and {count} queries of the dashboard work")


def check_rules(address, work):
    def evaluated():
        rules = [rule for group in ask(address, "rules")["groups"] for rule in group["rules"]]
        broken = [rule for rule in rules if rule["health"] == "err"]
        if broken:
            raise SystemExit(f"Prometheus cannot evaluate these rules: {broken}")
        return all(rule["health"] == "ok" for rule in rules) and rules
    wait_until("the rules are evaluated", evaluated, work)
    # A rate needs two scrapes.
    wait_until("the gateway is scraped twice", lambda: find(address, 'count_over_time(up{job="penstock"}[1m]) >= 3 and up == 1'), work)


def check_dashboard(address, work):
    dashboard = json.loads((FOLDER / "dashboard.json").read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    for query in queries:
        query = query.replace("$__rate_interval", "1m").replace("$job", ".*").replace("$instance", ".*")
        if any(text in query for text in EMPTY_QUERIES):
            find(address, query)
            continue
        # On a loaded machine a scrape may fail, and then there are no values for a moment.
        what = f"this query of the dashboard finds something (does the metric exist?): {query}"
        wait_until(what, lambda: find(address, query), work)
    return len(queries)


def find(address, query):
    return ask(address, "query", query=query)["result"]


def ask(address, path, **parameters):
    with urlopen(f"http://{address}/api/v1/{path}?{urlencode(parameters)}", timeout=120) as answer:
        return json.load(answer)["data"]


def wait_until(what, condition, work):
    def holds():
        try:
            return condition()
        except OSError:
            return False
    try:
        wait_for(what, holds)
    except SystemExit as error:
        raise SystemExit(f"{error}:\n{(work / 'log').read_text()[-2000:]}")


main()
