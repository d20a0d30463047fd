"""Reading with bounds: links, pipes and folders are refused, sizes and depths before the content."""

import os

import pytest

from livarot import LivarotError
from livarot.bounded import MAX_DEPTH, check_depth, open_regular, parse_json, read_regular


def test_a_file_is_read_up_to_its_limit(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"12345")
    content, status = read_regular(path, 5)
    assert content == b"12345" and status.st_size == 5
    with pytest.raises(LivarotError, match="has 5 bytes, the limit is 4"):
        read_regular(path, 4)


def test_a_link_is_followed_only_on_request(tmp_path):
    (tmp_path / "a").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    with pytest.raises(LivarotError, match="is a link"):
        open_regular(tmp_path / "link")
    os.close(open_regular(tmp_path / "link", follow=True))


@pytest.mark.timeout(10)
def test_what_is_not_a_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(LivarotError, match="is not a file"):
            read_regular(tmp_path / name, 10)
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "nothing", 10)


@pytest.mark.parametrize("opening", ["[", "{", "a = [{", "a."])
def test_depth_is_counted_up_to_its_limit(opening):
    deep = opening.count("[") + opening.count("{") + opening.count(".")
    check_depth(opening * (MAX_DEPTH // deep))
    with pytest.raises(LivarotError, match="nested more than 64 deep"):
        check_depth(opening * (MAX_DEPTH // deep + 1))


def test_depth_in_strings_and_comments_does_not_count_and_closed_brackets_do_not_either():
    many = "[" * 100
    check_depth(f'a = "{many}" # {many}\nb = \'{many}\'\nc = """{many}"""')
    check_depth("[]" * 100)
    with pytest.raises(LivarotError):
        check_depth(f'a = "" {many}')


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1, "a": 2}', "a key occurs twice"),
        ("NaN", "NaN is not a JSON number"),
        ("[-Infinity]", "-Infinity is not a JSON number"),
        ("{", "Expecting property name"),
    ],
)
def test_json_that_is_ambiguous_or_has_no_numbers_is_refused(text, said):
    with pytest.raises(ValueError, match=said):
        parse_json(text)
    assert parse_json(b'{"a": [1, null]}') == {"a": [1, None]}
