/** Pages of the tier's Chromium at the tier's product. Each test has a context for itself: cookies, storage and tabs. A
 *  test fails when its pages violate their policy, request anything from another origin, or report an error that the
 *  test did not name. */
import { type Browser, type BrowserContext, chromium, type Locator, type Page } from 'playwright-core'
import { afterAll, beforeAll, expect, inject, onTestFinished } from 'vitest'
import type { Endpoints } from '../../../../embedded/cloud.ts'
import { environment } from '../../../../kit/sys/process.ts'
import { newAddress, type Person, signUp, type Visitor } from './person.ts'

export interface PageOptions {
  /** Another origin than that of the tier's product. */
  readonly at?: string
  /** Who is signed in; nobody when absent. */
  readonly as?: Visitor
  /** Other origins that the page opens. */
  readonly opens?: readonly string[]
  /** Its pages send requests to the object storage. `trusted`: as in a browser whose owner has added the authority of
   *  the product. */
  readonly objectStorage?: 'trusted' | 'untrusted'
  /** In CSS pixels. */
  readonly width?: number
  readonly height?: number
  readonly theme?: 'light' | 'dark'
  readonly locale?: string
  /** Errors in the console that the test brings about, with the address that they concern: `…/v1/servers`. The test
   *  fails too when one of them does not appear. */
  readonly allows?: readonly RegExp[]
  /** Those that the page reports only when it happens to read at that moment, such as what was just deleted. */
  readonly permits?: readonly RegExp[]
}

export interface PortalTests {
  readonly url: string
  readonly endpoints: Endpoints
  /** Signs up as a person does, and answers once the address is verified and a session is open. */
  signUp(): Promise<Person>
  /** A tab in a context for this test, which ends with it. */
  page(options?: PageOptions): Promise<Page>
}

/** Widths at which pages are looked at: a small and a usual phone, a tablet, a notebook. */
export const WIDTHS = [320, 390, 768, 1360] as const
const HEIGHT = 900
const [, , , NOTEBOOK] = WIDTHS

/** For an element or a page to appear: as long as the tier's tests wait for a condition. */
const PATIENCE_MILLISECONDS = Number(environment()['SVCCLOUD_TEST_PATIENCE_MILLISECONDS'] ?? 90_000)

/** Nobody is signed in: that is an error in the console of Chromium, and not of the page. */
const SIGNED_OUT = /status of 401 .*\/v1\/(admin\/)?auth\/me$/

/** Reported like an error of the page. */
const REPORT_VIOLATIONS = `addEventListener('securitypolicyviolation', (event) => {
  console.error('policy: ' + event.effectiveDirective + ' refused ' + event.blockedURI + ' ' + event.sample)
})`

/** The tier's product and Chromium, for the tests of a file: the portal of customers, or that of operators. */
export function usePortal(listener: 'api_url' | 'operator_url' = 'api_url'): PortalTests {
  const endpoints = inject('portalEndpoints')
  const chromiumUrl = inject('chromiumUrl')
  if (endpoints === undefined || chromiumUrl === undefined) throw new Error('the tier has no product')
  const url = endpoints[listener]
  let browser: Browser | undefined
  beforeAll(async () => {
    browser = await chromium.connect(chromiumUrl)
  })
  afterAll(() => browser?.close())
  return {
    url,
    endpoints,
    signUp: () => signUp(endpoints),
    async page(options = {}) {
      const { as, opens = [], width = NOTEBOOK, height = HEIGHT, theme = 'light', locale = 'en-US' } = options
      const { at = url, allows = [], permits = [], objectStorage } = options
      if (browser === undefined) throw new Error('pages are for tests')
      const context = await browser.newContext({
        baseURL: at,
        viewport: { width, height },
        colorScheme: theme,
        locale,
        timezoneId: 'UTC',
        ignoreHTTPSErrors: objectStorage === 'trusted',
        // it would be sent to every origin, and no browser adds one
        ...(objectStorage === undefined
          ? { extraHTTPHeaders: { 'x-forwarded-for': as?.address ?? newAddress() } }
          : {}),
      })
      context.setDefaultTimeout(PATIENCE_MILLISECONDS)
      const others = objectStorage === undefined ? opens : [...opens, endpoints.object_storage_url ?? '']
      const faults = watch(context, [at, ...others])
      onTestFinished(async () => {
        const reported = [...faults] // what is played ends with the routes
        // a route may be answering still
        await Promise.all(context.pages().map((page) => page.unrouteAll({ behavior: 'ignoreErrors' })))
        await context.close()
        const expected = [...allows, ...permits, ...(as === undefined ? [SIGNED_OUT] : [])]
        const unexpected = reported.filter((fault) => !expected.some((pattern) => pattern.test(fault)))
        if (unexpected.length > 0) throw new Error(`the page reported:\n${unexpected.join('\n')}`)
        const absent = allows.filter((pattern) => !reported.some((fault) => pattern.test(fault)))
        if (absent.length > 0) throw new Error(`the page did not report ${absent.join(', ')}`)
      })
      await context.addInitScript(REPORT_VIOLATIONS)
      if (as !== undefined) await context.addCookies(as.cookies.map((cookie) => ({ ...cookie, url: at })))
      return context.newPage()
    },
  }
}

/** The page with its data. */
export async function open(page: Page, path: string): Promise<void> {
  await page.goto(path)
  await page.getByRole('heading', { level: 1 }).waitFor()
  await expect.poll(() => page.getByRole('main').locator('[aria-busy="true"]').count()).toBe(0)
}

export const dialogOf = (page: Page): Locator => page.getByRole('dialog').or(page.getByRole('alertdialog'))
/** Presses the button of the dialog. */
export const confirm = (page: Page, name: string): Promise<void> =>
  dialogOf(page).getByRole('button', { name, exact: true }).click()

/** Collects what a person would not see: errors, violations, requests to other origins. */
function watch(context: BrowserContext, origins: readonly string[]): readonly string[] {
  const faults: string[] = []
  context.on('console', (message) => {
    if (message.type() === 'error') faults.push(`${message.text()} ${message.location().url}`)
  })
  context.on('weberror', (error) => faults.push(String(error.error().stack ?? error.error())))
  context.on('request', (request) => {
    const address = request.url()
    const isOwn = origins.some((origin) => address.startsWith(`${origin}/`)) || /^(data|blob):/.test(address)
    if (!isOwn) faults.push(`a request to another origin: ${address}`)
  })
  return faults
}
