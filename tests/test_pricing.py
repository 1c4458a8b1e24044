"""What a token costs, and who is asked before it is paid for."""

from __future__ import annotations

from pathlib import Path

import pytest

import taskweave as tw
from taskweave.backbones.pricing import FREE, Price, Used, bill, is_private, must_ask, price_of, read_prices, shipped_prices
from taskweave.errors import FileInvalid
from taskweave.runs import RunFolder
from tests.loopback import Loopback

OWN = "as_of: 2026-01-31\nmodels:\n  gpt-4o-mini: {input: 1, output: 4}\n  openai:mine: {input: 2, cached: 0.5, output: 8}\n"


def test_the_list_says_when_it_was_made_and_from_what() -> None:
    prices = shipped_prices()
    assert prices.as_of
    assert prices.sources
    assert all(0 <= price.cached <= price.input <= price.output for price in prices.prices.values())


def test_a_known_model_has_its_list_price_also_under_a_dated_name() -> None:
    price = price_of("openai:gpt-4o-mini")
    assert price is not None
    assert (price.input, price.cached, price.output) == (0.15, 0.075, 0.60)
    assert price_of("openai:gpt-4o-mini-2024-07-18") == price
    first, later = price_of("openai:gpt-4o-2024-05-13"), price_of("openai:gpt-4o-2024-08-06")
    assert first is not None
    assert later is not None
    assert first.input > later.input, "a dated model with a price of its own has that one"


@pytest.mark.parametrize("name", ["openai:llama3.2", "openai:", "mine", "gpt-4o-mini"])
def test_what_is_not_in_the_list_has_no_price(name: str) -> None:
    assert price_of(name) is None


@pytest.mark.parametrize("name", ["scripted", "local", "local:weights.gguf", "replay:runs/a"])
def test_what_nobody_bills_costs_nothing(name: str) -> None:
    assert price_of(name) is FREE


def test_cached_tokens_cost_what_cached_tokens_cost() -> None:
    price = Price(input=2.0, cached=0.5, output=8.0)
    assert price.cost(1_000_000, 0, 0) == 2.0
    assert price.cost(1_000_000, 400_000, 100_000) == pytest.approx(1.2 + 0.2 + 0.8)


def test_a_bill_is_not_guessed_where_one_price_is_missing() -> None:
    known = Used("openai:gpt-4o-mini", 1_000_000, 500_000, 1_000_000)
    assert bill([known, Used("scripted", 9, 0, 9)]) == pytest.approx((0.7125, 0.75))
    assert bill([known, Used("openai:unheard-of", 1, 0, 0)]) is None
    assert bill([known, Used("openai:unheard-of", 0, 0, 0)]) is not None, "what was not used costs nothing"
    assert bill([]) == (0.0, 0.0)


