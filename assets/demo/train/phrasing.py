"""How people ask: from the nouns, verbs and questions of a topic to many prompts."""

from __future__ import annotations

import random
import re
import tomllib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

GUIDE = Path(__file__).with_name("guide.toml")
QUESTIONS = Path(__file__).with_name("questions.toml")
LANGUAGES = ("de", "es", "fr", "zh")

NOUN_FORMS = (
    "what is {}", "what's {}", "whats {}", "what are {}", "explain {}", "tell me about {}",
    "what does {} mean", "can you explain {}", "define {}", "{}", "what do you mean by {}",
    "help me understand {}", "I do not understand {}", "describe {}", "what about {}",
    "I want to know more about {}", "what is the meaning of {}", "what do you know about {}",
    "could you tell me what {} is", "what exactly is {}", "{}, what is that",
    "explain {} in simple words", "give me a short explanation of {}", "is there {}",
    "I keep reading about {}", "what is meant by {}", "I have a question about {}",
    "{} what does it do", "{}, what is it for", "what is the use of {}", "why is there {}",
    "where do I find {}", "where is {}", "how does {} work", "what is {} good for", "{}, how does that work",
    "info on {}", "{} explained", "what can I do with {}", "show me {}", "how do I use {}",
    "I see {} here, what does that mean", "what happens with {}", "when do I need {}",
    "do you know {}", "{}, please explain", "say something about {}", "{} meaning",
    "the purpose of {}", "for what is {}", "I'd like to learn about {}", "details on {}", "does {} matter", "what's {} do",
    "{} - what's that about", "how should I read {}", "who needs {}", "is {} important", "why {}", "teach me {}",
    "what does one do with {}", "what is behind {}", "how do I recognise {}", "give me details about {}", "what do I need {} for",
    "please describe {}", "I came across {}", "somebody mentioned {}", "what is so special about {}", "is {} a good thing",
    "in what way does {} help me", "could you say what {} does", "the word is {}, and what does it mean", "what comes with {}",
)  # fmt: skip
VERB_FORMS = (
    "how do I {}",
    "how can I {}",
    "how to {}",
    "can I {}",
    "I want to {}",
    "where can I {}",
    "is it possible to {}",
    "show me how to {}",
    "help me {}",
    "what is the way to {}",
    "I would like to {}",
    "what do I have to do to {}",
    "how does one {}",
    "is there a way to {}",
    "I need to {}",
    "tell me how to {}",
    "can you tell me how I {}",
    "what must I press to {}",
    "{}",
    "{}, how",
    "where do I {}",
    "which key do I press to {}",
    "how would I {}",
    "can you {}",
    "could I {}",
    "am I able to {}",
    "what do I click to {}",
    "which button is there to {}",
    "is there a key to {}",
    "may I {}",
    "I can not {}",
    "how do you {}",
    "to {}, what do I do",
    "I have to {}",
    "let me {}",
    "does the app let me {}",
    "where would I {}",
    "I don't know how to {}",
    "I am trying to {}",
    "what if I want to {}",
    "best way to {}",
    "steps to {}",
    "{}, where",
    "please {}",
    "I'd like to {}",
    "I want you to {}",
    "could you {}",
    "{} for me",
    "is it allowed to {}",
    "what is needed to {}",
    "I was told I can {}",
    "I never managed to {}",
    "in which menu do I {}",
    "with which command do I {}",
    "would it be possible to {}",
    "do I have a way to {}",
    "I wish to {}",
    "I cannot find out how to {}",
    "what is the key to {}",
    "what do you do to {}",
    "I should {}",
    "my plan is to {}",
    "it would be nice to {}",
    "somebody asked me to {}",
    "which setting lets me {}",
    "teach me to {}",
    "I forgot how to {}",
    "is there anything to {}",
    "{}, is that possible",
    "{}, does that work",
    "which way do I {}",
    "what would I do to {}",
)
GERUND_FORMS = (
    "{}", "{}, how", "{}: how does that work", "is {} possible", "how does {} work", "what about {}", "help with {}", "I have trouble with {}",
    "{}, where is that", "{} please", "tell me about {}", "what is the way of {}", "{} does not work for me", "I am interested in {}",
    "how is {} done", "I need help with {}", "any hint on {}", "instructions for {}",
)  # fmt: skip
QUESTION_FORMS = (
    "{}", "{}", "{}", "{}", "can you tell me {}", "do you know {}", "I want to know {}", "{}, do you know",
    "could you explain {}", "explain to me {}", "my question is {}", "I would like to know {}",
    "can somebody tell me {}", "help me: {}", "I ask myself {}", "a friend asked me {}", "tell us {}",
    "I just saw this, {}", "maybe you know {}", "{}, can you explain", "would you tell me {}",
)  # fmt: skip
TOLD_FORMS = ("{}",) * 40
"""What somebody said in words of their own needs no frame; as many as give it about half of all draws."""
FOREIGN_NOUNS: Mapping[str, tuple[str, ...]] = {
    "de": ("Was ist {}?", "Was bedeutet {}?", "Erkläre {}", "Was heißt {}?", "Erklär mir {} bitte", "{} erklären",
           "Kannst du {} erklären?", "Was macht {}?", "Wie geht {}?", "Wo ist {}?"),
    "es": ("¿Qué es {}?", "¿Qué significa {}?", "Explica {}", "Explícame qué es {}", "¿Para qué sirve {}?",
           "¿Puedes explicar {}?", "¿Qué hace {}?", "¿Cómo funciona {}?", "¿Dónde está {}?"),
    "fr": ("Qu'est-ce que {} ?", "Que veut dire {} ?", "Explique {}", "Explique-moi ce qu'est {}", "C'est quoi {} ?",
           "Peux-tu expliquer {} ?", "Que fait {} ?", "Comment marche {} ?", "Où est {} ?"),
    "zh": ("{}是什么？", "什么是{}？", "解释{}", "{}是什么意思？", "请告诉我什么是{}", "{}怎么用？", "{}有什么用？"),
}  # fmt: skip
FOREIGN_OPENINGS: Mapping[str, tuple[str, ...]] = {
    "de": ("Hallo, ", "Bitte: ", "Entschuldigung, ", "Kurze Frage: ", "Sag mir: ", "Hi, ", "Eine Frage: ",
           "Guten Tag, ", "Ich möchte wissen: ", "Kannst du mir sagen: ", "Weißt du: "),
    "es": ("Hola, ", "Por favor: ", "Perdona, ", "Una pregunta: ", "Dime: ", "Buenos días, ",
           "Quiero saber: ", "¿Puedes decirme: ", "Oye, "),
    "fr": ("Bonjour, ", "S'il te plaît : ", "Pardon, ", "Une question : ", "Dis-moi : ", "Salut, ",
           "Je veux savoir : ", "Peux-tu me dire : "),
    "zh": ("你好，", "请问，", "请告诉我，", "我想知道，", "一个问题：", "麻烦问一下，"),
}  # fmt: skip
FOREIGN_STARTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "de": (
        r"(Wie|Wo|Was|Kann ich|Kannst du|Welche\w*|Warum|Gibt es|Wer|Wann|Ist|Sind|Brauche ich)\b"
        r"( (bekomme|mache|finde|kann|ist|sind|ich|du|das|die|der|mein\w*|passiert|bedeutet|bist))* ?",
        ("Wie ", "Wo ", "Kann ich ", "Ich will ", "Zeig mir ", "Erklär mir ", "Wo ist ", "Was ist ", "Wie geht ", ""),
    ),
    "es": (
        r"¿?(Cómo|Dónde|Qué|Cuál|Puedo|Por qué|Hay|Quién|Para qué|Es|Son)\b"
        r"( (puedo|está|están|es|son|hay|el|la|los|las|mis?|un|una|se|hace|sirve))* ?",
        ("¿Cómo ", "¿Dónde ", "¿Puedo ", "Quiero ", "Muestra ", "Explica ", "¿Dónde está ", "¿Qué es ", ""),
    ),
    "fr": (
        r"(Comment|Où|Que|Quel\w*|Puis-je|Peux-tu|Pourquoi|Y a-t-il|Qui|Est-ce que|À quoi)\b"
        r"( (puis-je|est|sont|le|la|les|l|mes?|mon|un|une|se|fait|sert))* ?",
        ("Comment ", "Où ", "Puis-je ", "Je veux ", "Montre ", "Explique ", "Où est ", "C'est quoi ", ""),
    ),
    "zh": (
        r"(怎么|什么是|在哪里|可以|为什么|有哪些|有|哪里)?",
        ("怎么", "请解释", "可以", "我想", "在哪里", "告诉我", "怎样", "如何", ""),
    ),
}  # fmt: skip
SYNONYMS: dict[str, tuple[str, ...]] = {
    "how": ("in which way", "in what way"), "why": ("how come", "for what reason", "why exactly"),
    "explain": ("describe", "clarify", "talk about"), "show": ("display", "present", "see"),
    "change": ("adjust", "modify", "alter", "set"), "start": ("launch", "begin", "open"),
    "find": ("locate", "see", "get at", "look up"), "choose": ("pick", "select", "take"),
    "answer": ("reply", "response"), "answers": ("replies", "responses", "results"),
    "chat": ("conversation", "talk", "chat"), "chats": ("conversations", "talks", "messages"),
    "app": ("program", "application", "tool", "software"), "big": ("large", "huge"),
    "computer": ("machine", "PC", "laptop"), "machine": ("computer", "PC", "laptop"),
    "delete": ("erase", "remove", "drop", "get rid of"), "stop": ("halt", "end", "interrupt", "cancel"),
    "picture": ("image", "photo"), "pictures": ("images", "photos"), "old": ("earlier", "past", "previous"),
    "fast": ("quick", "speedy"), "slow": ("sluggish", "slower"), "slower": ("less fast", "more slow"),
    "switch": ("change", "move"), "another": ("a different", "some other"), "use": ("work with", "apply"),
    "same": ("equal", "identical"), "run": ("execute", "work", "start"), "mean": ("stand for", "say", "tell me"),
    "where": ("in which place", "whereabouts"), "need": ("require", "want"), "kept": ("stored", "saved"),
    "model": ("model", "language model", "AI"), "do": ("do", "actually do"), "twice": ("two times", "again"),
    "can": ("could", "may", "might"), "what": ("what", "what exactly"), "text": ("text", "writing", "output", "words"),
    "crashes": ("crashed", "has crashed", "dies", "closes by itself"), "is": ("is", "was"),
    "which": ("what", "which"), "stored": ("saved", "kept", "put"), "different": ("other", "unlike"),
    "open": ("start", "bring up", "get to", "see"), "turn": ("switch", "turn"), "larger": ("bigger", "larger"),
    "larger.": ("bigger",), "make": ("get", "have", "make"), "get": ("obtain", "fetch", "download", "have"),
    "question": ("message", "prompt", "question"), "message": ("question", "prompt"), "file": ("document", "file"),
    "save": ("keep", "store", "write"), "read": ("look at", "read"), "size": ("length", "size"), "key": ("shortcut", "key"),
    "keys": ("shortcuts", "hotkeys"), "button": ("switch", "icon", "button"), "settings": ("options", "preferences", "settings"),
    "folder": ("directory", "place"), "disk": ("drive", "hard disk"), "memory": ("RAM", "memory"), "see": ("view", "find", "look at"),
    "graphics": ("video", "graphics"), "internet": ("network", "web", "connection"), "free": ("gratis", "free"),
    "letters": ("characters", "font"), "word": ("term", "word"), "search": ("look", "search"), "write": ("type", "enter", "write"),
    "limit": ("cap", "maximum", "limit"), "long": ("large", "long"), "press": ("click", "hit", "push"), "click": ("press", "hit"),
    "repeat": ("say again", "repeat"), "thinking": ("thoughts", "reasoning", "thinking"), "list": ("overview", "list"),
    "window": ("app", "window"), "terminal": ("console", "shell", "command line"), "tokens": ("words", "tokens"),
    "checked": ("tested", "verified"), "drafter": ("draft model", "drafter"), "guess": ("draft", "guess"),
}  # fmt: skip
FILLERS = (
    "really", "just", "actually", "now", "maybe", "exactly", "even", "simply", "again", "still", "please",
    "quickly", "somehow", "ever", "then", "perhaps", "here", "currently",
)  # fmt: skip
OPENINGS = (
    "hi, ", "hello, ", "hey, ", "hello! ", "please tell me, ", "quick question: ", "so, ", "ok, ",
    "one question: ", "sorry, ", "tell me, ", "just wondering, ", "another thing: ", "and ",
    "I wonder, ", "good morning, ", "question: ", "okay so ", "now ", "well, ", "but ", "please, ",
    "I am new to this. ", "I'm curious: ", "um, ", "wait, ", "look, ", "thanks. ", "great. ", "yes, but ",
    "could you help? ", "I need help: ", "sir, ", "guide, ", "Slipstream: ", "oh, ", "also, ", "btw ", "pls ",
)  # fmt: skip
ENDINGS = (" please", ", please", " in this app", " here", " exactly", " then", ", thanks", " pls", " thx",
           " actually", " in Slipstream", " again", " by the way", ", I wonder", " or not", ", can you help",
           ". I do not get it", " for me", " now", ", thank you", " right now", " in short")  # fmt: skip
