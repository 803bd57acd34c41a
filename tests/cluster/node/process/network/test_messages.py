"""DNS messages, read and written by an independent implementation."""

from __future__ import annotations

import dns.edns
import dns.flags
import dns.message
import dns.opcode
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.cluster.node.process.network.messages import (
    TCP_LIMIT,
    Code,
    Record,
    Reply,
    Soa,
    Srv,
    Type,
    encoded,
    parsed,
)

RECORDS = {
    "address": (Record("web.example", Type.A, "10.96.0.1", 5), "10.96.0.1"),
    "address of the other family": (Record("web.example", Type.AAAA, "fd00::1", 5), "fd00::1"),
    "other name": (Record("web.example", Type.CNAME, "www.example.com", 5), "www.example.com."),
    "pointer": (Record("web.example", Type.PTR, "db-0.db.default.svc.cluster.local", 5), None),
    "name server": (Record("web.example", Type.NS, "ns.dns.cluster.local", 5), "ns.dns.cluster.local."),
    "text": (Record("web.example", Type.TXT, "1.1.0", 5), '"1.1.0"'),
    "place": (Record("web.example", Type.SRV, Srv(33, 80, "a.web.example"), 5), "0 33 80 a.web.example."),
    "authority": (
        Record("web.example", Type.SOA, Soa("ns.example", "me.example", 7, 5), 5),
        "ns.example. me.example. 7 7200 1800 86400 5",
    ),
}


def asked(name: str, type_: Type = Type.A, **options: object) -> bytes:
    return dns.message.make_query(name, dns.rdatatype.RdataType(type_), **options).to_wire()  # type: ignore[arg-type]


def answered(question: bytes, reply: Reply, limit: int | None = None) -> dns.message.Message:
    query = parsed(question)
    assert query is not None
    return dns.message.from_wire(encoded(query, reply, query.udp_limit if limit is None else limit))


@pytest.mark.parametrize(("record", "text"), RECORDS.values(), ids=RECORDS.keys())
def test_a_record_is_read_by_others_as_it_was_meant(record: Record, text: str | None) -> None:
    message = answered(asked("web.example", record.type), Reply(answers=(record,)))

    (found,) = message.answer
    assert str(found.name) == "web.example."
    assert found.ttl == 5
    assert found[0].to_text() == (text or f"{record.value}.")


def test_the_question_is_repeated_as_it_was_asked() -> None:
    question = asked("WeB.ExAmPlE")
    query = parsed(question)
    assert query is not None
    assert query.name == "web.example"

    message = answered(question, Reply(answers=(Record("web.example", Type.A, "10.0.0.1", 5),)))

    assert message.question[0].name.to_text() == message.answer[0].name.to_text() == "WeB.ExAmPlE."
    assert message.id == dns.message.from_wire(question).id


def test_an_answer_speaks_for_itself() -> None:
    message = answered(asked("web.example"), Reply(Code.NO_SUCH_NAME, (), (RECORDS["authority"][0],)))

    assert message.rcode() == dns.rcode.NXDOMAIN
    assert message.flags & dns.flags.QR
    assert message.flags & dns.flags.AA
    assert message.flags & dns.flags.RD
    assert len(message.authority) == 1


MANY = tuple(Record("web.example", Type.A, f"10.88.{n // 250}.{n % 250 + 1}", 5) for n in range(500))
LIMITS = {
    "plain": ({}, 512),
    "extended": ({"use_edns": 0, "payload": 4096}, 1232),
    "extended, but small": ({"use_edns": 0, "payload": 600}, 600),
    "extended, but too small": ({"use_edns": 0, "payload": 100}, 512),
}


@pytest.mark.parametrize(("options", "limit"), LIMITS.values(), ids=LIMITS.keys())
def test_what_a_datagram_cannot_hold_is_left_out_and_that_is_said(options: dict[str, int], limit: int) -> None:
    question = asked("web.example", Type.A, **options)
    query = parsed(question)
    assert query is not None

    wire = encoded(query, Reply(answers=MANY), query.udp_limit)

    message = dns.message.from_wire(wire)
    assert limit - 16 <= len(wire) <= limit
    assert message.flags & dns.flags.TC
    assert len(message.answer[0]) > 20
    assert (message.edns == 0) == bool(options)


def test_a_connection_holds_it_all() -> None:
    message = answered(asked("web.example"), Reply(answers=MANY), TCP_LIMIT)

    assert not message.flags & dns.flags.TC
    assert len(message.answer[0]) == 500


def test_what_is_only_additional_is_left_out_without_a_word() -> None:
    message = answered(asked("web.example"), Reply(answers=MANY[:5], additional=MANY))

    assert not message.flags & dns.flags.TC
    assert sum(len(one) for one in message.additional) < 500


REFUSALS = {
    "another class": (dns.message.make_query("version.bind", "TXT", "CH").to_wire(), dns.rcode.REFUSED),
    "an extension of the future": (asked("web.example", use_edns=1), dns.rcode.BADVERS),
    "no question": (dns.message.Message(id=7).to_wire(), dns.rcode.FORMERR),
    "a name that is cut off": (asked("web.example")[:18], dns.rcode.FORMERR),
    "a pointer in a question": (asked("a")[:12] + b"\xc0\x0c\0\1\0\1", dns.rcode.FORMERR),
    "a name that is too long": (asked("a")[:12] + (b"\x3f" + b"a" * 63) * 5 + b"\0\0\1\0\1", dns.rcode.FORMERR),
}


@pytest.mark.parametrize(("question", "code"), REFUSALS.values(), ids=REFUSALS.keys())
def test_what_cannot_be_answered_is_told_why(question: bytes, code: dns.rcode.Rcode) -> None:
    query = parsed(question)
    assert query is not None

    message = dns.message.from_wire(encoded(query, Reply(query.problem), 512))

    assert message.rcode() == code


def test_an_update_is_not_implemented() -> None:
    message = dns.message.make_query("web.example", "A")
    message.set_opcode(dns.opcode.NOTIFY)
    query = parsed(message.to_wire())
    assert query is not None
    assert query.problem is Code.NOT_IMPLEMENTED


NO_QUESTIONS = {
    "nothing": b"",
    "half a head": b"\0" * 11,
    "an answer": dns.message.make_response(dns.message.from_wire(asked("a"))).to_wire(),
}


@pytest.mark.parametrize("message", NO_QUESTIONS.values(), ids=NO_QUESTIONS.keys())
def test_what_is_no_question_gets_no_answer(message: bytes) -> None:
    assert parsed(message) is None


def test_a_dot_inside_of_a_label_is_no_boundary() -> None:
    query = parsed(asked("a")[:12] + b"\x0bweb.default\x03svc\0\0\1\0\1")
    assert query is not None
    assert query.name == "web\\.default.svc"


@given(st.binary(max_size=80), st.booleans())
def test_no_message_is_too_strange_to_be_read(noise: bytes, is_question: bool) -> None:
    head = asked("web.default.svc.cluster.local", use_edns=0)
    message = head[: len(noise) % len(head)] + noise if is_question else noise
    query = parsed(message)
    if query is not None:
        encoded(query, Reply(query.problem), 512)
