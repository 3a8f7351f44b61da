"""What the sample agents do: every run word for word, so that the demo is the same each time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from otel_eval.model import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One tool call, and how the tool answers: with a result, or with an error."""

    tool: str
    arguments: Mapping[str, Json]
    result: Json = None
    error: str | None = None
    seconds: float = 0.06


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One question to an agent, and what it does about it."""

    session: str
    question: str
    steps: Sequence[Step]
    answer: str


def _weather(session: str, city: str, latitude: float, longitude: float, sky: str) -> Run:
    return Run(
        session=session,
        question=f"Do I need an umbrella in {city} tomorrow?",
        steps=[
            Step(
                tool="geocode",
                arguments={"city": city},
                result={"latitude": latitude, "longitude": longitude},
            ),
            Step(
                tool="get_forecast",
                arguments={"latitude": latitude, "longitude": longitude, "days": 1},
                result={"sky": sky, "high_c": 19, "low_c": 11},
                seconds=0.12,
            ),
        ],
        answer=f"The forecast for {city} says {sky}.",
    )


def _research(session: str, topic: str, *sources: Step) -> Run:
    found = [{"url": step.arguments["url"]} for step in sources]
    return Run(
        session=session,
        question=f"What is known about {topic}?",
        steps=[
            Step(tool="web_search", arguments={"query": topic, "limit": 5}, result=found),
            *sources,
            Step(
                tool="save_note",
                arguments={"title": topic, "sources": len(found)},
                result={"saved": True},
            ),
        ],
        answer=f"A note about {topic} is saved, with its sources.",
    )


def _page(url: str, *, error: str | None = None) -> Step:
    return Step(
        tool="fetch_page",
        arguments={"url": f"https://{url}"},
        result={"status": 200, "words": 1480},
        error=error,
        seconds=0.15,
    )


def _billing(session: str, invoice: str, amount: float, currency: str) -> Run:
    booked = {"invoice": invoice, "amount": amount, "currency": currency}
    return Run(
        session=session,
        question=f"Pay invoice {invoice}.",
        steps=[
            Step(tool="get_invoice", arguments={"invoice": invoice}, result=booked),
            Step(tool="check_supplier", arguments={"invoice": invoice}, result={"known": True}),
            Step(tool="book_payment", arguments=booked, result={"booking": f"B-{invoice}"}),
        ],
        answer=f"Invoice {invoice} is paid.",
    )


def _refund(session: str, email: str, order: str, amount: float) -> Run:
    return Run(
        session=session,
        question=f"My order {order} arrived broken, I want my money back.",
        steps=[
            Step(
                tool="find_customer",
                arguments={"email": email},
                result={"customer": session, "since": 2021},
            ),
            Step(
                tool="get_order",
                arguments={"order": order},
                result={"order": order, "total": amount, "delivered": True},
            ),
            Step(
                tool="issue_refund",
                arguments={"order": order, "amount": amount},
                result={"refund": f"R-{order}"},
                seconds=0.1,
            ),
            Step(
                tool="send_reply",
                arguments={"to": email, "template": "refund-done"},
                result={"sent": True},
            ),
        ],
        answer="Your refund is on its way.",
    )


WEATHER: Final = (
    _weather("w-1", "Lyon", 45.76, 4.84, "rain"),
    _weather("w-2", "Porto", 41.15, -8.61, "sun"),
    _weather("w-3", "Bergen", 60.39, 5.32, "heavy rain"),
)

# One page of the last run is slow to answer and is asked again: agents that recover score well.
RESEARCH: Final = (
    _research("r-1", "heat pumps", _page("energy.example/cop"), _page("lab.example/heat")),
    _research("r-2", "tidal power", _page("sea.example/tides"), _page("lab.example/turbines")),
    _research("r-3", "peat bogs", _page("moor.example/peat"), _page("soil.example/carbon")),
    _research(
        "r-4",
        "night trains",
        _page("rail.example/sleepers", error="504: the page did not answer in 10 s"),
        _page("rail.example/sleepers"),
        _page("night.example/routes"),
    ),
)

BILLING: Final = (
    _billing("b-1", "2207", 129.9, "EUR"),
    _billing("b-2", "2208", 1450.0, "USD"),
    _billing("b-3", "2209", 62.5, "GBP"),
)

SUPPORT: Final = (
    _refund("c-17", "ada@shop.example", "A-1001", 39.5),
    _refund("c-23", "lin@shop.example", "A-1002", 18.0),
    _refund("c-42", "sam@shop.example", "A-1003", 74.2),
)

RUNAWAY: Final = (
    Run(
        session="c-66",
        question="Where is my refund for A-1004?",
        steps=[
            Step(
                tool="issue_refund",
                arguments={"order": "A-1004", "amount": 55.0},
                error="409: another refund of A-1004 is being processed",
                seconds=0.01,
            )
        ]
        * 9,
        answer="",
    ),
)
"""No look at the customer or the order, no reply: the same refund again and again."""