def test_own_prices_go_before_the_list(tmp_path: Path) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(OWN, encoding="utf-8")
    own = read_prices(file)
    found, mine = price_of("openai:gpt-4o-mini", own), price_of("openai:mine", own)
    assert found is not None
    assert (found.input, found.cached, found.output, found.own, found.as_of) == (1.0, 1.0, 4.0, True, "2026-01-31")
    assert mine is not None
    assert mine.cached == 0.5
    assert price_of("openai:gpt-4o", own) == price_of("openai:gpt-4o")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("models: {a: {input: 1}}", ":1: models.a needs the key 'output'"),
        ("models:\n  a: {input: -1, output: 2}", ":2: models.a.input: '-1' must be at least 0"),
        ("models:\n  a: {input: 1, output: 1e300}", ":2: models.a.output: '1e300' must be at most 1e+06"),
        ("models:\n  a: {inputs: 1, output: 2}", "did you mean 'input'?"),
        ("prices: {}", "unknown key 'prices'"),
        ("models: {}", ":1: models is empty"),
        ("as_of: yesterday\nmodels: {a: {input: 1, output: 1}}", ":1: as_of: 'yesterday' is not a date"),
        ("models: [", "is not YAML"),
    ],
)
def test_a_price_file_that_cannot_be_used_is_named_with_line_and_reason(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "prices.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(FileInvalid) as trouble:
        read_prices(file)
    assert str(file) in str(trouble.value)
    assert said in str(trouble.value)


@pytest.mark.parametrize(
    ("backbone", "base_url", "price", "asked"),
    [
        ("scripted", None, FREE, False),
        ("local", None, FREE, False),
        ("openai:gpt-4o-mini", None, price_of("openai:gpt-4o-mini"), True),
        ("openai:gpt-4o-mini", "https://api.openai.com/v1", price_of("openai:gpt-4o-mini"), True),
        ("openai:unheard-of", "https://models.example.com/v1", None, True),
        ("openai:gpt-4o-mini", "http://127.0.0.1:8000/v1", price_of("openai:gpt-4o-mini"), False),
        ("openai:llama3.2", "http://localhost:11434/v1", None, False),
        ("openai:llama3.2", "https://models.example.com/v1", FREE, False),
    ],
)
def test_who_may_be_billed_is_asked(backbone: str, base_url: str | None, price: Price | None, asked: bool) -> None:
    assert must_ask(backbone, base_url, price, yes=False) is asked
    assert not must_ask(backbone, base_url, price, yes=True)


def test_a_private_address_is_one_that_only_this_network_reaches() -> None:
    private = [
        "http://127.0.0.1/v1",
        "http://[::1]:80/v1",
        "http://10.1.2.3:8000",
        "http://192.168.0.9",
        "http://vllm:8000",
        "http://gpu.local",
    ]
    public = ["https://api.openai.com/v1", "http://8.8.8.8/v1", "https://localhost.example.com", "http:///v1"]
    assert [url for url in private if not is_private(url)] == []
    assert [url for url in public if is_private(url)] == []


def test_the_status_of_a_run_has_its_cost_by_list_price_and_after_caching(tmp_path: Path) -> None:
    with Loopback() as server:
        run = tw.simulate("company_a", until="week:1", out=tmp_path / "r", backbone="openai:gpt-4o-mini", base_url=server.url)
    now = run.status()
    assert 0 < now.cached_tokens < now.prompt_tokens
    assert now.cost_uncached == pytest.approx((now.prompt_tokens * 0.15 + now.completion_tokens * 0.6) / 1e6)
    assert now.cost == pytest.approx(now.cost_uncached - now.cached_tokens * 0.075 / 1e6)


def test_a_run_keeps_the_prices_it_was_given_and_takes_others_when_resumed(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("models: {any: {input: 1, output: 1}}", encoding="utf-8")
    costs = []
    with Loopback() as server:
        run = tw.simulate(
            "tiny",
            until="week:1",
            out=tmp_path / "r",
            backbone="openai:any",
            base_url=server.url,
            prices=file,
            look=False,
            observe=costs.append,
        )
        file.unlink()
        now = run.status()
        assert now.cost == pytest.approx((now.prompt_tokens + now.completion_tokens) / 1e6)
        assert costs[-1].cost == pytest.approx(now.cost)
        file.write_text("models: {any: {input: 0, output: 1}}", encoding="utf-8")
        again = run.resume(prices=file).status()
    assert again.cost == pytest.approx(now.completion_tokens / 1e6)
    file.write_text("models: 1", encoding="utf-8")
    with pytest.raises(FileInvalid):
        run.resume(prices=file)
    assert RunFolder.open(run.path).prices() is not None


def test_a_run_of_an_unknown_model_has_no_cost_and_a_scripted_one_costs_nothing(tmp_path: Path) -> None:
    with Loopback() as server:
        run = tw.simulate("tiny", until="week:1", out=tmp_path / "r", backbone="openai:any", base_url=server.url)
    assert (run.status().cost, run.status().cost_uncached) == (None, None)
    assert tw.simulate("tiny", until="week:1", out=tmp_path / "s").status().cost == 0.0
