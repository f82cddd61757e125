"""Makes the data of this example: `python make_data.py [FOLDER]` writes 200 documents and an SQLite database into
FOLDER (`data` by default), and always the same ones. `tasks.jsonl` beside this file was written with `--tasks`."""

import json
import random
import sqlite3
import sys
from pathlib import Path

SEED = 20
CITIES = ("Aarhus", "Bilbao", "Chemnitz", "Dijon", "Espoo", "Fulda", "Ghent", "Halle")
FIRST = ("Ada", "Bo", "Cleo", "Dario", "Edda", "Finn", "Greta", "Hugo", "Ines", "Jonas")
LAST = ("Abel", "Brandt", "Cohen", "Duval", "Ekman", "Fabre", "Grau", "Holm", "Ito", "Jansen")
PARTS = ("pump", "valve", "fan", "gate", "boiler", "filter")
CUSTOMERS = ("Harbour Works", "Mill Lane School", "North Clinic", "Old Brewery", "Quay Hotel")
REASONS = ("a strike at the port", "a missing seal", "ice on the road", "a wrong address")

TABLES = (
    "suppliers (id INTEGER PRIMARY KEY, name TEXT, city TEXT)",
    "articles (number TEXT PRIMARY KEY, kind TEXT, price REAL, supplier INTEGER, stock INTEGER)",
    "orders (number TEXT PRIMARY KEY, customer TEXT, article TEXT, pieces INTEGER, month INTEGER)",
)


class World:
    """The company whose papers these are."""

    def __init__(self) -> None:
        chance = random.Random(SEED)
        names = [f"{first} {last}" for first in FIRST for last in LAST]
        chance.shuffle(names)
        self.suppliers = [
            {
                "id": number,
                "name": f"{names[number].split()[1]} & {CITIES[number]}",
                "city": CITIES[number],
            }
            for number in range(len(CITIES))
        ]
        self.contacts = {number: names[20 + number] for number in range(len(CITIES))}
        self.articles = [
            {
                "number": f"P-{2000 + 37 * index}",
                "kind": chance.choice(PARTS),
                "price": chance.randrange(4_000, 90_000) / 100,
                "supplier": chance.randrange(len(CITIES)),
                "stock": chance.randrange(0, 40),
            }
            for index in range(60)
        ]
        self.halls = {hall: self.articles[hall % 60]["number"] for hall in range(1, 61)}
        self.orders = [
            {
                "number": f"O-{5000 + index}",
                "customer": CUSTOMERS[index % len(CUSTOMERS)],
                "article": chance.choice(self.articles)["number"],
                "pieces": chance.randrange(1, 9),
                "month": 1 + index // 5 % 12,
            }
            for index in range(120)
        ]
        self.delays = {order["number"]: max(0, chance.randrange(-4, 15)) for order in self.orders}
        self.reasons = {number: chance.choice(REASONS) for number in self.delays}
        self.chance = chance

    def article(self, number: str) -> dict:
        """The article of that number."""
        return next(each for each in self.articles if each["number"] == number)

    def documents(self) -> dict[str, str]:
        """The 200 documents, by file name."""
        notes = {f"hall-{hall:02}.txt": self._write_note(hall) for hall in self.halls}
        reports = {
            f"delivery-{order['number']}.txt": self._write_report(order) for order in self.orders
        }
        letters = {
            f"letter-{supplier['id']}.txt": self._write_letter(supplier)
            for supplier in self.suppliers
        }
        found = {**notes, **reports, **letters}
        for number in range(200 - len(found)):
            found[f"minutes-{number:02}.txt"] = self._write_minutes(number)
        return found

    def _write_note(self, hall: int) -> str:
        article = self.article(self.halls[hall])
        side = self.chance.choice(("north", "south", "east", "west"))
        week = self.chance.randrange(1, 50)
        return (
            f"Maintenance note, hall {hall}.\n"
            f"The {article['kind']} by the {side} wall is article {article['number']}. "
            f"It was oiled in week {week} and runs well.\n"
        )

    def _write_report(self, order: dict) -> str:
        late = self.delays[order["number"]]
        reason = self.reasons[order["number"]]
        how = f"{late} days late, because of {reason}" if late else "on the day agreed"
        return (
            f"Delivery report of order {order['number']}, {order['customer']}.\n"
            f"{order['pieces']} pieces of {order['article']} arrived {how}.\n"
        )

    def _write_letter(self, supplier: dict) -> str:
        number = supplier["id"]
        return (
            f"{supplier['name']}, {supplier['city']}.\n"
            "Dear customer, from this month on your contact is "
            f"{self.contacts[number]}, extension {300 + 7 * number}.\n"
        )

    def _write_minutes(self, number: int) -> str:
        present = f"{self.chance.choice(FIRST)}, {self.chance.choice(FIRST)}"
        hall = self.chance.randrange(61, 99)
        colour = self.chance.choice(("grey", "green", "white"))
        part = self.chance.choice(PARTS)
        return (
            f"Minutes {number}. Present: {present}. "
            f"Hall {hall} will be painted {colour}; the {part} there stays.\n"
        )

    def tasks(self) -> list[dict]:
        """Thirty tasks, none of which can be answered from one document or one query."""
        rows = []
        for hall in range(3, 53, 5):
            kind = self.article(self.halls[hall])["kind"]
            task = f"What does the {kind} of hall {hall} cost? Answer with the price alone, such as 12.50."
            rows.append(
                _task(f"price-{hall}", task, f"{self.article(self.halls[hall])['price']:.2f}")
            )
        for hall in range(4, 54, 5):
            kind = self.article(self.halls[hall])["kind"]
            contact = self.contacts[self.article(self.halls[hall])["supplier"]]
            task = f"Who is our contact at the supplier of the {kind} of hall {hall}? Answer with the name alone."
            rows.append(_task(f"contact-{hall}", task, contact))
        for number in range(10):
            customer = CUSTOMERS[number % len(CUSTOMERS)]
            month = 1 + number
            orders = [
                o["number"] for o in self.orders if (o["customer"], o["month"]) == (customer, month)
            ]
            days = max(self.delays[order] for order in orders)
            task = (
                f"Of the orders of {customer} in month {month}, by how many days was the one late that came latest? "
                "Answer with the number alone, 0 if all came on the day agreed."
            )
            rows.append(_task(f"delay-{number}", task, days))
        return rows