WHO = ("I", "we", "my sister", "a colleague", "my teacher", "somebody", "a user", "my son", "my wife", "one of us",
       "people", "the team", "my neighbour", "everyone", "my mother", "my father", "my brother", "my uncle", "my aunt", "my cousin", "the client",
       "a customer", "my manager", "a student", "my class", "someone", "one colleague", "our group", "the kids", "my grandma", "my husband",
       "a guy here", "the others", "a visitor", "my partner", "some people", "my roommate", "the professor")  # fmt: skip
ASKS = ("was wondering", "wanted to know", "asked me", "needs to know", "would like to understand", "has no idea",
        "never got that", "could not find out", "has been asking", "must know", "was told to ask", "is confused",
        "wonders", "asks", "keeps asking", "would love to know", "is curious", "cannot understand", "is asking", "wants to hear",
        "did not know", "argued about it", "does not believe it", "had a question", "said I should ask you", "has a question")  # fmt: skip
CALLS = ("hello", "hi", "hey", "good day", "good evening", "greetings", "attention", "ahem", "ok", "okay", "so", "well", "now then",
         "tell me", "pardon me", "sorry", "please", "look", "say",  "oh", "ah", "um", "fine",
         "thanks so far", "good", "great", "wow", "help", "one second", "wait", "quick one", "next one", "honestly", "seriously",
         "esteemed", "yo", "cheers", "thank you", "many thanks", "bye for now", "as I said", "by the way", "frankly")  # fmt: skip
