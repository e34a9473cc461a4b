"""An OpenID provider of another make, for the tests: Debian's glewlwyd on a free port of 127.0.0.1.

    python3 glewlwyd.py FOLDER

It prints {"issuer"} once it listens, and ends when its standard input does. Lines that it takes, each
answered by a line of JSON:
    client URI    makes the client penstock-web, which comes back to this redirect URI
    sign-in URL   the user gina signs in for this authorization request; {"location"}: where it leads
"""
import http.cookiejar
import json
import pathlib
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from ports import find_free_port  # noqa: E402

folder = pathlib.Path(sys.argv[1])
port = find_free_port()
base = f"http://127.0.0.1:{port}"

tables = pathlib.Path("/usr/share/dbconfig-common/data/glewlwyd/install/sqlite3").read_text()
with sqlite3.connect(folder / "glewlwyd.db") as database:
    database.executescript(tables)
    (parameters,) = database.execute("select gumi_parameters from g_user_module_instance").fetchone()
    parameters = json.loads(parameters)
    parameters["data-format"]["roles"] = {"multiple": False, "read": True, "write": True}
    database.execute("update g_user_module_instance set gumi_parameters = ?", (json.dumps(parameters),))
database.close()
(folder / "glewlwyd.conf").write_text(f"""
port={port}
bind_address="127.0.0.1"
external_url="{base}/"
login_url="login.html"
api_prefix="api"
log_mode="file"
log_level="INFO"
log_file="{folder}/glewlwyd.log"
cookie_secure=0
session_key="GLEWLWYD"
admin_session_authentication="cookie"
profile_session_authentication="cookie"
login_api_enabled=true
admin_scope="g_admin"
profile_scope="g_profile"
user_module_path="/usr/lib/glewlwyd/user"
client_module_path="/usr/lib/glewlwyd/client"
user_auth_scheme_module_path="/usr/lib/glewlwyd/scheme"
plugin_module_path="/usr/lib/glewlwyd/plugin"
hash_algorithm="SHA512"
database = {{ type = "sqlite3"; path = "{folder}/glewlwyd.db"; }};
""")
server = subprocess.Popen(["glewlwyd", f"--config-file={folder}/glewlwyd.conf"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


class Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


def somebody():
    cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
    return urllib.request.build_opener(Stay, cookies, urllib.request.ProxyHandler({}))


def call(who, method, path, body):
    request = urllib.request.Request(base + path, json.dumps(body).encode(), {"Content-Type": "application/json"}, method=method)
    who.open(request).read()


def openssl(*arguments, given=None):
    return subprocess.run(["openssl", *arguments], input=given, capture_output=True, check=True, text=True).stdout


try:
    admin = somebody()
    for attempt in range(1200):
        try:
            call(admin, "POST", "/api/auth/", {"username": "admin", "password": "password"})
            break
        except urllib.error.URLError:
            time.sleep(0.1)
    key = openssl("genrsa", "2048")
    call(admin, "POST", "/api/mod/plugin/", {"module": "oidc", "name": "oidc", "display_name": "OIDC", "enabled": True, "parameters": {
        "iss": f"{base}/api/oidc", "jwt-type": "rsa", "jwt-key-size": "256",
        "key": key, "cert": openssl("rsa", "-pubout", given=key),
        "access-token-duration": 3600, "refresh-token-duration": 3600, "code-duration": 600, "refresh-token-rolling": False,
        "allow-non-oidc": False, "auth-type-code-enabled": True, "auth-type-token-enabled": False,
        "auth-type-id-token-enabled": True, "auth-type-none-enabled": False, "auth-type-password-enabled": False,
        "auth-type-client-enabled": True, "auth-type-device-enabled": False, "auth-type-refresh-enabled": False,
        "pkce-allowed": True, "pkce-required": False, "pkce-method-plain-allowed": False, "subject-type": "public",
        "session-management-allowed": True, "session-cookie-name": "OIDC", "session-cookie-expiration": 3600,
        "name-claim": "on-demand", "allowed-scope": ["openid", "profile"], "additional-parameters": [], "scope": [],
        "claims": [
            {"name": "roles", "user-property": "roles", "type": "string", "mandatory": True, "scope": []},
            {"name": "user_email", "user-property": "email", "type": "string", "mandatory": True, "scope": []},
        ],
    }})
    call(admin, "POST", "/api/scope/", {"name": "profile", "display_name": "profile", "description": "profile", "password_required": False, "scheme": {}})
    call(admin, "POST", "/api/user/", {"username": "gina", "password": "a password", "name": "Gina", "email": "gina@plant.example", "roles": "ACCURIDS_CONTRIBUTOR", "scope": ["openid", "profile", "g_profile"], "enabled": True})
    print(json.dumps({"issuer": f"{base}/api/oidc"}), flush=True)
    for line in sys.stdin:
        what, url = line.split()
        answer = {}
        if what == "client":
            call(admin, "POST", "/api/client/", {"client_id": "penstock-web", "name": "Penstock", "confidential": True, "enabled": True,
                 "client_secret": "web-secret-0123456789abcdef0123456", "password": "web-secret-0123456789abcdef0123456",
                 "scope": ["openid", "profile"], "redirect_uri": [url], "authorization_type": ["code"], "token_endpoint_auth_method": ["client_secret_basic"]})
        else:
            gina = somebody()
            call(gina, "POST", "/api/auth/", {"username": "gina", "password": "a password"})
            call(gina, "PUT", "/api/auth/grant/penstock-web/", {"scope": "openid profile"})
            try:
                gina.open(url + "&g_continue")
            except urllib.error.HTTPError as redirect:
                answer["location"] = redirect.headers["Location"]
        print(json.dumps(answer), flush=True)
finally:
    server.terminate()
    server.wait()
