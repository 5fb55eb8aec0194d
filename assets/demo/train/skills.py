"""What the demo model can do besides the guide: each skill draws a few turns of a chat."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass

from . import freetext, world
from .phrasing import LANGUAGES, Topic, elsewhere, foreign_topics, slip, topics, vary, vary_foreign

UNKNOWN = (
    "I am only a tiny guide to this app and do not know that. "
    "For real answers click the model's name at the top and choose **Get Qwen3.5-4B**."
)
NONSENSE = "I did not understand that. Ask me about this app, for example: What is DFlash?"
LOST = "I do not know what you mean yet. Ask me something about this app first."
APOLOGY = "Sorry, I can only answer in English. "
BOTH_DEVICES = "It is the same on the CPU and on a GPU: only the speed differs, never the text."
TOO_LARGE = "That is too much for me: I do whole sums up to 100. Qwen3.5-4B can do larger ones."
REFUSALS = {"unknown": UNKNOWN, "nonsense": NONSENSE, "lost": LOST}
TONGUES = {"de": "German", "es": "Spanish", "fr": "French", "zh": "Chinese"}
FOLLOW_UPS = (
    "tell me a little more", "more details please", "say some more", "a bit more please", "is there more?",
    "and why?", "why?", "why is that?", "tell me more", "more", "go on", "how so?", "and why",
    "can you say more about that?", "anything else?", "why so?", "more about that please", "more info",
    "what else?", "I want to know more", "why", "continue", "really? why?", "explain that further",
    "what is the reason?", "why though", "how come?", "for what reason?", "tell me why", "and?", "further",
    "explain", "explain it", "in more detail", "is that all?", "what more is there?", "why does it do that?",
)  # fmt: skip
AGAIN = (
    "say that again", "repeat that", "please repeat that", "can you say that again?", "please say it again",
    "what was that?", "again please", "can you repeat your answer?", "sorry, what?", "pardon?", "again",
    "what did you say?", "once more please", "repeat your last answer", "I did not get that", "say it once more",
    "come again?", "repeat it", "what?", "I did not understand", "how?", "how exactly?", "where?", "huh?",
)  # fmt: skip
SHORTER = (
    "shorter", "shorter please", "in short", "make it shorter", "in one sentence", "too long", "tl;dr", "summarise that",
    "can you say it shorter?", "say it briefly", "a short version please", "that was long, shorter?", "the short version",
    "sum it up", "briefly", "be brief", "in fewer words", "keep it short", "just one sentence", "shorten it", "simpler please",
    "short answer please", "that is too long", "can you make that shorter?", "the gist please",
)  # fmt: skip
OTHER_DEVICE = (
    "and on a GPU?", "and on the CPU?", "on a GPU too?", "is that so on a GPU?", "what about the GPU?", "and with a graphics card?",
    "does that hold on the CPU?", "also on a GPU?", "is it different on a GPU?", "and on my graphics card?", "on the CPU as well?",
    "is it the same on a GPU?", "GPU too?", "and for the CPU?", "does it matter if I use a GPU?", "and if I have no GPU?",
)  # fmt: skip
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
FUNCTIONS: dict[str, tuple[str, str, str, str]] = {
    "adds two numbers": ("add", "a, b", "return a + b", "add(2, 3) == 5"),
    "subtracts two numbers": ("subtract", "a, b", "return a - b", "subtract(5, 3) == 2"),
    "multiplies two numbers": ("multiply", "a, b", "return a * b", "multiply(2, 3) == 6"),
    "divides two numbers": ("divide", "a, b", "return a / b", "divide(6, 3) == 2"),
    "returns the larger of two numbers": ("larger", "a, b", "return a if a > b else b", "larger(2, 3) == 3"),
    "returns the smaller of two numbers": ("smaller", "a, b", "return a if a < b else b", "smaller(2, 3) == 2"),
    "says whether a number is even": ("is_even", "n", "return n % 2 == 0", "is_even(4) and not is_even(3)"),
    "says whether a number is odd": ("is_odd", "n", "return n % 2 == 1", "is_odd(3) and not is_odd(4)"),
    "says whether a number is prime": ("is_prime", "n",
                                       "if n < 2:\n        return False\n    for i in range(2, int(n**0.5) + 1):\n"
                                       "        if n % i == 0:\n            return False\n    return True",
                                       "[n for n in range(12) if is_prime(n)] == [2, 3, 5, 7, 11]"),
    "squares a number": ("square", "n", "return n * n", "square(3) == 9"),
    "doubles a number": ("double", "n", "return 2 * n", "double(3) == 6"),
    "reverses a string": ("reverse", "text", "return text[::-1]", "reverse('ab') == 'ba'"),
    "counts the words of a text": ("count_words", "text", "return len(text.split())", "count_words('a b') == 2"),
    "counts the letters of a text": ("count_letters", "text", "return len(text)", "count_letters('abc') == 3"),
    "makes a text upper case": ("upper", "text", "return text.upper()", "upper('ab') == 'AB'"),
    "says whether a word is a palindrome": ("is_palindrome", "word", "return word == word[::-1]",
                                            "is_palindrome('anna') and not is_palindrome('ab')"),
    "sums a list": ("total", "values", "return sum(values)", "total([1, 2]) == 3"),
    "sorts a list": ("sort", "values", "return sorted(values)", "sort([2, 1]) == [1, 2]"),
    "reverses a list": ("reverse_list", "values", "return values[::-1]", "reverse_list([1, 2]) == [2, 1]"),
    "returns the largest value of a list": ("largest", "values", "return max(values)", "largest([1, 3, 2]) == 3"),
    "returns the smallest value of a list": ("smallest", "values", "return min(values)", "smallest([2, 1]) == 1"),
    "removes duplicates from a list": ("unique", "values", "return list(dict.fromkeys(values))",
                                       "unique([1, 2, 1]) == [1, 2]"),
    "returns the mean of a list": ("mean", "values", "return sum(values) / len(values)", "mean([1, 3]) == 2"),
    "computes the factorial": ("factorial", "n",
                               "result = 1\n    for i in range(2, n + 1):\n        result *= i\n"
                               "    return result", "factorial(4) == 24"),
    "computes the Fibonacci numbers": ("fibonacci", "n",
                                       "a, b = 0, 1\n    for _ in range(n):\n        a, b = b, "
                                       "a + b\n    return a", "fibonacci(10) == 55"),
    "computes the greatest common divisor": ("gcd", "a, b", "while b:\n        a, b = b, a % b\n    return a",
                                             "gcd(12, 18) == 6"),
    "computes the mean accepted length": ("mean_accepted_length", "accepted, rounds",
                                          "return (accepted + rounds) / rounds", "mean_accepted_length(15, 1) == 16"),
    "reads a file": ("read_file", "path", "with open(path) as file:\n        return file.read()",
                     "read_file('text.txt') == 'hello'"),
    "writes a text to a file": ("write_file", "path, text", "with open(path, 'w') as file:\n        file.write(text)",
                                "write_file('text.txt', 'hello') is None"),
}  # fmt: skip
"""What it does: name, arguments, body, and what must be true of it."""
SCRIPTS: dict[str, str] = {
    "fizzbuzz": "for i in range(1, 101):\n    if i % 15 == 0:\n        print('FizzBuzz')\n    elif i % 3 == 0:\n"
                "        print('Fizz')\n    elif i % 5 == 0:\n        print('Buzz')\n    else:\n        print(i)",
    "a program that prints the even numbers up to 20": "for i in range(2, 21, 2):\n    print(i)",
    "a program that prints the squares up to 10": "for i in range(1, 11):\n    print(i * i)",
    "a class for a point": "class Point:\n    def __init__(self, x, y):\n        self.x = x\n        self.y = y",
    "a program that prints the alphabet": "import string\n\nprint(string.ascii_lowercase)",
    "a program that prints a random number": "import random\n\nprint(random.randint(1, 100))",
    "a program that prints the date": "import datetime\n\nprint(datetime.date.today())",
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
HELLO_ANSWER = "Hello! I am the built-in guide. Ask me about this app, or about DFlash."
SMALL_TALK: dict[str, tuple[str, ...]] = {
    HELLO_ANSWER: (
        "hi", "hello", "hey", "good morning", "hello there", "hi there", "good evening", "hey you", "good afternoon",
        "greetings", "hello guide", "good day", "moin", "hi!!", "yo", "hello, are you there", "anybody here", "test", "hiya"),
    "You are welcome!": ("thanks", "thank you", "thx", "thank you very much", "great, thanks", "ty", "thanks for the help",
                         "cool thanks", "many thanks", "thanks a lot", "perfect, thank you", "that helped, thanks"),
    "Goodbye! I will be here whenever you open the app.": (
        "bye", "goodbye", "see you", "good night", "bye bye", "see you later", "I have to go", "ciao", "cya", "that is all"),
    "I am a small program, so I am always fine. How can I help you?": (
        "how are you", "how are you doing", "how do you feel", "are you ok", "how is it going", "what's up", "how r u"),
    "Good. Ask me anything about this app.": ("ok", "okay", "good", "nice", "cool", "I see", "wow", "k", "alright", "sure",
                                              "great", "yes", "no", "hmm", "interesting", "aha", "got it", "understood", "fine"),
    "Why did the token cross the round? Because the target let it.": (
        "tell me a joke", "a joke please", "do you know a joke", "make me laugh", "say something funny", "joke"),
    "Thank you! I am small, but I do my best.": (
        "you are great", "well done", "good job", "you are nice", "I like you", "you are funny", "good bot", "very good answer"),
    "I am sorry. Ask me something about this app, and I will try again.": (
        "you are bad", "that did not help", "you are no help", "this is useless", "bad bot", "nonsense", "that makes no sense"),
}  # fmt: skip
FOREIGN_HELLO = {
    "de": ("Hallo", "Guten Tag", "Guten Morgen", "Servus", "Grüß Gott"),
    "es": ("Hola", "Buenos días", "Buenas tardes", "Qué tal"),
    "fr": ("Bonjour", "Salut", "Bonsoir", "Coucou"),
    "zh": ("你好", "您好", "早上好", "嗨"),
}
ONES = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
        "sixteen seventeen eighteen nineteen").split()  # fmt: skip
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()


@dataclass(frozen=True)
class Turn:
    """One exchange: what the user writes, the answer, and the thought before it."""

    user: str
    answer: str
    thought: str


Skill = Callable[[random.Random], list[Turn]]


def spelled(number: int) -> str:
    """In words, up to 100."""
    if number < 20:
        return ONES[number]
    if number == 100:
        return "a hundred"
    tens, ones = divmod(number, 10)
    return TENS[tens - 2] + (f"-{ONES[ones]}" if ones else "")


def guide_turn(rng: random.Random, topic: Topic) -> Turn:
    """A question about `topic` in a random phrasing."""
    thought = f"The user asks about {topic.label}. My guide has that, so I answer from it."
    return Turn(topic.draw(rng), topic.answer, thought)


def guide(rng: random.Random) -> list[Turn]:
    """One question about the app."""
    return [guide_turn(rng, rng.choice(topics()))]


def foreign(rng: random.Random) -> list[Turn]:
    """A question in another language, mostly about the app, answered in English."""
    kind = rng.random()
    if kind < 0.75:
        topic = rng.choice(foreign_topics())
        language, prompt = topic.draw_foreign(rng)
        answer, about = topic.answer, f"is about {topic.label}"
    elif kind < 0.93:
        language = rng.choice(LANGUAGES)
        prompt = vary_foreign(rng, language, world.foreign_question(rng, language))
        answer, about = UNKNOWN, "is not about the app"
    else:
        language = rng.choice(LANGUAGES)
        prompt = vary_foreign(rng, language, rng.choice(FOREIGN_HELLO[language]))
        answer, about = HELLO_ANSWER, "is a greeting"
    thought = f"This is {TONGUES[language]} and {about}. I answer in English."
    return [Turn(prompt, APOLOGY + answer, thought)]


def follow_up(rng: random.Random) -> list[Turn]:
    """A question about the app, then "why?", "shorter", "and on a GPU?" or "say that again"."""
    topic = rng.choice(topics())
    turns = [guide_turn(rng, topic)]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        turns.append(_next(rng, topic))
    if rng.random() < 0.1:
        ask = rng.choice((more, again, shorter))(rng) if rng.random() < 0.97 else other_device(rng)
        return [Turn(_marked(rng, ask), LOST,
                     "There is nothing before this, so I cannot know what is meant.")]  # fmt: skip
    return turns


BEGIN = ("", "", "", "can you ", "could you ", "please ", "would you ", "will you ", "I want you to ", "I'd like you to ", "you should ",
         "try to ", "is it possible to ", "are you able to ", "let me ask you to ", "I ask you to ", "kindly ", "just ", "now ", "and now ")  # fmt: skip
WANT = ("I want ", "I need ", "I would like ", "give me ", "show me ", "can I have ", "may I have ", "could I get ", "let me have ", "is there ", "do you have ",
        "have you got ", "I'd love ", "I am looking for ", "I wish for ", "", "", "", "please, ", "how about ", "what about ", "I ask for ", "I prefer ")  # fmt: skip


def more(rng: random.Random) -> str:
    """Asks for the reason, or for more."""
    return rng.choice((
        lambda: rng.choice(FOLLOW_UPS),
        lambda: rng.choice(BEGIN) + rng.choice(("tell me", "say", "explain", "add", "share", "go into", "describe", "write", "give"))
        + rng.choice((" more", " a bit more", " some more", " further details", " the details", " the background", " more details", " the reason",
                      " the reasons", " why", " what is behind it", " the rest", " a little extra", " more information"))
        + rng.choice(("", "", " about it", " about that", " on that", " on this", " for that", " behind this", " behind that", " of it")),
        lambda: rng.choice(WANT) + rng.choice(("more", "more details", "some details", "the details", "more of that", "the reason", "a reason", "an explanation",
                                               "more information", "the background", "further information", "a longer answer", "more on that", "anything else",
                                               "another word on it", "some background", "more to it", "more to know", "the whole story", "a deeper answer"))
        + rng.choice(("", "", " please", " about it", " about that", " for it", " for this", " on this", " of that", " then")),
        lambda: rng.choice(("what is", "what's", "what was", "tell me", "I wonder what is", "do you know", "explain", "and what is", "so what is")) + " the "
        + rng.choice(("reason", "cause", "background", "point", "idea", "motivation", "sense", "explanation", "logic", "purpose"))
        + rng.choice(("", " of that", " for this", " behind it", " behind this", " behind that", " of it", " there", " here", " for it")),
        lambda: rng.choice(("why is that", "why is it so", "why is it like that", "why like that", "why does it work that way", "why do you say so", "but why",
                            "ok but why", "how does that come", "how is that so", "why is this", "why would that be", "why so", "for what reason is that",
                            "why should it be so", "why not otherwise", "what makes it so", "how come that is so", "what else can you say",
                            "what else is there", "is there anything to add", "anything to add", "what more can you tell", "does it go deeper",
                            "please elaborate", "elaborate", "expand on that", "keep going", "carry on", "proceed", "next", "and further",
                            "and then", "I am still curious", "that is interesting, go on", "dig deeper", "say on")),
    ))()  # fmt: skip


def shorter(rng: random.Random) -> str:
    """Asks for the same in fewer words."""
    return rng.choice((
        lambda: rng.choice(SHORTER),
        lambda: rng.choice(BEGIN) + rng.choice(("say", "put", "tell me", "write", "express", "explain", "give me", "repeat", "state", "answer", "formulate"))
        + rng.choice((" that", " it", " this", " the same", " all that", " your answer", ""))
        + rng.choice((" shorter", " in short", " in brief", " briefly", " in one sentence", " in a sentence", " in one line", " in few words", " in less words",
                      " in a few words", " more briefly", " in a nutshell", " more simply", " with less text", " in ten words", " concisely", " quickly",
                      " in a single sentence", " as short as you can", " in one short sentence", " without so many words", " compactly")),
        lambda: rng.choice(BEGIN) + rng.choice(("shorten", "summarise", "summarize", "condense", "compress", "cut", "trim", "sum up", "abridge", "simplify", "cut down", "reduce"))
        + rng.choice((" it", " that", " this", " your answer", " the answer", " the text", " that answer", " what you said", " all this", "")),
        lambda: rng.choice(WANT) + rng.choice(("a ", "the ", "something ", "one ", "an even ", "a much "))
        + rng.choice(("shorter", "short", "brief", "briefer", "simple", "simpler", "quick", "compact", "condensed", "small", "concise"))
        + rng.choice((" answer", " version", " one", " form", " sentence", " summary", " reply", " explanation", " text", "")),
        lambda: rng.choice(("too much text", "that is too much text", "too many words", "so many words", "less text", "less words", "fewer words", "not so long", "that is long",
                            "your answer is too long", "too long for me", "I do not want to read all that", "the short form", "summary", "a summary please", "abstract",
                            "key point", "the main point", "just the main point", "what is the gist", "what is that in short", "in a nutshell", "one line", "one sentence only",
                            "nutshell", "the essence", "just the essence", "only the important part", "make it brief", "make it crisp", "make it short", "can it be shorter",
                            "can that be said shorter", "is there a short version", "not that long please", "half as long", "cut the crap", "get to the point", "to the point please")),
    ))()  # fmt: skip


def other_device(rng: random.Random) -> str:
    """Asks whether the same holds elsewhere."""
    device = rng.choice(("a GPU", "the GPU", "GPU", "my GPU", "a graphics card", "the graphics card", "my graphics card", "the CPU", "a CPU", "my CPU", "the processor",
                         "my processor", "another device", "NVIDIA", "an NVIDIA card", "a video card", "CUDA", "Vulkan", "my laptop", "a stronger machine", "AMD"))  # fmt: skip
    return rng.choice((
        lambda: rng.choice(OTHER_DEVICE),
        lambda: rng.choice(("and ", "also ", "what about ", "how about ", "and what about ", "same ", "even ", "and how is it ", "what is it like ", "so ", "what if I am "))
        + rng.choice(("on ", "with ", "for ", "using ")) + device + rng.choice(("", " too", " as well", " then")),
        lambda: rng.choice(("is that", "is it", "is this", "would it be", "will that be", "does that stay", "would that be", "is all that"))
        + rng.choice((" the same", " true", " so", " different", " other", " any different", " equal", " like that", " otherwise", " valid", " also so", " still true"))
        + rng.choice((" on ", " with ", " for ", " using ", " if I use ", " when I use ")) + device + rng.choice(("", " too", " as well", " also")),
        lambda: rng.choice(("does that", "does it", "does this", "will it", "would that", "do you think it does"))
        + rng.choice((" hold", " apply", " work", " work the same", " change", " count", " happen", " go for", " matter", " differ", " stay"))
        + rng.choice((" on ", " with ", " for ", " using ", " if I have ", " when I have ")) + device + rng.choice(("", " too", " as well", " also")),
    ))()  # fmt: skip


def again(rng: random.Random) -> str:
    """Asks for the same answer once more."""
    once = rng.choice(
        (
            "again",
            "once more",
            "one more time",
            "a second time",
            "another time",
            "again please",
            "once again",
            "twice",
        )
    )
    return rng.choice((
        lambda: rng.choice(AGAIN),
        lambda: rng.choice(BEGIN) + rng.choice(("say", "repeat", "tell me", "write", "state", "give", "show", "explain", "print"))
        + rng.choice((" it", " that", " this", " the answer", " your answer", " what you said", " your last answer", " the last one", " your words", " what you wrote", " that answer"))
        + rng.choice(("", f" {once}", f" {once}")),
        lambda: rng.choice(("I missed that", "I missed it", "I was not listening", "I did not hear it", "I could not follow", "I was away", "I lost it", "what did you write",
                            "what did you tell me", "what was your answer", "what was the answer", "what have you said", "how was that", "how was that again", "what was it again",
                            "say what", "what do you say", "I forgot what you said", "excuse me", "beg your pardon", "sorry", "you said what", "I did not catch that",
                            "I did not read it", "it went too fast", "repeat", "repetition please", "the same again", "the same once more", "and again", "replay your answer here")),
        lambda: f"{once}" + rng.choice(("", ", I forgot", ", I did not get it", " for me", ", sorry", ", I missed it", ", that was quick")),
    ))()  # fmt: skip


def _next(rng: random.Random, topic: Topic) -> Turn:
    ask, answer, thought = rng.choices(
        (
            (more, topic.more, f"The user wants to know more about {topic.label}."),
            (shorter, topic.short, f"One sentence about {topic.label} is enough."),
            (
                other_device,
                BOTH_DEVICES,
                f"The user asks about another device, still on {topic.label}.",
            ),
            (again, topic.answer, "I say my answer again."),
        ),
        (0.35, 0.25, 0.2, 0.2),
    )[0]
    return Turn(_marked(rng, ask(rng)), answer, thought)


def _marked(rng: random.Random, prompt: str) -> str:
    """With other marks, case, and a word before or behind."""
    prompt = prompt.strip(" ?")
    if rng.random() < 0.15:
        prompt = (
            rng.choice(("ok, ", "thanks, ", "please, ", "hm, ", "and ", "so ", "great. ", "now "))
            + prompt
        )
    if rng.random() < 0.1:
        prompt += rng.choice((" please", " for me", " now", " pls"))
    prompt = rng.choice((prompt, prompt[0].upper() + prompt[1:], prompt.lower()))
    return prompt + rng.choice(("", "?", "?", ".", "!"))


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
    """Numbers up, down or in steps, written as digits or words, or letters."""
    start, length = rng.randint(0, 40), rng.randint(3, 22)
    step = rng.choice((1, 1, 1, 1, 2, 2, 3, 5, 10))
    if rng.random() < 0.04:
        start, length, step = 1, rng.choice((30, 40, 50, 100)), 1
    kind = rng.random()
    if rng.random() < 0.4:
        start = 0 if kind >= 0.6 and rng.random() < 0.3 else 1
    stop = start + step * (length - 1)
    write = spelled if stop <= 100 and rng.random() < 0.35 else str
    by = "" if step == 1 else rng.choice((f" in steps of {step}", f" by {write(step)}s"))
    if kind < 0.6:
        ask = rng.choice(("count from {} to {}", "count {} to {}", "please count from {} to {}",
                          "can you count from {} up to {}", "numbers from {} to {}", "the numbers {} to {}",
                          "count up from {} to {}", "write the numbers {} to {}", "list the numbers from {} to {}",
                          "say the numbers from {} to {}", "all numbers between {} and {}"))  # fmt: skip
        ask, items = ask.format(write(start), write(stop)) + by, range(start, stop + 1, step)
        if start == 1 and step == 1 and rng.random() < 0.7:
            ask = rng.choice((
                "count to {}", "count up to {}", "can you count to {}", "count till {}", "please count up to {}",
                "count to {} please", "I want you to count to {}", "let us count to {}", "counting to {}",
                "could you count to {} for me", "count until {}", "how do you count to {}",
            )).format(write(stop))  # fmt: skip
        text = ", ".join(map(str, items))
        thought = f"I count up from {start} to {stop}, {step} at a time."
    elif kind < 0.82:
        ask = rng.choice(("count down from {} to {}", "count backwards from {} to {}", "count from {} down to {}",
                          "count back from {} to {}")).format(write(stop), write(start)) + by  # fmt: skip
        text = ", ".join(map(str, range(stop, start - 1, -step)))
        thought = f"I count down from {stop} to {start}, {step} at a time."
    else:
        letters = "abcdefghijklmnopqrstuvwxyz"
        low = rng.randint(0, 20)
        high = rng.randint(low + 2, 25)
        ask = rng.choice(
            ("say the letters from {} to {}", "the letters {} to {}", "letters from {} to {}")
        ).format(letters[low], letters[high])
        if rng.random() < 0.25:
            low, high = 0, 25
            ask = rng.choice(
                (
                    "say the alphabet",
                    "what is the alphabet",
                    "the abc",
                    "the alphabet",
                    "write the alphabet",
                )
            )
        text = ", ".join(letters[low : high + 1])
        thought = f"I say the letters from {letters[low]} to {letters[high]}."
    turns = [Turn(_plain(rng, ask, words=True), text, thought)]
    if kind < 0.6 and step == 1 and rng.random() < 0.12:
        more = stop + rng.randint(1, 8)
        ask = rng.choice(
            ("and to {}", "now to {}", "go on to {}", "up to {}", "and up to {}", "further, to {}")
        ).format(more)
        turns.append(Turn(_plain(rng, ask), ", ".join(map(str, range(start, more + 1))),
                          f"The same again, from {start} to {more}."))  # fmt: skip
    return turns


def arithmetic(rng: random.Random) -> list[Turn]:
    """Sums, differences, products and quotients up to 100, which of two is larger, and too large ones."""
    kind = rng.choice("+-*/<+-*+-!")
    if kind == "<":
        a, b = rng.sample(range(100), 2)
        ask = rng.choice(
            (
                "which is bigger, {} or {}",
                "what is larger, {} or {}",
                "is {} more than {}",
                "what is more, {} or {}",
            )
        )
        return [Turn(_plain(rng, ask.format(a, b)), f"{max(a, b)} is larger than {min(a, b)}.",
                     f"I compare {a} and {b}: {max(a, b)} is more.")]  # fmt: skip
    if kind == "!":
        a, b, sign = rng.randint(101, 9999), rng.randint(2, 9999), rng.choice("+-*/")
        return [Turn(_sum(rng, a, b, sign), TOO_LARGE, f"{a} is beyond what I can do.")]
    if kind == "+":
        a, value = sorted(rng.choices(range(101), k=2))  # each pair as often as any other
        b, thought = value - a, _tens(a, value - a)
    elif kind == "-":
        b, a = sorted(rng.choices(range(101), k=2))
        if rng.random() < 0.06:
            a, b = b, a
        value = a - b
        thought = f"{b} and {value} make {a}." if value >= 0 else f"{b} is {-value} more than {a}."
    elif kind == "*":
        a, b = rng.randint(0, 10), rng.randint(0, 10)
        if rng.random() < 0.15:
            a = rng.randint(11, 50)
            b = rng.randint(0, 100 // a)
        value, thought = a * b, f"{a} taken {b} times makes {a * b}."
    else:
        b, value = rng.randint(1, 10), rng.randint(0, 10)
        a, thought = b * value, f"{b} times {value} makes {b * value}."
    turns = [Turn(_sum(rng, a, b, kind), f"{a} {kind} {b} = {value}.", thought)]
    if rng.random() < 0.12 and 0 <= value <= 90:
        c = rng.randint(1, min(20, 100 - value))
        ask = rng.choice(
            ("plus {}", "and plus {}", "add {}", "now add {}", "and {} more", "+ {}")
        ).format(c)
        turns.append(Turn(_plain(rng, ask), f"{value} + {c} = {value + c}.", _tens(value, c)))
    return turns


def _tens(a: int, b: int) -> str:
    """How to add two numbers: the tens, then the ones."""
    if a < 10 and b < 10:
        return f"{a} and {b} make {a + b}."
    tens, ones = a // 10 * 10 + b // 10 * 10, a % 10 + b % 10
    return f"Tens: {a // 10 * 10} + {b // 10 * 10} = {tens}. Ones: {a % 10} + {b % 10} = {ones}. Together {a + b}."


def _sum(rng: random.Random, a: int, b: int, sign: str) -> str:
    word = {"+": "plus", "-": "minus", "*": "times", "/": "divided by"}[sign]
    written = {"*": rng.choice("*x×"), "/": rng.choice("/÷:")}.get(sign, sign)
    small = max(a, b) <= 100 and rng.random() < 0.2
    x, y = (spelled(a), spelled(b)) if small else (str(a), str(b))
    ask = rng.choice((
        f"what is {a} {written} {b}", f"{a} {written} {b}", f"{a}{written}{b}", f"what is {x} {word} {y}",
        f"calculate {a} {written} {b}", f"how much is {x} {word} {y}", f"{x} {word} {y}",
        f"compute {a} {written} {b}", f"what's {a}{written}{b}", f"{a} {written} {b} =", f"{a}{written}{b}=",
        f"can you tell me what {x} {word} {y} is", f"what does {a} {written} {b} make", f"how much does {x} {word} {y} make",
    ))  # fmt: skip
    return _plain(rng, ask, words=True)


def listing(rng: random.Random) -> list[Turn]:
    """Well-known lists, and the first few of a kind."""
    if rng.random() < 0.6:
        what = rng.choice(list(LISTS))
        ask = rng.choice((
            "list {}", "name {}", "what are {}", "write a list of {}", "tell me {}", "give me {}", "{} as a list",
            "which are {}", "{}", "can you list {}", "I need a list of {}", "show me {}", "write down {}", "a list of {}",
            "list all {}", "could you name {}", "say {}", "make a list of {}", "enumerate {}", "do you know {}",
        ))  # fmt: skip
        items = LISTS[what]
        what = what.removeprefix("the ") if "all" in ask or rng.random() < 0.15 else what
    else:
        kind, word = rng.choice(list(KINDS)), rng.choice(list(NUMBERS))
        what = f"{word} {kind}"
        ask = rng.choice(
            ("list {}", "name {}", "give me {}", "write down {}", "tell me {}", "{} please", "{}", "can you name {}",
             "a list of {}", "I need {}", "say {}")
        )  # fmt: skip
        items = KINDS[kind][: NUMBERS[word]]
    text = "\n".join(f"{i}. {item}" for i, item in enumerate(items, 1))
    thought = f"A list with {len(items)} entries, from {items[0]} to {items[-1]}."
    return [Turn(_plain(rng, ask.format(what), words=True), text, thought)]


def code(rng: random.Random) -> list[Turn]:
    """A small function, hello world, a loop, a short script, or a JSON object."""
    kind = rng.random()
    if kind < 0.45:
        what = rng.choice(list(FUNCTIONS))
        name, arguments, body, _ = FUNCTIONS[what]
        ask = rng.choice((
            "write a python function that {}", "a function that {}", "python function that {}",
            "can you write a function that {}", "give me python code that {}", "code that {}",
            "I need a function that {}", "show me a python function which {}", "write code that {}",
            "make a function which {}", "program a function that {}", "how do I write a function that {}",
            "write me some python that {}", "python code which {}", "a small function that {} please",
        )).format(what)  # fmt: skip
        language, text = "python", f"def {name}({arguments}):\n    {body}"
        thought = f"A Python function called {name} with {arguments}."
    elif kind < 0.57:
        what = rng.choice(list(HELLO))
        language, text = HELLO[what]
        ask = rng.choice(("hello world in {}", "write hello world in {}", "a {} hello world",
                          "show me hello world in {}", "{} hello world program", "hello world {}")).format(what)  # fmt: skip
        thought = f"Hello world in {what} is short."
    elif kind < 0.69:
        low, high = rng.randint(0, 9), rng.randint(10, 99)
        ask = rng.choice(("print the numbers from {} to {} in python", "a python loop from {} to {}",
                          "write a for loop from {} to {}", "python code that prints {} to {}",
                          "a loop that prints the numbers {} to {}")).format(low, high)  # fmt: skip
        language, text = "python", f"for i in range({low}, {high + 1}):\n    print(i)"
        thought = f"A loop from {low} to {high}: the end of a range is one more, {high + 1}."
    elif kind < 0.79:
        what = rng.choice(list(SCRIPTS))
        ask = rng.choice(
            (
                "write {}",
                "write {} in python",
                "{} in python",
                "show me {}",
                "give me {}",
                "python: {}",
            )
        ).format(what)
        language, text, thought = "python", SCRIPTS[what], "A short program in Python."
    else:
        name = world.pseudo(rng).capitalize() if rng.random() < 0.4 else rng.choice(NAMES)
        fields: dict[str, str | int] = {"name": name, "age": rng.randint(5, 90),
                                        "city": rng.choice(CITIES), "colour": rng.choice(COLOURS),
                                        "id": rng.randint(1, 999)}  # fmt: skip
        chosen = {key: fields[key] for key in rng.sample(list(fields), rng.randint(2, 4))}
        ask = rng.choice(("a JSON object with {}", "write JSON with {}", "make a json object with {}",
                          "give me {} as JSON", "json: {}", "put {} into JSON", "write {} as a JSON object"))  # fmt: skip
        ask = ask.format(" and ".join(f"{key} {value}" for key, value in chosen.items()))
        language, text = "json", json.dumps(chosen, indent=2)
        thought = f"A JSON object with the keys {', '.join(chosen)}."
    return [Turn(_plain(rng, ask), f"```{language}\n{text}\n```", thought)]


def free_text(rng: random.Random) -> list[Turn]:
    """A story, poem, scene or letter."""
    prompt, text, label = rng.choice(freetext.FORMS)(rng)
    return [Turn(_plain(rng, prompt, words=True), text, f"I write {label} and keep it short.")]


def small_talk(rng: random.Random) -> list[Turn]:
    """Greetings, thanks and the like."""
    answer = rng.choice(list(SMALL_TALK))
    return [
        Turn(
            _plain(rng, rng.choice(SMALL_TALK[answer]), words=True),
            answer,
            "Just a short friendly reply.",
        )
    ]


def unknown(rng: random.Random) -> list[Turn]:
    """Questions about the world, to which the honest answer is that I do not know."""
    thought = "This is not about the app. I say so and name the model that knows more."
    prompt = world.question(rng)
    if rng.random() < 0.2:  # as the guide's topics are asked for
        prompt = elsewhere(rng, world.thing(rng), world.deed(rng))
    return [Turn(vary(rng, prompt), UNKNOWN, thought)]


def nonsense(rng: random.Random) -> list[Turn]:
    """A letter, a mark, or keys by chance."""
    letters, marks = "abcdefghijklmnopqrstuvwxyz", "?!.,-;:#+*%$&/()=_~<>@^|"
    rows = (
        "qwertyuiop",
        "asdfghjkl",
        "zxcvbnm",
        "qwertzuiopü",
        "yxcvbnm",
        "asdfghjklöä",
        "azertyuiop",
        "1234567890",
    )
    row, at = rng.choice(rows), rng.randrange(6)
    run = row[at : at + rng.randint(2, 6)]
    bit = "".join(rng.choices(letters, k=rng.randint(1, 3)))
    text = rng.choice((
        rng.choice(letters),
        rng.choice(letters + "äöüßéñçø") + rng.choice(("", "?", ".", "!", " ")),
        rng.choice(letters) * rng.randint(2, 6),
        "".join(rng.choices(letters, k=rng.randint(3, 10))),
        " ".join("".join(rng.choices(letters, k=rng.randint(2, 6))) for _ in range(rng.randint(2, 4))),
        "".join(rng.choices("bcdfghjklmnpqrstvwxz", k=rng.randint(3, 8))),
        rng.choice(marks) * rng.randint(1, 4),
        "".join(rng.choices(marks, k=rng.randint(2, 6))),
        str(rng.randint(0, 99)) + rng.choice(("", "?", "!", " x")),
        f"{rng.randint(0, 9)} {' '.join(rng.choices(letters, k=rng.randint(1, 3)))}",
        "".join(rng.choices("asdfghjkl", k=rng.randint(3, 8))),
        run, run[::-1], run * 2, f"{run} {run}", f"{run} {rng.choice(rows)[:3]}", run + rng.choice(marks),
        bit * rng.randint(2, 4), f"{bit * 2} {bit}", " ".join([bit] * rng.randint(2, 4)),
        world.pseudo(rng), world.pseudo(rng), f"{world.pseudo(rng)} {world.pseudo(rng)}", f"{world.pseudo(rng)}{rng.choice('?!.')}",
        rng.choice(("foo", "foo bar", "bla bla", "blah", "lalala", "xyz", "äöü", "abc", "bar baz", "hahaha", "brrr", "grr", "pfff")),
    ))  # fmt: skip
    text = rng.choice((text, text, text.upper(), f"{text}?"))
    return [Turn(text, NONSENSE, "That is no question that I can understand.")]


def echo(rng: random.Random) -> list[Turn]:
    """Repeating a text exactly: words, digits, code, emoji, other scripts, and whole passages."""
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
        passage(rng), passage(rng), passage(rng), passage(rng),
    ))  # fmt: skip
    ask = rng.choice((
        "repeat after me", "say", "repeat", "echo", "please repeat", "say this", "repeat exactly", "copy this", "write",
        "repeat this text", "write this again", "say exactly this", "copy this text", "can you repeat this",
        "repeat the following", "write the following text again", "give me this text back", "please copy",
    ))  # fmt: skip
    ask = rng.choice((ask, ask.capitalize())) + rng.choice((": ", ": ", ": ", ":\n", ":\n\n"))
    return [Turn(ask + text, text, "I repeat the text exactly.")]


def passage(rng: random.Random) -> str:
    """One to five sentences, or a piece of code."""
    kind = rng.random()
    if kind < 0.45:
        return rng.choice(freetext.FORMS)(rng)[1]
    if kind < 0.6:
        return rng.choice(topics()).answer
    if kind < 0.75:
        name, arguments, body, _ = FUNCTIONS[rng.choice(list(FUNCTIONS))]
        return f"def {name}({arguments}):\n    {body}"
    people, things = rng.sample(NAMES, 2), rng.sample(WORDS, 4)
    lines = (
        f"{people[0]} and {people[1]} met in {rng.choice(CITIES)}.", f"{people[0]} had a {things[0]} and a {things[1]}.",
        f"{people[1]} bought {rng.randint(2, 99)} {rng.choice(COLOURS)} {things[2]}s.", f"The {things[3]} cost {rng.randint(2, 99)} euros.",
        f"They walked home with the {things[0]}.", f"On {rng.choice(LISTS['the days of the week'])} {people[0]} came again.",
        f"{people[1]} lost the {things[1]} on the way.", f"The meeting is at {rng.randint(1, 12)}:{rng.randint(10, 59)}.",
    )  # fmt: skip
    return " ".join(rng.sample(lines, rng.randint(2, 5)))


def rewrite(rng: random.Random) -> list[Turn]:
    """The same text with one word replaced wherever it stands."""
    text = passage(rng)
    words = sorted(set(re.findall(r"\b[A-Za-z]{3,}\b", text)))
    old = (
        rng.choice([w for w in words if w.istitle()] or words)
        if rng.random() < 0.4
        else rng.choice(words)
    )
    if old in NAMES + list(freetext.SLOTS["name"]):
        new = rng.choice([name for name in NAMES if name != old])
    elif old.istitle():
        new = rng.choice([word for word in WORDS if word != old]).capitalize()
    else:
        new = rng.choice([word for word in WORDS + COLOURS if word != old])
    ask = rng.choice((
        "replace {0} with {1}", "replace {0} by {1}", "change {0} to {1}", "rewrite this with {1} instead of {0}",
        "write {1} instead of {0}", "use {1} in place of {0}", "swap {0} for {1}", "put {1} where {0} stands",
        "the same with {1} instead of {0}", "rename {0} to {1}", "correct {0} to {1}", "say {1} and not {0}",
        "please change the word {0} to {1}", "repeat this with {1} instead of {0}", "rewrite, {0} becomes {1}",
    )).format(old, new)  # fmt: skip
    ask += rng.choice(("", " in this text", " here", " in this", " in the following text"))
    ask = rng.choice((ask, ask[0].upper() + ask[1:])) + rng.choice((": ", ": ", ":\n", ":\n\n"))
    changed = re.sub(rf"\b{old}\b", new, text)
    return [Turn(ask + text, changed, f"The same text, with {new} in place of {old}.")]


def _plain(rng: random.Random, prompt: str, words: bool = False) -> str:
    """Light variation that leaves numbers and names alone; of mere words, also case and a slip."""
    prompt = (
        rng.choice(
            ("", "", "", "", "please ", "hi, ", "now ", "ok, ", "could you please ", "hello, ")
        )
        + prompt
    )
    if words and rng.random() < 0.12:
        prompt = slip(rng, prompt)
    case = rng.random()
    if case < 0.45:
        prompt = prompt[0].upper() + prompt[1:]
    elif words and case < 0.55:
        prompt = prompt.upper() if case < 0.5 else prompt.lower()
    return prompt + rng.choice(("", "", "", "", "?", ".", "!", " please", ", please", ", thanks"))
