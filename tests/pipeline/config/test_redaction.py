import json
import string

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from pipeline.config.redaction import MASK, redact, redact_all

# Every form in which a secret was seen in a log; {} is the secret.
FORMS = [
    "Authorization: Bearer {}",
    "authorization: Basic {}",
    "Authorization={}",
    "{{'Authorization': 'Bearer {}'}}",
    "curl -H 'Authorization: Bearer {}'",
    "Bearer {}",
    "https://b.s3.amazonaws.com/k?X-Amz-Signature={}&X-Amz-Expires=60",
    "https://b.s3.amazonaws.com/k?X-Amz-Date=1&X-Amz-Security-Token={}",
    "https://b.s3.amazonaws.com/k?X-Amz-Credential={}&a=b",
    "https://b.s3.amazonaws.com/k?AWSAccessKeyId={}&Expires=1",
    "s3://bucket/x?access_key={}&region=eu",
    "s3://bucket/x?region=eu&secret_key={}",
    "s3://bucket/x?key={}",
    "X-Amz-Security-Token: {}",
    "password: {}",
    "password={}",
    "PGPASSWORD={}",
    "aws_secret_access_key = {}",
    "{{'token': '{}'}}",
    "{{'token': '{}', 'other': 1}}",
    '"secret": "{}"',
    '{{"message": "{{\\"secret\\": \\"{}\\"}}"}}',
    "api-key: '{}'",
    "https://user:{}@host/path",
    "s3://{}:word@bucket/path",
    "postgresql+psycopg://me:{}@db:5432/x",
]
ALPHABET = string.ascii_letters + string.digits + "-._~+/=@!$%*"
secrets = st.text(ALPHABET, min_size=6, max_size=60)
around = st.text(max_size=40) | st.sampled_from(
    [
        "token: ",
        "secret=",
        "Authorization: ",
        "password: '",
        '"',
        "http://",
        "see ",
        "Bearer ",
        "a@b",
    ]
)


@pytest.mark.parametrize("form", FORMS)
@given(secret=secrets, before=around, after=around)
def test_a_secret_never_survives(form, secret, before, after):
    # what is only punctuation at its end is that of the sentence
    assume(secret.rstrip(".") == secret)
    # a user of a URL ends at the first slash
    assume(not (form.startswith("s3://{}:") and "/" in secret))
    text = before + form.format(secret) + after
    assume(secret not in before + form + after)
    shown = redact(text, {})
    assert secret not in shown
    assert MASK in shown


@given(secret=st.text(min_size=6).filter(lambda text: text.strip("* ")), before=around)
def test_a_quoted_secret_may_hold_anything(secret, before):
    text = before + json.dumps({"password": secret})
    body = json.dumps(secret)[1:-1]
    assume(body not in before + '{"password": ""}')
    assert body not in redact(text, {})


@given(secret=secrets)
def test_a_secret_of_the_environment_never_survives(secret):
    assume(len(secret) >= 8 and MASK not in secret)
    assert secret not in redact(f"tried {secret}", {"RAY_AUTH_TOKEN": secret})


words = st.text(string.ascii_letters + string.digits + " .,;:=/?&_-()[]{}'\"\n", max_size=80)


@given(text=words)
@example("https://host:8265/path/me@x")
@example("https://host:8265 me@x")
@example("mail me@example.org")
@example("cluster: {address: null, workers: 2}")
@example("max_tokens: 5, password: null, sort_key=name, RAY_AUTH_MODE=token")
@example("RAY_AUTH_TOKEN_PATH=/home/me/.ray/auth_token")
@example("the file of the token is missing; run `chmod 600`")
@example("the bearer of news: a key to all")
@example("s3://bucket/x?region=eu&endpoint_override=127.0.0.1:9000")
def test_text_without_secrets_is_unchanged(text):
    named = ("token:", "secret", "password:", "credential", "signature", "key", "authorization")
    if text.count("@") == 0:
        assume(not any(name in text.lower() for name in named) or "name, RAY" in text)
        assume("Bearer" not in text and "token=" not in text.lower())
    assert redact(text, {}) == text


@given(text=around, form=st.sampled_from(FORMS), secret=secrets)
def test_redacting_twice_changes_nothing_more(text, form, secret):
    once = redact(text + form.format(secret), {})
    assert redact(once, {}) == once


def test_the_name_and_what_follows_stay_readable():
    assert redact("s3://b/x?secret_key=abc&region=eu", {}) == "s3://b/x?secret_key=***&region=eu"
    assert redact("{'token': 'xyz', 'a': 1}", {}) == "{'token': '***', 'a': 1}"
    assert redact("Authorization: Bearer xyz, then", {}) == "Authorization: Bearer ***, then"
    assert redact("https://me:xyz@host/a", {}) == "https://***@host/a"
    assert redact("denied to AKIAABCDEFGHIJKLMNOP.", {}) == "denied to ***."


def test_a_value_is_masked_by_its_key():
    found = redact_all({"a": [{"token": "xyz", "token_file": None}], "b": "password: xyz"})
    assert found == {"a": [{"token": "***", "token_file": None}], "b": "password: ***"}
