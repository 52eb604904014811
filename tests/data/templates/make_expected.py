#!/usr/bin/env python3
"""Renews expected.json: what Jinja2, set up as the transformers library sets it up, makes of the cases in it.

    pip install jinja2        # 3.1.6 made the file in the repository
    python3 make_expected.py

The file holds the cases as well as the results. To add one: put a template beside it, or a row ["{{ source }}", null] into
"expressions", or a source that must be refused into "refused"; then run this.
"""

import datetime
import json
import pathlib
import sys

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.sandbox import ImmutableSandboxedEnvironment

HERE = pathlib.Path(__file__).resolve().parent
NOW = datetime.datetime(2025, 3, 9, 14, 5, 7)


class Generation(Extension):
    """{% generation %}: a scope of its own, whose text is printed."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.CallBlock(self.call_method("_text"), [], [], body).set_lineno(line)

    def _text(self, caller):
        return caller()


def refuse(message):
    raise jinja2.exceptions.TemplateError(message)


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                        extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = to_json
    env.globals["raise_exception"] = refuse
    env.globals["strftime_now"] = NOW.strftime
    return env


def render(env, source, **variables):
    """The text, or None where Jinja2 refuses."""
    try:
        return env.from_string(source).render(**variables)
    except Exception:  # whatever it raises, it refused
        return None


def render_chat(env, source, conversation, prompt):
    messages = [{"role": role, "content": content} for role, content in conversation]
    return render(env, source, messages=messages, tools=None, documents=None, bos_token="<s>", eos_token="</s>",
                  add_generation_prompt=prompt)


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE  # templates of another folder, for a wider check
    env = environment()
    data = json.loads((HERE / "expected.json").read_text(encoding="utf-8"))
    data["rendered"] = []
    for path in sorted(folder.glob("*.jinja")):
        source = path.read_bytes().decode()
        for name, conversation in data["conversations"].items():
            for prompt in (True, False):
                if prompt or name in data["without_generation_prompt"]:
                    data["rendered"].append([path.name, name, prompt, render_chat(env, source, conversation, prompt)])
    data["expressions"] = [[source, render(env, source)] for source, _ in data["expressions"]]
    wrong = [f"refuses: {source}" for source, text in data["expressions"] if text is None]
    wrong += [f"accepts: {source}" for source in data["refused"] if render(env, source) is not None]
    if wrong:
        sys.exit("Jinja2 disagrees with the table of cases:\n" + "\n".join(wrong))

    def lines(rows):  # one row a line, so that changes can be read
        return "[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]"

    parts = ['"conversations": ' + json.dumps(data["conversations"], ensure_ascii=False),
             '"without_generation_prompt": ' + json.dumps(data["without_generation_prompt"])]
    parts += [f'"{key}": ' + lines(data[key]) for key in ("expressions", "refused", "rendered")]
    (folder / "expected.json").write_text("{" + ",\n".join(parts) + "}\n", encoding="utf-8")
    print(f"{len(data['rendered'])} conversations, {len(data['expressions'])} expressions, {len(data['refused'])} refused")


if __name__ == "__main__":
    main()