NAMED = ("guide", "friend", "bot", "robot", "computer", "Slipstream", "assistant", "my friend", "everyone", "sir", "madam", "buddy",
         "little helper", "machine", "you there", "again", "once more", "team", "people", "mate", "helper", "AI")  # fmt: skip
ADJECTIVES = ("stupid", "simple", "short", "quick", "hard", "odd", "strange", "new", "last", "first", "basic", "serious",
              "another", "one more", "small", "big", "technical", "naive", "burning", "open", "honest", "general", "just a")  # fmt: skip
DID = ("I read the manual", "I was drinking coffee", "I looked at the screen", "I sat in the train", "I talked to a friend", "we had a meeting",
       "I installed it today", "I clicked around", "I tried for an hour", "I slept badly", "I saw a video", "I came home", "my phone rang",
       "I am writing a report", "I opened it", "I watched it for a while", "it is late here", "I am in a hurry", "we argued", "I am at work")  # fmt: skip
THEN = ("now I wonder", "this came up", "I want to be sure", "I got curious", "I have to ask", "nobody knew", "I still do not get it",
        "I forgot", "there was this question", "it made me think", "I need an answer", "my head hurts", "I gave up", "I am puzzled",
        "I thought of you", "so I ask you", "we could not agree", "I must tell them")  # fmt: skip
