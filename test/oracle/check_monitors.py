#!/usr/bin/python3
"""check_monitors.py - the files of tensorboard and csv_monitor have what the log of the run has.

    check_monitors.py DIR --log LOG.jsonl --batch SAMPLES

Event files are read here without TensorBoard: records with checksums, protocol buffers field by field.  Values behind a
restart count in the place of earlier ones of the same step, as in TensorBoard.
"""

import argparse
import csv
import glob
import math
import os
import struct

import compare


def crc32c(data):
    """Bit by bit, from the definition."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(path):
    with open(path, "rb") as file:
        data = file.read()
    place = 0
    while place < len(data):
        size = data[place:place + 8]
        count, = struct.unpack("<Q", size)
        body = data[place + 12:place + 12 + count]
        sums = struct.unpack("<I", data[place + 8:place + 12]) + struct.unpack("<I", data[place + 12 + count:place + 16 + count])
        assert sums == (masked(size), masked(body)), f"{path}: a checksum is wrong at byte {place}"
        yield body
        place += 16 + count


def varint(data, place):
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        shift, place = shift + 7, place + 1
        if byte < 0x80:
            return value, place


def fields(data):
    """(number, value) of a message; what has a length as bytes."""
    place = 0
    while place < len(data):
        key, place = varint(data, place)
        kind = key & 7
        if kind == 0:
            value, place = varint(data, place)
        elif kind == 2:
            size, place = varint(data, place)
            value, place = data[place:place + size], place + size
        else:
            size, form = {1: (8, "<d"), 5: (4, "<f")}[kind]
            value, place = struct.unpack(form, data[place:place + size])[0], place + size
        yield key >> 3, value


def read_events(folder):
    """tag -> {step: value} of all event files, in the order of their names."""
    curves = {}
    for path in sorted(glob.glob(os.path.join(folder, "events.out.tfevents.*"))):
        all_records = [dict(fields(record)) for record in records(path)]
        assert all_records[0][3] == b"brain.Event:2", path
        for event in all_records[1:]:
            if 7 in event:  # a restart: later values count no more
                curves = {tag: {step: v for step, v in curve.items() if step < event[2]} for tag, curve in curves.items()}
            for number, value in fields(event.get(5, b"")):
                assert number == 1
                scalar = dict(fields(value))
                curves.setdefault(scalar[1].decode(), {})[event[2]] = scalar[2]
    return curves


def read_tables(folder):
    curves = {}
    for path in glob.glob(os.path.join(folder, "*.csv")):
        with open(path, newline="") as file:
            rows = list(csv.reader(file))
        tag = os.path.basename(path)[:-4]
        assert rows[0] == ["step", tag.replace("Train_Samples_", "")], rows[0]
        steps = [int(step) for step, _ in rows[1:]]
        assert steps == sorted(set(steps)), f"{path}: {steps}"
        curves[tag] = {int(step): float(value) for step, value in rows[1:]}
    return curves


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--log", required=True)
    parser.add_argument("--batch", type=int, required=True)
    args = parser.parse_args()
    events = read_events(os.path.join(args.folder, "tb/job"))
    tables = read_tables(os.path.join(args.folder, "csv/job"))
    log = {line["step"]: line for line in compare.read_log(args.log)}
    for tag, key in (("train_loss", "loss"), ("lr", "lr"), ("grad_norm", "grad_norm")):
        expected = {step * args.batch: line[key] for step, line in log.items()}
        shown, table = events["Train/Samples/" + tag], tables["Train_Samples_" + tag]
        assert table == expected, f"{tag}: {table} against {expected}"
        assert set(shown) == set(expected), f"{tag}: {sorted(shown)}"
        assert all(math.isclose(shown[step], expected[step], rel_tol=1e-6) for step in shown), f"{tag}: {shown}"
    print(f"{len(log)} steps in {len(events)} curves and {len(tables)} tables")


if __name__ == "__main__":
    main()
