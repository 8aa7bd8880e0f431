/** What the rulesets of nftables of managed machines have in common. Pure. */

/** nftables' names of the address families. */
export const NFTABLES_FAMILIES = { ipv4: 'ip', ipv6: 'ip6' } as const

/** The start of an input chain that drops everything that neither it nor the rules after it accept: lines without line
 *  ends. */
export const CLOSED_INPUT: readonly string[] = [
  '  chain input {',
  '    type filter hook input priority filter; policy drop;',
  '    iif "lo" accept',
  '    ct state vmap { established : accept, related : accept, invalid : drop }',
  '    meta l4proto { icmp, ipv6-icmp } accept',
  // Answers of DHCP belong to no tracked connection.
  '    udp dport { 68, 546 } accept',
]