ASIDE_VERBS = ("I need", "I want", "give me", "I hope for", "I would love", "I expect", "thanks for", "I am thankful for", "looking for",
               "I only want", "I am after", "just", "I would be glad about", "no need for", "be quick with")  # fmt: skip
ASIDE_OBJECTS = ("a clear answer", "an honest answer", "an easy explanation", "some help", "a hint", "your help", "your opinion", "a short reply",
                 "details", "the truth", "a good explanation", "a few words", "your advice", "simple words", "the facts", "a tip")  # fmt: skip
FEELINGS = ("sorry to bother you", "thanks for helping", "that would be nice to know", "I am lost", "it is urgent", "no hurry",
            "nobody could tell me", "you are my last hope", "I am a beginner", "I searched a lot", "this is my question",
            "I am not good with computers", "I forgot it", "please help me out", "it is not clear to me", "I have no clue",
            "good to have you", "nice app", "just asking", "if you know", "as far as you know", "this is important to me",
            "I hope you can help", "I appreciate it", "last question for today", "one more thing", "first question")  # fmt: skip
SHORT_FORMS: dict[str, str] = {
    "you": "u", "are": "r", "please": "plz", "what": "wat", "your": "ur", "how": "hw", "because": "cuz",
    "and": "n", "with": "w/", "without": "w/o", "is not": "isnt", "do not": "dont", "I am": "im",
    "cannot": "cant", "I do": "i do", "does not": "doesnt", "thanks": "thx", "about": "abt", "people": "ppl",
}  # fmt: skip
HASTY: dict[str, tuple[str, ...]] = {
    "what": ("waht", "wat", "wht", "whst", "whta"), "is": ("si", "iz"), "how": ("hwo", "hoe", "ho"), "the": ("th", "hte", "da", "tha"),
    "where": ("were", "wher", "whre", "whare"), "which": ("wich", "whitch", "witch"), "why": ("wy", "whi", "whyy"),
    "can": ("cna", "kan", "cn"), "does": ("dose", "dos", "doess"), "do": ("od", "doo"), "my": ("ym", "me"), "with": ("wiht", "wth", "whit"),
    "and": ("adn", "nad", "an"), "you": ("yuo", "yu", "yo"), "your": ("yuor", "you", "youre"), "this": ("thsi", "tis", "dis"),
    "that": ("taht", "tht", "dat"), "there": ("ther", "their", "thre"), "have": ("ahve", "hav", "hve"), "about": ("abuot", "abut", "aboot"),
    "when": ("wehn", "wen"), "who": ("hwo", "woh"), "a": ("an", "ah"), "to": ("ot", "too", "2"), "for": ("fro", "4", "fr"),
    "are": ("aer", "ar"), "it": ("ti", "itt"), "model": ("modle", "modell", "mdoel"), "chat": ("caht", "chta", "chatt"),
    "answer": ("anwser", "awnser", "anser"), "token": ("tokne", "toekn"), "tokens": ("tokesn", "toknes"), "key": ("kye", "kee"),
    "delete": ("delet", "dleete"), "settings": ("setings", "settigns", "settinsg"), "download": ("donwload", "downlod", "dowload"),
    "window": ("widnow", "windwo"), "language": ("langauge", "languge"), "memory": ("memroy", "memmory"), "because": ("becuase", "cause"),
    "temperature": ("temprature", "temperture"), "length": ("lenght", "lengh"), "speed": ("sped", "speeed"), "decoding": ("decodign", "decodeing"),
    "file": ("fiel", "flie"), "folder": ("foler", "fodler"), "search": ("serach", "seach"), "computer": ("compter", "computr", "comuter"),
}  # fmt: skip
"""Common words as they are typed in haste, or by ear."""
MARKS = ("?", "?", "?", "?", "", "", "", " ?", "??", ".", "!", "...", "???", "?!")
SMALL_WORDS = frozenset("a an the is are do does of to i you it in for me my this that".split())
TELEGRAM = SMALL_WORDS | frozenset(
    "how what why where when which who can could may would should will please be with on at from "
    "there your tell explain know want need have has did was".split()
)


