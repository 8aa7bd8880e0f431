/** The bridges of the namespace between the nodes. */

/** Of the machine's end of the outside. OVN remembers whom it has found there, longer than the namespace is there: one
 *  with an address by chance would be another one after a start, and nothing of servers would reach it. */
export const OUTSIDE_MAC = '0a:58:c6:13:00:01'

/** Lines of a shell. */
export const BRIDGE_LINES: readonly string[] = [
  'ip link add tunnels type bridge',
  `ip link add outside address ${OUTSIDE_MAC} type bridge`,
  ...['tunnels', 'outside'].flatMap((bridge) => [`ip link set ${bridge} up`, `ethtool -K ${bridge} tx off`]),
]
