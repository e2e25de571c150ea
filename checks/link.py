"""Whether fabric interfaces are up, at the spec's MTU and speed, and stay so after a reboot.

What it looks at: running, smallest and largest MTU, carrier, speed, PCIe width, and who owns the interface
(NetworkManager, systemd-networkd, netplan, ifupdown) with the MTU stored there.

Why it matters: with an interface MTU below 4192 RoCE falls to packets of 2048 bytes or less, and one that was set by
hand is gone after the next reboot.

When it fails: the MTU runs or is stored as something else, the link is down or slow, nobody or two tools own the
interface, or an automatic DHCP profile sits on a fabric port.

How to fix: `fabrictool apply` sets the running MTU, and the stored one for netplan and NetworkManager. For other
owners the finding names the file to change.

Cost and risk: reads only.
"""

from fabrictool.check import Check

CHECK = Check(rooms=("link",))
