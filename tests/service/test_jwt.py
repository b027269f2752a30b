"""The company's own log-in: whose JSON Web Tokens are accepted, every forgery that is not, and keys that change."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from surefoot.errors import ConfigError
from surefoot.service import jwt_issuer
from surefoot.service.preflight import check_server
from surefoot.service.settings import Oidc, Settings, load
from surefoot.service.tokens import TokenFile
from tests.service.issuer import AUDIENCE, KINDS, NAME, Issuer, issuing
from tests.service.page_browser import Tab
from tests.service.servers import ACTIONS, POLICY, running

SHOP = {"name": "shop", "mode": "guarded", "settings": POLICY}


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with issuing() as found:
        found.add_key("first")
        yield found


@contextmanager
def calling(settings: Settings) -> Iterator["Caller"]:
    with running(settings) as address, httpx.Client(base_url=address, trust_env=False, timeout=60) as client:
        yield Caller(client)


def settings_of(issuer: Issuer, folder: Path, **more: Any) -> Settings:
    oidc = Oidc(issuer=NAME, audience=AUDIENCE, jwks=issuer.jwks)
    return Settings(database=str(folder / "shop.journal"), oidc=oidc, **more)


class Caller:
    """A client that says with each request who is asking."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client

    def get(self, token: str, path: str = "/v1/experiments") -> httpx.Response:
        return self.client.get(path, headers={"authorization": f"Bearer {token}"})

    def post(self, token: str, path: str, body: Any) -> httpx.Response:
        return self.client.post(path, headers={"authorization": f"Bearer {token}"}, json=body)

    def patient(self, token: str) -> int:
        """The status, once the keys are here."""
        deadline = time.monotonic() + 30
        while (found := self.get(token)).status_code == 503 and time.monotonic() < deadline:
            assert found.headers["retry-after"] == "1"
            time.sleep(0.05)
        return found.status_code


@pytest.fixture
def caller(issuer: Issuer, tmp_path: Path) -> Iterator[Caller]:
    with calling(settings_of(issuer, tmp_path)) as found:
        assert found.patient(issuer.sign()) == 200
        yield found


def test_a_log_in_acts_in_its_roles_and_events_name_it(issuer: Issuer, caller: Caller, tmp_path: Path) -> None:
    admin = issuer.sign(roles="surefoot:admin")
    assert caller.post(admin, "/v1/experiments", SHOP).status_code == 201
    erased = caller.post(
        admin, "/v1/experiments/shop/erasures", {"person": "nobody", "before": 1.0, "reason": "a test"}
    )
    assert erased.status_code == 200
    changes = caller.get(admin, "/v1/experiments/shop/changes").text
    assert "ada@example.org (oidc:u-17)" in changes
    reader = issuer.sign()
    assert caller.get(reader, "/v1/access").json() == {
        "roles": ["read"],
        "is_open": False,
        "by": "ada@example.org (oidc:u-17)",
        "experiments": None,
        "expiring": {},
    }
    assert caller.post(reader, "/v1/experiments/shop/decisions", {"actions": ACTIONS}).status_code == 403
    assert caller.get(reader, "/metrics").status_code == 403


@pytest.mark.parametrize("claims", [{"email_verified": False}, {"email_verified": "false"}, {"email_verified": None}])
def test_a_name_that_nobody_has_verified_names_nobody(claims: dict[str, Any], issuer: Issuer, caller: Caller) -> None:
    claims = {**claims, "preferred_username": "root"}
    name = caller.get(issuer.sign(**claims), "/v1/access").json()["by"]
    # A claim of None is left out, as by providers that do not send it.
    assert name == ("ada@example.org (oidc:u-17)" if claims["email_verified"] is None else "oidc:u-17")


