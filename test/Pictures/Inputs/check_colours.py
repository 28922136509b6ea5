"""check_colours.py - whether all eyes tell the page's colours apart.

    check_colours.py plan.css

Each two colours of the categories, and of the kinds of command, differ by at least 12 in CIELAB (two and a half is what
one can just see) in light and dark mode, for normal sight and for the three kinds of dichromacy by the matrices of
Machado, Oliveira and Fernandes (2009); text stands out from its ground by the 4.5 that WCAG asks for.
"""

import itertools
import re
import sys

EYES = {"normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
        "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
        "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
        "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900))}
TO_XYZ = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
WHITE = (0.9505, 1.0, 1.0890)
GROUPS = (("parameters", "gradients", "optimizer", "activations", "communication", "workspace"),
          ("compute", "collective", "copy", "storage", "other"))
TEXTS = ("ink", "soft", "good", "bad", "limit", "focus")
LEAST, LEAST_CONTRAST = 12, 4.5


def linear(colour):
    channels = [int(colour[at:at + 2], 16) / 255 for at in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]


def times(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector)) for row in matrix]


def lab(light):
    scaled = [value / white for value, white in zip(times(TO_XYZ, [min(max(c, 0), 1) for c in light]), WHITE)]
    x, y, z = (value ** (1 / 3) if value > 0.008856 else 7.787 * value + 16 / 116 for value in scaled)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def difference(a, b, eyes):
    first, second = (lab(times(EYES[eyes], linear(colour))) for colour in (a, b))
    return sum((p - q) ** 2 for p, q in zip(first, second)) ** 0.5


def contrast(a, b):
    bright, dark = sorted((times(TO_XYZ, linear(colour))[1] for colour in (a, b)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def main():
    light, dark = open(sys.argv[1], encoding="utf-8").read().split("prefers-color-scheme: dark")[:2]
    for mode, text in (("light", light), ("dark", dark)):
        colours = dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6});", text))
        for group, eyes in itertools.product(GROUPS, EYES):
            for a, b in itertools.combinations(group, 2):
                if (found := difference(colours[a], colours[b], eyes)) < LEAST:
                    sys.exit(f"{mode}, {eyes}: {a} and {b} differ by {found:.1f} alone")
        for name, ground in itertools.product(TEXTS, ("page", "panel")):
            if (found := contrast(colours[name], colours[ground])) < LEAST_CONTRAST:
                sys.exit(f"{mode}: {name} on {ground} has a contrast of {found:.2f}")
    print("all eyes tell the colours apart")


if __name__ == "__main__":
    main()
