"""check_page.py - look at a plan's page in a real browser, as a reader would.

    check_page.py PAGE.html PLAN.json

Nothing is logged as an error and nothing else is asked for; the peak is the plan's for each entry of the ranks; what the
pointer and the keys are on is named; zoom and pan move all pictures; nothing is wider than the window; and paper is
light also where the screen is dark.
"""

import json
import sys
from pathlib import Path

from browser import Browser

LIGHT, DARK = "rgb(255, 255, 255)", "rgb(20, 23, 27)"


def format_bytes(count):
    """As ds-opt spells it, by Python's own rounding, which is C's."""
    units, value, unit = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"], float(count), 0
    while (value >= 1023.95 or (unit == 0 and count >= 1024)) and unit < 6:
        value /= 1024
        unit += 1
    return f"{count} B" if unit == 0 else f"{value:.1f} {units[unit]}"


def expect(found, wanted, what):
    if found != wanted:
        sys.exit(f"{what}: expected {wanted!r}, but found {found!r}")


def expect_true(found, what):
    if not found:
        sys.exit(f"{what}: {found!r}")


def check_peaks(page, plan):
    """The page opens with the fullest ranks, and shows the peak of each entry when it is chosen."""
    peaks = [rank["peak"]["bytes"] for rank in plan["ranks"]]
    expect(page.value("$('peak-label').textContent"), format_bytes(max(peaks)), "the peak that the page opens with")
    expect(page.value("$('rank-choice').hidden"), len(peaks) == 1, "the choice of ranks is hidden")
    for index, peak in enumerate(peaks):
        page.value(f"chooseRank({index})")
        page.settle()
        expect(page.value("$('peak-label').textContent"), format_bytes(peak), f"the peak of entry {index}")
        expect(page.value("$('figures').querySelector('dd').title"), f"{peak:,} bytes", "the exact peak")
        curve = "(c => Math.max(...c.time.map((_, i) => c.bytes.reduce((sum, b) => sum + b[i], 0))))(timelineNow().curve)"
        expect(page.value(curve), peak, f"the maximum of the curve of entry {index}")
        expect(page.value("timelineNow().peak"), peak, "the peak that is marked")
        cells = page.value("[...$('memory-parts').querySelectorAll('tbody tr')].map(row => [...row.cells].map(cell => cell.textContent))")
        lines = [[line["name"], line["where"], f"{line['bytes']:,}"] for line in plan["ranks"][index]["memory"]]
        expect([[name, where, exact] for name, where, _, exact, _ in cells if name != "together"], lines, "what takes memory")
    page.value(f"chooseRank({peaks.index(max(peaks))})")
    verdict = page.value("$('verdict').textContent")
    expect_true(("Does not fit" in verdict) != plan["fits"], f"the verdict {verdict!r}")


def place_of(page, panel, item):
    """Where an item is in the window."""
    left, top, _, _ = page.box("#" + page.value(f"panels[{panel}].id"))
    x, y, width, height = page.value(f"(b => [b.x, b.y, b.width, b.height])(panels[{panel}].painter.bounds(panels[{panel}], {item}))")
    return left + x + width / 2, top + y + height / 2


def check_tooltips(page):
    """What is under the pointer is named with its layer and size."""
    page.value("showAll()")
    page.settle()
    largest = page.value("(b => [...b.bytes.keys()].filter(i => arenaPainter.visible(i))"
                         ".reduce((m, i) => (b.bytes[i] > b.bytes[m] ? i : m)))(timelineNow().buffers)")
    page.move(*place_of(page, 1, largest))
    expect(page.value("$('tooltip').hidden"), False, "the tooltip of a buffer is hidden")
    text = page.value("$('tooltip').innerText")
    for part in ("plan.strings[timelineNow().buffers.name[I]]", "plan.strings[timelineNow().buffers.layer[I]]",
                 "formatBytes(timelineNow().buffers.bytes[I])", "categories[timelineNow().buffers.category[I]]"):
        wanted = page.value(part.replace("I", str(largest)))
        expect_true(wanted in text, f"the tooltip of a buffer has {wanted!r}: {text!r}")
    longest = page.value("(c => [...c.length.keys()].reduce((m, i) => (c.length[i] > c.length[m] ? i : m)))(timelineNow().commands)")
    page.move(*place_of(page, 2, longest))
    name = page.value(f"plan.strings[timelineNow().commands.name[{longest}]]")
    expect_true(name in page.value("$('tooltip').innerText"), f"the tooltip of a command has {name!r}")
    left, top, width, height = page.box("#memory")
    page.move(left + width / 2, top + height / 2)
    expect_true("live at" in page.value("$('tooltip').innerText"), "the tooltip of the curve")
    page.move(1, 1)
    expect(page.value("$('tooltip').hidden"), True, "the tooltip is hidden away from the pictures")