@dataclass(frozen=True)
class Topic:
    """One thing the guide knows; the fields are described at the head of guide.toml.

    `told` are whole questions in everyday words, those of questions.toml.
    """

    name: str
    label: str
    answer: str
    more: str
    nouns: tuple[str, ...] = ()
    do: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    de: tuple[str, ...] = ()
    es: tuple[str, ...] = ()
    fr: tuple[str, ...] = ()
    zh: tuple[str, ...] = ()
    settings: Any = field(default=(), hash=False)
    missing: tuple[str, ...] = ()

    @property
    def short(self) -> str:
        """The first sentence of the answer."""
        return re.split(r"(?<=[.!?]) ", self.answer, maxsplit=1)[0]

    def draw(self, rng: random.Random) -> str:
        """A random prompt, each group of phrasings weighted by the square root of its size."""
        groups = (
            (NOUN_FORMS, self.nouns), (VERB_FORMS, self.do),
            (GERUND_FORMS, self.do), (QUESTION_FORMS, self.ask), (TOLD_FORMS, self.told),
        )  # fmt: skip
        ((forms, what),) = rng.choices(groups, [(len(f) * len(w)) ** 0.5 for f, w in groups])
        said = rng.choice(what)
        return vary(rng, rng.choice(forms).format(gerund(said) if forms is GERUND_FORMS else said))

    def draw_foreign(self, rng: random.Random) -> tuple[str, str]:
        """(language, prompt): one of its questions in another language, or a form with a name."""
        language = rng.choice(LANGUAGES)
        own: tuple[str, ...] = getattr(self, language)
        names = [noun for noun in self.nouns if not noun.islower() and " the " not in f" {noun} "]
        if names and (not own or rng.random() < 0.15):
            prompt = rng.choice(FOREIGN_NOUNS[language]).format(rng.choice(names))
        else:
            prompt = rng.choice(own)
            pattern, starts = FOREIGN_STARTS[language]
            if (begin := re.match(pattern, prompt)) and rng.random() < 0.35:
                prompt = rng.choice(starts) + prompt[begin.end() :]
        return language, vary_foreign(rng, language, prompt)


