"""nodes.py - two nodes on one machine: network name spaces that a slow link joins, each with a host name of its own.

Ranks inside a node reach each other without a limit; what goes to the other node passes a token bucket in the kernel, so
that no run, on whatever machine, can move it faster than the link's rate. Needs to be root.
"""

import os
import subprocess
import tempfile


def command(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


class Nodes:
    """The name spaces `names`, joined by a link of `megabytes` MB/s each way; gone when the block ends."""

    def __init__(self, megabytes):
        self.bits = int(megabytes * 8e6)
        self.names = [f"ds{os.getpid()}-{node}" for node in range(2)]

    def __enter__(self):
        try:
            for name in self.names:
                command("ip", "netns", "add", name)
            ends = [word for name in self.names for word in ("netns", name)]
            command("ip", "link", "add", "eth0", *ends[:2], "type", "veth", "peer", "name", "eth0", *ends[2:])
            for node, name in enumerate(self.names):
                inside = ("ip", "-n", name)
                command(*inside, "address", "add", f"10.77.0.{node + 1}/24", "dev", "eth0")
                command(*inside, "link", "set", "lo", "up")
                command(*inside, "link", "set", "eth0", "up")
                command("tc", "-n", name, "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", f"{self.bits}bit", "burst",
                        "64kb", "latency", "50ms")
        except subprocess.CalledProcessError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)

    def run(self, ranks_per_node, *words):
        """Runs `words` as all ranks of a job, node by node; returns what rank 0 prints. Fails if any rank does."""
        world = 2 * ranks_per_node
        with tempfile.TemporaryDirectory() as folder:
            ranks = []
            for rank in range(world):
                name = self.names[rank // ranks_per_node]
                environment = {**os.environ, "DS_RANK": str(rank), "DS_WORLD": str(world), "DS_RENDEZVOUS": folder,
                               "DS_NONCE": "job", "DS_INTERFACE": "eth0", "OMP_NUM_THREADS": "1"}
                ranks.append(subprocess.Popen(
                    ["ip", "netns", "exec", name, "unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', name,
                     *map(str, words)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
            outputs = [rank.communicate()[0] for rank in ranks]
        if any(rank.returncode for rank in ranks):
            raise SystemExit("\n".join(f"rank {index} ended with exit code {rank.returncode}:\n{output}"
                                       for index, (rank, output) in enumerate(zip(ranks, outputs))))
        return outputs[0]
