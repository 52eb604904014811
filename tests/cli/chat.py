"""The chat of `ridge run`, through a terminal: lines, pasted texts, Ctrl-C, Ctrl-D."""
import os
import pty
import re
import select
import signal
import subprocess
import time

import gguf_files
from harness import A, T, check, main, write

TEMPLATE = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}[answer]"


class Chat:
    """A chat on a terminal of its own; what the model gets to read is on stderr (--show-prompt)."""

    def __init__(self, model, *words, terminal="xterm"):
        self.error, error = os.pipe()
        pid, self.terminal = pty.fork()
        if pid == 0:
            os.dup2(error, 2)
            os.environ.update(TERM=terminal, LC_ALL="C.UTF-8", HOME=T)
            os.execv(A.ridge, [A.ridge, "run", model, "--temp", "0", "--show-prompt", "--context", "256", *(words or ["-n", "1"])])
        os.close(error)
        self.pid, self.said, self.screen = pid, "", ""

    def read(self, done, seconds=60):
        """Reads both ends until done() or the end of the program."""
        ends = [self.error, self.terminal]
        limit = time.monotonic() + seconds
        while ends and not done() and time.monotonic() < limit:
            for end in select.select(ends, [], [], 0.2)[0]:
                try:
                    data = os.read(end, 65536)
                except OSError:       # the terminal of a program that has ended
                    data = b""
                if not data:
                    ends.remove(end)
                elif end == self.error:
                    self.said += data.decode(errors="replace")
                else:
                    self.screen += data.decode(errors="replace")
        return done()

    def prompts(self):
        return self.screen.count("> ")

    def send(self, data, turns):
        """Types this when the prompt is there, then waits until the model has read `turns` prompts in all."""
        self.read(lambda: self.prompts() > 0)
        os.write(self.terminal, data)
        check(self.read(lambda: self.said.count("the model reads") >= turns), f"{data!r}: {turns} prompts expected: {self.said!r} {self.screen!r}")

    def leave(self, pause=0.1):
        time.sleep(pause)
        os.write(self.terminal, b"\x04")
        return self.end()

    def end(self):
        """What the model got to read, message by message, once the program has ended of itself."""
        self.read(lambda: False, seconds=30)
        ended, limit = False, time.monotonic() + 10
        while not ended and time.monotonic() < limit:
            time.sleep(0.01)
            ended = os.waitpid(self.pid, os.WNOHANG)[0] != 0
        if not ended:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.terminal)
        os.close(self.error)
        check(ended, f"the chat does not end: {self.said!r} {self.screen[-200:]!r}")
        return [part.split("[answer]")[0].rsplit("[user]", 1)[-1] for part in self.said.split("the model reads")[1:]]


