/** What the first visit of the portal sends: the list of servers of somebody who is signed in, with an empty cache, in
 *  bytes on the wire with headers, compressed by gzip; against the limit. Browsers that accept Brotli get less. */
import type { CDPSession, Page } from 'playwright-core'
import { MEGABYTE, openPortal, openServers } from './portal.ts'
import type { Bench } from './runner.ts'

const LIMIT_BYTES = 250_000
const KILOBYTE = 1_000
const SERVERS = 20
const REQUESTS = 'requests'
const SIGN_IN = 'kB of the page to sign in'

export const bench: Bench = {
  name: 'B80 first page',
  question: 'first visits of the list of servers within the bytes of one limit',
  subjectName: 'first visits by gzip',
  peerName: `the limit of ${LIMIT_BYTES / KILOBYTE} kB`,
  unit: 'visits',
  per: 'MB',
  goal: 1,
  limits: { [SIGN_IN]: LIMIT_BYTES / KILOBYTE },
  pairs: 1,
  isCount: true,
  tier: 'browser',
  async open() {
    const portal = await openPortal([SERVERS])
    const facts: Record<string, string | number> = {}
    const visit = async (encodings: string, path?: string): Promise<Traffic> => {
      const { page, session, close } = await portal.open(portal.cloud, path === undefined)
      const traffic = await count(session, encodings, () => arrive(page, path))
      await close()
      return traffic
    }
    return {
      subject: {
        async run() {
          const { bytes, requests } = await visit('gzip')
          facts['kB'] = kilobytes(bytes)
          facts[REQUESTS] = requests
          return { units: 1, seconds: bytes / MEGABYTE }
        },
      },
      peer: { run: async () => ({ units: 1, seconds: LIMIT_BYTES / MEGABYTE }) },
      async finish() {
        facts['kB by Brotli'] = kilobytes((await visit('gzip, br')).bytes)
        facts[SIGN_IN] = kilobytes((await visit('gzip', '/login')).bytes)
      },
      facts: () => facts,
      close: () => portal.close(),
    }
  },
}

interface Traffic {
  readonly bytes: number
  readonly requests: number
}

const kilobytes = (bytes: number): string => (bytes / KILOBYTE).toFixed(1)

/** Everything that a person waits for. What comes a second later, before somebody needs it, is not counted. */
async function arrive(page: Page, path: string | undefined): Promise<void> {
  if (path === undefined) await openServers(page)
  else {
    await page.goto(path)
    await page.getByRole('heading', { level: 1 }).waitFor()
  }
}

/** What the page is sent during the work. */
async function count(session: CDPSession, encodings: string, work: () => Promise<void>): Promise<Traffic> {
  let [bytes, requests] = [0, 0]
  session.on('Network.loadingFinished', ({ encodedDataLength }) => {
    bytes += encodedDataLength
    requests += 1
  })
  await session.send('Network.enable')
  await session.send('Network.setExtraHTTPHeaders', { headers: { 'accept-encoding': encodings } })
  await work()
  return { bytes, requests }
}