@cache
def topics() -> tuple[Topic, ...]:
    """The guide, in file order."""
    tables, more = tomllib.loads(GUIDE.read_text(encoding="utf-8")), written()
    for name, table in tables.items():
        table["told"] = more["en"].get(name, [])
        for language in LANGUAGES:
            table[language] = table.get(language, []) + more[language].get(name, [])
    return tuple(
        Topic(name, **{key: tuple(v) if isinstance(v, list) else v for key, v in table.items()})
        for name, table in tables.items()
    )


@cache
def written() -> dict[str, dict[str, list[str]]]:
    """questions.toml: by language and topic, and by language what is not known."""
    return tomllib.loads(QUESTIONS.read_text(encoding="utf-8"))


@cache
def foreign_topics() -> tuple[Topic, ...]:
    """Those with questions in other languages."""
    return tuple(topic for topic in topics() if all(getattr(topic, one) for one in LANGUAGES))


def elsewhere(rng: random.Random, thing: str, deed: str) -> str:
    """A question as a topic's, about something else: what is asked for decides, not the form."""
    forms = rng.choice((NOUN_FORMS, VERB_FORMS, GERUND_FORMS))
    said = {NOUN_FORMS: thing, VERB_FORMS: deed, GERUND_FORMS: gerund(deed)}[forms]
    return rng.choice(forms).format(said)


def gerund(phrase: str) -> str:
    """A phrase that begins with a verb, as a noun: "get a model" is "getting a model"."""
    verb, _, rest = phrase.partition(" ")
    if re.search(r"[^aeiou]e$", verb) or verb.endswith("gue"):
        verb = verb[:-1]
    elif re.fullmatch(r"[^aeiou]*[aeiou][bdgmnprt]", verb) or verb == "begin":
        verb += verb[-1]
    return f"{verb}ing {rest}".strip()


def normal(prompt: str) -> str:
    """Lower case, letters and digits only: two prompts with equal normal form count as the same."""
    return " ".join(re.findall(r"[^\W_]+", prompt.lower()))