def test_chat():
    g = gguf_files.tiny()
    g.keys["tokenizer.chat_template"] = TEMPLATE
    model = write(os.path.join(T, "chat.gguf"), g.bytes())

    # Lines, one after the other.
    chat = Chat(model)
    chat.send(b"one\r", 1)
    chat.send("zwei \u00e4\u20ac\r".encode(), 2)
    check(chat.leave() == ["one", "zwei \u00e4\u20ac"], f"two lines: {chat.said!r}")
    check("\x1b[?2004h" in chat.screen and "\x1b[?2004l" in chat.screen, "bracketed paste is not asked for")

    # Pasted with marks: one message, sent by Enter, whatever it holds.
    chat = Chat(model)
    chat.send(b"see: \x1b[200~first\rsecond\r\x04\x1b[31m\tthird\r\x1b[201~ end\r", 1)
    messages = chat.leave()
    check(messages == ["see: first\nsecond\n[31m\\x09third end"], f"bracketed paste: {messages}")

    # Without marks: what waits after the end of a line belongs to it; the newline at the end sends it.
    for terminal in ("xterm", "dumb"):
        chat = Chat(model, terminal=terminal)
        chat.send(b"first line\nsecond line\n\nlast line\n", 1)
        chat.send(b"alone\r", 2)
        messages = chat.leave()
        check(messages == ["first line\nsecond line\n\nlast line", "alone"], f"paste on {terminal}: {messages}")
    check("\x1b[?2004h" not in chat.screen, "bracketed paste is asked for on a dumb terminal")

    # A paste that does not end with a newline can be edited before it is sent.
    chat = Chat(model)
    chat.send(b"a\nb", 0)
    chat.read(lambda: "b" in chat.screen, seconds=5)
    time.sleep(0.1)
    chat.send(b"c\x7fd\r", 1)
    check(chat.leave() == ["a\nbd"], f"edited: {chat.said!r}")

    # A line and Ctrl-D at once: the line is answered, then the chat ends.
    chat = Chat(model)
    chat.send(b"last\n\x04", 1)
    check(chat.end() == ["last"], f"a line and Ctrl-D: {chat.said!r}")

    # Ctrl-D during an answer ends the chat after it, wherever in the answer it comes.
    for pause in (0, 0.002, 0.01):
        chat = Chat(model, "-n", "60", "--ignore-eos")
        chat.send(b"go on\r", 1)
        check(chat.leave(pause) == ["go on"], f"Ctrl-D during an answer: {chat.said!r}")

    # Ctrl-C at the prompt empties the line.
    chat = Chat(model)
    chat.read(lambda: chat.prompts() > 0)
    time.sleep(0.1)
    os.write(chat.terminal, b"never\x03")
    chat.read(lambda: chat.prompts() > 1, seconds=20)
    chat.send(b"sent\r", 1)
    check(chat.leave() == ["sent"], f"Ctrl-C: {chat.said!r} {chat.screen!r}")

    # Under a budget a message has a limit, and what is longer is refused in one line.
    need = subprocess.run([A.ridge, "info", model], capture_output=True, text=True).stdout
    # A sanitizer needs hundreds of MiB for itself, more or less: a sixth more.
    least = f"{int(re.search(r'^ +256 +([0-9]+)M', need, re.M).group(1)) * 7 // 6}M"
    chat = Chat(model, "-n", "1", "--memory", least)
    chat.read(lambda: chat.prompts() > 0)
    time.sleep(0.3)
    # In pieces that a terminal holds, however its reader is scheduled.
    for piece in [b"\x1b[200~", *[b"x" * 1000] * 200, b"\x1b[201~\r"]:
        os.write(chat.terminal, piece)
        chat.read(lambda: True)
    chat.read(lambda: "longer than" in chat.said, seconds=30)
    chat.send(b"short\r", 1)
    messages = chat.leave()
    check(messages == ["short"] and "-f FILE" in chat.said, f"a long paste: {messages} {chat.said!r}")

    # With a map, /task names a task and is no message; without one it is a message.
    g = gguf_files.tiny(experts=8)
    g.keys["tokenizer.chat_template"] = TEMPLATE
    experts, made = write(os.path.join(T, "experts.gguf"), g.bytes()), os.path.join(T, "map.json")
    words = [word for name in ("prose", "code") for word in ("--task", name + "=" + write(os.path.join(T, name), (name + " text; ").encode() * 20))]
    r = subprocess.run([A.ridge, "importance", experts, *words, "--window", "32", "-o", made], capture_output=True, text=True)
    check(r.returncode == 0, r.stderr)
    chat = Chat(experts, "-n", "1", "--map", made, "--task", "predict")
    chat.read(lambda: chat.prompts() > 0)
    for line, said in ((b"/task code\r", "the cache is for code"), (b"/task  poems \r", "prose, code"), (b"/task\r", "prose, code")):
        before = chat.said.count(said)
        os.write(chat.terminal, line)
        check(chat.read(lambda: chat.said.count(said) > before, seconds=20), f"{line}: {chat.said!r}")
    chat.send(b"hello\r", 1)
    check(chat.leave() == ["hello"], f"/task: {chat.said!r}")
    chat = Chat(experts)
    chat.send(b"/task code\r", 1)
    check(chat.leave() == ["/task code"], f"/task without a map: {chat.said!r}")


main(test_chat)
