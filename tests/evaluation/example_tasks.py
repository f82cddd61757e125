"""The forty tasks of examples/eval/, each made together with its answer: targets are found by trying all possibilities
or by calculating, and never typed.

    python -m tests.evaluation.example_tasks      writes examples/eval/tasks.jsonl
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from datetime import date, timedelta
from fractions import Fraction
from itertools import permutations, product
from pathlib import Path
from typing import Any, TypeVar

Row = dict[str, Any]
State = TypeVar("State")
PATH = Path(__file__).parents[2] / "examples" / "eval" / "tasks.jsonl"
BRIEF = {"brief": {"type": "word-count", "value": {"max": 80}, "weight": 0}}
"""Of an answer that is asked for alone; it says nothing of the target, and counts for no score."""


def only(found: Iterable[Any]) -> Any:
    """The one solution of a puzzle."""
    (solution,) = found
    return solution


def steps_to(
    start: State, moves: Callable[[State], Iterable[State]], done: Callable[[State], bool]
) -> int:
    """The fewest moves from a state to one that is done."""
    seen, waiting = {start}, deque([(start, 0)])
    while waiting:
        state, count = waiting.popleft()
        if done(state):
            return count
        for new in moves(state):
            if new not in seen:
                seen.add(new)
                waiting.append((new, count + 1))
    raise ValueError("it cannot be done")


def asked(task: str, target: Any, form: str = "Answer with the number alone.") -> Row:
    """A task with the answer that is expected."""
    return {"task": f"{task} {form}".strip(), "target": target, "checks": BRIEF}


# Puzzles


def knights() -> Row:
    kinds = ("knight", "knave")
    fits = [
        dict(zip("ABCD", (a, b, c, d), strict=True))
        for a, b, c, d in product(kinds, repeat=4)
        if (a == "knight") == (b != d)
        and (b == "knight") == ([a, b, c, d].count("knave") == 3)
        and (c == "knight") == (a == "knave" and b == "knave")
        and (d == "knight") == (a != c)
    ]
    return asked(
        "On an island knights always tell the truth and knaves always lie. A says: B and D are of different kinds. "
        "B says: exactly three of the four of us are knaves. C says: A and B are both knaves. D says: A and C "
        "are of different kinds. Which kind is each of A, B, C and D?",
        only(fits),
        'Answer with one JSON object such as {"A": "knight", "B": "knave", "C": "knight", "D": "knight"} and nothing else.',
    )


def digits() -> Row:
    fits = [
        number
        for number in range(1000, 10_000)
        for a, b, c, d in [map(int, str(number))]
        if a + b + c + d == 19
        and d == a + 3
        and c * 2 == b
        and int(str(number)[::-1]) - number == 2817
    ]
    return asked(
        "A number has four digits with the sum 19. Its last digit is greater than its first by 3, and its second digit is twice "
        "its third. Read backwards it is greater by 2817. Which number is it?",
        only(fits),
    )


def seats() -> Row:
    names = ("Ada", "Ben", "Cleo", "Dov", "Eva", "Finn")
    fits = [
        order
        for order in permutations(names)
        for place in [{name: order.index(name) for name in names}]
        if abs(place["Ada"] - place["Ben"]) == 1
        and place["Cleo"] < place["Dov"]
        and abs(place["Dov"] - place["Eva"]) == 3
        and place["Finn"] in (0, 5)
        and place["Ben"] - place["Cleo"] == 2
        and abs(place["Eva"] - place["Finn"]) != 1
        and place["Eva"] > place["Ada"]
    ]
    return asked(
        "Ada, Ben, Cleo, Dov, Eva and Finn sit in a row of six seats, numbered from 1 at the left. Ada sits beside Ben. Cleo sits "
        "somewhere to the left of Dov. Between Dov and Eva there are exactly two people. Finn sits at one end. Ben sits exactly two "
        "seats to the right of Cleo. Eva does not sit beside Finn, and sits somewhere to the right of Ada. Who sits where, from left "
        "to right?",
        list(only(fits)),
        "Answer with one JSON list of the six names and nothing else.",
    )


def bridge() -> Row:
    times = {"a": 2, "b": 3, "c": 7, "d": 9, "e": 14}
    best: dict[tuple[frozenset[str], bool], int] = {}
    waiting = [(0, frozenset(times), True)]
    while waiting:
        waiting.sort(key=lambda one: one[0])
        spent, here, is_here = waiting.pop(0)
        if best.get((here, is_here), spent + 1) <= spent:
            continue
        best[(here, is_here)] = spent
        group = sorted(here if is_here else set(times) - here)
        for crossing in {frozenset(pair) for pair in product(group, repeat=2)}:
            after = here - crossing if is_here else here | crossing
            waiting.append((spent + max(times[one] for one in crossing), after, not is_here))
    return asked(
        "Five people want to cross a bridge at night with one torch. At most two can cross at once, and whoever crosses needs the torch, "
        "so somebody has to bring it back. Alone they take 2, 3, 7, 9 and 14 minutes; two together take as long as the slower. How many "
        "minutes does it take at least until all five are across?",
        best[(frozenset(), False)],
    )


def jugs() -> Row:
    sizes = (13, 8, 5)

    def pour(state: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        for source, goal in permutations(range(3), 2):
            moved = min(state[source], sizes[goal] - state[goal])
            new = list(state)
            new[source] -= moved
            new[goal] += moved
            yield tuple(new)

    count = steps_to((13, 0, 0), pour, lambda state: 4 in state)
    return asked(
        "There are three jugs of 13, 8 and 5 litres without marks. The largest is full, the others are empty, and there is no other water. "
        "Each pouring goes on until the one jug is empty or the other is full. How many pourings does it take at least until one of the jugs "
        "holds exactly 4 litres?",
        count,
    )


def coins() -> Row:
    ways = [1] + [0] * 65
    for coin in (2, 5, 10, 20):
        for amount in range(coin, 66):
            ways[amount] += ways[amount - coin]
    return asked(
        "In how many ways can exactly 65 cents be paid with coins of 2, 5, 10 and 20 cents, where the order does not matter and of each coin "
        "there are as many as one likes?",
        ways[65],
    )


def friday() -> Row:
    days = (date(2027, 1, 1) + timedelta(day) for day in range(365 + 366))
    count = sum(day.day == 13 and day.weekday() == 4 for day in days)
    return asked(
        "1 January 2027 is a Friday. How many times does the 13th of a month fall on a Friday in the two years 2027 and 2028 together?",
        count,
    )


def letters() -> Row:
    fits = [
        {"T": t, "W": w, "O": o, "F": f, "U": u, "R": r}
        for t, w, o, f, u, r in permutations(range(10), 6)
        if t
        and f
        and 2 * (100 * t + 10 * w + o) == 1000 * f + 100 * o + 10 * u + r
        and o % 2 == 1
        and r == min(t, w, o, f, u, r)
    ]
    return asked(
        "Each letter stands for a digit of its own, and no number begins with 0: TWO + TWO = FOUR. O is odd, and R is the "
        "smallest of the six digits. Which digit is each letter?",
        only(fits),
        "Answer with one JSON object of the six letters T, W, O, F, U, R and their digits, and nothing else.",
    )


# Transformations

SENTENCE = "the quick heron waits beside a silver pond until every small fish forgets about it"


def reversed_words() -> Row:
    words = SENTENCE.split()[::-1]
    text = " ".join(
        word.upper() if number % 3 == 0 else word for number, word in enumerate(words, start=1)
    )
    return asked(
        "Write the words of the following sentence in reverse order, and of the new order every third word (the third, the sixth, ...) in capitals, "
        f"all others in small letters: {SENTENCE}",
        text,
        "Answer with the words alone, one blank between them.",
    )


def shifted() -> Row:
    plain = "meet me behind the old lighthouse at noon"
    cipher = re.sub("[a-z]", lambda found: chr((ord(found[0]) - 97 + 11) % 26 + 97), plain)
    return asked(
        "In the following text each letter was replaced by the one eleven places later in the alphabet, where a comes after z again. Blanks "
        f"were left as they are. What was the text? {cipher}",
        plain,
        "Answer with the text alone, in small letters.",
    )


def sorted_lines() -> Row:
    lines = [
        "pear 12 b",
        "fig 7 a",
        "apple 12 a",
        "plum 31 c",
        "date 7 c",
        "lime 31 a",
        "kiwi 4 b",
        "quince 12 c",
    ]
    order = sorted(lines, key=lambda line: (-int(line.split()[1]), line.split()[2]))
    return asked(
        "Each of these lines has a fruit, a number and a letter: "
        + "; ".join(lines)
        + ". Sort them by the number, the greatest first, and "
        "where the numbers are equal by the letter, a first. What are the fruits in that order?",
        [line.split()[0] for line in order],
        "Answer with one JSON list of the fruits and nothing else.",
    )


def run_lengths() -> Row:
    text = "aaabccddddeaaffffffgghhhhhhhhhhiijkkkk"
    coded = "".join(f"{found[0][0]}{len(found[0])}" for found in re.finditer(r"(.)\1*", text))
    return asked(
        f"Write {text} in run-length coding: for each run of equal letters the letter and then how long the run is, also for runs of one.",
        coded,
        "Answer with the coded text alone.",
    )


def table() -> Row:
    rows = [
        ("lamp", 3, "19.90"),
        ("chair", 12, "45.00"),
        ("desk", 2, "210.50"),
        ("clock", 7, "8.25"),
    ]
    cells = "name;count;price " + " ".join(f"{name};{count};{price}" for name, count, price in rows)
    value = {
        name: {"count": count, "total": float(Fraction(price) * count)}
        for name, count, price in rows
    }
    return asked(
        "These are the header and four rows of a table whose cells are separated by semicolons, with blanks between the rows: "
        f"{cells}. Make a JSON object of it with a member for each name, whose value is an object with count, a number, and total, the count "
        "multiplied by the price, a number.",
        value,
        "Answer with the JSON object and nothing else.",
    )


def to_roman(number: int) -> str:
    signs = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
    ]
    signs += [(10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]
    text = ""
    for value, sign in signs:
        text += sign * (number // value)
        number %= value
    return text


def romans() -> Row:
    numbers = [1994, 444, 3888, 949]
    given = ", ".join(map(to_roman, numbers))
    return asked(
        f"Add up these Roman numerals: {given}. What is the sum, as a Roman numeral? A bar over letters is not allowed, so write "
        "thousands as M, however many there are.",
        "M" * (sum(numbers) // 1000) + to_roman(sum(numbers) % 1000),
        "Answer with the numeral alone.",
    )


def hexadecimal() -> Row:
    numbers = [0x3F, 0x1A2, 0xFF0, 0x77]
    total = sum(numbers)
    return asked(
        f"What is the sum of the hexadecimal numbers {', '.join(f'{number:X}' for number in numbers)}, in binary?",
        f"{total:b}",
        "Answer with the binary digits alone.",
    )


def outline() -> Row:
    lines = [
        "tools",
        "-hammer",
        "-saws",
        "--hand saw",
        "--band saw",
        "-files",
        "plants",
        "-trees",
        "--oak",
        "---cork oak",
        "--elm",
    ]
    paths, above = [], list[str]()
    for number, line in enumerate(lines):
        depth = len(line) - len(line.lstrip("-"))
        above = [*above[:depth], line.lstrip("-")]
        deeper = (
            number + 1 < len(lines)
            and len(lines[number + 1]) - len(lines[number + 1].lstrip("-")) > depth
        )
        if not deeper:
            paths.append("/".join(above))
    return asked(
        "In this outline the dashes before an entry say how deep it is; an entry belongs to the nearest one above it with one dash less: "
        + ", ".join(lines)
        + ". List every entry that has none below it as a path of entries from the outermost to it, with / between them, in the order of the "
        "outline.",
        paths,
        "Answer with one JSON list of the paths and nothing else.",
    )


# Extraction


def extracted(passage: str, question: str, target: Any) -> Row:
    return {
        **asked(
            f"{question} The text is the input `passage`.",
            target,
            "Answer with the JSON and nothing else.",
        ),
        "inputs": {"passage": passage},
    }


def invoice() -> Row:
    items = [("paper, A4", 12, 450), ("toner", 2, 8_990), ("staples", 25, 110)]
    lines = "; ".join(
        f"{count} of {name} at {cents / 100:.2f} each" for name, count, cents in items
    )
    net = sum(count * cents for _, count, cents in items)
    return extracted(
        f"Invoice 2026-0417 of 3 March 2026, due within 30 days. Delivered: {lines}. All prices are net; 20 % VAT is added to the sum. "
        "The delivery note has the number 88213.",
        "Make a JSON object of the invoice with number (text), due (the last day on which it is paid in time, as YYYY-MM-DD), net and gross (numbers).",
        {
            "number": "2026-0417",
            "due": (date(2026, 3, 3) + timedelta(30)).isoformat(),
            "net": net / 100,
            "gross": float(Fraction(net, 100) * Fraction(12, 10)),
        },
    )


def addresses() -> Row:
    return extracted(
        "Please write to ana.ruiz@example.org, not to ana@ruiz.example. Copies go to the desk (desk@example.org) and, only until June, to "
        "tom_b@mail.example.net. Do not use info@example.org any more. The form at https://example.org/~ana works, too.",
        "Which e-mail addresses may be written to in May? Give a JSON list of them, sorted alphabetically.",
        sorted(["ana.ruiz@example.org", "desk@example.org", "tom_b@mail.example.net"]),
    )


def dates() -> Row:
    found = [date(2025, 12, 31), date(2026, 2, 28), date(2026, 3, 1), date(2026, 11, 5)]
    return extracted(
        "The lease began on the last day of 2025. The first rent was paid on the last day of the following February, one day before the keys were handed "
        "over. The tenants moved in, after all, on Guy Fawkes Night, the fifth of November of the year in which they got the keys.",
        "Give a JSON list of the four dates of the text (lease, first rent, keys, moving in), each as YYYY-MM-DD, in this order.",
        [one.isoformat() for one in found],
    )


def people() -> Row:
    roles = {"Imre": "cook", "Jo": "driver", "Kim": "medic", "Lea": "guide"}
    return extracted(
        "Four people went up: Imre, Jo, Kim and Lea. The medic and the guide are sisters; Imre has none and Jo is an only child. Whoever drives cannot cook. Imre "
        "burnt nothing, though he was never near the wheel. Kim has never guided anybody.",
        "Who has which role, of cook, driver, medic and guide? Give a JSON object from names to roles.",
        roles,
    )


def stock() -> Row:
    start, moves = (
        {"nuts": 40, "bolts": 25, "rings": 10},
        [("nuts", -12), ("bolts", 30), ("nuts", 5), ("rings", -10), ("bolts", -8)],
    )
    total = {
        name: count + sum(change for of, change in moves if of == name)
        for name, count in start.items()
    }
    told = ", then ".join(
        f"{abs(change)} {name} {'came in' if change > 0 else 'went out'}" for name, change in moves
    )
    return extracted(
        f"On Monday there were 40 nuts, 25 bolts and 10 rings. In the week {told}. A delivery of 100 nuts was announced for the week after. "
        "On Friday a quarter of the bolts that were left turned out to be bent and was thrown away, rounded down to whole ones.",
        "How many of each are there on Friday evening? Give a JSON object from nuts, bolts and rings to numbers.",
        {**total, "bolts": total["bolts"] - total["bolts"] // 4},
    )


def flights() -> Row:
    legs = [(7 * 60 + 50, 2 * 60 + 25), (12 * 60 + 40, 95), (16 * 60 + 5, 3 * 60 + 10)]
    waits = [legs[number + 1][0] - sum(legs[number]) for number in range(2)]
    text = "; ".join(
        f"at {start // 60:02}:{start % 60:02}, in the air for {length // 60} h {length % 60:02} min"
        for start, length in legs
    )
    end = sum(legs[-1])
    return extracted(
        f"Three flights on one day, all times by the same clock: {text}. The first was announced for 07:30 but left as given here.",
        "Give a JSON object with landed (the time of the last landing, HH:MM) and waited (the minutes on the ground between flights, in all, a number).",
        {"landed": f"{end // 60:02}:{end % 60:02}", "waited": sum(waits)},
    )


def log_lines() -> Row:
    lines = [
        ("09:00:01", "ERROR", "disk", "full"),
        ("09:00:04", "WARN", "net", "slow"),
        ("09:01:12", "ERROR", "net", "refused"),
        ("09:01:13", "INFO", "disk", "ERROR count reset"),
        ("09:02:40", "ERROR", "disk", "full"),
        ("09:03:00", "ERROR", "auth", "expired"),
        ("09:03:07", "INFO", "auth", "renewed"),
        ("09:04:59", "ERROR", "net", "refused"),
        ("09:05:00", "ERROR", "disk", "read-only"),
    ]
    errors = [line for line in lines if line[1] == "ERROR"]
    return extracted(
        "\n".join(f"{time} {level} [{part}] {text}" for time, level, part, text in lines),
        "Give a JSON object with errors (how many lines of level ERROR each part in brackets has, an object from parts to numbers) and last (the time of the "
        "last ERROR whose text an earlier ERROR of the same part has had, too).",
        {
            "errors": {
                part: sum(line[2] == part for line in errors) for part in ("disk", "net", "auth")
            },
            "last": [
                line[0]
                for number, line in enumerate(errors)
                if any(line[2:] == earlier[2:] for earlier in errors[:number])
            ][-1],
        },
    )


def recipe() -> Row:
    amounts = {"flour": 250, "butter": 125, "sugar": 80, "milk": 60}
    scaled = {name: float(Fraction(amount) * Fraction(14, 4)) for name, amount in amounts.items()}
    return extracted(
        "For four people: a quarter of a kilogram of flour, half as much butter, eighty grams of sugar, and six centilitres of milk (a millilitre of it counts "
        "as a gram). Some take a pinch of salt, which is not weighed.",
        "Give a JSON object with the grams of flour, butter, sugar and milk for fourteen people, as numbers.",
        scaled,
    )


# Arithmetic in text


def tanks() -> Row:
    rate = Fraction(1, 6) + Fraction(1, 4) - Fraction(1, 12)
    minutes = Fraction(1, 3) / (Fraction(1, 6) + Fraction(1, 4)) * 60 + Fraction(2, 3) / rate * 60
    return asked(
        "One pipe alone fills a tank in 6 hours, another in 4 hours, and a drain empties the full tank in 12 hours. Both pipes are opened on the empty tank; when it "
        "is a third full the drain is opened, too. After how many minutes, from the beginning, is it full?",
        int(minutes) if minutes.denominator == 1 else float(minutes),
    )


def trains() -> Row:
    gap = Fraction(80 * 45, 60)
    hours = (Fraction(370) - gap) / (80 + 75)
    return asked(
        "The line from A to B is 370 km long. A train leaves A for B at 09:15 at 80 km/h. Another leaves B for A at 10:00 at 75 km/h. At how many kilometres from A do "
        "they meet?",
        int(gap + 80 * hours),
    )


def interest() -> Row:
    amount = Fraction(8_000)
    for year in range(1, 5):
        amount += amount * Fraction(3, 100) if year < 3 else amount * Fraction(5, 100)
        amount -= 500
    return asked(
        "8,000 are put in an account on 1 January. At the end of each year interest is added, 3 % for the first two years and 5 % for the next two, and right after it 500 "
        "are taken out. How much is in the account after four years, rounded to two decimals?",
        float(round(amount, 2)),
    )


def mixture() -> Row:
    wanted = Fraction(20 * 25, 100)
    strong = (wanted - 20 * Fraction(10, 100)) / (Fraction(40, 100) - Fraction(10, 100))
    return asked(
        "How many litres of a 40 % solution are to be mixed with a 10 % solution so that 20 litres of a 25 % solution come out?",
        int(strong) if strong.denominator == 1 else float(strong),
    )


def ages() -> Row:
    fits = [
        (mother, daughter)
        for mother, daughter in product(range(16, 100), range(1, 60))
        if mother - 6 == 4 * (daughter - 6) and mother + 9 == 2 * (daughter + 9) + 3
    ]
    return asked(
        "Six years ago a mother was four times as old as her daughter. In nine years she will be three years older than twice her daughter's age then. How old is the "
        "mother now?",
        only(fits)[0],
    )


def discount() -> Row:
    price = Fraction(240) * Fraction(85, 100)
    price = (price - 20) * Fraction(119, 100)
    return asked(
        "A chair costs 240 before tax. First 15 % are taken off, then a voucher of 20 is taken off what is left, then 19 % tax is added. Shipping costs 9.90, tax included, "
        "but is free from 220 on, tax included. What has to be paid in all, with two decimals?",
        float(round(price if price >= 220 else price + Fraction(990, 100), 2)),
    )


def workers() -> Row:
    done = Fraction(5 * 6, 120) + Fraction(3 * 2, 120)
    days = (1 - done) / Fraction(8, 120)
    return asked(
        "A wall is 120 days of work for one person. Five people work on it for six days, then two of them fall ill and the other three go on for two days. Then eight people "
        "finish it. How many days do the eight need?",
        float(days),
    )


def clock() -> Row:
    shown = Fraction(9 * 60)
    true = shown / (1 + Fraction(4, 60))
    lost = round(true)
    return asked(
        "A clock gains four minutes in every hour of true time. It was set right at 08:00. What is the true time when it shows 17:00, to the nearest minute?",
        f"{(8 * 60 + lost) // 60:02}:{(8 * 60 + lost) % 60:02}",
        "Answer in the form 12:34, with nothing else.",
    )


# Small programs: the tests stand in the row, and the check `unit_tests` runs them beside the answer.


def programmed(task: str, *cases: tuple[str, Any]) -> Row:
    return {
        "task": f"Write this function in Python 3, with the standard library alone: {task} Answer with one code block and nothing else.",
        "tests": [{"call": call, "gives": gives} for call, gives in cases],
        "checks": {"unit_tests": {}},
    }


PROGRAMS = {
    "durations": programmed(
        "seconds_of(text: str) -> int | None. The text is a duration such as '1h30m', '45s' or '2d 4h': whole numbers, each with a unit d, h, m or s, in this order, each "
        "unit at most once, blanks allowed between the parts but not within them, nothing else. It returns the seconds, or None for a text of any other form.",
        ("seconds_of('1h30m')", 5400),
        ("seconds_of('2d 4h')", 187200),
        ("seconds_of('45s')", 45),
        ("seconds_of('30m1h')", None),
        ("seconds_of('1 h')", None),
        ("seconds_of('')", None),
        ("seconds_of('5')", None),
        ("seconds_of('1h1h')", None),
    ),
    "intervals": programmed(
        "merge(intervals: list[list[int]]) -> list[list[int]]. Each interval is [start, end] of whole numbers, both included; the list may be in any order, and must not be "
        "changed. It returns the fewest intervals that hold the same whole numbers, sorted. [1, 2] and [3, 4] become [1, 4].",
        ("merge([[5, 6], [1, 2], [3, 4]])", [[1, 6]]),
        ("merge([[1, 10], [2, 3]])", [[1, 10]]),
        ("merge([])", []),
        ("merge([[1, 1], [3, 3]])", [[1, 1], [3, 3]]),
        ("(lambda given: (merge(given), given)[1])([[5, 6], [1, 2]])", [[5, 6], [1, 2]]),
        ("merge([[-3, -1], [0, 0]])", [[-3, 0]]),
    ),
    "brackets": programmed(
        "first_fault(text: str) -> int. Round, square and curly brackets must be closed in order. What stands between two double quotation marks is text, in which brackets count "
        "for nothing; a backslash within it takes the next character with it. It returns the index of the first character at which the text is wrong, the length of the text if "
        "something is still open at its end (a quotation mark, too), and -1 if nothing is wrong.",
        ("first_fault('a(b[c]{d})')", -1),
        ("first_fault('(]')", 1),
        ("first_fault('((')", 2),
        ("first_fault(')')", 0),
        ("first_fault('(\")\")')", -1),
        ("first_fault('\"a')", 2),
        ('first_fault(\'"\\\\")"\')', -1),
        ("first_fault('{[}]')", 2),
    ),
    "order": programmed(
        "order(needs: dict[str, list[str]]) -> list[str] | None. Each name is mapped to the names that must come before it; a name may stand among these alone. It returns all "
        "names in an order that keeps to that, and of all such orders the first by the alphabet, name by name; None if there is none.",
        ("order({'a': ['b'], 'b': []})", ["b", "a"]),
        ("order({'c': [], 'a': ['c'], 'b': []})", ["b", "c", "a"]),
        ("order({'a': ['a']})", None),
        ("order({'a': ['b'], 'b': ['a']})", None),
        ("order({'x': ['y', 'z']})", ["y", "z", "x"]),
        ("order({})", []),
    ),
    "luhn": programmed(
        "check_digit(number: str) -> str. The number is digits with blanks between them, without its last digit. It returns the digit that makes it right by the Luhn formula: "
        "from the right, beginning with the last of the digits given, every second digit is doubled, the digits of the doubled ones are added, and the sum of all with the check "
        "digit is a multiple of ten.",
        ("check_digit('7992739871')", "3"),
        ("check_digit('4539 1488 0343 646')", "7"),
        ("check_digit('0')", "0"),
        ("check_digit('1')", "8"),
        ("check_digit('59')", "6"),
    ),
    "wrap": programmed(
        "wrap(text: str, width: int) -> list[str]. The words of the text, which are separated by white space, are put into lines of at most `width` characters, as many into each as "
        "fit, with one blank between them. A word that is longer than a line is cut into pieces of `width` characters, the first of which begins a new line; what is left of it is "
        "treated as a word.",
        ("wrap('a bb ccc', 4)", ["a bb", "ccc"]),
        ("wrap('abcdefgh i', 3)", ["abc", "def", "gh", "i"]),
        ("wrap('  ', 5)", []),
        ("wrap('a bcdefg h', 3)", ["a", "bcd", "efg", "h"]),
        ("wrap('abcd e', 3)", ["abc", "d e"]),
        ("wrap('one\\n two', 9)", ["one two"]),
    ),
    "versions": programmed(
        "compare(one: str, other: str) -> int. Versions such as 1.10.0 or 2.0-rc.1: whole numbers with dots, then perhaps a hyphen and parts with dots. The numbers are compared one by one, "
        "missing ones are 0. A version with a hyphen comes before the same one without. Parts behind it are compared one by one, numbers as numbers, others as text, a number before a text, and "
        "what has fewer parts first. It returns -1, 0 or 1.",
        ("compare('1.10', '1.9')", 1),
        ("compare('1.0', '1')", 0),
        ("compare('2.0-rc.1', '2.0')", -1),
        ("compare('2.0-rc.2', '2.0-rc.10')", -1),
        ("compare('1-a', '1-1')", 1),
        ("compare('1-a', '1-a.0')", -1),
        ("compare('1.0-b', '1-b')", 0),
    ),
    "spiral": programmed(
        "spiral(rows: list[list[int]]) -> list[int]. The rows are equally long. It returns the numbers on the way round: along the first row, down the last column, back along the last row, up "
        "the first column, and so on inwards. Neither the list nor its rows may be changed.",
        ("spiral([[1, 2, 3], [4, 5, 6], [7, 8, 9]])", [1, 2, 3, 6, 9, 8, 7, 4, 5]),
        ("spiral([[1, 2, 3]])", [1, 2, 3]),
        ("spiral([[1], [2], [3]])", [1, 2, 3]),
        ("spiral([])", []),
        ("spiral([[1, 2], [3, 4], [5, 6]])", [1, 2, 4, 6, 5, 3]),
        ("(lambda given: (spiral(given), given)[1])([[1, 2], [3, 4]])", [[1, 2], [3, 4]]),
    ),
}
KINDS: dict[str, dict[str, Row]] = {
    "puzzle": {
        made.__name__: made()
        for made in (knights, digits, seats, bridge, jugs, coins, friday, letters)
    },
    "transformation": {
        made.__name__: made()
        for made in (
            reversed_words,
            shifted,
            sorted_lines,
            run_lengths,
            table,
            romans,
            hexadecimal,
            outline,
        )
    },
    "extraction": {
        made.__name__: made()
        for made in (invoice, addresses, dates, people, stock, flights, log_lines, recipe)
    },
    "arithmetic": {
        made.__name__: made()
        for made in (tanks, trains, interest, mixture, ages, discount, workers, clock)
    },
    "program": PROGRAMS,
}


def rows() -> list[Row]:
    """All tasks, one of each kind after the other."""
    named = [
        [
            {"id": f"{kind}-{name}", **row, "metadata": {"kind": kind}}
            for name, row in of_kind.items()
        ]
        for kind, of_kind in KINDS.items()
    ]
    return [row for together in zip(*named, strict=True) for row in together]


def write_text() -> str:
    """The content of the file."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows())


if __name__ == "__main__":
    PATH.write_text(write_text(), encoding="utf-8")