def vary(rng: random.Random, prompt: str) -> str:
    """The same question as another person would type it: wrapping, case, marks, slips."""
    if rng.random() < 0.4:
        prompt = _synonym(rng, prompt)
    if rng.random() < 0.08:
        prompt = _telegram(prompt)
    if rng.random() < 0.16:
        prompt = _drop_word(rng, prompt)
    if rng.random() < 0.1:
        prompt = _insert_filler(rng, prompt)
    if rng.random() < 0.06:
        prompt = _shorten(prompt)
    if rng.random() < 0.05:
        prompt = _swap_words(rng, prompt)
    if rng.random() < 0.22:
        prompt = rng.choice(OPENINGS) + prompt
    if rng.random() < 0.12:
        prompt += rng.choice(ENDINGS)
    beside = rng.random() < 0.25
    if not beside:
        prompt = _case(rng, prompt) + rng.choice(MARKS)
    else:
        prompt = _case(rng, _beside(rng, prompt))
    if rng.random() < 0.35:
        for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
            prompt = slip(rng, prompt)
    return prompt


def vary_foreign(rng: random.Random, language: str, prompt: str) -> str:
    """The same in another language: an opening, no accents, no marks, a slip."""
    if rng.random() < 0.35:
        prompt = rng.choice(FOREIGN_OPENINGS[language]) + prompt
    if language != "zh":
        if rng.random() < 0.2:
            split = unicodedata.normalize("NFD", prompt)
            prompt = "".join(c for c in split if not unicodedata.combining(c))
        while rng.random() < 0.25:
            prompt = slip(rng, prompt)
        if rng.random() < 0.1:
            prompt = _drop_word(rng, prompt)
        prompt = _case(rng, prompt)
    if rng.random() < 0.4:
        prompt = prompt.strip(" ?？¿.")
    return prompt


def _beside(rng: random.Random, prompt: str) -> str:
    """With one or two sentences beside it that say nothing of what is asked."""
    if rng.random() < 0.6:
        prompt = prompt[:1].upper() + prompt[1:]
    prompt += rng.choice(("?", "?", "?", "?", "??", "", ".", "!", "...", " ?"))
    for _ in range(rng.choice((1, 1, 1, 2))):
        if rng.random() < 0.6:
            prompt = (
                aside(rng)
                + rng.choice((": ", ": ", ". ", ". ", ", ", "! ", " - ", "... ", "; ", " "))
                + prompt
            )
        else:
            end = " " if prompt[-1] in "?.!" else rng.choice((", ", ". ", " - ", "; "))
            prompt += end + aside(rng) + rng.choice(("", ".", "!", "...", "?"))
    return prompt


def aside(rng: random.Random) -> str:
    """A remark, of the parts of one that people write beside a question."""
    kind = rng.random()
    if kind < 0.2:
        said = rng.choice(FEELINGS)
    elif kind < 0.45:
        said = f"{rng.choice(WHO)} {rng.choice(ASKS)}" + rng.choice(
            ("", "", " this", " me", " yesterday", " again", " today")
        )
    elif kind < 0.6:
        said = (
            f"{rng.choice(CALLS)} {rng.choice(NAMED)}" if rng.random() < 0.6 else rng.choice(CALLS)
        )
    elif kind < 0.75:
        said = f"{rng.choice(ADJECTIVES)} question" + rng.choice(
            ("", "", " maybe", " I know", " for you", ", sorry", " from me")
        )
    elif kind < 0.9:
        said = f"{rng.choice(DID)} and {rng.choice(THEN)}"
    else:
        said = f"{rng.choice(ASIDE_VERBS)} {rng.choice(ASIDE_OBJECTS)}"
    return said[:1].upper() + said[1:] if rng.random() < 0.6 else said


def _case(rng: random.Random, prompt: str) -> str:
    case = rng.random()
    if case < 0.45:
        return prompt[:1].upper() + prompt[1:]
    if case < 0.80:
        return prompt.lower()
    return prompt.upper() if case < 0.87 else prompt


