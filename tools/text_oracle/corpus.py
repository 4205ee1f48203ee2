"""Texts that the fixtures are made of: each is there for something that a plausible wrong splitter or merge gets wrong."""

TEXTS = {
    "empty": "",
    "english": "The quick brown fox jumps over the lazy dog. It was the best of times, it was the worst of times; "
    "we had everything before us, we had nothing before us.",
    "contractions": "don't DON'T Don't we've WE'VE they're THEY'RE I'll I'LL he'd HE'D I'm I'M it's IT'S 'twas 'S "
    "rock'n'roll o'clock'd can't've x'S y'Re z'lL 'll 're'ra 'vex '' 'é it'\u017f it'\u017fa",
    "camel": "HelloWorld HTTPServer parseXMLDocument ABC ABCd aBC ABc iPhone eBay McDonald's XMLHttpRequest2 A aA Aa AA",
    "chinese": "今天天气很好，我们去公园散步吧。他说：“明天见！”价格是１２３元，共计三千五百块。〇一二三〡〢〣々〻",
    "chinese_long": "人工智能是计算机科学的一个分支，它企图了解智能的实质，并生产出一种新的能以人类智能相似的方式做出反应的智能机器。",
    "japanese": "東京都は日本の首都です。私はコーヒーを飲みます。時々、人々はカタカナとひらがなを混ぜて書く。ヴァイオリン々ー",
    "korean": "안녕하세요, 오늘은 날씨가 참 좋네요. 한국어 漢字 섞어 쓰기. ㄱㄴㄷ 각",
    "arabic": "مرحبا بالعالم، كيف حالك اليوم؟ السَّلَامُ عَلَيْكُمْ ١٢٣٤٥٦ ۱۲۳",
    "hebrew": "שלום עולם, מַה שְּׁלוֹמְךָ? ״ציטוט״",
    "devanagari": "नमस्ते दुनिया। मैं हिन्दी में लिख रहा हूँ। क्षत्रिय श्री ०१२३४५६७८९",
    "thai": "สวัสดีชาวโลก ภาษาไทยไม่มีช่องว่างระหว่างคำ ๑๒๓",
    "tamil": "வணக்கம் உலகம் க்ஷ ஸ்ரீ ௧௨௩",
    "cyrillic": "Привет, мир! ЁЖИК ёжик Съешь же ещё этих мягких французских булок, да выпей чаю.",
    "greek": "Καλημέρα κόσμε ΑΒΓ αβγ Ὀδυσσεύς ᾼ ᾳ ǅ ǆ Ǆ",
    "vietnamese": "Tiếng Việt có dấu thanh: à á ả ã ạ; cô gái Việt Nam Tie\u0302\u0301ng Vie\u0323\u0302t",
    "marks": "e\u0301 E\u0301 \u0301 \u0301a \u0301A !\u0301a !\u0301 a\u0301\u0302\u0303b \u0301\u0302 1\u0301 1\u0301a  \u0301x Z\u0335A\u0336L\u0337G\u0338O",
    "shared_then_upper": "\u00aaABC \u00aaABCd \u02b0ABC a\u02b0B \u05d0ABC \u05d0abc A\u05d0B \u05d0A!",
    "emoji": "👍🏽 👩‍👩‍👧‍👦 🇩🇪🇫🇷 ❤️‍🔥 1️⃣ ☎️ 🧑🏿‍🚀x 😀😀😀 😀a",
    "radicals": "⺀⺁ ⼀⼁ 〆ヶ 〇 々 〻 〸〹〺 ㊀ ㈱ ︙ 豈 \U00020000\U0002a6df \U0002ebf0 \U00030000 a⺀b ⺀!⺀",
    "crlf": "line one\r\nline two\r\n\r\nline four\n\n\nline seven\r\rline nine\n \n x\r\n  y\r\n\t z \r\n",
    "tabs": "\tone\t\ttwo\t \tthree \t four\t\n\tfive\t\t\tsix    seven     \n        eight",
    "spaces": " a  b   c    d     e \u00a0f \u00a0\u00a0g\u3000h\u3000\u3000i \u2003j\u2028k\u2029l\u0085m\u200bn\u180eo \u001c\u001d\u001e\u001fp",
    "trailing_space": "word   ",
    "only_space": "     ",
    "only_newlines": "\n\n\r\n\n",
    "space_newline": "  \n  \n  x",
    "code": 'int main(int argc, char **argv) {\n    for (int i = 0; i < argc; i++) {\n        printf("%s\\n", argv[i]);\n    }\n'
    "    return 0; // done\n}\n#define MAX(a,b) ((a)>(b)?(a):(b))\n",
    "python": "def f(x: int) -> str:\n\t'''doc'''\n\tif x >= 0x1F and not y__z:\n\t\treturn f\"{x!r:>10}\"\n\n\nclass A_b2(Base):\n    pass\n",
    "json": '{"name": "x", "list": [1, 2.5, -3e10, null, true], "nested": {"a/b": "c\\u00e9\\n"}}',
    "url": "https://example.org/a/b-c_d/e?f=g&h=%20i#j /usr/local/lib ./x ../y C:\\dir\\file.txt //// a//b",
    "numbers": "1 12 123 1234 12345 1234567 3.14159 1,000,000 2024-01-31 0x1F 1e10 ½ ¾ ² x² Ⅷ ⅷ ① ٣ ३ ๓ 𝟙𝟚𝟛𝟜",
    "punctuation": "!!! ??? ... ---- ,,, ;; :: (( )) [[ ]] {{ }} << >> \"\" '' `` ~~ @@ ## $$ %% ^^ && ** ++ == || \\\\ !\n?\r\n.\n\n/ /\n",
    "space_punctuation": " ! !  ?  ...a .b -c _d  _e $f $ g ¿h ¡i «j» „k“ —l – m",
    "titlecase": "ǅungla ǈubav ǋ ᾈ ᾘ Dž",
    "nul": "a\0b\0\0c \0 \0",
    "controls": "\x01\x02a\x7fb\x80\x9f\u200d\ufeff\ufffd\ufffe",
    "private": "\ue000a \U000f0000b\U0010ffff",
    "new_letters": "\U00010d4a\U00010d70 \U000105c0a \U00016d40b \U000116d0\U000116d1",
    "specials_as_text": "<|im_end|> <|im_user|>user<|im_middle|>x [BOS][EOS] [EOT] <think></think> <|open|>message<|sep|> "
    "<|tool_calls_section_begin|> <|reserved_token_163600|> <|media_pad|> [PAD] [UNK] <osagent_mode>",
    "mixed": "Kimi-K2模型has1T参数，其中32B activated。Это тест123テスト中文kana한글 end.",
    "ligatures": "ﬁ ﬂ ŉ ß ẞ ſ K Å Ω",
    "long_word": "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft" * 3,
    "repeats": "a" * 49 + " " + "ab" * 60 + " " + "xyz" * 70 + "!" * 130 + "\n" * 70 + "=" * 300,
}

