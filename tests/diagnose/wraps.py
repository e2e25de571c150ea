"""What terminals, launchers and log collectors make of text."""

from __future__ import annotations

from collections.abc import Callable, Mapping


def each(head: str) -> Callable[[str], str]:
    return lambda text: "".join(f"{head}{line}\n" for line in text.splitlines())


def coloured(text: str) -> str:
    return "".join(f"\x1b[1;32m{line[:3]}\x1b[0m{line[3:]}\x1b[K\n" for line in text.splitlines())


WRAPS: Mapping[str, Callable[[str], str]] = {
    "plain": lambda text: text,
    "crlf": lambda text: text.replace("\n", "\r\n"),
    "serial": lambda text: text.replace("\n", "\r\r\n"),
    "colours": coloured,
    "title": lambda text: f"\x1b]0;admin@spark01: ~\x07{text}",
    "no end": lambda text: text.rstrip("\n"),
    "fence": lambda text: f"```\n{text}```\n",
    "indented": each("    "),
    "quoted": each("> "),
    "kubectl": each("[pod/vllm-0/main] "),
    "compose": each("vllm-1  | "),
    "mpirun": each("[1,0]<stdout>:"),
    "mpirun 5": each("[prterun-spark01-17@1,0]<stdout>: "),
    "srun": each("0: "),
    "clush": each("spark01: "),
    "ray": each("(RayWorkerWrapper pid=4242, ip=10.10.1.12) "),
    "torchrun": each("[rank0]: "),
    "docker time": each("2026-11-29T18:09:47.123456789Z "),
    "ts": each("Nov 29 18:09:47 "),
    "journal": each("Nov 29 18:09:47 spark01 vllm[4242]: "),
    "kubectl and time": each("[pod/vllm-0/main] 2026-11-29T18:09:47.123456789Z "),
    "journal and mpirun": each("Nov 29 18:09:47 spark01 job[4242]: [1,0]<stdout>:"),
    "prompt": lambda text: f"admin@node-a:~/runs$ ./collect.sh\n{text}admin@node-a:~/runs$ \n",
    "exit status": lambda text: f"{text}[rc=0]\n",
    "no-break blanks": lambda text: text.replace(" ", "\u00a0"),
}
