"""The HTTP service: answers, refusals, limits, headers, its document, start and stop."""

from __future__ import annotations

import contextlib
import http.client
import json
import shutil
import signal
import socket
from importlib import resources

import jsonschema
import pytest
from click.testing import CliRunner
from conftest import wait_for
from service import JSON, running

from solver2048 import open_solution
from solver2048.cli import main
from solver2048.web.answers import PROBLEMS
from solver2048.web.page_files import FILES

OPENAPI = json.loads((resources.files("solver2048.web") / "files/openapi.json").read_text("utf-8"))


def check_schema(document, name):
    schema = {"$ref": f"#/components/schemas/{name}", "components": OPENAPI["components"]}
    jsonschema.Draft202012Validator(schema).validate(document)


PROPER = ["2 2 4 . / . . . 2", "[[2,0,0,0],[0,0,0,4]]", "2 4/2 ./. ./. .", "2,4,8,2/4,2,4,8"]


def test_a_board_has_the_values_of_the_solution(service, solved):
    with open_solution(solved("2x4")) as solution:
        for text in PROPER:
            answer = service.board(text, "2x4")
            expected = solution.query(text)
            assert answer.status == 200
            found = answer.json
            check_schema(found, "Board")
            assert found["board"] == [list(row) for row in expected.board]
            assert (found["age"], found["value"]) == (expected.age, expected.value)
            for action in found["actions"]:
                value = expected.actions[action["action"]]
                assert action["value"] == value.value
                assert action["best"] == (action["action"] in expected.best)
                loss = 0 if action["best"] else expected.value - value.value
                assert action["loss"] == loss
            legal = {name for name, value in expected.actions.items() if value}
            assert {action["action"] for action in found["actions"]} == legal
            values = [action["value"] for action in found["actions"]]
            assert values == sorted(values, reverse=True) or found["actions"][0]["best"]
            assert found["terminal"] == (not legal)


REFUSED = [
    ("2x4", "2 2 3 . / . . . 2", 400, "malformed_board", "row 1, column 3"),
    ("2x4", "", 400, "malformed_board", "0 cells"),
    ("2x4", "[" * 3000, 400, "malformed_board", "JSON"),
    ("2x4", "2 1024 . . / . . . 2", 422, "impossible_board", "the largest is 512"),
    ("2x4", "512 512 512 512/ 512 512 512 512", 404, "unreachable_board", "can never occur"),
    ("2x4", "2 . . . / . . . .", 404, "unreachable_board", "add up to 2"),
    ("2x3-unfinished", "2 2 . / . . .", 409, "not_solved", ""),
    ("3x3", "2 2 . / . . .", 404, "unknown_solution", "there are: 2x4"),
    ("../2x4", "2 2 . / . . .", 404, "unknown_solution", ""),
]


@pytest.mark.parametrize(("solution", "text", "status", "code", "message"), REFUSED)
def test_refusals(service, solution, text, status, code, message):
    answer = service.board(text, solution)
    check_schema(answer.json, "Error")
    assert (answer.status, answer.code) == (status, code)
    assert message in answer.json["error"]["message"]
    assert answer.headers["cache-control"] == "no-store"
    is_board = code in ("unreachable_board", "not_solved")
    assert ("board" in answer.json["error"]) == is_board


def test_every_kind_of_error_has_an_answer_of_its_own():
    boards = {code: status for status, code in PROBLEMS.values() if status < 500}
    assert len(set(boards.values())) == len(boards) == 4
    error = OPENAPI["components"]["schemas"]["Error"]["properties"]["error"]
    listed = set(error["properties"]["code"]["enum"])
    assert {code for _, code in PROBLEMS.values()} | {case[3] for case in REFUSED} <= listed


def test_a_batch_answers_in_order_and_bears_errors(service):
    boards = ["2 2 . . / . . . .", "2 3", [[2, 0, 0, 0], [0, 0, 0, 2]], None, {"a": 1}, 7, "[[[]]]"]
    answer = service.post({"solution": "2x4", "boards": boards})
    assert answer.status == 200
    check_schema(answer.json, "Results")
    results = answer.json["results"]
    assert ["error" in result for result in results] == [False, True, False] + [True] * 4
    assert results[0] == service.board(boards[0], "2x4").json
    assert service.post({"boards": []}).json["results"] == []
    assert len(service.post({"boards": ["2 2 . . / . . . ."] * 1000}).json["results"]) == 1000


BAD_BODIES = [
    (b"", 400, "malformed_json"), (b"{", 400, "malformed_json"),
    (b"\xff\xfe", 400, "malformed_json"), (b"[" * 100_000, 400, "malformed_json"),
    (b"1" * 5000, 400, "malformed_json"),
    (b"[]", 400, "malformed_batch"), (b"null", 400, "malformed_batch"),
    (b'{"boards": "2 2"}', 400, "malformed_batch"), (b"{}", 400, "malformed_batch"),
    (b'{"boards": [], "solution": 3}', 404, "unknown_solution"),
    (b'{"boards": [], "solution": "../../etc"}', 404, "unknown_solution"),
    (json.dumps({"boards": [""] * 1001}).encode(), 413, "batch_too_large"),
    (b" " * 262_145, 413, "body_too_large"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "status", "code"), BAD_BODIES)
def test_bad_bodies(service, body, status, code):
    answer = service.post(body)
    check_schema(answer.json, "Error")
    assert (answer.status, answer.code) == (status, code)