def check_zoom(page):
    """Wheel, drag, buttons and keys move the one window; the whole step comes back."""
    width = "state.t1 - state.t0"
    page.value("showAll()")
    whole = page.value(width)
    left, top, across, height = page.box("#memory")
    place = (left + across / 2, top + height / 2)
    before = page.value("$('window').textContent")
    page.wheel(*place, -240)
    zoomed, begin = page.value(width), page.value("state.t0")
    expect_true(zoomed < whole * 0.7, "the wheel zooms")
    expect_true(page.value("$('window').textContent") != before, "the window is spelt out")
    page.drag(*place, place[0] - 100)
    expect_true(page.value("state.t0") > begin, "dragging to the left shows what comes later")
    expect_true(abs(page.value(width) - zoomed) < whole * 1e-9, "dragging does not zoom")
    for button, test in (("zoom-in", "<"), ("zoom-out", ">")):
        now = page.value(width)
        page.value(f"$('{button}').click()")
        expect_true(page.value(f"{width} {test} {now}"), f"the button {button}")
    page.value("$('zoom-reset').click()")
    expect(page.value(width), whole, "the whole step comes back")
    page.wheel(*place, 240)
    expect(page.value(width), whole, "there is nothing beyond the whole step")


def check_offsets(page):
    """Ctrl with the wheel zooms the arena's offsets, dragging pans them; the whole arena comes back."""
    left, top, across, height = page.box("#arena")
    place = (left + across / 2, top + height / 4)
    page.mouse("mouseWheel", *place, deltaX=0, deltaY=-240, modifiers=2)
    low = page.value("state.low")
    expect_true(page.value("state.high - state.low") < 0.7 and low > 0, "Ctrl with the wheel zooms offsets")
    expect(page.value("state.t1 - state.t0"), page.value("timelineNow().length"), "and no times")
    page.drag(*place, place[0], place[1] + 40)
    expect_true(page.value("state.low") > low, "dragging down shows what lies above")
    page.value("$('zoom-reset').click()")
    expect(page.value("[state.low, state.high]"), [0, 1], "the whole arena comes back")


def check_keys(page):
    """With the keyboard alone: pictures are reached, items are named aloud, zoom works."""
    for panel in ("memory", "arena", "streams"):
        page.value(f"$('{panel}').focus()")
        expect(page.value("document.activeElement.id"), panel, "the focus")
        page.key("ArrowRight")
        first = page.value("$('announce').textContent")
        expect_true(first and not page.value("$('tooltip').hidden"), f"an item of {panel} is named")
        page.key("ArrowRight")
        page.key("ArrowRight")
        expect_true(page.value("$('announce').textContent") != first, f"the next item of {panel} is another one")
        expect_true(page.value(f"$('{panel}').getAttribute('aria-label')"), f"{panel} has a label")
        page.key("Escape")
        expect(page.value("$('tooltip').hidden"), True, "Escape hides the tooltip")
    page.key("+")
    expect_true(page.value("state.t1 - state.t0 < timelineNow().length"), "+ zooms")
    page.key("0")
    expect_true(page.value("state.t1 - state.t0 === timelineNow().length"), "0 shows the whole step")
    page.key("p")
    expect_true(page.value("state.t0 <= timelineNow().peakTime && timelineNow().peakTime <= state.t1"), "P goes to the peak")
    page.value("showAll()")