@pytest.mark.parametrize(
    ("path", "claims", "status"),
    [
        ("realm_access.roles", {"realm_access": {"roles": ["surefoot:read"]}}, 200),
        ("https://shop.example/roles", {"https://shop.example/roles": ["surefoot:read"]}, 200),
        ("realm_access.roles", {"realm_access": ["surefoot:read"]}, 403),
        ("realm_access.roles", {"realm_access": {"roles": {"surefoot:read": {}}}}, 403),
    ],
)
def test_roles_may_lie_deep_in_a_log_in(
    path: str, claims: dict[str, Any], status: int, issuer: Issuer, tmp_path: Path
) -> None:
    oidc = Oidc(issuer=NAME, audience=AUDIENCE, jwks=issuer.jwks, roles_claim=path)
    with calling(Settings(database=str(tmp_path / "shop.journal"), oidc=oidc)) as caller:
        assert caller.patient(issuer.sign(roles=None, **claims)) == status


@pytest.mark.parametrize("algorithm", KINDS)
def test_keys_of_every_kind_are_known(algorithm: str, tmp_path: Path) -> None:
    with issuing() as issuer:
        issuer.add_key("first", algorithm)
        issuer.add_key("second", "EdDSA")
        with calling(settings_of(issuer, tmp_path)) as caller:
            assert caller.patient(issuer.sign()) == 200
            assert caller.get(issuer.sign("second")).status_code == 200


def part(data: Any) -> str:
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def by_hand(issuer: Issuer, header: dict[str, Any], secret: bytes | None, **claims: Any) -> str:
    """A token that no library would sign."""
    text = f"{part(header)}.{part({**issuer.claims(), **claims})}"
    return f"{text}.{'' if secret is None else part(hmac.new(secret, text.encode(), hashlib.sha256).digest())}"


def with_payload(token: str, **claims: Any) -> str:
    head, body, signature = token.split(".")
    told = json.loads(base64.urlsafe_b64decode(body + "=="))
    return f"{head}.{part({**told, **claims})}.{signature}"


def own_key(issuer: Issuer, **header: Any) -> str:
    """Signed with a key of the forger's own, under the name of the issuer's."""
    with issuing() as forger:
        forger.add_key("first")
        return forger.sign(header={"kid": "first", **header})


FORGERIES: dict[str, Callable[[Issuer], str]] = {
    "none": lambda i: by_hand(i, {"alg": "none", "kid": "first"}, None),
    "None": lambda i: by_hand(i, {"alg": "None", "kid": "first"}, None),
    "no algorithm": lambda i: by_hand(i, {"kid": "first"}, None),
    "HS256 with the public key": lambda i: by_hand(
        i, {"alg": "HS256", "kid": "first"}, json.dumps(i.public[0]).encode()
    ),
    "HS256 with the PEM": lambda i: by_hand(i, {"alg": "HS256", "kid": "first"}, pem(i)),
    "HS256 with nothing": lambda i: by_hand(i, {"alg": "HS256", "kid": "first"}, b""),
    "another algorithm of the key": lambda i: ".".join(
        [part({"alg": "RS256", "kid": "first"}), *i.sign().split(".")[1:]]
    ),
    "another's key": lambda i: own_key(i),
    "a key in the header": lambda i: own_key(i, jwk={"kty": "oct", "k": "c2VjcmV0"}),
    "an address in the header": lambda i: own_key(i, jku="http://127.0.0.1:9/jwks", x5u="file:///etc/passwd"),
    "an unknown demand": lambda i: i.sign(header={"crit": ["b64x"], "b64x": True}),
    "claims exchanged": lambda i: with_payload(i.sign(), roles=["surefoot:admin"]),
    "expired": lambda i: i.sign(exp=int(time.time()) - 60),
    "not yet": lambda i: i.sign(nbf=int(time.time()) + 600),
    "issued later": lambda i: i.sign(iat=int(time.time()) + 600),
    "never expires": lambda i: i.sign(exp=None),
    "endless": lambda i: i.sign(exp=1e999),
    "no number": lambda i: i.sign(exp="soon"),
    "another audience": lambda i: i.sign(aud="another app"),
    "no audience": lambda i: i.sign(aud=None),
    "another issuer": lambda i: i.sign(iss="https://id.example.attacker.example"),
    "no issuer": lambda i: i.sign(iss=None),
    "nobody": lambda i: i.sign(sub=None),
    "nobody's name": lambda i: i.sign(sub=""),
    "a name with a line": lambda i: i.sign(sub="u-17\n(admin)"),
    "a long name": lambda i: i.sign(sub="u" * 201),
    "half of it": lambda i: i.sign()[:-20],
    "no signature": lambda i: i.sign().rpartition(".")[0] + ".",
    "dots": lambda _: "..",
    "nonsense": lambda _: "a.b.c",
    "deep": lambda _: f"{part(b'[' * 8_000)}.e30.e30",
    "deep claims": lambda _: f"{part({'alg': 'ES256', 'kid': 'first'})}.{part(b'[' * 8_000)}.e30",
    "huge": lambda i: i.sign(note="x" * 16_000),
}