def _task(row_id: str, task: str, target: object) -> dict:
    return {
        "id": row_id,
        "task": task,
        "target": target,
        "metadata": {"kind": row_id.split("-")[0]},
    }


def write_data(folder: Path) -> None:
    """Write the documents and the database."""
    world = World()
    (folder / "documents").mkdir(parents=True, exist_ok=True)
    for name, text in world.documents().items():
        (folder / "documents" / name).write_text(text, encoding="utf-8")
    database = folder / "stock.sqlite"
    database.unlink(missing_ok=True)
    with sqlite3.connect(database) as stock:
        stock.execute("CREATE TABLE suppliers (id INTEGER PRIMARY KEY, name TEXT, city TEXT)")
        stock.execute(
            "CREATE TABLE articles (number TEXT PRIMARY KEY, kind TEXT, price REAL, supplier INTEGER, stock INTEGER)"
        )
        stock.execute(
            "CREATE TABLE orders (number TEXT PRIMARY KEY, customer TEXT, article TEXT, pieces INTEGER, month INTEGER)"
        )
        stock.executemany("INSERT INTO suppliers VALUES (:id, :name, :city)", world.suppliers)
        stock.executemany(
            "INSERT INTO articles VALUES (:number, :kind, :price, :supplier, :stock)",
            world.articles,
        )
        stock.executemany(
            "INSERT INTO orders VALUES (:number, :customer, :article, :pieces, :month)",
            world.orders,
        )
    stock.close()


if __name__ == "__main__":
    if sys.argv[1:] == ["--tasks"]:
        for row in World().tasks():
            print(json.dumps(row))
    else:
        write_data(Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).parent / "data")
