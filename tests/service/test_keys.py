"""API keys: who is let in, and that no key is kept or shown."""

import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pamo.errors import InputError
from pamo.service.keys import Key, Keyring, Role, digest_of, new_key

ZEROS = 64 * "0"


def test_a_key_is_256_random_bits_after_its_prefix():
    keys = {new_key() for _ in range(100)}
    assert len(keys) == 100
    assert all(re.fullmatch(r"pamo_[A-Za-z0-9_-]{43}", key) for key in keys)  # 43 characters of 6 bits


def test_the_digest_is_sha256_so_that_any_tool_can_make_it():
    assert digest_of("pamo_x") == hashlib.sha256(b"pamo_x").hexdigest()


def test_each_key_gets_its_own_roles():
    secrets = {name: new_key() for name in ("shop", "jobs", "ops")}
    roles = {"shop": ["decide", "feedback"], "jobs": ["feedback"], "ops": ["admin"]}
    ring = Keyring(Key(name, roles[name], digest_of(secret)) for name, secret in secrets.items())
    assert not ring.empty
    assert ring.roles_for(f"Bearer {secrets['shop']}") == ("shop", frozenset({Role.DECIDE, Role.FEEDBACK}))
    assert ring.roles_for(f"Bearer {secrets['jobs']}") == ("jobs", frozenset({Role.FEEDBACK}))


def test_an_admin_has_all_roles():
    secret = new_key()
    found = Keyring([Key("ops", ["admin"], digest_of(secret))]).roles_for(f"Bearer {secret}")
    assert found == ("ops", frozenset(Role))


def test_a_digest_in_capitals_is_the_same_one():
    secret = new_key()
    ring = Keyring([Key("shop", ["decide"], digest_of(secret).upper())])
    assert ring.roles_for(f"Bearer {secret}") is not None


@pytest.mark.parametrize("form", ["Bearer {}", "bearer {}", "BEARER {}", "Bearer   {}", " Bearer {} "])
def test_the_header_is_read_as_http_has_it(form):
    secret = new_key()
    ring = Keyring([Key("shop", ["decide"], digest_of(secret))])
    assert ring.roles_for(form.format(secret)) == ("shop", frozenset({Role.DECIDE}))


@pytest.mark.parametrize(
    "form",
    ["", "Bearer", "Bearer ", "{}", "Basic {}", "Bearer{}", "Bearer {}x", "Bearer x{}", "Bearer {} {}", "Bearer é"],
)
def test_any_other_header_lets_nobody_in(form):
    secret = new_key()
    ring = Keyring([Key("shop", ["decide"], digest_of(secret))])
    assert ring.roles_for(form.format(secret, secret)) is None
    assert ring.roles_for(None) is None
    assert ring.roles_for(f"Bearer {digest_of(secret)}") is None, "the digest is no key"


@given(st.text())
def test_no_text_is_an_error_or_a_key(text):
    ring = Keyring([Key("shop", ["decide"], digest_of(new_key()))])
    assert ring.roles_for(text) is None
    assert ring.roles_for(f"Bearer {text}") is None


def test_without_keys_the_ring_is_empty_and_knows_no_one():
    ring = Keyring()
    assert ring.empty
    assert ring.roles_for(f"Bearer {new_key()}") is None


def test_text_and_table_describe_the_same_key():
    key = Key("shop", ["feedback", "decide"], 32 * "ab")
    assert key.text == "shop:decide+feedback:" + 32 * "ab"
    assert Key.of(key.text) == key
    assert Key.of(f" {key.text} ") == key
    table = {"name": "shop", "roles": ["decide", "feedback"], "sha256": 32 * "ab"}
    assert Key.of(table) == key
    assert Key.of(table) != Key("shop", ["decide"], 32 * "ab")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("shop", ["NAME:ROLE+ROLE:SHA256", "1 parts"]),
        ("shop:decide", ["2 parts"]),
        ("shop:decide:a:b", ["4 parts"]),
        (f":decide:{ZEROS}", ["key's name", "''"]),
        (f"my shop:decide:{ZEROS}", ["key's name", "'my shop'"]),
        (f"{65 * 'a'}:decide:{ZEROS}", ["up to 64"]),
        (f"shop:decyde:{ZEROS}", ["unknown role 'decyde'", "did you mean 'decide'"]),
        (f"shop::{ZEROS}", ["unknown role ''", "admin, decide, feedback"]),
        ("shop:decide:abc", ["sha256 of key 'shop'", "64 hexadecimal digits", "`pamo key`"]),
        (f"shop:decide:{63 * '0'}g", ["64 hexadecimal digits"]),
    ],
)
def test_a_wrong_key_is_a_sentence(text, words):
    with pytest.raises(InputError) as caught:
        Key.of(text)
    for word in words:
        assert word in str(caught.value)


def test_a_wrong_table_is_a_sentence():
    table = {"name": "shop", "roles": ["decide"], "sha256": ZEROS}
    with pytest.raises(InputError, match="unknown field of a key 'rolls'; did you mean 'roles'"):
        Key.of(table | {"rolls": []})
    with pytest.raises(InputError, match="got one without roles, sha256"):
        Key.of({"name": "shop"})
    with pytest.raises(InputError, match="at least one role for key 'shop'"):
        Key.of(table | {"roles": []})
    with pytest.raises(InputError, match="roles of key 'shop' as a list, got 'decide'"):
        Key.of(table | {"roles": "decide"})
    with pytest.raises(InputError, match="unknown role '3'"):
        Key.of(table | {"roles": [3]})
    with pytest.raises(InputError, match="key's name"):
        Key.of(table | {"name": 3})
    with pytest.raises(InputError, match="64 hexadecimal digits"):
        Key.of(table | {"sha256": 3})


@pytest.mark.parametrize("form", ["{}", "shop:decide:{}", "{}:decide:" + ZEROS, "shop:{}:" + ZEROS])
def test_no_message_repeats_a_key_that_was_written_by_mistake(form):
    secret = new_key()
    with pytest.raises(InputError) as caught:
        Key.of(form.format(secret))
    assert secret not in str(caught.value)
    assert secret[5:] not in str(caught.value)


def test_a_key_in_place_of_its_digest_is_told_as_such():
    with pytest.raises(InputError, match="that is the key itself"):
        Key("shop", ["decide"], new_key())


def test_names_and_digests_are_each_one_keys_own():
    with pytest.raises(InputError, match="different names, got 'shop' twice"):
        Keyring([Key("shop", ["decide"], ZEROS), Key("shop", ["admin"], 64 * "1")])
    with pytest.raises(InputError, match="a key of its own for each name, got one for shop and jobs"):
        Keyring([Key("shop", ["decide"], ZEROS), Key("jobs", ["admin"], ZEROS)])