def pem(issuer: Issuer) -> bytes:
    from cryptography.hazmat.primitives import serialization as forms

    public = issuer.private["first"][1].public_key()
    return bytes(public.public_bytes(forms.Encoding.PEM, forms.PublicFormat.SubjectPublicKeyInfo))


def test_no_forgery_is_accepted_or_our_mistake(issuer: Issuer, caller: Caller) -> None:
    for name, forged in FORGERIES.items():
        answer = caller.get(forged(issuer))
        assert (name, answer.status_code) == (name, 401)
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert "/jwks" not in answer.text
    assert caller.get(issuer.sign()).status_code == 200


@pytest.mark.parametrize(
    "name", ["first'--", "../../etc/passwd", "/dev/null", "http://127.0.0.1:9/", "", 7, ["first"], {"a": 1}, True]
)
def test_the_name_of_a_key_is_looked_up_and_nothing_else(name: Any, issuer: Issuer, caller: Caller) -> None:
    header = {"alg": "ES256", "kid": name}
    answer = caller.get(by_hand(issuer, header, b"x"))
    assert answer.status_code in (401, 503)
    assert caller.get(issuer.sign()).status_code == 200


@pytest.mark.parametrize("roles", [None, [], "", "admin", ["admin"], ["surefoot:king"], {"surefoot:admin": 1}, 7, [[]]])
def test_a_log_in_without_a_role_opens_nothing(roles: Any, issuer: Issuer, caller: Caller) -> None:
    token = issuer.sign(roles=roles)
    for path in ("/v1/experiments", "/v1/access", "/v1/head", "/metrics"):
        assert caller.get(token, path).status_code == 403
    assert caller.get(token, "/").status_code == 200, "the page itself is open"


def test_a_subject_is_never_a_token_of_the_file(issuer: Issuer, tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "tokens")
    machine = file.create(["decide"])
    identity = machine.split("_")[1]
    with calling(settings_of(issuer, tmp_path, tokens=str(file.path))) as caller:
        assert caller.patient(issuer.sign(sub=identity)) == 200
        assert caller.get(machine, "/v1/access").json()["by"] == identity, "tokens remain for machines"
        person = caller.get(issuer.sign(sub=identity, email=None), "/v1/access").json()
        assert person["by"] == f"oidc:{identity}"


def test_keys_change_without_a_restart(issuer: Issuer, caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jwt_issuer, "AGAIN_SECONDS", 0.2)
    old = issuer.sign()
    issuer.public.clear()
    issuer.add_key("second")
    time.sleep(0.3)
    assert caller.patient(issuer.sign("second")) == 200
    assert caller.get(old).status_code == 401, "the old one is gone"


def test_invented_keys_do_not_have_the_issuer_asked_for_each(issuer: Issuer, caller: Caller) -> None:
    before = issuer.fetches
    header = {"alg": "ES256"}
    for n in range(200):
        assert caller.get(by_hand(issuer, {**header, "kid": f"k{n}"}, b"x")).status_code in (401, 503)
    assert issuer.fetches <= before + 1
    assert caller.get(issuer.sign()).status_code == 200


