/** The public Internet, and nowhere else. Every address is checked before a connection, and the connection uses the
 *  checked address itself. So a name that resolves to something else a moment later gains nothing. */
import type { LookupAddress } from 'node:dns'
import { Resolver } from 'node:dns/promises'
import type { RequestOptions } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { rootCertificates } from 'node:tls'
import { isPublicAddress } from '../../domain/network/public-address.ts'
import { systemClock } from '../../kit/sys/clock.ts'

/** Additions to the Internet for tests. Only parameters of functions: no setting can reach them. */
export interface TestTrust {
  /** Addresses that count as public. */
  readonly addresses: readonly string[]
  /** Certificates of certificate authorities, PEM. */
  readonly authorities: readonly string[]
  /** Address and port of the name server to use instead of the system's. */
  readonly nameServer?: string
}

/** A refused address: its message is for customers. */
export class AddressRefused extends Error {}

const ADDRESSES_MAXIMUM = 16

/** The URL of a text, which a URL may complete. Throws AddressRefused for anything but https without credentials. */
export function parsePublicUrl(text: string, base?: URL): URL {
  const url = URL.parse(text, base?.href)
  if (url === null) throw new AddressRefused('the address is no URL')
  if (url.protocol !== 'https:') throw new AddressRefused('only https is fetched')
  if (url.username !== '' || url.password !== '') throw new AddressRefused('the URL holds credentials')
  return url
}

/** Options of a request to the URL that connects to public addresses only. Throws AddressRefused for a literal address
 *  that is not public; a name of one fails the request with it. */
export function publicOnly(
  url: URL,
  trust: TestTrust | undefined,
): Pick<RequestOptions, 'agent' | 'ca' | 'lookup' | 'minVersion'> {
  const isAllowed = (address: string) => isPublicAddress(address) || trust?.addresses.includes(address) === true
  const host = url.hostname.replace(/^\[|\]$/g, '')
  // Names are checked during the lookup; a literal address has no lookup.
  if (isIP(host) !== 0 && !isAllowed(host)) throw notPublic(host)
  return {
    agent: false, // no connection may outlive its check
    lookup: judgedLookup(isAllowed, trust?.nameServer),
    ...(trust === undefined ? {} : { ca: [...rootCertificates, ...trust.authorities] }),
    minVersion: 'TLSv1.2',
  }
}

const notPublic = (name: string) => new AddressRefused(`${name} is not a public address`)

/** Returns the addresses of a name, all of which are public. */
function judgedLookup(isAllowed: (address: string) => boolean, nameServer: string | undefined): LookupFunction {
  return (name, options, done) => {
    resolve(name, nameServer).then(
      (found) => {
        const addresses = found.slice(0, ADDRESSES_MAXIMUM)
        const [first] = addresses
        if (first === undefined || !addresses.every(({ address }) => isAllowed(address))) done(notPublic(name), '')
        else if (options.all === true) done(null, addresses)
        else done(null, first.address, first.family)
      },
      (error: NodeJS.ErrnoException) => done(error, ''),
    )
  }
}

/** Of one question to one name server, the first time. */
const ANSWER = { timeout: 2_000, tries: 2 } as const
/** How long the other kind of address is waited for. */
const OTHER_KIND_MILLISECONDS = 500
/** There is no such name, or it has no address of that kind. */
const isNoAddress = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && (error.code === 'ENOTFOUND' || error.code === 'ENODATA')

/** Asks name servers itself. The system's own function would take one of the few threads of the process for each name,
 *  which a name that is slow to resolve occupies for everybody; and it would answer from files of this machine. */
async function resolve(name: string, nameServer: string | undefined): Promise<LookupAddress[]> {
  const resolver = new Resolver(ANSWER)
  if (nameServer !== undefined) resolver.setServers([nameServer])
  // A name server that is silent about one kind is not waited for once the other is known.
  const patience = new AbortController()
  const answers = await Promise.allSettled(
    [
      resolver.resolve4(name).then((found) => found.map((address) => ({ address, family: 4 }))),
      resolver.resolve6(name).then((found) => found.map((address) => ({ address, family: 6 }))),
    ].map(async (question) => {
      const found = await question
      if (found.length > 0)
        void systemClock.sleep(OTHER_KIND_MILLISECONDS, patience.signal).then(() => resolver.cancel())
      return found
    }),
  )
  patience.abort()
  const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
  if (addresses.length > 0) return addresses
  const isAnswered = answers.every((answer) => answer.status === 'rejected' && isNoAddress(answer.reason))
  throw new AddressRefused(isAnswered ? `${name} has no address` : `the name ${name} could not be resolved`)
}
