/** The portal for benchmarks: built, served beside the API of bench/cloud.ts, and opened in Chromium. Its servers are
 *  objects in the store, as the platform leaves running ones: there are no hosts and no controllers. */
import type { Browser, CDPSession, Page } from 'playwright-core'
import { runProgram } from '../agents/node/run-program.ts'
import { CSRF_COOKIE, SESSION_COOKIE } from '../apiserver/identity/callers.ts'
import { openPortal as readPortal, portalPages } from '../apiserver/kit/pages/portal.ts'
import { events } from '../client/events.ts'
import { createSession } from '../db/identity/index.ts'
import { startServer } from '../kit/http/server.ts'
import { systemClock as clock } from '../kit/sys/clock.ts'
import { silentLog as log } from '../kit/sys/log.ts'
import { nodeBinary } from '../kit/sys/process.ts'
import { newBase62, newUuid, systemRandom as random } from '../kit/sys/random.ts'
import { Server } from '../resources/server/index.ts'
import { launch } from '../test/portal/browser/kit/chromium.ts'
import { type BenchAccount, type Cloud, openCloud, serverSpec } from './cloud.ts'

const BATCH = 500
const BUILD = new URL('../portal/build/main.ts', import.meta.url).pathname
const BUILD_MILLISECONDS = 300_000
const DAY_MILLISECONDS = 86_400_000
const PATIENCE_MILLISECONDS = 120_000
const SIZE = { width: 1360, height: 900 }
export const MEGABYTE = 1_000_000
/** What the page calls the dot that says that its stream is open. */
export const LIVE = 'Changes arrive live'

export interface OpenPage {
  readonly page: Page
  /** The debugger of the page. */
  readonly session: CDPSession
  close(): Promise<void>
}

export interface BenchPortal {
  readonly cloud: Cloud
  readonly browser: Browser
  readonly url: string
  /** A tab of a new session of the account's owner: nothing is cached, and budgets of requests are whole. Nobody is
   *  signed in when `isSignedIn` is false. */
  open(account: BenchAccount, isSignedIn?: boolean): Promise<OpenPage>
  close(): Promise<void>
}

/** The portal of a cloud with accounts that have so many running servers each. */
export async function openPortal(servers: readonly number[]): Promise<BenchPortal> {
  await runProgram(nodeBinary(), [BUILD], { timeoutMilliseconds: BUILD_MILLISECONDS })
  const portal = await readPortal(undefined)
  const cloud = await openCloud([], { accounts: servers.length })
  for (const [index, account] of cloud.accounts.entries()) await createServers(cloud, account, servers[index] ?? 0)
  await cloud.startCaches()
  const api = await startServer({
    host: '127.0.0.1',
    port: 0,
    service: cloud.app.customers,
    pages: portalPages({ portal, page: 'index.html', home: '/dashboard' }, () => false),
    clock,
    random,
    log,
  })
  const url = `http://127.0.0.1:${api.port}`
  const browser = await launch()
  return {
    cloud,
    browser,
    url,
    async open(account, isSignedIn = true) {
      const context = await browser.newContext({ baseURL: url, viewport: SIZE, locale: 'en-US', timezoneId: 'UTC' })
      context.setDefaultTimeout(PATIENCE_MILLISECONDS)
      if (isSignedIn) await context.addCookies((await signIn(cloud, account)).map((cookie) => ({ ...cookie, url })))
      const page = await context.newPage()
      return { page, session: await context.newCDPSession(page), close: () => context.close() }
    },
    async close() {
      await browser.close()
      await api.stop(1_000)
      await cloud.close()
    },
  }
}

/** Cookies of a new session. */
async function signIn({ db }: Cloud, { accountId }: BenchAccount) {
  const { user_id: userId } = await db
    .selectFrom('membership')
    .select('user_id')
    .where('account_id', '=', accountId)
    .executeTakeFirstOrThrow()
  const [secret, now] = [newBase62(random, 43), clock.now()]
  await createSession(db, {
    id: newUuid(random),
    secret,
    userId,
    now,
    expiresAt: new Date(now.getTime() + DAY_MILLISECONDS),
    userAgent: 'bench',
    sourceIp: '127.0.0.1',
    hasSecondFactor: false,
  })
  return [
    { name: SESSION_COOKIE, value: secret },
    { name: CSRF_COOKIE, value: newBase62(random, 43) },
  ]
}

async function createServers(cloud: Cloud, account: BenchAccount, count: number): Promise<void> {
  for (let from = 0; from < count; from += BATCH)
    await Promise.all(
      Array.from({ length: Math.min(BATCH, count - from) }, (_, index) => createRunning(cloud, account, from + index)),
    )
}

/** A server that the store says has started; its id. */
export async function createRunning({ store }: Cloud, { namespace }: BenchAccount, number: number): Promise<string> {
  const name = newUuid(random)
  await store.create(Server, { metadata: { name, namespace }, spec: serverSpec(number) })
  await store.patch(Server, { namespace, name }, { status: { state: 'started' } }, 'status')
  return name
}

/** Opens the list of servers and waits for its first rows; seconds from the start of the navigation. */
export async function openServers(page: Page): Promise<number> {
  const begin = clock.monotonicMilliseconds()
  await page.goto('/servers', { waitUntil: 'commit' })
  await page.locator('tbody tr .first').first().waitFor()
  return (clock.monotonicMilliseconds() - begin) / 1_000
}

/** Megabytes of the heap of the page's scripts, without garbage. */
export async function heapMegabytes(session: CDPSession): Promise<number> {
  await session.send('HeapProfiler.collectGarbage')
  await session.send('HeapProfiler.collectGarbage')
  return (await session.send('Runtime.getHeapUsage')).usedSize / MEGABYTE
}

const FRAME_MILLISECONDS = 16
/** A hundred pages, on a machine that may be busy. */
const LOAD_MILLISECONDS = 400_000

/** Reads the list page by page, as somebody does who scrolls to its end, and again where reading was interrupted. */
export async function loadAll(page: Page, count: number): Promise<void> {
  await openServers(page)
  const until = clock.monotonicMilliseconds() + LOAD_MILLISECONDS
  for (;;) {
    const rows = await page.evaluate<number>(SCROLL_TO_END)
    if (rows === count) return
    if (clock.monotonicMilliseconds() > until) throw new Error(`only ${rows} of ${count} servers came`)
    await clock.sleep(FRAME_MILLISECONDS)
  }
}

/** In the page; the number of rows that it has read. */
const SCROLL_TO_END = `(() => {
  const scroll = document.querySelector('.table-scroll.tall')
  if (scroll === null) document.querySelector('.table-foot button')?.click()
  else scroll.scrollTop = scroll.scrollTop === 0 ? scroll.scrollHeight : 0
  return Number(document.querySelector('.table').getAttribute('aria-rowcount')) - 1
})()`

/** Reads the stream of changes of the first account beside any page, until the returned function is called. */
export async function readChanges(
  { url, cloud }: Pick<BenchPortal, 'url' | 'cloud'>,
  onChange: (data: string) => void,
): Promise<() => void> {
  const ending = new AbortController()
  const { signal } = ending
  const response = await fetch(`${url}/v1/changes`, { headers: { authorization: `Bearer ${cloud.tokens[0]}` }, signal })
  if (response.status !== 200) throw new Error(`the stream of changes got ${response.status}`)
  const read = async () => {
    for await (const { event, data } of events(response, signal)) if (event === 'change') onChange(data)
  }
  read().catch(() => {}) // it is aborted
  return () => ending.abort()
}