BROKEN: dict[str, tuple[int, bytes, dict[str, str]]] = {
    "an error": (500, b"", {}),
    "nonsense": (200, b"<html>", {}),
    "no keys": (200, b'{"keys": []}', {}),
    "another shape": (200, b'{"keys": 7}', {}),
    "too much": (200, b" " * 1_000_001, {}),
    "elsewhere": (302, b"", {"location": "file:///etc/passwd"}),
    "secrets alone": (200, b'{"keys": [{"kty": "oct", "k": "c2VjcmV0", "kid": "first", "alg": "HS256"}]}', {}),
}


def test_keys_that_cannot_be_fetched_leave_the_last_ones(
    issuer: Issuer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(jwt_issuer, "KEPT_SECONDS", 0.05)
    monkeypatch.setattr(jwt_issuer, "AGAIN_SECONDS", 0.05)
    file = TokenFile(tmp_path / "tokens")
    scraper = file.create(["metrics"])
    with calling(settings_of(issuer, tmp_path, tokens=str(file.path))) as caller:
        assert caller.patient(issuer.sign()) == 200
        for name, answer in BROKEN.items():
            issuer.answer, before = answer, issuer.fetches
            deadline = time.monotonic() + 30
            while issuer.fetches < before + 2 and time.monotonic() < deadline:
                assert (name, caller.get(issuer.sign()).status_code) == (name, 200)
                time.sleep(0.02)
            assert issuer.fetches >= before + 2
        page = caller.get(scraper, "/metrics").text
        (age,) = (line.split()[1] for line in page.splitlines() if line.startswith("surefoot_issuer_keys_age_seconds "))
        assert float(age) > 0.1
    assert any("cannot be fetched" in record.message for record in caplog.records)


def test_an_answer_that_drips_is_given_up_and_the_keys_are_fetched_again(
    issuer: Issuer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, seconds in (("KEPT_SECONDS", 0.05), ("AGAIN_SECONDS", 0.05), ("FETCH_SECONDS", 0.5)):
        monkeypatch.setattr(jwt_issuer, name, seconds)
    with calling(settings_of(issuer, tmp_path)) as caller:
        assert caller.patient(issuer.sign()) == 200
        issuer.answer, before = (200, b"", {"content-length": "900000"}), issuer.fetches
        issuer.drips = True
        while issuer.fetches == before:
            assert caller.get(issuer.sign()).status_code == 200
            time.sleep(0.01)
        old = issuer.sign()
        issuer.public.clear()
        issuer.add_key("second")
        issuer.answer, issuer.drips = None, False
        deadline = time.monotonic() + 30
        while caller.get(issuer.sign("second")).status_code != 200:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert caller.get(old).status_code != 200


def test_a_proxy_of_the_environment_does_not_come_between_this_machine_and_itself(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # where nobody listens
    oidc = Oidc(issuer=NAME, audience=AUDIENCE, jwks=issuer.jwks)
    assert set(jwt_issuer.JwtIssuer(oidc).read_keys()) == {"first"}


def test_an_issuer_that_is_away_at_the_start_keeps_no_machine_out(issuer: Issuer, tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "tokens")
    machine, issuer.answer = file.create(["read"]), (500, b"", {})
    with calling(settings_of(issuer, tmp_path, tokens=str(file.path))) as caller:
        assert caller.get(machine).status_code == 200
        away = caller.get(issuer.sign())
        assert (away.status_code, away.json()["type"]) == (503, "/problems/tokens-unreadable")
        assert "127.0.0.1" not in away.text


def test_keys_may_lie_in_a_file_and_only_good_ones_count(issuer: Issuer, tmp_path: Path) -> None:
    short = json.loads(RSAAlgorithm.to_jwk(rsa.generate_private_key(65537, 1024).public_key()))
    private = json.loads(RSAAlgorithm.to_jwk(rsa.generate_private_key(65537, 2048)))
    bad = [
        {**short, "kid": "short"},
        {**private, "kid": "private"},
        {**issuer.public[0], "kid": "to encrypt", "use": "enc"},
        {"kty": "oct", "k": "c2VjcmV0", "kid": "secret"},
        {"kty": "EC", "crv": "P-256", "kid": "half"},
        {"kid": "nothing"},
    ]
    file = tmp_path / "keys.json"
    file.write_text(json.dumps({"keys": [*bad, *issuer.public]}))
    oidc = Oidc(issuer=NAME, audience=AUDIENCE, jwks=str(file))
    assert set(jwt_issuer.JwtIssuer(oidc).read_keys()) == {"first"}
    settings = Settings(database=str(tmp_path / "shop.journal"), oidc=oidc, port=0)
    assert "The log-in's issuer has 1 key." in check_server(settings)
    with calling(settings) as caller:
        assert caller.patient(issuer.sign()) == 200
    file.write_text(json.dumps({"keys": bad}))
    with pytest.raises(ConfigError, match="must have a public key to sign with"):
        check_server(settings)


@pytest.mark.parametrize("jwks", ["http://id.example/jwks", "ftp://id.example/jwks", "file:///etc/passwd"])
def test_keys_come_by_a_way_on_which_nobody_can_exchange_them(jwks: str) -> None:
    with pytest.raises(ConfigError, match=r"`oidc\.jwks` must be https"):
        load(given={"oidc": {"issuer": NAME, "audience": AUDIENCE, "jwks": jwks}})


def test_the_settings_of_a_log_in(tmp_path: Path) -> None:
    file = tmp_path / "service.toml"
    file.write_text('host = "0.0.0.0"\n[oidc]\nissuer = "i"\naudience = "a"\njwks = "k"\n[oidc.roles]\nops = "admin"\n')
    settings = load(file, environment={"SUREFOOT_OIDC_AUDIENCE": "7", "SUREFOOT_OIDC_ROLES_CLAIM": "groups"})
    assert settings.oidc == Oidc(issuer="i", audience="7", jwks="k", roles_claim="groups", roles={"ops": "admin"})
    assert not settings.is_open
    for wrong, message in (
        ('[oidc]\nisuer = "i"', r"`oidc.isuer` is not a setting\. Did you mean 'oidc.issuer'"),
        ('[oidc]\nissuer = "i"\njwks = "k"', "audience"),
        ('[oidc]\nissuer = "i"\naudience = "a"\njwks = "k"\n[oidc.roles]\nops = "king"', "king"),
    ):
        file.write_text(wrong)
        with pytest.raises(ConfigError, match=message):
            load(file)


def test_a_stream_ends_with_its_log_in(issuer: Issuer, caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jwt_issuer, "LEEWAY", 0.0)
    admin = issuer.sign(roles="surefoot:admin")
    assert caller.post(admin, "/v1/experiments", SHOP).status_code == 201
    reader = {"authorization": f"Bearer {issuer.sign(exp=int(time.time()) + 3)}"}
    with caller.client.stream("GET", "/v1/experiments/shop/live", headers=reader, timeout=10) as stream:
        lines = stream.iter_lines()
        assert next(lines) == "event: update"
        assert all(not line.startswith("event") for line in lines)


def test_the_page_opens_where_a_proxy_passes_log_ins_on(tab: Tab, issuer: Issuer, caller: Caller) -> None:
    assert caller.post(issuer.sign(roles="surefoot:admin"), "/v1/experiments", SHOP).status_code == 201
    tab.call("Network.enable")
    tab.call("Network.setExtraHTTPHeaders", headers={"Authorization": f"Bearer {issuer.sign()}"})  # as a proxy does
    tab.open(str(caller.client.base_url))
    tab.wait("document.querySelectorAll('.card').length === 1", seconds=60.0)
    assert tab.run("sessionStorage.length") == 0, "nobody was asked for a token"
    tab.wait('document.body.innerText.includes("An admin\'s token may change the mode.")', seconds=60.0)
    assert tab.complaints == []