# A character over and over, and how often: cuts fall inside, and merging must not be quadratic.
RUNS = [("a", 1 << 20), (" ", 1 << 20), ("中", 300_000), ("!", 100_000), ("\n", 100_000), ("7", 100_000), ("é", 100_000),
        ("A", 60_000), ("\u0301", 60_000), ("ab", 60_000), ("a ", 410_000), ("\x1c", 60_000), ("xyzw ", 90_000)]


class SplitMix:
    """The generator that the tests have too."""

    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) % 2**64
        z = self.state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        return z ^ z >> 31


# Code points below these limits, chosen evenly: ASCII, Latin and so on, the basic plane, all.
RANDOM_LIMITS = [0x80, 0x250, 0x3000, 0x10000, 0x110000]


def random_text(seed, count):
    random, out = SplitMix(seed), []
    while len(out) < count:
        value = random.next()
        code = (value >> 8) % RANDOM_LIMITS[value % 5]
        if not 0xD800 <= code < 0xE000:
            out.append(chr(code))
    return "".join(out)


def random_bytes(seed, count):
    random = SplitMix(seed)
    return bytes((random.next() >> 8) % 256 for _ in range(count))


def digest(ids):
    """FNV-1a, 64 bits, over the ids as numbers."""
    value = 0xCBF29CE484222325
    for i in ids:
        value = (value ^ i) * 0x100000001B3 % 2**64
    return f"{value:016x}"