def _telegram(prompt: str) -> str:
    """The words that carry the meaning; the whole where too few are left."""
    words = [word for word in prompt.split(" ") if word.lower() not in TELEGRAM]
    return " ".join(words) if len(words) >= 2 else prompt


def _drop_word(rng: random.Random, prompt: str) -> str:
    """Without one word, mostly a small one."""
    words = prompt.split(" ")
    small = [i for i, word in enumerate(words) if word.lower() in SMALL_WORDS]
    if len(words) > 3:
        del words[rng.choice(small) if small and rng.random() < 0.7 else rng.randrange(len(words))]
    return " ".join(words)


def _synonym(rng: random.Random, prompt: str) -> str:
    """With each word that has synonyms replaced half of the time."""
    words = prompt.split(" ")
    swapped = [
        rng.choice(SYNONYMS[word]) if word in SYNONYMS and rng.random() < 0.5 else word
        for word in words
    ]
    return " ".join(swapped)


def _insert_filler(rng: random.Random, prompt: str) -> str:
    words = prompt.split(" ")
    words.insert(rng.randint(1, len(words)), rng.choice(FILLERS))
    return " ".join(words)


def _shorten(prompt: str) -> str:
    """As on a telephone: "what r u"."""
    for whole, short in SHORT_FORMS.items():
        prompt = re.sub(rf"\b{whole}\b", short, prompt)
    return prompt


def _swap_words(rng: random.Random, prompt: str) -> str:
    """Two neighbours change places."""
    words = prompt.split(" ")
    if len(words) > 3:
        at = rng.randrange(len(words) - 1)
        words[at], words[at + 1] = words[at + 1], words[at]
    return " ".join(words)


def slip(rng: random.Random, prompt: str) -> str:
    """One slip of the finger: in a word of three letters or more, or at a space."""
    kind = rng.random()
    spaces = [at for at, char in enumerate(prompt) if char == " "]
    if spaces and kind < 0.14:  # two words in one, or its end at the next one
        at = rng.choice(spaces)
        behind = prompt[at + 1 :]
        return prompt[:at] + (behind if kind < 0.1 else behind[:1] + " " + behind[1:])
    if kind < 0.2 and (found := [word for word in HASTY if re.search(rf"(?i)\b{word}\b", prompt)]):
        word = rng.choice(found)
        return re.sub(rf"(?i)\b{word}\b", rng.choice(HASTY[word]), prompt, count=1)
    words = list(re.finditer(r"[^\W\d_]{3,}", prompt))
    if not words:
        return prompt
    word = rng.choices(words, [word.end() - word.start() for word in words])[0]
    at = rng.randrange(word.start() + (rng.random() < 0.85), word.end())
    left, char, right = prompt[:at], prompt[at], prompt[at + 1 :]
    near = rng.choice(NEAR_KEYS.get(char.lower(), "abcdefghijklmnopqrstuvwxyz"))
    slips = (
        left + right,
        left + char * 2 + right,
        left + right[:1] + char + right[1:],
        left + near + right,
        left + near + right,
        left + char + near + right,
        left + rng.choice("abcdefghijklmnopqrstuvwxyz") + right,
    )
    return rng.choice(slips)


def _near_keys() -> dict[str, str]:
    """Which keys lie beside a letter, on keyboards of several countries."""
    near: dict[str, set[str]] = {}
    for board in (
        "qwertyuiop asdfghjkl zxcvbnm",
        "qwertzuiop asdfghjkl yxcvbnm",
        "azertyuiop qsdfghjklm wxcvbn",
    ):
        rows = board.split()
        for y, row in enumerate(rows):
            for x, key in enumerate(row):
                beside = [row[i] for i in (x - 1, x + 1) if 0 <= i < len(row)]
                other = [rows[j][i] for j in (y - 1, y + 1) if 0 <= j < 3
                         for i in (x + (y - j + 1) // 2 - 1, x + (y - j + 1) // 2) if 0 <= i < len(rows[j])]  # fmt: skip
                near.setdefault(key, set()).update(beside, beside, other)
    return {key: "".join(sorted(keys)) for key, keys in near.items()}


NEAR_KEYS = _near_keys()
