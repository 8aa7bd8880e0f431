/** Facts about a request apart from its parsed input: id, true client address, headers, cookies. */
import { BlockList, isIP } from 'node:net'
import type { RequestFacts } from './call.ts'
import type { HttpRequest } from './exchange.ts'

const USER_AGENT_LENGTH_MAXIMUM = 256
const FORWARDED_ADDRESSES_MAXIMUM = 20

/** Whether an address is inside of `trustedProxies` (CIDRs or addresses). */
export function trustIn(trustedProxies: readonly string[]): (address: string) => boolean {
  const trusted = new BlockList()
  for (const proxy of trustedProxies) {
    const [address = '', prefix] = proxy.split('/')
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    if (isIP(address) === 0) throw new TypeError(`${proxy} is not an address or CIDR`)
    trusted.addSubnet(address, Number(prefix ?? (family === 'ipv6' ? 128 : 32)), family)
  }
  return (input) => {
    const address = plainAddress(input)
    return isIP(address) !== 0 && trusted.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
  }
}

/** Reads facts. Only trusted peers may state for whom they speak. */
export function factsReader(
  trustedProxies: readonly string[],
): (incoming: HttpRequest, requestId: string) => RequestFacts {
  const isTrusted = trustIn(trustedProxies)
  return (incoming, requestId) => {
    const header = (name: string) => headerOf(incoming, name)
    let cookies: ReadonlyMap<string, string> | undefined
    return {
      requestId,
      sourceIp: clientAddress(
        plainAddress(incoming.remoteAddress),
        trustedProxies.length === 0 ? undefined : header('x-forwarded-for'),
        isTrusted,
      ),
      userAgent: (header('user-agent') ?? '').slice(0, USER_AGENT_LENGTH_MAXIMUM),
      header,
      cookie: (name) => (cookies ??= readCookies(header('cookie') ?? '')).get(name),
      get signal() {
        return incoming.signal
      },
    }
  }
}

function headerOf(incoming: HttpRequest, name: string): string | undefined {
  const value = incoming.headers[name]
  return value === undefined || typeof value === 'string' ? value : value.join(', ')
}

/** From the peer towards the client, the first address that is not one of our own proxies. */
function clientAddress(
  peer: string,
  forwardedFor: string | undefined,
  isTrusted: (address: string) => boolean,
): string {
  if (forwardedFor === undefined || !isTrusted(peer)) return peer
  let client = peer
  for (const hop of forwardedFor.split(',').slice(-FORWARDED_ADDRESSES_MAXIMUM).reverse()) {
    const address = plainAddress(hop.trim())
    if (isIP(address) === 0) return client
    client = address
    if (!isTrusted(address)) return client
  }
  return client
}

/** An IPv4 peer of a dual-stack socket in its own notation. */
const plainAddress = (address: string): string => address.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, '')

function readCookies(text: string): ReadonlyMap<string, string> {
  const cookies = new Map<string, string>()
  for (const pair of text.split(';')) {
    const equals = pair.indexOf('=')
    if (equals < 0) continue
    const name = pair.slice(0, equals).trim()
    if (!cookies.has(name)) cookies.set(name, decode(pair.slice(equals + 1).trim()))
  }
  return cookies
}

function decode(value: string): string {
  try {
    return decodeURIComponent(value)
  } catch {
    return value
  }
}
