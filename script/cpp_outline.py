"""cpp_outline.py - the functions and classes of a C++ file, found by matching braces, without a compiler.

What a class counts: its methods are the member functions that its body declares, constructors, destructor and
operators among them, but none that is defaulted or deleted and no friend; its fields are its data members that are
not static. What is nested in it counts by itself. It relies on clang-format's spaces: `<` opens template arguments
where no space stands before it.
"""

import re
from collections import namedtuple

Function = namedtuple("Function", "name line length")  # line: of its first line, from 1
Class = namedtuple("Class", "name line methods fields private")  # private: whether a field is not public

SCOPE = re.compile(r"\b(namespace|struct|class|enum|union|extern)\b")
ALIGNAS = re.compile(r"\balignas\([^()]*\)")
NO_CODE = re.compile(r'''
    R"(\w*)\(.*?\)\1" | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)+'   # literals
    | //[^\n]* | /\*.*?\*/                                             # comments
    | ^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*                                # directives
    ''', re.DOTALL | re.MULTILINE | re.VERBOSE)
TOKEN = re.compile(r"operator\s*(?:\(\s*\)|\[\s*\]|[-+*/%^&|~!=<>,]+)|[\w~]+|::|->|<<|[^\s\w]")
CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}
SPECIFIERS = {"explicit", "virtual", "inline", "static", "constexpr", "consteval", "friend", "mutable", "volatile"}
NO_MEMBER = {"using", "typedef", "friend", "static_assert"}
ACCESS = {"public", "protected", "private"}


def blank(match):
    """Spaces for what is no code; the lines of a raw string, which is data, are marked so as not to count."""
    return re.sub(r"[^\n]", " ", match.group()).replace("\n", "\v" if match.group().startswith("R") else "\n")


def code_of(lines):
    """The text with literals, comments and directives blanked."""
    return NO_CODE.sub(blank, "\n".join(lines))


def line_of(text, place):
    return text.count("\n", 0, place) + text.count("\v", 0, place) + 1


def functions(lines):
    """Each function: blocks with a parameter list that lie in no other function."""
    text = code_of(lines)
    scopes, begin = [], 0  # open blocks; where the current declaration begins
    for match in re.finditer(r"[{};]", text):
        place, paragraphs = match.start(), re.split(r"\n\s*\n", text[begin:match.start()])
        head = paragraphs[-1]  # a macro without semicolon may stand above
        if match.group() == "{":
            inside = bool(scopes) and scopes[-1][0] != "scope"
            if not inside and SCOPE.search(head) and "(" not in ALIGNAS.sub("", head):
                scopes.append(("scope", 0, ""))
            elif not inside and "(" in head and not head.rstrip().endswith("=") and text[place - 1] in " \n":
                scopes.append(("function", place - len(head.lstrip()), function_name(head)))
            else:
                scopes.append(("inner", 0, ""))
                continue  # a braced value is part of the declaration around it
        elif match.group() == "}" and scopes:
            kind, start, name = scopes.pop()
            if kind == "function":
                yield Function(name, line_of(text, start), text.count("\n", start, place) + 1)
            elif kind == "inner":
                continue
        begin = place + 1


def function_name(head):
    """`Class::method` of the head of a definition."""
    found = re.search(r"((?:\w+(?:<[^()]*>)?::)*(?:operator\s*(?:\(\)|[^\s\w(]+)|~?\w+))\s*\(", ALIGNAS.sub("", head))
    return re.sub(r"<.*?>::", "::", found.group(1)) if found else "?"


class Reader:
    """The tokens of a text, and the ways over them that the grammar of a class needs."""

    def __init__(self, text):
        self.text = text
        found = list(TOKEN.finditer(text))
        self.tokens = [match.group() for match in found]
        self.places = [match.start() for match in found]

    def opens(self, index):
        token = self.tokens[index]
        if token == "<":
            return index > 0 and (self.tokens[index - 1] == "template" or self.text[self.places[index] - 1] not in " \n")
        return token in CLOSING

    def after(self, index):
        """Behind the group that opens at index, or the next token where none does."""
        if not self.opens(index):
            return index + 1
        end, index = CLOSING[self.tokens[index]], index + 1
        while index < len(self.tokens) and self.tokens[index] != end:
            if end == ">" and self.tokens[index] in (";", "}"):
                return index  # no template arguments after all
            index = self.after(index)
        return index + 1

    def until(self, index, stops):
        """The first of the stops from index that lies in no group."""
        while index < len(self.tokens) and self.tokens[index] not in stops:
            index = self.after(index)
        return index

    def lead(self, index):
        """Behind attributes, template headers, alignment and specifiers."""
        while index < len(self.tokens):
            if self.tokens[index] in ("[", "<") or self.tokens[index] in SPECIFIERS:
                index = self.after(index)
            elif self.tokens[index] in ("template", "alignas", "requires"):
                index = self.after(index + 1)
            else:
                break
        return index

    def class_head(self, index):
        """(name, the body's brace) where the class, struct or union at index is defined there."""
        name, index = "", self.lead(index + 1)
        while index < len(self.tokens) and (re.match(r"\w", self.tokens[index]) or self.tokens[index] in ("::", "<")):
            if self.tokens[index] != "final":  # of several words a macro is not the last
                joins = self.tokens[index] == "::" or name.endswith("::")
                name = name if self.tokens[index] == "<" else (name if joins else "") + self.tokens[index]
            index = self.after(index)
        if index < len(self.tokens) and self.tokens[index] == ":":
            index = self.until(index, {"{", ";"})
        return (name, index) if index < len(self.tokens) and self.tokens[index] == "{" else None


