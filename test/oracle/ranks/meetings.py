"""meetings.py - runs the ranks of a mesh in lock step: each as far as its next collective, where its group meets.

A rank is a generator that yields what it waits for, a `Call` or an `Exchange`, and is sent the result. Nothing is timed and
nothing runs beside another: what can never end is seen at once, when no rank can continue, and is reported by the ranks and
the ops at which they stand. A collective is over when all ranks of the group are at it; a message when both its ends are,
in their order between two ranks; messages that stand side by side are one exchange and wait for each other's partners, as
they do in the product.
"""

from collections import defaultdict, deque

from .collectives import COLLECTIVES, sent_bytes


class Mismatch(Exception):
    """Ranks that do not fit together."""


class Call:
    """A rank's part in a collective."""

    def __init__(self, rank, op, axes, group, value):
        self.rank, self.op, self.axes, self.group, self.value = rank, op, axes, group, value

    def says(self):
        """What all ranks of the group must say alike. Ranks that run one text meet at one op of it."""
        op = self.op
        return op.name, op.get("kind"), op.get("root"), op.operand_types, op.types

    def __str__(self):
        kind = f" {self.op.get('kind')}" if self.op.has("kind") else ""
        root = f" root {self.op.get('root')}" if self.op.has("root") else ""
        return f"{self.op.name}{kind}{root} along {spell(self.axes)} of {spell_type(self.op.operand_types[0])} ({self.op.place})"

    def misses(self, waiting):
        """The ranks of the group that are not here."""
        return [rank for rank in self.group if not (isinstance(waiting.get(rank), Call) and waiting[rank].group == self.group)]


class Message:
    """One end of a transfer; `peer` is a rank of the mesh."""

    def __init__(self, rank, op, axes, peer, value=None):
        self.rank, self.op, self.axes, self.peer, self.value, self.is_over = rank, op, axes, peer, value, False
        self.is_sent = op.name == "ds.send"
        self.type = op.operand_types[0] if self.is_sent else op.types[0]

    def __str__(self):
        return (f"{self.op.name} {'to' if self.is_sent else 'from'} rank {self.peer} along {spell(self.axes)} of "
                f"{spell_type(self.type)} ({self.op.place})")


class Exchange:
    """Messages of one rank that stand side by side."""

    def __init__(self, rank, messages):
        self.rank, self.messages = rank, messages

    def __str__(self):
        return " and ".join(str(message) for message in self.messages if not message.is_over)

    def misses(self, waiting):
        return sorted({message.peer for message in self.messages if not message.is_over})


def spell(axes):
    return axes[0] if len(axes) == 1 else f"({', '.join(axes)})"


def spell_type(kind):
    return "x".join([*map(str, kind.shape), kind.element])


class Meetings:
    """`traffic` counts bytes that ranks sent, by the collective's name and axes, of all ranks together."""

    def __init__(self, numbers):
        self.numbers, self.traffic = numbers, defaultdict(int)

    def run(self, programs):
        """Runs generators by rank to their ends."""
        self.waiting, self.posted = {}, defaultdict(deque)
        ready = deque((rank, None) for rank in programs)
        while ready:
            rank, value = ready.popleft()
            try:
                self.waiting[rank] = programs[rank].send(value)
            except StopIteration:
                continue
            ready.extend(self.settle(self.waiting[rank]))
        if self.waiting:
            raise Mismatch(self.describe_hang())

    def settle(self, asked):
        """[(rank, result)] of the ranks that `asked` lets continue."""
        if isinstance(asked, Call):
            return [] if asked.misses(self.waiting) else self.meet([self.waiting.pop(rank) for rank in asked.group])
        released = [rank for message in asked.messages for rank in self.post(message)]
        return [(rank, [message.value for message in self.waiting.pop(rank).messages]) for rank in dict.fromkeys(released)]

    def meet(self, calls):
        first = calls[0]
        for call in calls[1:]:
            same_text = call.op.place.split(",")[0] == first.op.place.split(",")[0]
            if call.says() != first.says() or (same_text and call.op.place != first.op.place):
                raise Mismatch(f"ranks {first.rank} and {call.rank} meet in different collectives:\n"
                               f"  rank {first.rank}: {first}\n  rank {call.rank}: {call}")
        self.traffic[first.op.name, first.axes] += len(calls) * sent_bytes(first.op, len(calls))
        results = COLLECTIVES[first.op.name]([call.value for call in calls], first.op, self.numbers)
        return [(call.rank, result) for call, result in zip(calls, results)]

    def post(self, message):
        """The ranks that wait for nothing more when `message` is there."""
        key = (message.rank, message.peer) if message.is_sent else (message.peer, message.rank)
        queue, others = self.posted[key, message.is_sent], self.posted[key, not message.is_sent]
        if not others:
            queue.append(message)
            return []
        other = others.popleft()
        if (other.type, other.axes) != (message.type, message.axes):
            first, second = sorted((message, other), key=lambda each: each.rank)
            raise Mismatch(f"ranks {first.rank} and {second.rank} exchange different messages:\n"
                           f"  rank {first.rank}: {first}\n  rank {second.rank}: {second}")
        sent, received = (message, other) if message.is_sent else (other, message)
        received.value, sent.is_over, received.is_over = sent.value, True, True
        self.traffic["ds.send", sent.axes] += sent_bytes(sent.op, 2)
        return [rank for rank in (message.rank, other.rank) if not self.waiting[rank].misses(self.waiting)]

    def describe_hang(self):
        lines = ["no rank can continue:"]
        for rank, asked in sorted(self.waiting.items()):
            missed = asked.misses(self.waiting)
            ended = [other for other in missed if other not in self.waiting]
            lines.append(f"  rank {rank} waits for {spell_ranks(missed)} in {asked}" +
                         (f"; {spell_ranks(ended)} came to the end" if ended else ""))
        return "\n".join(lines)


def spell_ranks(ranks):
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}"
