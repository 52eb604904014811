#!/usr/bin/env python3
"""The manual and the shell completions know the commands and options that the program's help lists, and no others.

usage: manual_test.py RIDGE
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ENGINE_SECTION = "ENGINE OPTIONS"
GLOBAL_OPTIONS = {"--help", "--version", "--verbose", "--quiet"}

failures = []


def check(good, message):
    if not good:
        failures.append(message)


def help_of(ridge, *command):
    done = subprocess.run([ridge, *command, "--help"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        sys.exit(f"'ridge {' '.join(command)} --help' exits with {done.returncode}: {done.stderr}")
    return done.stdout


def commands_in(text):
    after = text.split("Subcommands:", 1)
    return re.findall(r"^  ([a-z]\w*)\b", after[1], re.M) if len(after) == 2 else []


def options_in(text):
    return set(re.findall(r"^\s+(?:-\w,)?(--[a-z][a-z0-9-]*)", text, re.M)) - GLOBAL_OPTIONS


def manual_sections(text):
    """Title to text, of .SH and .SS sections, with roff's hyphens undone."""
    parts = re.split(r"^\.S[HS] +(.+)$", text.replace("\\-", "-"), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def options_of_section(text):
    heads = re.findall(r"^\.TP\n(.+)$", text, re.M)
    return set(re.findall(r"--[a-z][a-z0-9-]*", " ".join(heads)))


def check_manual(commands):
    sections = manual_sections((ROOT / "man/ridge.1").read_text(encoding="utf-8"))
    described = {title.split()[1]: text for title, text in sections.items() if title.startswith("ridge ")}
    check(set(described) == set(commands),
          f"man/ridge.1 describes {sorted(described)}, the program has {sorted(commands)}")
    engine = options_of_section(sections[ENGINE_SECTION])
    check(GLOBAL_OPTIONS == options_of_section(sections["OPTIONS"]), "man/ridge.1: OPTIONS differs from the global options")
    for name, options in commands.items():
        own = options_of_section(described.get(name, ""))
        missing = options - own - (engine if engine <= options else set())
        check(not missing, f"man/ridge.1: 'ridge {name}' lacks {sorted(missing)}")
        check(own <= options, f"man/ridge.1: 'ridge {name}' has no {sorted(own - options)}")


def bash_completions(words):
    script = (f"source '{ROOT}/share/completions/ridge.bash'; COMP_WORDS=({' '.join(words)} ''); "
              f"COMP_WORDS[-1]='--'; COMP_CWORD={len(words)}; _ridge; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        sys.exit(f"ridge.bash failed: {done.stderr}")
    return set(done.stdout.split())


def bash_commands():
    script = (f"source '{ROOT}/share/completions/ridge.bash'; COMP_WORDS=(ridge ''); COMP_CWORD=1; _ridge; "
              "printf '%s\\n' \"${COMPREPLY[@]}\"")
    return set(subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60).stdout.split())


def check_bash(commands):
    check(bash_commands() == set(commands), f"ridge.bash completes {sorted(bash_commands())}")
    for name, options in commands.items():
        offered = bash_completions(["ridge", name]) - GLOBAL_OPTIONS
        check(offered == options, f"ridge.bash: 'ridge {name}' differs in {sorted(offered ^ options)}")
    check(bash_completions(["ridge"]) == GLOBAL_OPTIONS, "ridge.bash: the global options differ")


def check_zsh_and_fish(commands):
    zsh = (ROOT / "share/completions/_ridge").read_text(encoding="utf-8")
    fish = (ROOT / "share/completions/ridge.fish").read_text(encoding="utf-8")
    everything = set().union(*commands.values()) | GLOBAL_OPTIONS
    in_zsh = set(re.findall(r"--[a-z][a-z0-9-]*", zsh))
    in_fish = {"--" + name for name in re.findall(r"^complete .*? -l ([a-z][a-z0-9-]*)", fish, re.M)}
    check(in_zsh == everything, f"_ridge differs in {sorted(in_zsh ^ everything)}")
    check(in_fish == everything, f"ridge.fish differs in {sorted(in_fish ^ everything)}")
    for name in commands:
        check(f"'{name}:" in zsh and f"      {name})" in zsh, f"_ridge lacks '{name}'")
        check(re.search(rf" -a {name}\b", fish), f"ridge.fish lacks '{name}'")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    ridge = sys.argv[1]
    names = commands_in(help_of(ridge))
    if not names:
        sys.exit("'ridge --help' lists no commands under 'Subcommands:'")
    commands = {name: options_in(help_of(ridge, name)) for name in names}
    check_manual(commands)
    check_bash(commands)
    check_zsh_and_fish(commands)
    for failure in failures:
        print(failure)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
