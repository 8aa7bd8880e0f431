/** The bridges of the namespace between the nodes. */

/** MAC address of the machine's end of the outside. OVN remembers it longer than the namespace exists. A random address
 *  would change at a restart, and servers would lose the outside. */
export const OUTSIDE_MAC = '0a:58:c6:13:00:01'

/** Shell commands. */
export const BRIDGE_LINES: readonly string[] = [
  'ip link add tunnels type bridge',
  `ip link add outside address ${OUTSIDE_MAC} type bridge`,
  ...['tunnels', 'outside'].flatMap((bridge) => [`ip link set ${bridge} up`, `ethtool -K ${bridge} tx off`]),
]