class Body:
    """What one class's body declares."""

    def __init__(self, reader, name, brace, public):
        self.reader, self.tokens, self.name = reader, reader.tokens, name.split("::")[-1]
        self.methods = self.fields = 0
        self.private, self.public = False, public
        end, index = reader.after(brace) - 1, brace + 1
        while index < end:
            index = self.declaration(index)

    def declaration(self, first):
        """Counts what begins at first; where the next declaration begins."""
        tokens, reader = self.tokens, self.reader
        if tokens[first] in ACCESS and tokens[first + 1] == ":":
            self.public = tokens[first] == "public"
            return first + 2
        index = reader.lead(first)
        if NO_MEMBER & set(tokens[first:index + 1]):
            index = reader.until(index, {";", "{"})
            return index + 1 if tokens[index] == ";" else reader.after(index)
        static = {"static", "constexpr"} & set(tokens[first:index])
        if tokens[index] in ("class", "struct", "union", "enum"):
            head = reader.class_head(index)
            end = reader.until(index, {"{", ";", "(", "="})
            if head or (tokens[index] == "enum" and tokens[end] == "{"):
                return self.declarators(reader.after(head[1] if head else end), static, tokens[index + 1] != "{")
            words = [word for word in tokens[reader.lead(index + 1):end] if word not in ("class", "struct")]
            if tokens[end] == ";" and (len(words) == 1 or ":" in words):
                return end + 1  # declared, and defined elsewhere
        return self.member(index, static)

    def member(self, index, static):
        """A function, a field or a macro that begins at index."""
        tokens, reader, first = self.tokens, self.reader, index
        while tokens[index] not in {";", "=", "{", ":", ",", "(", "["}:
            index = self.reader.after(index + (tokens[index] in ("alignas", "decltype")))
        if tokens[index] != "(":
            return self.field(index, static) if index > first else index + 1
        pointer = tokens[index + 1] in ("*", "&") or tokens[index + 2:index + 4] == ["::", "*"]
        if pointer and tokens[reader.after(index)] in ("(", "["):
            return self.field(reader.after(index), static)
        if index == first + 1 and tokens[first] not in (self.name, "~" + self.name) and "operator" not in tokens[first]:
            return reader.after(index)  # a macro
        return self.function(reader.after(index))

    def function(self, index):
        """A method whose parameters end before index."""
        tokens, reader = self.tokens, self.reader
        index = reader.until(index, {";", "{", "=", ":"})
        if tokens[index] == ":":  # a constructor's initialisers: the body's brace follows none of their names
            index = reader.until(index, {"{"})
            while re.match(r"\w|>", tokens[index - 1]):
                index = reader.until(reader.after(index), {"{"})
        if tokens[index] != "=" or tokens[index + 1] not in ("default", "delete"):
            self.methods += 1
        if tokens[index] == "=":
            index = reader.until(index, {";"})
        return index + 1 if tokens[index] == ";" else reader.after(index)

    def field(self, index, static):
        """One data member for each declarator; index lies in the first."""
        tokens, reader, count = self.tokens, self.reader, 1
        while tokens[index] != ";":
            count += tokens[index] == ","
            index = reader.after(index)
        self.count(0 if static else count)
        return index + 1

    def declarators(self, index, static, named):
        """What follows the body of a nested type: nothing, or fields of it. One without a name is a field."""
        if self.tokens[index] == ";":
            self.count(0 if named else 1)
            return index + 1
        return self.field(index, static)

    def count(self, fields):
        self.fields += fields
        self.private |= fields > 0 and not self.public


def classes(lines):
    """Each class, struct and union with a body; one that is nested has its parents in its name."""
    text = code_of(lines)
    reader = Reader(text)
    outer = []  # (name, end) of what is open
    for index, token in enumerate(reader.tokens):
        while outer and index >= outer[-1][1]:
            outer.pop()
        if token not in ("class", "struct", "union") or reader.tokens[index - 1] == "enum":
            continue
        head = reader.class_head(index)
        if not head:
            continue
        name, brace = head
        outer.append(("::".join([known for known, _ in outer[-1:]] + [name or "?"]), reader.after(brace)))
        body = Body(reader, name, brace, token != "class")
        yield Class(outer[-1][0], line_of(text, reader.places[index]), body.methods, body.fields, body.private)
