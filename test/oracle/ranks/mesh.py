"""mesh.py - the coordinates of ranks, as the description of `ds.mesh` has them.

Rank r has the coordinates of r in row-major order of the axes. A set of axes is named by a list of names, of axes or of
what the names of sub-axes have in common: with `dp.node` and `dp.local`, "dp" is both. The ranks of a group differ along
the set alone; their order is that of their numbers.
"""


class Mesh:
    def __init__(self, names=(), sizes=()):
        self.names, self.sizes = list(names), list(sizes)
        self.size = 1
        for size in self.sizes:
            self.size *= size
        self.known = {}  # (rank, axes) to the group: asked for at each collective

    def __str__(self):
        return "[" + ", ".join(f"{name} = {size}" for name, size in zip(self.names, self.sizes)) + "]"

    def find(self, names):
        """The axes of a set by number, increasing; names that are not there stand for none."""
        return [number for number, name in enumerate(self.names)
                if any(name == wanted or name.startswith(wanted + ".") for wanted in names)]

    def resolve(self, names):
        """The names of the axes of a set, in the mesh's order: one spelling of each set."""
        return tuple(self.names[number] for number in self.find(names))

    def coordinates(self, rank):
        result = []
        for size in reversed(self.sizes):
            rank, coordinate = divmod(rank, size)
            result.append(coordinate)
        return result[::-1]

    def group(self, rank, names):
        """The ranks of the group of `rank`, in order."""
        key = (rank, *names)
        if key not in self.known:
            axes, own = set(self.find(names)), self.coordinates(rank)
            self.known[key] = [other for other in range(self.size)
                               if all(number in axes or a == b
                                      for number, (a, b) in enumerate(zip(self.coordinates(other), own)))]
        return self.known[key]

    def position(self, rank, names):
        return self.group(rank, names).index(rank)

    def count(self, names):
        """Ranks of a group along the set."""
        result = 1
        for axis in self.find(names):
            result *= self.sizes[axis]
        return result