def pixels(page, panel):
    """How many pixels of a picture have the colour of each category."""
    return page.value(f"""(() => {{
      const canvas = panels[{panel}].canvas, copy = new OffscreenCanvas(canvas.width, canvas.height);
      const context = copy.getContext("2d", {{ willReadFrequently: true }});
      context.drawImage(canvas, 0, 0);
      const data = context.getImageData(0, 0, canvas.width, canvas.height).data;
      const wanted = categories.map(name => channels(colours[name])), counts = categories.map(() => 0);
      for (let at = 0; at < data.length; at += 4)
        wanted.forEach(([r, g, b], c) => {{ counts[c] += data[at] === r && data[at + 1] === g && data[at + 2] === b; }});
      return counts;
    }})()""")


def check_paint(page):
    """Categories are painted in their colours, each as much as the curve says, and can be hidden."""
    page.value("showAll()")
    page.settle()
    counts = pixels(page, 0)
    shares = page.value("timelineNow().curve.bytes.map(bytes => Math.max(...bytes))")
    main = max(range(len(shares)), key=lambda c: shares[c])
    expect_true(counts[main] > 500, f"the largest category is painted: {counts}")
    for category, share in enumerate(shares):
        expect_true(share > 0 or counts[category] == 0, f"category {category} has no bytes and no paint: {counts}")
    name = page.value(f"categories[{main}]")
    page.value(f"[...$('legend').children].find(b => b.textContent.startsWith('{name}')).click()")
    page.settle()
    expect(pixels(page, 0)[main], 0, f"{name} is hidden")
    page.value(f"[...$('legend').children].find(b => b.textContent.startsWith('{name}')).click()")
    page.settle()
    expect(pixels(page, 0), counts, f"{name} is back")


def check_widths(page):
    """Nothing is wider than the window, from a telephone to a desk."""
    for width in (390, 800, 1280):
        page.resize(width, 900)
        page.settle()
        expect_true(page.value("document.documentElement.scrollWidth <= document.documentElement.clientWidth"),
                    f"the page fits {width} pixels: {page.value('document.documentElement.scrollWidth')}")
        expect_true(page.value("panels.every(panel => panel.width <= document.documentElement.clientWidth)"), "so do pictures")


def check_print(page, path):
    """Paper is light and has the pictures, whatever the screen is."""
    page.value("setPrinting(true)")
    expect(page.value("getComputedStyle(document.documentElement).backgroundColor"), LIGHT, "paper")
    expect(page.value("colours.page"), "#ffffff", "the ground of printed pictures")
    expect_true(max(pixels(page, 0)) > 500, "printed pictures are painted in light colours")
    page.value("setPrinting(false)")
    page.pdf(path)
    expect_true(Path(path).stat().st_size > 10000, "the printed page has pictures")
    expect_true(not page.value("document.documentElement.classList.contains('printing')"), "the screen is back")


def check(path, plan, dark):
    with Browser(path, dark=dark) as page:
        page.settle()
        expect(page.value("getComputedStyle(document.documentElement).backgroundColor"), DARK if dark else LIGHT, "the ground")
        expect(page.value("$('model').textContent"), plan["model"], "the heading")
        expect(page.value("document.querySelectorAll('b, img').length"), 0, "elements that a name brought in")
        for part in (check_tooltips, check_zoom, check_offsets, check_keys, check_paint, check_widths):
            part(page)
        check_peaks(page, plan)
        check_print(page, path + ".pdf")
        expect(page.errors, [], "errors in the console")
        expect(page.requests, [Path(path).resolve().as_uri()], "what the page asked for")


def main():
    path, plan = sys.argv[1], json.loads(Path(sys.argv[2]).read_text())
    for dark in (False, True):
        check(path, plan, dark)
    print("the page is as it should be")


if __name__ == "__main__":
    main()
