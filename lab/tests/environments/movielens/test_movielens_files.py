"""Finding and reading MovieLens 100K: every kind of damage, every source, and the stand-in."""

import hashlib
import io
import time
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

import decoupled as dc
from decoupled_lab import movielens
from decoupled_lab.movielens import files as downloading
from decoupled_lab.movielens.files import Publication
from support.planted_ratings import as_file, planted

GOOD = as_file(planted(users=12, movies=9).ratings)
CHECKSUM = hashlib.sha256(GOOD).hexdigest()
TITLES = "1|Caf\u00e9 (1995)|01-Jan-1995||\n2|Heat (1995)|||\n".encode("latin-1")


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No data, no network, and a separate cache."""
    monkeypatch.delenv("DECOUPLED_DATA", raising=False)
    monkeypatch.setenv("DECOUPLED_OFFLINE", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "*")
    return tmp_path / "cache" / "decoupled" / "ml-100k"


# --- reading


def test_every_column_is_read() -> None:
    content = b"3\t1682\t5\t880000000\n943\t2\t1\t870000000\n"
    ratings = movielens.parse_ratings(content)
    assert ratings.users.tolist() == [2, 942]
    assert ratings.movies.tolist() == [1681, 1]
    assert ratings.stars.tolist() == [5.0, 1.0]
    assert ratings.times.tolist() == [880000000, 870000000]
    assert ratings.shape == (943, 1682)
    assert ratings.digest == hashlib.sha256(content).hexdigest()
    with pytest.raises(ValueError, match="read-only"):
        ratings.stars[0] = 3.0


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"1\t2\t3", "columns = 3: must have user, movie, rating and timestamp"),
        (b"", "columns = 1"),
        (b"x\t2\t3\t880000000", "user = 'x': must be a whole number from 1 to 943"),
        (b"944\t2\t3\t880000000", "user = '944'"),
        (b"1\t1683\t3\t880000000", "movie = '1683': must be a whole number from 1 to 1682"),
        (b"1\t2\t6\t880000000", "rating = '6': must be a whole number from 1 to 5"),
        (b"1\t2\t3.5\t880000000", "rating = '3.5'"),
        (b"1\t2\t\xb3\t880000000", "rating = '\u00b3'"),
        (b"1\t 2\t3\t880000000", "movie = ' 2'"),
        (b"1\t2\t3\t88000000000000000000000", "timestamp = '88000000000000000000000'"),
        (b"1\t2\t3\t880000000\r", r"timestamp = '880000000\\r'"),
    ],
)
def test_a_damaged_line_is_named(line: bytes, said: str, tmp_path: Path) -> None:
    lines = GOOD.split(b"\n")
    lines[6] = line
    (tmp_path / "u.data").write_bytes(b"\n".join(lines))
    with pytest.raises(dc.ParameterError, match=rf"u\.data, line 7: {said}.*; download the file again$"):
        movielens.load(tmp_path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (GOOD[:-1], rf"line {GOOD.count(10)}: is cut short"),
        (GOOD[:40], "is cut short"),
        (b"", "has no whole line"),
        (GOOD + GOOD[: GOOD.index(10) + 1], rf"line {GOOD.count(10) + 1}: user .* before, on line 1;"),
        (GOOD[GOOD.index(10) + 1 :], "is not MovieLens 100K's u.data"),
        (GOOD, r"is not MovieLens 100K's u.data \(its SHA-256 is " + CHECKSUM),
    ],
)
def test_another_file_is_refused(content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "u.data").write_bytes(content)
    with pytest.raises(dc.ParameterError, match=rf"u\.data.*{said}.*download"):
        movielens.load(tmp_path)


def test_titles(tmp_path: Path) -> None:
    assert movielens.read_titles(tmp_path / "u.item") == {}
    (tmp_path / "u.item").write_bytes(TITLES)
    assert movielens.read_titles(tmp_path / "u.item") == {1: "Caf\u00e9 (1995)", 2: "Heat (1995)"}
    (tmp_path / "u.item").write_bytes(TITLES + b"Heat (1995)\n")
    with pytest.raises(dc.ParameterError, match=r"u\.item, line 3: movie = 'Heat"):
        movielens.read_titles(tmp_path / "u.item")


# --- finding


@pytest.fixture
def publisher() -> Iterator["Publisher"]:
    server = Publisher()
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


class Publisher(ThreadingHTTPServer):
    """A local server that answers every request with `body` and a content length of `length`."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.status, self.body, self.pause, self.asked = 200, archive(), 0.0, 0
        self.length: int | None = None

    @property
    def publication(self) -> Publication:
        return Publication(f"http://127.0.0.1:{self.server_port}/ml-100k.zip", CHECKSUM)


class Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, Publisher)
        server.asked += 1
        time.sleep(server.pause)
        self.send_response(server.status)
        length = len(server.body) if server.length is None else server.length
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(server.body)

    def log_message(self, *_: object) -> None:
        pass