def test_bad_requests(service):
    assert service.ask("/api/v1/board").code == "no_board"
    assert service.ask("/api/v1/boards", "POST", b"{}").code == "not_json"
    assert service.ask("/api/v1/boards").code == "method_not_allowed"
    assert service.ask("/api/v1/boards").headers["allow"] == "POST"
    assert service.ask("/", "DELETE").status == 405
    assert service.board("2" * 20_000).status == 400


def test_meta_lists_all_solutions(service, solved):
    meta = service.ask("/api/v1/meta").json
    check_schema(meta, "Meta")
    found = {solution["name"]: solution for solution in meta["solutions"]}
    assert list(found) == service.solutions == ["2x4", "2x3", "2x3-tile-64", "2x3-unfinished"]
    assert (found["2x4"]["rows"], found["2x4"]["columns"]) == (2, 4)
    assert found["2x4"]["largest_tile"] == 512
    assert round(found["2x4"]["start_values"]["random"], 8) == 2641.87303569
    assert found["2x3-tile-64"]["unit"] == "probability"
    assert found["2x3-unfinished"]["start_values"] is None
    board = service.board("2 2 . / . . .", "2x3-tile-64").json
    assert 0 < board["value"] < 1


def test_headers_and_caching(service):
    for path in (*FILES, "/healthz", "/api/v1/meta", "/nothing", "/api/v1/board?b=2"):
        headers = service.ask(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["cache-control"]
        assert "server" not in headers
    for path in FILES:
        first = service.ask(path)
        again = service.ask(path, headers={"If-None-Match": first.headers["etag"]})
        assert (first.status, again.status, again.body) == (200, 304, b"")
        assert service.ask(path, "HEAD").body == b""
    assert "max-age" in service.board("2 2 . . / . . . .", "2x4").headers["cache-control"]
    assert service.ask("/healthz").json == {"status": "ok"}


ODD_PATHS = [
    "/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "//etc/passwd", "/static/",
    "/static//etc/passwd", "/static", "/api/", "/..%00", "/static/main.js/", "/%c0%ae%c0%ae/",
    "/static/index.html%00.js", "/static/\\..\\app.py",
]  # fmt: skip


def test_no_path_reaches_the_file_system(service):
    for path in ODD_PATHS:
        assert service.ask(path).status == 404, path


def test_the_pages_name_no_other_host_and_hold_no_script(service):
    for path, name in FILES.items():
        text = service.ask(path).body.decode()
        if name.endswith((".html", ".css", ".js")):
            assert "//" not in text.replace("// ", ""), name
        if name.endswith(".html"):
            assert text.count("<script") == text.count('<script type="module" src="/static/')
            assert not {"style=", "onclick=", "<style"} & set(text.split())


def test_the_document_lists_what_is_served():
    assert set(OPENAPI["paths"]) == {"/api/v1/board", "/api/v1/boards", "/api/v1/meta", "/healthz"}
    jsonschema.Draft202012Validator.check_schema(OPENAPI["components"]["schemas"]["Board"])


def halves(body, service, number):
    """A body of which one half is sent before a signal, and one once no more are taken."""
    yield body[: len(body) // 2]
    service.process.send_signal(number)
    wait_for(lambda: is_refused(service.place))
    yield body[len(body) // 2 :]


def is_refused(place):
    try:
        socket.create_connection(place).close()
    except ConnectionError:
        return True
    return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_cleanly(solved, tmp_path, number):
    with running(tmp_path / "log", solved("2x2")) as service:
        body = json.dumps({"boards": ["2 2 / . ."] * 1000}).encode()
        asking = http.client.HTTPConnection(*service.place, timeout=60)
        with socket.create_connection(service.place), contextlib.closing(asking):
            asking.request("GET", "/healthz")
            assert asking.getresponse().read()  # so it is accepted
            asking.request("POST", "/api/v1/boards", halves(body, service, number),
                           JSON | {"Content-Length": str(len(body))})  # fmt: skip
            assert asking.getresponse().status == 200
            assert service.process.wait(timeout=60) == 0
        assert (tmp_path / "log").read_text() == ""


def test_two_solutions_of_one_name(solved, tmp_path):
    for place in ("a", "b"):
        shutil.copytree(solved("2x2"), tmp_path / place / "2x2")
    with running(tmp_path / "log", tmp_path / "a/2x2", tmp_path / "b/2x2") as service:
        assert service.solutions == ["2x2", "2x2-2"]
        assert service.board("2 2 / . .", "2x2-2").status == 200


def test_damage_is_an_answer(solved, tmp_path):
    shutil.copytree(solved("2x3"), tmp_path / "2x3")
    for file in (tmp_path / "2x3/values/score").rglob("c/*"):
        if file.is_file():
            file.write_bytes(bytes(len(file.read_bytes())))
    with running(tmp_path / "log", tmp_path / "2x3") as service:
        answer = service.board("2 2 . / . . .")
        assert (answer.status, answer.code) == (503, "solution_damaged")


def test_what_cannot_be_served(solved, tmp_path):
    def run(*arguments):
        return CliRunner().invoke(main, ["serve", *map(str, arguments)])

    assert run(tmp_path / "nothing").exit_code == 6
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = run(solved("2x2"), "--port", taken.getsockname()[1])
        assert result.exit_code == 2
        assert "choose others with --host and --port" in result.output
    assert run(solved("2x2"), "--host", "not a host").exit_code == 2
