"""Stories, poems and the like: text with many open choices, where a drafter misses more often."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable

HEROES = (
    "fox", "cat", "dog", "robot", "girl", "boy", "sailor", "baker", "dragon", "mouse", "owl",
    "king", "gardener", "bear", "whale", "clockmaker", "painter", "rabbit", "teacher", "knight",
    "frog", "pilot", "farmer", "ghost", "turtle", "crow", "singer", "wizard", "old man", "queen",
)  # fmt: skip
PLACES = (
    "forest", "village", "city", "desert", "harbour", "castle", "garden", "mountain", "library",
    "island", "market", "valley", "lighthouse", "river", "train station", "school", "moon", "cave",
)  # fmt: skip
THINGS = (
    "rain", "autumn", "the sea", "a tree", "night", "snow", "a friend", "spring", "the moon",
    "time", "bread", "a river", "home", "the wind", "a candle", "summer", "silence", "a clock",
    "music", "a road", "stars", "coffee", "a window", "clouds", "winter", "morning", "a bridge",
)  # fmt: skip
SLOTS: dict[str, tuple[str, ...]] = {
    "trait": ("curious", "quiet", "clever", "lonely", "brave", "sleepy", "cheerful", "tiny", "proud"),
    "name": ("Mila", "Tom", "Ada", "Oskar", "Lina", "Pip", "Nora", "Ben", "Ida", "Max", "Rosa"),
    "find": ("a silver key", "an old map", "a broken clock", "a blue feather", "a letter",
             "a small door", "a lost lamb", "a glowing stone", "a wooden flute", "a red kite"),
    "weather": ("it rained", "the fog was thick", "the sun was low", "snow fell", "a storm came",
                "the air was warm", "the wind sang", "the sky was green"),
    "helper": ("a talking crow", "an old woman", "a friendly giant", "a lost child", "a wise toad",
               "the postman", "a grey wolf", "a tired soldier", "a green beetle"),
    "deed": ("followed the path", "climbed the tower", "crossed the bridge", "opened the box",
             "asked for help", "waited all night", "sang a song", "dug a deep hole"),
    "lesson": ("patience opens doors", "a friend is worth more than gold", "small steps go far",
               "nobody is too small to help", "the way home is the best way",
               "courage can be quiet", "questions are better than fear"),
    "start": ("Once there was", "Long ago there lived", "Far away there was", "Let me tell you about",
              "There once was", "Everybody knew", "This is the story of"),
    "day": ("One day", "One evening", "Early in the morning", "In the third week", "That night",
            "On a Sunday", "After a long winter", "Just before noon"),
    "and": ("and spoke softly", "and knew the way", "and could not sleep", "and laughed a lot",
            "and had lost a shoe", "and told old tales", "and asked no questions"),
    "verb": ("whispers", "wanders", "waits", "glows", "dances", "sleeps", "hums", "turns", "grows"),
    "where": ("over the hill", "by the old wall", "under my window", "along the shore",
              "between the roofs", "behind the door", "across the field", "in the quiet lane"),
    "like": ("like a slow ship", "like a half heard song", "like smoke in the cold",
             "like a hand in mine", "like bread in the oven", "like a page that turns",
             "like a child at play", "like light on water"),
    "feel": ("I feel at home", "my heart is light", "the day is done", "I count my steps",
             "I forget my name", "nothing is lost", "I learn to stay", "the world is near"),
    "colour": ("blue", "grey", "golden", "pale", "dark", "silver", "green", "amber"),
    "food": ("soup", "apple pie", "fresh bread", "pancakes", "roast fish", "plum cake", "tea"),
    "sound": ("bells", "gulls", "laughter", "a fiddle", "footsteps", "hammers", "water", "birds"),
}  # fmt: skip

Pick = Callable[[str], str]


def _picker(rng: random.Random, subject: str) -> Pick:
    """A chooser whose favourites hang on the last two choices, at first on the subject.

    So a text has a thread of its own, and whoever guesses ahead must guess each choice in turn.
    """
    last = (subject, subject)

    def pick(slot: str) -> str:
        nonlocal last
        options = list(SLOTS[slot])
        random.Random(zlib.crc32(f"{last}/{slot}".encode())).shuffle(options)
        choice = rng.choices(options, [0.6**rank for rank in range(len(options))])[0]
        last = (last[1], choice)
        return choice

    return pick


def _a(noun: str) -> str:
    return ("an " if noun[0] in "aeiou" else "a ") + noun


def story(rng: random.Random) -> tuple[str, str, str]:
    """Returns (prompt, text, label): five or six sentences about a hero in a place."""
    hero, place = rng.choice(HEROES), rng.choice(PLACES)
    pick = _picker(rng, f"{hero}/{place}")
    ask = rng.choice((
        "write a short story about {} in a {}", "tell me a story about {} in a {}",
        "a short story about {} in a {}", "please write a story about {} in a {}",
        "make up a story about {} and a {}", "story: {} in a {}",
    ))  # fmt: skip
    trait, name = pick("trait"), pick("name")
    lines = [
        f"{pick('start')} {_a(trait)} {hero} named {name} who lived in a {place}.",
        f"{pick('day')} {pick('weather')}, and {name} found {pick('find')} {pick('where')}.",
        f"{name} {pick('deed')} and {pick('deed')}.",
        f"There {name} met {pick('helper')}, who smelled of {pick('food')} {pick('and')}.",
        f"Together they {pick('deed')} until they heard {pick('sound')}.",
        f"From then on the {hero} knew that {pick('lesson')}.",
    ]
    if rng.random() < 0.4:
        del lines[rng.choice((2, 4))]
    return ask.format(_a(hero), place), " ".join(lines), f"a story about {_a(hero)}"


def poem(rng: random.Random) -> tuple[str, str, str]:
    """Returns (prompt, text, label): two verses of two lines."""
    thing = rng.choice(THINGS)
    pick = _picker(rng, thing)
    ask = rng.choice((
        "write a poem about {}", "a poem about {}", "write a short poem about {}",
        "can you write a poem about {}", "give me a little poem about {}", "poem about {}, please",
    ))  # fmt: skip
    head = thing[0].upper() + thing[1:]
    text = (
        f"{head} {pick('verb')} {pick('where')},\n{pick('colour')} and soft, {pick('like')}.\n"
        f"I hear {pick('sound')} {pick('where')},\nand {pick('feel')}."
    )
    return ask.format(thing), text, f"a poem about {thing}"


def scene(rng: random.Random) -> tuple[str, str, str]:
    """Returns (prompt, text, label): a place at some time of day."""
    place = rng.choice(PLACES)
    pick = _picker(rng, place)
    ask = rng.choice((
        "describe a {}", "describe a morning in a {}", "paint me a {} in words",
        "what does a {} look like", "write a few sentences about a {}",
    ))  # fmt: skip
    text = (
        f"The {place} is {pick('colour')} at this hour. You hear {pick('sound')} "
        f"{pick('where')}, and somebody has made {pick('food')}. {pick('weather').capitalize()} "
        f"a moment ago. {_a(pick('trait')).capitalize()} child {pick('deed')} and found "
        f"{pick('find')}. Here {pick('feel')}."
    )
    return ask.format(place), text, f"a {place} in a few sentences"


def letter(rng: random.Random) -> tuple[str, str, str]:
    """Returns (prompt, text, label): a note to somebody from somewhere."""
    name, place = rng.choice(SLOTS["name"]), rng.choice(PLACES)
    pick = _picker(rng, f"{name}/{place}")
    ask = rng.choice((
        "write a letter to {} from a {}", "write a postcard to {} from a {}",
        "a short letter to {} about a {}",
    ))  # fmt: skip
    text = (
        f"Dear {name},\n\ngreetings from the {place}. Yesterday {pick('weather')}, so I "
        f"{pick('deed')} and met {pick('helper')}. We ate {pick('food')} and listened to "
        f"{pick('sound')} {pick('where')}. Now {pick('feel')}.\n\nYours, {pick('name')}"
    )
    return ask.format(name, place), text, f"a letter to {name}"


def free(rng: random.Random) -> tuple[str, str, str]:
    """Returns (prompt, text, label): a story or poem of which only that was asked."""
    kind = rng.choice(("story", "story", "poem"))
    _, text, label = (story if kind == "story" else poem)(rng)
    ask = rng.choice((
        "tell me a {}", "tell me a short {}", "write a {}", "write a short {}", "a {}", "a short {}", "a little {}",
        "make up a {}", "can you tell me a {}", "I want to hear a {}", "give me a {}", "please write a {}", "{} please",
        "could you write me a short {}", "one short {}", "tell a {}", "do you know a {}", "write me a little {}", "another {}",
        "I would like a short {}", "think of a {}", "a very short {}", "invent a {}",
    ))  # fmt: skip
    return ask.format(kind), text, label


FORMS = (story, story, poem, scene, letter, free, free)