def archive(**files: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, body in (files or {"u.data": GOOD, "u.item": TITLES, "README": b"hello"}).items():
            packed.writestr(f"ml-100k/{name}", body)
    return buffer.getvalue()


@pytest.mark.parametrize("below", [".", "ml-100k"])
@pytest.mark.parametrize("by_variable", [False, True])
def test_a_folder(below: str, by_variable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "data"
    (folder / below).mkdir(parents=True)
    (folder / below / "u.data").write_bytes(GOOD)
    given = None if by_variable else folder
    monkeypatch.setenv("DECOUPLED_DATA", str(folder) if by_variable else "nowhere")
    ratings, source = movielens.load(given, publication=Publication("", CHECKSUM))
    assert source == movielens.Source("local folder", folder / below)
    assert ratings.digest == CHECKSUM


def test_a_folder_without_the_data_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Never a reason to download something else or to use the stand-in.
    with pytest.raises(dc.ParameterError, match=r"^folder = .* holds neither u\.data nor ml-100k/u\.data"):
        movielens.load(tmp_path)
    monkeypatch.setenv("DECOUPLED_DATA", str(tmp_path))
    with pytest.raises(dc.ParameterError, match=r"^DECOUPLED_DATA = .* holds neither"):
        movielens.load()


def test_a_download_is_kept(publisher: Publisher, alone: Path) -> None:
    ratings, source = movielens.load(fetch=True, publication=publisher.publication)
    assert (source, ratings.digest) == (movielens.Source("download", alone), CHECKSUM)
    assert sorted(path.name for path in alone.iterdir()) == ["u.data", "u.item"]
    again, source = movielens.load(fetch=True, publication=publisher.publication)
    assert (source, again.digest) == (movielens.Source("cache", alone), CHECKSUM)
    assert publisher.asked == 1
    assert movielens.read_titles(alone / "u.item")[2] == "Heat (1995)"


def test_a_damaged_copy_in_the_cache_is_fetched_again(publisher: Publisher, alone: Path) -> None:
    movielens.load(fetch=True, publication=publisher.publication)
    (alone / "u.data").write_bytes(GOOD[:-20])
    assert movielens.load(fetch=False, publication=publisher.publication)[1].kind == "stand-in"
    assert movielens.load(fetch=True, publication=publisher.publication)[1].kind == "download"
    assert (alone / "u.data").read_bytes() == GOOD


def test_a_cache_that_cannot_be_written(
    publisher: Publisher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    ratings, source = movielens.load(fetch=True, publication=publisher.publication)
    assert (source.kind, ratings.digest) == ("download", CHECKSUM)


def test_the_network_is_asked_only_when_it_may_be(
    publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    for forbidden in ("1", "true"):
        monkeypatch.setenv("DECOUPLED_OFFLINE", forbidden)
        with pytest.raises(dc.StorageError, match=r"no download is allowed.*set DECOUPLED_DATA"):
            movielens.find(publication=publisher.publication)
    assert publisher.asked == 0
    monkeypatch.setenv("DECOUPLED_OFFLINE", "0")
    assert movielens.find(publication=publisher.publication)[1].kind == "download"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"status": 404}, "cannot be fetched: HTTP Error 404"),
        ({"body": archive(**{"u.data": GOOD[:-9]})}, f"u.data has SHA-256 [0-9a-f]+, not {CHECKSUM}"),
        ({"body": archive()[:-50]}, "is not a readable archive"),
        (
            {"body": archive()[:-50], "length": len(archive())},
            "is not a readable archive|cannot be fetched",
        ),
        ({"body": b"<html>Sign in to the network</html>"}, "is not a readable archive"),
        ({"body": archive(README=b"hello")}, "holds no ml-100k/u.data"),
        ({"pause": 0.5}, "cannot be fetched: timed out"),
        ({"body": bytes(2_000_000)}, "too slow or too large"),
    ],
)
def test_a_failed_download_leaves_nothing_behind(
    answer: dict[str, object], said: str, publisher: Publisher, alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloading, "SILENCE", 0.25)
    monkeypatch.setattr(downloading, "LARGEST", 1_000_000)
    for name, value in answer.items():
        setattr(publisher, name, value)
    with pytest.raises(dc.StorageError, match=f"data = 'ml-100k': is not available .*{said}"):
        movielens.find(fetch=True, publication=publisher.publication)
    assert not alone.exists()


def test_after_a_failed_download_the_stand_in_is_used_and_says_why(publisher: Publisher) -> None:
    publisher.status = 404
    ratings, source = movielens.load(fetch=True, publication=publisher.publication)
    assert source.kind == "stand-in"
    assert publisher.publication.url in source.reason
    assert ratings.digest == hashlib.sha256(movielens.stand_in()).hexdigest()


def test_no_server_at_all() -> None:
    with pytest.raises(dc.StorageError, match=r"cannot be fetched.*refused"):
        movielens.find(fetch=True, publication=Publication("http://127.0.0.1:9/ml-100k.zip", CHECKSUM))


# --- standing in


def test_the_stand_in_has_the_shape_of_the_data() -> None:
    ratings = movielens.parse_ratings(movielens.stand_in())
    assert (len(ratings), ratings.shape) == (100_000, (943, 1682))
    of_users, of_movies = np.bincount(ratings.users), np.bincount(ratings.movies)
    assert of_users.min() >= 20  # as in the data, where the median is 65, and 737 the most
    assert 50 < np.median(of_users) < 80
    assert of_users.max() == 737
    assert of_movies.min() >= 1  # in the data the median is 27, and 583 the most
    assert 20 < np.median(of_movies) < 40
    assert 400 < of_movies.max() < 800
    assert np.bincount(ratings.stars.astype(int), minlength=6)[1:].min() > 1_000
    assert (np.ptp(ratings.times) / 86_400) > 200  # days
    spans = [np.ptp(ratings.times[ratings.users == user]) for user in range(20)]
    assert max(spans) <= 3_600


def test_the_stand_in_is_seeded() -> None:
    assert movielens.stand_in.__wrapped__() == movielens.stand_in()
    assert movielens.stand_in(seed=1) != movielens.stand_in()
