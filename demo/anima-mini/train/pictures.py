#!/usr/bin/env python3
"""The training pictures of anima-mini: emoji of the Noto Color Emoji font (OFL) on eight backgrounds, 128 x 128.

usage: pictures.py ATLAS.png [--font NotoColorEmoji.ttf] [--objects objects.txt]

Writes all objects at 32 x 32, RGBA, 16 in a row, in the order of objects.txt: what scripts/check_anima_mini.py compares
pictures with. As a module it gives the pictures in full with their prompts. Needs Pillow and NumPy; Debian has the font
in fonts-noto-color-emoji.
"""
import argparse
import unicodedata

import numpy as np
from PIL import Image, ImageDraw, ImageFont

FONT = "/usr/share/fonts/truetype/noto/NotoColorEmoji.ttf"
EMOJI = (
    "😀😂😍😎😢😡😱😴🤔🤖👻👽💀🎃❤💙💚💛⭐🌙☀🌈⚡🔥❄☁🌊🌍🌹🌻🌵🌲🌴🍀🍁🍄🍎🍊🍋🍌🍉🍇🍓🍒🍑🍍🥕🌽🍅🍆🥦"
    "🍔🍕🍟🌭🍩🍪🎂🍰🍫🍭☕🍺🐶🐱🐭🐰🦊🐻🐼🐯🦁🐮🐷🐸🐵🐔🐧🐦🦉🐴🦄🐝🦋🐌🐞🐢🐍🐙🦀🐟🐬🐳🦈🐘🦒🐪"
    "🚗🚕🚌🚓🚑🚒🚲🚂✈🚀🚁⛵🚢⚽🏀🏈⚾🎾🎱🎲🎸🎺🎹🥁🎨🎬📷📱💻⌚📺🔑🔒💡🔔📚✏✂📌🎁🎈👑💎🎩👟⚓🏠🏰⛺🗿🔨")
BACKGROUNDS = {
    "white": (255, 255, 255), "red": (214, 64, 60), "green": (72, 160, 84), "blue": (66, 108, 205),
    "yellow": (240, 208, 80), "purple": (140, 84, 180), "black": (24, 24, 28), "gray": (150, 150, 150)}
SIDE = 128
LONGER = 104  # pixels of an object's longer side
SMALL, PER_ROW = 32, 16  # of the atlas


def name_of(character):
    name = unicodedata.name(character).lower()
    for word, other in ((" face", ""), ("heavy ", ""), ("white medium ", ""), ("black ", ""), ("-", " ")):
        name = name.replace(word, other)
    return name


def draw(character, font):
    """RGBA, SIDE x SIDE; None if the font lacks it."""
    canvas = Image.new("RGBA", (160, 160), (0, 0, 0, 0))
    ImageDraw.Draw(canvas).text((80, 80), character, font=font, embedded_color=True, anchor="mm")
    box = canvas.getbbox()
    if box is None:
        return None
    cut = canvas.crop(box)
    scale = LONGER / max(cut.size)
    cut = cut.resize((max(1, round(cut.width * scale)), max(1, round(cut.height * scale))), Image.LANCZOS)
    out = Image.new("RGBA", (SIDE, SIDE), (0, 0, 0, 0))
    out.paste(cut, ((SIDE - cut.width) // 2, (SIDE - cut.height) // 2))
    return out


def objects(font_file=FONT):
    """[(name, RGBA picture)]"""
    font = ImageFont.truetype(font_file, 109)  # the only size that the font's bitmaps have
    drawn = ((name_of(c), draw(c, font)) for c in dict.fromkeys(EMOJI))
    return [(name, picture) for name, picture in drawn if picture is not None]


def dataset(font_file=FONT):
    """Prompts, and their pictures as float32 [count, 3, SIDE, SIDE] from -1 to 1."""
    prompts, pictures = [], []
    for name, picture in objects(font_file):
        rgba = np.asarray(picture).astype(np.float32)
        alpha = rgba[..., 3:] / 255
        for background, colour in BACKGROUNDS.items():
            mixed = rgba[..., :3] * alpha + np.array(colour, np.float32) * (1 - alpha)
            prompts.append(f"{name} on a {background} background")
            pictures.append((mixed / 127.5 - 1).transpose(2, 0, 1))
    return prompts, np.stack(pictures)


def atlas(drawn):
    rows = (len(drawn) + PER_ROW - 1) // PER_ROW
    out = Image.new("RGBA", (PER_ROW * SMALL, rows * SMALL), (0, 0, 0, 0))
    for i, (_, picture) in enumerate(drawn):
        out.paste(picture.resize((SMALL, SMALL), Image.BOX), (i % PER_ROW * SMALL, i // PER_ROW * SMALL))
    return out


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("atlas")
    p.add_argument("--font", default=FONT)
    p.add_argument("--objects", help="also write their names, one a line")
    a = p.parse_args()
    drawn = objects(a.font)
    atlas(drawn).save(a.atlas, optimize=True)
    if a.objects:
        with open(a.objects, "w", encoding="utf-8") as f:
            f.writelines(name + "\n" for name, _ in drawn)


if __name__ == "__main__":
    main()
