import pytest

from workers.jobs.ray_token import TokenFileRefused, read_token


def test_the_variable_comes_before_the_file(tmp_path):
    assert read_token({"RAY_AUTH_TOKEN": "a", "RAY_AUTH_TOKEN_PATH": str(tmp_path)}) == "a"


def test_a_file_for_its_owner_alone_is_read(tmp_path):
    file = tmp_path / "token"
    file.write_text("secret\n")
    file.chmod(0o600)
    assert read_token({"RAY_AUTH_TOKEN_PATH": str(file)}) == "secret"


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_a_file_that_others_can_read_is_refused_without_showing_it(tmp_path, mode):
    file = tmp_path / "token"
    file.write_text("secret")
    file.chmod(mode)
    with pytest.raises(TokenFileRefused, match=f"has mode {mode:04o}.*chmod 600") as caught:
        read_token({"RAY_AUTH_TOKEN_PATH": str(file)})
    assert "secret" not in str(caught.value)


def test_a_missing_file_is_named_and_no_default_file_is_no_token(tmp_path, monkeypatch):
    with pytest.raises(TokenFileRefused, match=r"nowhere cannot be read"):
        read_token({"RAY_AUTH_TOKEN_PATH": str(tmp_path / "nowhere")})
    monkeypatch.setenv("HOME", str(tmp_path))
    assert read_token({}) is None
