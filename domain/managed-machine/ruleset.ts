/** What the rulesets of nftables of managed machines have in common. Pure. */

/** How nftables calls the families of addresses. */
export const NFTABLES_FAMILIES = { ipv4: 'ip', ipv6: 'ip6' } as const

/** The beginning of a chain that lets nobody in who is not named after it: lines without line ends. */
export const CLOSED_INPUT: readonly string[] = [
  '  chain input {',
  '    type filter hook input priority filter; policy drop;',
  '    iif "lo" accept',
  '    ct state vmap { established : accept, related : accept, invalid : drop }',
  '    meta l4proto { icmp, ipv6-icmp } accept',
  // Answers of DHCP begin no connection that is known.
  '    udp dport { 68, 546 } accept',
]
