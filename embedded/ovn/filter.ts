/** The rules of nftables between servers and the outside. Pure. */

/** Limits of open connections to object storage of this machine: for each server, and for all of them. All leave with
 *  the address of this machine, which has 1,024 there: the rest is for its own clients. */
export const STORAGE_CONNECTIONS = { ofServer: 64, ofAllServers: 768 } as const

/** Address translation for servers towards the outside, and destinations that they must not reach: link-local
 *  addresses, where another cloud's metadata service may be, and the machine through the wire of `publicRoute`.
 *  `objectStoragePort`: the port of this machine at which servers reach object storage. */
export function filterText(objectStoragePort?: number): string {
  const toStorage = `iifname "outside" ip daddr @own tcp dport ${objectStoragePort}`
  const bounds =
    objectStoragePort === undefined
      ? ''
      : `
    ${toStorage} add @storage_clients { ip saddr ct count over ${STORAGE_CONNECTIONS.ofServer} } reject with tcp reset
    ${toStorage} ct count over ${STORAGE_CONNECTIONS.ofAllServers} reject with tcp reset`
  return `table inet svccloud {
  set own { type ipv4_addr; }
  set storage_clients { type ipv4_addr; flags dynamic; size 65535; }
  chain out { type nat hook postrouting priority 100; oifname "tap0" masquerade; }
  chain through {
    type filter hook forward priority 0;
    ct state established,related accept
    iifname "outside" ip daddr 169.254.0.0/16 reject
    iifname "outside" oifname "machine" reject${bounds}
  }
}`
}

/** The shell command that adds an IPv4 address of this machine to the rules. Idempotent. */
export const ownAddressLine = (address: string): string => `nft add element inet svccloud own '{ ${address} }'`
