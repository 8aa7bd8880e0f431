/** Loopback addresses of one machine that represent the public addresses of the servers on it: 127.18.a.b for
 *  198.18.a.b. Pure. */

export interface LoopbackTwins {
  /** First half of the addresses of servers, as `198.18`. */
  readonly servers: string
  /** First half of their twins, as `127.18`. */
  readonly loopback: string
  /** Port of a twin that forwards to the SSH port of its server. */
  readonly sshPort: number
}

const TEXT = /^(\d{1,3}\.\d{1,3})=(127\.\d{1,3}):(\d{1,5})$/

/** Reads `198.18=127.18:22`; undefined for anything else. */
export function parseLoopbackTwins(text: string): LoopbackTwins | undefined {
  const [, servers, loopback, port] = TEXT.exec(text) ?? []
  return servers === undefined || loopback === undefined ? undefined : { servers, loopback, sshPort: Number(port) }
}

/** Undefined for an address without a twin. */
export const loopbackTwinOf = ({ servers, loopback }: LoopbackTwins, address: string): string | undefined =>
  address.startsWith(`${servers}.`) ? `${loopback}${address.slice(servers.length)}` : undefined
