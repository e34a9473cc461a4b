#!/usr/bin/env python3
"""Measures how objects are found and explored: tests/scale/explore.py BINARY [OBJECTS].

It starts a gateway in a temporary folder, loads objects of five fields, and prints the median time of nine requests over
one machine's loopback, with the peak of the process above what it had before them.
"""
import json, re, socket, statistics, subprocess, sys, tempfile, time
import http.cookiejar, urllib.parse, urllib.request

BINARY, OBJECTS = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 200_000
CONFIG = """type: object
path: 'Asset:.'
key: tag
fields:
  tag: {type: string, path: <https://plant.example/tag>, required: true}
  serial: {type: string, path: <https://plant.example/serial>}
  rating: {type: number, path: <https://plant.example/rating>}
  installed: {type: dateTime, path: <https://plant.example/installed>}
  state: {type: string, path: <https://plant.example/state>}
"""
folder = tempfile.TemporaryDirectory()
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    base = f"http://127.0.0.1:{free.getsockname()[1]}"
data = f"--service.data-dir={folder.name}/data"
log = open(f"{folder.name}/log", "w")
gateway = subprocess.Popen([BINARY, "serve", data, f"--server.port={base.rsplit(':', 1)[1]}"], stdout=log, stderr=log)
browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
browser.addheaders = [("Sec-Fetch-Site", "same-origin"), ("Accept", "text/html")]


def describe_asset(number):
    year, month, day = 2010 + number % 15, 1 + number % 12, 1 + number % 28
    return {
        "tag": f"A-{number:07}", "serial": f"SN-{number * 7919 % OBJECTS:07}", "rating": number * 37 % 100_000 / 100,
        "installed": f"{year}-{month:02}-{day:02}T{number % 24:02}:{number % 60:02}:00Z",
        "state": ["RUN", "STOP", "FAIL", "OFF"][number % 4],
    }


def send(path, body=None, kind="application/json", method=None):
    headers = {"Authorization": f"Bearer {key}", "Content-Type": kind}
    request = urllib.request.Request(base + path, None if body is None else body.encode(), headers, method=method)
    with urllib.request.urlopen(request, timeout=300) as answer:
        return answer.read().decode()


def memory(name):
    with open(f"/proc/{gateway.pid}/status") as status:
        return int(re.search(rf"{name}:\s+(\d+)", status.read()).group(1)) / 1024


def measure(name, request, *expected):
    """Measures a request whose answer has all these texts."""
    answer = request()
    for text in expected:
        assert text in answer, f"{name} lacks {text}: {answer[:500]}"
    # How a part of the page says that it has no figures.
    assert not re.search("is missing: |is not shown: |are not counted: ", answer), f"{name}: {answer[:500]}"
    with open(f"/proc/{gateway.pid}/clear_refs", "w") as references:
        references.write("5")
    before, times = memory("VmRSS"), []
    for _ in range(9):
        begin = time.perf_counter()
        request()
        times.append((time.perf_counter() - begin) * 1000)
    print(f"{name}: {statistics.median(times):.1f} ms, at least {min(times):.1f}, {memory('VmHWM') - before:.1f} MB more")


try:
    for _ in range(300):
        try:
            urllib.request.urlopen(f"{base}/health/ready").close()
            break
        except OSError:
            time.sleep(0.1)
    created = subprocess.run([BINARY, "api-key", "create", "--name", "bench", "--role", "Admin", data], capture_output=True, text=True)
    key = re.search(r"penstock_\w+", created.stdout).group(0)
    object_id = json.loads(send("/api/v1/business-objects", json.dumps({"name": "Asset", "enabled": True, "config": CONFIG}), method="PUT"))["id"]
    begin = time.perf_counter()
    for first in range(0, OBJECTS, 5_000):
        lines = [json.dumps(describe_asset(number)) for number in range(first, min(first + 5_000, OBJECTS))]
        send("/api/v1/business-objects/Asset?mode=ADD", "\n".join(lines), "application/x-ndjson")
    print(f"{OBJECTS} objects in {time.perf_counter() - begin:.1f} s, {memory('VmRSS'):.0f} MB resident")
    wanted = describe_asset(OBJECTS // 3)
    serial, tag = wanted["serial"], wanted["tag"]
    assets = [describe_asset(number) for number in range(OBJECTS)]
    newest = max(asset["installed"] for asset in assets)
    high = sum(asset["rating"] > 999.9 for asset in assets)

    def graphql(arguments):
        query = f"{{ assetConnection(first: 20, {arguments}) {{ nodes {{ tag installed }} }} }}"
        return lambda: send("/graphql", json.dumps({"query": query}))

    def sparql(query):
        return lambda: send("/sparql", query, "application/sparql-query")

    measure("GraphQL, eq on a string", graphql(f'where: {{serial: {{eq: "{serial}"}}}}'), f'"nodes":[{{"tag":"{tag}",')
    measure("GraphQL, orderBy a time", graphql("orderBy: {field: installed, direction: DESC}"), f'"installed":"{newest}"')
    measure("REST, filter by a string", lambda: send(f"/api/v1/business-objects/Asset/objects?filter.serial={serial}"), tag, serial)
    measure("SPARQL, a literal", sparql(f'SELECT ?s WHERE {{ ?s <https://plant.example/serial> "{serial}" }}'), tag)
    count = "SELECT (COUNT(*) AS ?n) WHERE { ?s <https://plant.example/rating> ?r FILTER(?r > 999.9) }"
    measure("SPARQL, filter on a number", sparql(count), f'"value":"{high}"')

    with open(f"{folder.name}/data/initial-admin-password") as file:
        form = {"email": "admin", "password": file.read().strip()}
    with browser.open(f"{base}/login") as answer:
        form |= dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', answer.read().decode()))
    browser.open(f"{base}/login", urllib.parse.urlencode(form).encode()).close()

    def page(path):
        def get():
            with browser.open(base + path.replace("&#38;", "&")) as answer:
                return answer.read().decode()
        return get

    explore = f"/admin/objects/{object_id}"
    measure("the page, without filters", page(explore), "A-0000000")
    measure("the page, filtered by a string", page(f"{explore}?filter.serial={serial}"), "1 object matches", tag)
    measure("the page, filtered to a quarter", page(f"{explore}?filter.state=RUN"), "A-0000000")
    for part in sorted(set(re.findall(r'data-part="([^"]+)"', page(explore)()))):
        measure(f"its part {part.rsplit('/', 1)[1]}", page(part), "<")
finally:
    gateway.terminate()
    gateway.wait()
