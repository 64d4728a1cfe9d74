"""The address of an index: what is none is said as bad input, and no login is repeated."""

import pytest

from wheelfarm.errors import BadInputError
from wheelfarm.resolve.connect import index_root


@pytest.mark.parametrize(
    "address",
    ["http://user:secret@127.0.0.1:99999/", "https://user:secret@[::1/", "http://u:secret@h:port/"],
)
def test_a_host_or_port_that_cannot_be_is_bad_input(address: str) -> None:
    with pytest.raises(BadInputError, match="the address of the index") as raised:
        index_root(address)
    assert "secret" not in f"{raised.value} {raised.value.cause}"


def test_an_address_gets_its_slash() -> None:
    assert index_root("https://[::1]:8080/simple") == "https://[::1]:8080/simple/"
