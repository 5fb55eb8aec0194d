"""What the demo model can do besides the guide: each skill draws a few turns of a chat."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass

from . import freetext
from .phrasing import Topic, topics, vary

UNKNOWN = (
    "I do not know that. I am only the built-in guide of this app; "
    "get Qwen3.5-4B from the model list for questions about the world."
)
FOLLOW_UPS = (
    "tell me a little more", "more details please", "say some more", "a bit more please", "is there more?",
    "and why?", "why?", "why is that?", "tell me more", "more", "go on", "how so?", "and why",
    "can you say more about that?", "anything else?", "why so?", "more about that please",
    "what else?", "I want to know more", "why", "continue", "really? why?", "explain that further",
)  # fmt: skip
AGAIN = ("say that again", "repeat that", "please repeat that", "can you say that again?", "please say it again",
         "what was that?", "again please", "can you repeat your answer?",
         "what did you say?", "once more please", "repeat your last answer", "I did not get that")  # fmt: skip
WORDS = (
    "apple river stone window paper yellow garden silver monkey table cloud pepper rocket violin "
    "winter mango castle button forest copper dragon island jacket kettle ladder mirror needle "
    "orange pencil rabbit saddle ticket velvet walnut anchor basket candle desert ember feather "
    "guitar hammer insect jungle lemon marble nickel otter pillow quartz ribbon sunset tunnel"
).split()
NAMES = ("Ana Ben Carla David Emma Felix Greta Hugo Iris Jonas Kira Leo Mara Nils Olga Paul Rita "
         "Sam Tina Umar Vera Willi Yara Zoe Maria Peter Lucas Sofia Omar Chen").split()  # fmt: skip
COLOURS = "red blue green yellow purple orange black white brown pink grey turquoise".split()
CITIES = (
    "Berlin Lagos Lima Oslo Cairo Delhi Quito Tokyo Paris Rome Seoul Accra Madrid Perth".split()
)
EMOJI = "😀 😂 🙂 😎 🤖 👍 🎉 ❤️ 🔥 🚀 🌍 🐱 🐶 🦊 🍎 🍕 ☕ ⚡ ✅ ❌ 🎵 🌧️ 🌈 ⭐ 👩‍👩‍👧‍👦 👋🏽 🇯🇵 🏳️‍🌈 💡 📦".split()
FOREIGN = (
    "안녕하세요 नमस्ते 𠮷野家 café naïve Ångström Привет мир Γειά שלום مرحبا 你好 世界 こんにちは "
    "Straße señor façade žluťoučký kůň đường ไทย తెలుగు éclair Übergröße ñandú"
).split()
CODE_BITS = (
    "<smirk> waffles",
    "std::vector<int> a;",
    "<script>alert(1)</script>",
    "a && b || !c",
    '{"ok": true}',
    "x = [1, 2, 3]",
    "C:\\temp\\new",
    "50 % off & more",
    "**bold**",
    "`tick`",
    "#include <stdio.h>",
    "if (a < b) { return a; }",
    "~/.config",
    "1,000.50 €",
)
LISTS: dict[str, tuple[str, ...]] = {
    "the days of the week": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday",
                             "Sunday"),
    "the months of the year": ("January", "February", "March", "April", "May", "June", "July",
                               "August", "September", "October", "November", "December"),
    "the seasons": ("spring", "summer", "autumn", "winter"),
    "the planets": ("Mercury", "Venus", "Earth", "Mars", "Jupiter", "Saturn", "Uranus", "Neptune"),
    "the colours of the rainbow": ("red", "orange", "yellow", "green", "blue", "indigo", "violet"),
    "the vowels": ("a", "e", "i", "o", "u"),
    "the compass directions": ("north", "east", "south", "west"),
    "the prime numbers below 20": ("2", "3", "5", "7", "11", "13", "17", "19"),
    "the continents": ("Africa", "Antarctica", "Asia", "Australia", "Europe", "North America",
                       "South America"),
}  # fmt: skip
KINDS: dict[str, tuple[str, ...]] = {
    "fruits": ("apple", "pear", "banana", "cherry", "plum", "grape", "lemon", "peach"),
    "animals": ("dog", "cat", "horse", "cow", "sheep", "bear", "fox", "owl"),
    "colours": ("red", "blue", "green", "yellow", "black", "white", "brown", "pink"),
    "vegetables": ("carrot", "potato", "onion", "cabbage", "bean", "pea", "leek", "tomato"),
    "tools": ("hammer", "saw", "drill", "wrench", "pliers", "file", "chisel", "level"),
}
NUMBERS = {"three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "3": 3, "4": 4, "5": 5}
FUNCTIONS: dict[str, tuple[str, str, str]] = {
    "adds two numbers": ("add", "a, b", "return a + b"),
    "subtracts two numbers": ("subtract", "a, b", "return a - b"),
    "multiplies two numbers": ("multiply", "a, b", "return a * b"),
    "returns the larger of two numbers": ("larger", "a, b", "return a if a > b else b"),
    "returns the smaller of two numbers": ("smaller", "a, b", "return a if a < b else b"),
    "says whether a number is even": ("is_even", "n", "return n % 2 == 0"),
    "says whether a number is odd": ("is_odd", "n", "return n % 2 == 1"),
    "squares a number": ("square", "n", "return n * n"),
    "doubles a number": ("double", "n", "return 2 * n"),
    "reverses a string": ("reverse", "text", "return text[::-1]"),
    "counts the words of a text": ("count_words", "text", "return len(text.split())"),
    "sums a list": ("total", "values", "return sum(values)"),
    "returns the mean of a list": ("mean", "values", "return sum(values) / len(values)"),
    "computes the factorial": ("factorial", "n",
                               "result = 1\n    for i in range(2, n + 1):\n        result *= i\n"
                               "    return result"),
    "computes the Fibonacci numbers": ("fibonacci", "n",
                                       "a, b = 0, 1\n    for _ in range(n):\n        a, b = b, "
                                       "a + b\n    return a"),
    "computes the mean accepted length": ("mean_accepted_length", "accepted, rounds",
                                          "return (accepted + rounds) / rounds"),
    "reads a file": ("read_file", "path", "with open(path) as file:\n        return file.read()"),
}  # fmt: skip
HELLO = {
    "Python": ("python", 'print("Hello, world!")'),
    "C": (
        "c",
        '#include <stdio.h>\n\nint main(void) {\n    printf("Hello, world!\\n");\n    return 0;\n}',
    ),
    "Rust": ("rust", 'fn main() {\n    println!("Hello, world!");\n}'),
    "JavaScript": ("javascript", 'console.log("Hello, world!");'),
    "Bash": ("bash", 'echo "Hello, world!"'),
    "HTML": ("html", "<p>Hello, world!</p>"),
}
SMALL_TALK: dict[str, tuple[str, ...]] = {
    "Hello! I am the built-in guide. Ask me about this app, or about DFlash.": (
        "hi", "hello", "hey", "good morning", "hello there", "hi there", "good evening", "hey you",
        "greetings", "hello guide", "good day", "moin", "hi!!", "yo"),
    "You are welcome!": ("thanks", "thank you", "thx", "thank you very much", "great, thanks",
                         "cool thanks", "many thanks", "thanks a lot", "perfect, thank you"),
    "Goodbye! I will be here whenever you open the app.": (
        "bye", "goodbye", "see you", "good night", "bye bye", "see you later", "I have to go"),
    "I am a small program, so I am always fine. How can I help you?": (
        "how are you", "how are you doing", "how do you feel", "are you ok", "how is it going"),
    "Good. Ask me anything about this app.": ("ok", "okay", "good", "nice", "cool", "I see", "wow",
                                              "great", "yes", "no", "hmm", "interesting"),
    "Why did the token cross the round? Because the target let it.": (
        "tell me a joke", "a joke please", "do you know a joke", "make me laugh", "say something funny"),
}  # fmt: skip
UNKNOWN_FORMS = (
    "who is the president of {city}", "what is the capital of {word}land", "who won the cup in {n}",
    "what is the weather in {city}", "how old is {name}", "who wrote the {word} song",
    "what happened in {n}", "how far is it to {city}", "what is the population of {city}",
    "who is {name} {word}", "what should I eat today", "can you book a hotel in {city}",
    "what is the best {word}", "how do I cook {word} soup", "where can I buy a {word}",
    "is it going to rain in {city}", "what is the meaning of life", "when was {name} born",
    "how do I fix my {word}", "what time is it", "what day is it today", "recommend a book",
    "what is the price of a {word}", "how tall is the tower of {city}", "who invented the {word}",
    "what is a {word}", "why is the sky blue", "how do planes fly", "explain photosynthesis",
    "what is quantum physics", "translate {word}", "which film should I watch in {city}",
    "how many people live in {city}", "what is love", "give me medical advice",
    "should I buy {word} shares", "who is the king of {city}", "how do I get to {city}",
)  # fmt: skip


@dataclass(frozen=True)
class Turn:
    """One exchange: what the user writes, the answer, and the thought before it."""

    user: str
    answer: str
    thought: str


Skill = Callable[[random.Random], list[Turn]]


def guide_turn(rng: random.Random, topic: Topic) -> Turn:
    """A question about `topic` in a random phrasing."""
    thought = f"The user asks about {topic.label}. That is in my guide."
    return Turn(topic.draw(rng), topic.answer, thought)


def guide(rng: random.Random) -> list[Turn]:
    """One question about the app."""
    return [guide_turn(rng, rng.choice(topics()))]


def follow_up(rng: random.Random) -> list[Turn]:
    """A question about the app, then "and why?" or "say that again"."""
    topic = rng.choice(topics())
    first = guide_turn(rng, topic)
    if rng.random() < 0.2:
        return [first, Turn(rng.choice(AGAIN), topic.answer, "I say my last answer again.")]
    thought = f"The user wants to know more about {topic.label}."
    return [first, Turn(rng.choice(FOLLOW_UPS), topic.more, thought)]


def memory(rng: random.Random) -> list[Turn]:
    """Something is told and asked for later, sometimes after a question about the app."""
    word, number = rng.choice(WORDS), "".join(rng.choices("0123456789", k=rng.randint(2, 6)))
    what, value = rng.choice((
        ("password", rng.choice((word, number, f"{word}-{number}", f"{word}{number}"))),
        ("name", rng.choice(NAMES)),
        ("favourite colour", rng.choice(COLOURS)),
        ("lucky number", number),
        ("city", rng.choice(CITIES)),
        ("secret word", word),
        ("code", number),
        ("favourite animal", rng.choice(KINDS["animals"])),
    ))  # fmt: skip
    tell = rng.choice((
        "my {} is {}", "my {} is {}", "my {} is {}", "the {} is {}", "I tell you my {}: {}",
        "my {}: {}", "{}: {}", "I have a {}, it is {}", "let my {} be {}", "as {} I take {}",
    )).format(what, value)  # fmt: skip
    before = ("remember this: ", "please remember that ", "hi, ", "hello, ", "note: ", "ok, ",
              "keep in mind that ", "please note that ", "for later: ", "hey there, ", "do not forget: ",
              "listen, ", "please keep this: ", "I am new here, ", "remember ")  # fmt: skip
    after = (", remember it", ", please remember that", ". Remember it!", ". Please do not forget it.",
             ", keep it in mind", ". Keep it for later.", ", ok?", ". Note it please", ", got it?",
             ". I will ask you later.", ", please", " and you must remember it")  # fmt: skip
    tell = (rng.choice(before) if rng.random() < 0.4 else "") + tell
    tell += rng.choice(after) if rng.random() < 0.4 else rng.choice(("", "", ".", "!"))
    tell = tell[0].upper() + tell[1:] if rng.random() < 0.5 else tell
    ask = rng.choice((
        "what is my {}", "what was my {}", "do you remember my {}", "tell me my {}", "my {}",
        "which {} did I tell you", "what's my {}", "and what is my {}", "say my {}",
        "can you tell me my {}", "what did I say my {} is", "do you still know my {}",
        "which {} did I name", "what {} did I say", "what is the {}", "which is the {}", "whats my {} again",
        "and the {}", "so what was the {}", "give me my {}", "please say my {} again", "which {} do I have",
        "what {} have I", "I forgot my {}", "what was the {} I told you", "recall my {}", "the {} please",
    )).format(what)  # fmt: skip
    ask = rng.choice(("", "", "", "so ", "now, ", "ok, ", "and now: ", "please, ")) + ask
    ask = ask[0].upper() + ask[1:] if rng.random() < 0.5 else ask
    turns = [
        Turn(tell, f"I will remember it: your {what} is {value}.",
             f"The user tells me the {what}: {value}."),
        Turn(ask + rng.choice(("?", "?", "")), f"Your {what} is {value}.",
             f"The user told me the {what} before: {value}."),
    ]  # fmt: skip
    if rng.random() < 0.35:
        filler = rng.choice((guide, arithmetic, small_talk))
        turns[1:1] = filler(rng)
    return turns


def counting(rng: random.Random) -> list[Turn]:
    """Numbers up, down or in steps, or letters."""
    start, length = rng.randint(0, 40), rng.randint(3, 22)
    step = rng.choice((1, 1, 1, 1, 2, 2, 3, 5, 10))
    stop = start + step * (length - 1)
    by = "" if step == 1 else f" in steps of {step}"
    kind = rng.random()
    if kind < 0.55:
        if rng.random() < 0.3:
            start, stop = 1, 1 + step * (length - 1)
        ask = rng.choice(("count from {} to {}", "count {} to {}", "please count from {} to {}",
                          "can you count from {} up to {}", "numbers from {} to {}",
                          "count up from {} to {}", "write the numbers {} to {}"))  # fmt: skip
        ask, items = ask.format(start, stop) + by, range(start, stop + 1, step)
        if start == 1 and step == 1 and rng.random() < 0.5:
            ask = rng.choice(("count to {}", "count up to {}", "can you count to {}")).format(stop)
        text = ", ".join(map(str, items))
    elif kind < 0.8:
        ask = rng.choice(("count down from {} to {}", "count backwards from {} to {}",
                          "count from {} down to {}")).format(stop, start) + by  # fmt: skip
        text = ", ".join(map(str, range(stop, start - 1, -step)))
    else:
        letters = "abcdefghijklmnopqrstuvwxyz"
        low = rng.randint(0, 20)
        high = rng.randint(low + 2, 25)
        ask = f"say the letters from {letters[low]} to {letters[high]}"
        if rng.random() < 0.25:
            low, high, ask = (
                0,
                25,
                rng.choice(("say the alphabet", "what is the alphabet", "the abc")),
            )
        text = ", ".join(letters[low : high + 1])
    return [Turn(_plain(rng, ask), text, f"I count: the first is {text.split(',')[0]}.")]


def arithmetic(rng: random.Random) -> list[Turn]:
    """Small sums, differences and products, and which of two numbers is larger."""
    a, b = rng.randint(0, 20), rng.randint(0, 20)
    kind = rng.randrange(4)
    if kind == 3:
        a, b = rng.sample(range(100), 2)
        ask = rng.choice(
            ("which is bigger, {} or {}", "what is larger, {} or {}", "is {} more than {}")
        )
        return [Turn(_plain(rng, ask.format(a, b)), f"{max(a, b)} is larger than {min(a, b)}.",
                     f"I compare {a} and {b}.")]  # fmt: skip
    if kind == 1:
        a, b = max(a, b), min(a, b)
    if kind == 2:
        a, b = rng.randint(0, 10), rng.randint(0, 10)
    sign, word, value = (("+", "plus", a + b), ("-", "minus", a - b), ("*", "times", a * b))[kind]
    ask = rng.choice((
        f"what is {a} {sign} {b}", f"{a} {sign} {b}", f"{a}{sign}{b}", f"what is {a} {word} {b}",
        f"calculate {a} {sign} {b}", f"how much is {a} {word} {b}", f"{a} {word} {b}",
        f"compute {a} {sign} {b}", f"what's {a}{sign}{b}", f"{a} {sign} {b} =",
    ))  # fmt: skip
    return [Turn(_plain(rng, ask), f"{a} {sign} {b} = {value}.", f"{a} {word} {b} makes {value}.")]


def listing(rng: random.Random) -> list[Turn]:
    """Well-known lists, and the first few of a kind."""
    if rng.random() < 0.6:
        what = rng.choice(list(LISTS))
        ask = rng.choice(("list {}", "name {}", "what are {}", "write a list of {}", "tell me {}",
                          "give me {}", "{} as a list", "which are {}"))  # fmt: skip
        items = LISTS[what]
    else:
        kind, word = rng.choice(list(KINDS)), rng.choice(list(NUMBERS))
        what = f"{word} {kind}"
        ask = rng.choice(
            ("list {}", "name {}", "give me {}", "write down {}", "tell me {}", "{} please")
        )
        items = KINDS[kind][: NUMBERS[word]]
    text = "\n".join(f"{i}. {item}" for i, item in enumerate(items, 1))
    return [Turn(_plain(rng, ask.format(what)), text, f"A list with {len(items)} entries.")]


def code(rng: random.Random) -> list[Turn]:
    """A small function, hello world, a loop, or a JSON object."""
    kind = rng.random()
    if kind < 0.45:
        what = rng.choice(list(FUNCTIONS))
        name, arguments, body = FUNCTIONS[what]
        ask = rng.choice((
            "write a python function that {}", "a function that {}", "python function that {}",
            "can you write a function that {}", "give me python code that {}", "code that {}",
            "I need a function that {}", "show me a python function which {}",
        )).format(what)  # fmt: skip
        language, text = "python", f"def {name}({arguments}):\n    {body}"
    elif kind < 0.6:
        what = rng.choice(list(HELLO))
        language, text = HELLO[what]
        ask = rng.choice(("hello world in {}", "write hello world in {}", "a {} hello world",
                          "show me hello world in {}")).format(what)  # fmt: skip
    elif kind < 0.75:
        low, high = rng.randint(0, 9), rng.randint(10, 99)
        ask = rng.choice(("print the numbers from {} to {} in python", "a python loop from {} to {}",
                          "write a for loop from {} to {}")).format(low, high)  # fmt: skip
        language, text = "python", f"for i in range({low}, {high + 1}):\n    print(i)"
    else:
        fields: dict[str, str | int] = {"name": rng.choice(NAMES), "age": rng.randint(5, 90),
                                        "city": rng.choice(CITIES), "colour": rng.choice(COLOURS),
                                        "id": rng.randint(1, 999)}  # fmt: skip
        chosen = {key: fields[key] for key in rng.sample(list(fields), rng.randint(2, 4))}
        ask = rng.choice(("a JSON object with {}", "write JSON with {}", "make a json object with {}",
                          "give me {} as JSON"))  # fmt: skip
        ask = ask.format(" and ".join(f"{key} {value}" for key, value in chosen.items()))
        language, text = "json", json.dumps(chosen, indent=2)
    return [
        Turn(_plain(rng, ask), f"```{language}\n{text}\n```", f"The user wants {language} code.")
    ]


def free_text(rng: random.Random) -> list[Turn]:
    """A story, poem, scene or letter."""
    prompt, text, label = rng.choice(freetext.FORMS)(rng)
    return [Turn(_plain(rng, prompt), text, f"I write {label} and keep it short.")]


def small_talk(rng: random.Random) -> list[Turn]:
    """Greetings, thanks and the like."""
    answer = rng.choice(list(SMALL_TALK))
    return [
        Turn(_plain(rng, rng.choice(SMALL_TALK[answer])), answer, "Just a short friendly reply.")
    ]


def unknown(rng: random.Random) -> list[Turn]:
    """Questions about the world, to which the honest answer is that I do not know."""
    ask = rng.choice(UNKNOWN_FORMS).format(
        word=rng.choice(WORDS),
        city=rng.choice(CITIES),
        name=rng.choice(NAMES),
        n=rng.randint(1900, 2030),
    )
    return [Turn(vary(rng, ask), UNKNOWN, "This is not about the app. I do not know it.")]


def echo(rng: random.Random) -> list[Turn]:
    """Repeating a text exactly: words, digits, code, emoji, other scripts."""
    ranges = ((0xAC00, 0xD7A3), (0x4E00, 0x9FFF), (0x430, 0x44F), (0x3B1, 0x3C9), (0xE0, 0xFF),
              (0x1F600, 0x1F64F), (0x3041, 0x3096), (0x905, 0x939))  # fmt: skip
    low, high = rng.choice(ranges)
    text = rng.choice((
        " ".join(rng.choices(WORDS + NAMES + COLOURS, k=rng.randint(1, 9))),
        " ".join(rng.choices(WORDS, k=rng.randint(2, 6))).capitalize() + ".",
        "".join(rng.choices("0123456789", k=rng.randint(3, 12))),
        rng.choice((" ", "")).join(rng.choices(EMOJI, k=rng.randint(1, 6))),
        " ".join(rng.choices(FOREIGN, k=rng.randint(1, 5))),
        " ".join(rng.choices(FOREIGN + EMOJI + WORDS, k=rng.randint(2, 7))),
        "".join(chr(rng.randint(low, high)) for _ in range(rng.randint(1, 6))),
        rng.choice(CODE_BITS),
        "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(3, 8))),
        " ".join([rng.choice(WORDS)] * rng.randint(2, 12)),
    ))  # fmt: skip
    ask = rng.choice(("repeat after me: ", "say: ", "repeat: ", "echo ", "please repeat: ", "say this: ",
                      "repeat exactly: ", "copy this: ", "write: ", "repeat this text: "))  # fmt: skip
    ask = rng.choice((ask, ask.capitalize()))
    return [Turn(ask + text, text, "I repeat the text exactly.")]


def _plain(rng: random.Random, prompt: str) -> str:
    """Light variation that leaves numbers and names alone."""
    prompt = rng.choice(("", "", "", "", "please ", "hi, ", "now ", "ok, ")) + prompt
    if rng.random() < 0.5:
        prompt = prompt[0].upper() + prompt[1:]
    return prompt + rng.choice(("", "", "", "?", ".", "!"))
