from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer

import polars as pl
import pytest

from incrowd.client import BudgetCard, Client, QueryHistory, Replies
from incrowd.client.client import BatchedQuery, Transport
from incrowd.client.reply import Reply
from incrowd.errors import AccessDenied, BudgetExceeded, InvalidParameter, ServerUnavailable, UnsupportedVersion
from incrowd.governance.grant import AccessRole
from tests.web.serving import Server, listening, server

SQL = "SELECT sex, COUNT(*) AS n FROM births GROUP BY sex"


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Server:
    return server(tmp_path_factory.mktemp("client"))


@pytest.fixture(scope="module")
def address(here: Server) -> Iterator[str]:
    with listening(here.client.application) as found:
        yield found


@pytest.fixture(scope="module")
def client(here: Server, address: str) -> Client:
    return Client(address, here.token(AccessRole.ANALYST).token)


def test_an_answer_comes_as_rows_and_frames_with_intervals(client: Client) -> None:
    reply = client.query(SQL, epsilon="0.1")
    assert reply.rows()[0] == {"sex": "f", "n": 42, "n_low": 40.0, "n_high": 44.0, "last": dt.date(2020, 2, 29)}
    assert reply.to_arrow().column_names == ["sex", "n", "n_low", "n_high", "last"]
    assert reply.to_pandas()["n"].tolist() == [42, 7, 0]
    assert reply.to_polars()["last"].dtype == pl.Date
    assert (reply.cost["epsilon"], reply.repeated) == ("1", False)


def test_amounts_travel_as_they_were_written(here: Server, client: Client) -> None:
    client.query(SQL, epsilon=0.1, delta="1e-9")
    assert str(here.queries.asked[-1].terms.epsilon) == "1/10"
    assert client.price(SQL, epsilon="1/3")["cost"]["epsilon"] == "1/3"


def test_what_is_declared_left_and_released_can_be_read(client: Client) -> None:
    assert [table["name"] for table in client.schema()["tables"]] == ["births", "deaths"]
    assert client.budget()["births"]["left"]["epsilon"] == "3"
    assert client.certificate(client.releases()[0]["id"])["certificate"] == 1


@pytest.mark.parametrize("word", ["EXPLAIN", " explain privacy"])
def test_explain_is_a_cost_estimate(here: Server, client: Client, word: str) -> None:
    before = len(here.queries.asked)
    reply = client.query(f"{word} SELECT COUNT(*) FROM births", "0.1")
    assert reply.rows()[0] == {"estimate": "costs epsilon 1/10, delta 0"}
    assert len(here.queries.asked) == before


def test_several_questions_are_asked_as_one_with_their_parameters(here: Server, client: Client) -> None:
    questions: list[BatchedQuery] = ["SELECT 1 FROM births", ("SELECT 2 FROM births WHERE age > ?", [64])]
    replies = client.query_batch(questions, epsilon="1/3", delta=0)
    assert [reply.rows()[0]["n"] for reply in replies] == [42, 42]
    assert [each.sql for each in here.queries.asked[-2:]] == [
        "SELECT 1 FROM births",
        "SELECT 2 FROM births WHERE age > 64",
    ]
    assert (replies.cost["epsilon"], len(replies), replies[1].to_arrow().num_rows) == ("1", 2, 3)
    assert replies._repr_html_().count("cost of all") == 1
    assert client.price_batch(questions, epsilon="1/3")["cost"]["epsilon"] == "1/3"
    with pytest.raises(InvalidParameter, match="query 2"):
        client.query_batch(["SELECT 1 FROM births", ("SELECT ? FROM births", [])], epsilon=1)
    with pytest.raises(InvalidParameter, match="a list of queries"):
        client.query_batch("SELECT 1 FROM births", epsilon=1)


def test_a_history_is_a_card_and_a_frame_and_gives_answers_again(client: Client) -> None:
    history = client.history(limit=5, others=True)
    (past,) = history
    assert (past.questions, past.cost["births"]["epsilon"], history.next) == (("SELECT 1 FROM births",), "1", None)
    assert history.to_pandas()["queries"].tolist() == ["SELECT 1 FROM births"]
    card = history._repr_html_()
    assert "SELECT 1 FROM births" in card
    assert "left of births" in card
    assert replace(past, questions=("a", "b", "c", "d", "e")).short == "a; b; c; and 2 more"
    again, several = client.answer(past.id), client.answer("deaths-1")
    assert isinstance(again, Reply)
    assert again.rows()[0]["n"] == 42
    assert isinstance(several, Replies)
    assert len(several) == 2
    with pytest.raises(InvalidParameter, match="no such release"):
        client.answer("nothing")


def test_a_budget_is_a_card_that_tells_what_is_left_of_the_allowance() -> None:
    allowance = {"epsilon": "2", "delta": "1e-6", "until": None}
    told = {"left": {"epsilon": "3", "delta": "0"}, "spent": {"epsilon": "0.5", "delta": "0"}, "allowance": allowance}
    budget = BudgetCard({"births": told, "deaths": {"left": None}})
    assert budget["births"] == told
    assert dict(budget.lines)["left of your allowance for births"] == "epsilon 1.5, delta 0.000001"
    assert dict(budget.lines)["left of deaths"] == "none is set"
    assert "you spent of births" in budget._repr_html_()
    assert QueryHistory((), None, budget).to_arrow().num_rows == 0


def test_errors_of_the_server_are_the_errors_of_the_library(client: Client, address: str) -> None:
    with pytest.raises(BudgetExceeded, match="1 of the budget of 3 remains"):
        client.query("births over budget", epsilon=1)
    with pytest.raises(InvalidParameter, match="no such table"):
        client.query("nothing", epsilon=1)
    with pytest.raises(ServerUnavailable, match="operator"):
        client.query("births crash", epsilon=1)
    with pytest.raises(AccessDenied):
        Client(address, "ic_unknown").schema()
    with pytest.raises(InvalidParameter):
        client.certificate("../../etc")


def test_a_server_that_is_not_there_is_told(here: Server) -> None:
    with pytest.raises(ServerUnavailable, match="does not answer"):
        Client("http://127.0.0.1:1", "ic_x").schema()


@pytest.mark.parametrize("address", ["http://hospital.example", "ftp://localhost", "localhost:8000", "", "https://"])
def test_an_address_that_would_betray_the_token_is_refused(address: str) -> None:
    with pytest.raises(InvalidParameter):
        Client(address, "ic_x")


def test_a_way_that_is_said_to_be_safe_is_taken() -> None:
    assert Transport("http://hospital.example", "ic_x", insecure=True).address == "http://hospital.example"


def test_a_token_does_not_show_in_a_client(client: Client) -> None:
    assert client.token not in repr(client)


def test_an_answer_of_another_version_is_refused() -> None:
    with pytest.raises(UnsupportedVersion):
        Reply.of({"answer": {"answer": 2}})


def test_a_redirect_is_not_followed_with_the_token() -> None:
    seen: list[str | None] = []

    class Redirecting(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.path)
            self.send_response(302)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_arguments: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Redirecting) as web:
        thread = threading.Thread(target=web.serve_forever)
        thread.start()
        try:
            with pytest.raises(ServerUnavailable):
                Client(f"http://127.0.0.1:{web.server_address[1]}", "ic_x").schema()
        finally:
            web.shutdown()
            thread.join()
    assert seen == ["/v1/schema"]
