"""Settings: one file, the environment over it, options over both; what does not exist is named. And the commands."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from surefoot.cli.commands import app
from surefoot.errors import ConfigError
from surefoot.service.settings import Settings, load
from surefoot.service.tokens import TokenFile


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "service.toml"
    path.write_text('database = "from-file.journal"\nport = 1000\n[limits]\nactions = 10\n')
    return path


def test_options_win_over_the_environment_and_that_over_the_file(file: Path) -> None:
    environment = {"SUREFOOT_PORT": "2000", "SUREFOOT_LIMITS_BATCH": "7", "SUREFOOT_TOKEN": "a client's", "HOME": "/"}
    settings = load(file, environment=environment, given={"port": 3000, "host": None})
    assert (settings.database, settings.port, settings.host) == ("from-file.journal", 3000, "127.0.0.1")
    assert (settings.limits.actions, settings.limits.batch, settings.limits.rate) == (10, 7, 0.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("prot = 1", r"`prot` is not a setting\. Did you mean 'port'"),
        ("[limits]\nation = 1", r"`limits.ation` is not a setting\. Did you mean 'limits.actions'"),
        ("zzzzzz = 1", "Known are database"),
        ('port = "many"', "expected `int`"),
        ("port = 70000", "<= 65535"),
        ("limits = 3", "expected `object`"),
        ("port = ", "TOML"),
        ('log = "loud"', "loud"),
    ],
)
def test_a_wrong_file_is_refused_and_the_message_says_why(file: Path, text: str, message: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError, match=message):
        load(file)


def test_the_environment_is_held_to_the_same(file: Path) -> None:
    with pytest.raises(ConfigError, match="Did you mean 'SUREFOOT_LIMITS_ACTIONS'"):
        load(environment={"SUREFOOT_LIMITS_ACTION": "3"})
    with pytest.raises(ConfigError, match="expected `int`"):
        load(environment={"SUREFOOT_PORT": "many"})
    with pytest.raises(ConfigError, match="cannot be read"):
        load(file / "nothing")


def test_a_password_is_never_shown() -> None:
    shown = Settings(database="postgresql://me:secret@db/shop?password=secret").shown()
    assert shown["database"] == "postgresql://me:***@db/shop"


def test_the_config_commands_check_and_show(file: Path) -> None:
    run = CliRunner().invoke
    checked = run(app, ["config", "check", "--config", str(file)])
    assert (checked.exit_code, "settings are valid" in checked.output) == (0, True)
    shown = run(app, ["config", "show", "--config", str(file)])
    assert json.loads(shown.output)["limits"]["actions"] == 10
    file.write_text('[oidc]\nissuer = "i"\naudience = "a"\njwks = "nowhere"\n')
    checked = run(app, ["config", "check", "--config", str(file)])
    assert ("and ask for log-ins." in checked.output, "`oidc.jwks`" in str(checked.exception)) == (True, True)
    file.write_text("prot = 1")
    assert isinstance(run(app, ["config", "check", "--config", str(file)]).exception, ConfigError)


def test_the_token_commands_create_list_and_revoke(tmp_path: Path) -> None:
    run, tokens = CliRunner().invoke, ["--tokens", str(tmp_path / "tokens")]
    made = run(app, ["token", "create", "--role", "decide", "--role", "read", "--note", "the shop", *tokens])
    token = made.stdout.strip().splitlines()[0]
    assert TokenFile(tmp_path / "tokens").find(token) is not None
    identity = token.split("_")[1]
    listed = run(app, ["token", "list", *tokens]).output
    assert identity in listed
    assert "the shop" in listed
    assert token.split("_", 2)[2] not in listed
    assert run(app, ["token", "revoke", identity, *tokens]).exit_code == 0
    assert TokenFile(tmp_path / "tokens").find(token) is None
    assert isinstance(run(app, ["token", "revoke", identity, *tokens]).exception, ConfigError)
    assert isinstance(run(app, ["token", "create", "--role", "king", *tokens]).exception, ConfigError)


def test_variables_of_the_core_are_no_settings_and_no_mistakes() -> None:
    load(environment={"SUREFOOT_CORE": "x86_64", "SUREFOOT_CORE_DIR": "/opt/core"})


def test_what_kubernetes_sets_for_a_service_of_that_name_is_no_setting() -> None:
    given = {
        "SUREFOOT_PORT": "tcp://10.0.0.1:8080",
        "SUREFOOT_PORT_8080_TCP": "tcp://10.0.0.1:8080",
        "SUREFOOT_PORT_8080_TCP_ADDR": "10.0.0.1",
        "SUREFOOT_PORT_8080_TCP_PORT": "8080",
        "SUREFOOT_PORT_8080_TCP_PROTO": "tcp",
        "SUREFOOT_SERVICE_HOST": "10.0.0.1",
        "SUREFOOT_SERVICE_PORT": "8080",
        "SUREFOOT_SERVICE_PORT_HTTP": "8080",
    }
    assert load(environment=given) == Settings()
    assert load(environment=given | {"SUREFOOT_PORT": "9000"}).port == 9000
    with pytest.raises(ConfigError, match="SUREFOOT_SERVICES"):
        load(environment={"SUREFOOT_SERVICES": "1"})
