/** Pages of the tier's Chromium at the tier's product. Each test has a context for itself: cookies, storage and tabs. A
 *  test fails when its pages violate their policy, request anything from another origin, or report an error that the
 *  test did not name. */
import { randomInt, randomUUID } from 'node:crypto'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, inject, onTestFinished } from 'vitest'
import type { Endpoints } from '../../../../embedded/cloud.ts'
import { Customer, PASSWORD } from '../../../e2e/customer.ts'

/** A user with a new account. */
export interface Person {
  readonly email: string
  readonly password: string
  /** What changes the account beside the browser. */
  readonly customer: Customer
  /** Those of a session. */
  readonly cookies: readonly { readonly name: string; readonly value: string }[]
  /** The address that requests come from: rates of addresses are not shared. */
  readonly address: string
}

export interface PageOptions {
  /** Who is signed in; nobody when absent. */
  readonly as?: Person
  /** In CSS pixels. */
  readonly width?: number
  readonly height?: number
  readonly theme?: 'light' | 'dark'
  readonly locale?: string
  /** Errors in the console that the test brings about, with the address that they concern: `…/v1/servers`. */
  readonly allows?: readonly RegExp[]
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

/** Nobody is signed in: that is an error in the console of Chromium, and not of the page. */
const SIGNED_OUT = /status of 401 .*\/v1\/auth\/me$/

/** Reported like an error of the page. */
const REPORT_VIOLATIONS = `addEventListener('securitypolicyviolation', (event) => {
  console.error('policy: ' + event.effectiveDirective + ' refused ' + event.blockedURI + ' ' + event.sample)
})`

/** The tier's product and Chromium, for the tests of a file. */
export function usePortal(): PortalTests {
  const endpoints = inject('portalEndpoints')
  const chromiumUrl = inject('chromiumUrl')
  if (endpoints === undefined || chromiumUrl === undefined) throw new Error('the tier has no product')
  const url = endpoints.api_url
  let browser: Browser | undefined
  beforeAll(async () => {
    browser = await chromium.connect(chromiumUrl)
  })
  afterAll(() => browser?.close())
  return {
    url,
    endpoints,
    signUp: () => signUp(endpoints),
    async page({ as, width = NOTEBOOK, height = HEIGHT, theme = 'light', locale = 'en-US', allows = [] } = {}) {
      if (browser === undefined) throw new Error('pages are for tests')
      const context = await browser.newContext({
        baseURL: url,
        viewport: { width, height },
        colorScheme: theme,
        locale,
        timezoneId: 'UTC',
        extraHTTPHeaders: { 'x-forwarded-for': as?.address ?? newAddress() },
      })
      const faults = watch(context, url)
      onTestFinished(async () => {
        await context.close()
        const expected = [...allows, ...(as === undefined ? [SIGNED_OUT] : [])]
        const unexpected = faults.filter((fault) => !expected.some((pattern) => pattern.test(fault)))
        if (unexpected.length > 0) throw new Error(`the page reported:\n${unexpected.join('\n')}`)
      })
      await context.addInitScript(REPORT_VIOLATIONS)
      if (as !== undefined) await context.addCookies(as.cookies.map((cookie) => ({ ...cookie, url })))
      return context.newPage()
    },
  }
}

/** Collects what a person would not see: errors, violations, requests to other origins. */
function watch(context: BrowserContext, url: string): readonly string[] {
  const faults: string[] = []
  context.on('console', (message) => {
    if (message.type() === 'error') faults.push(`${message.text()} ${message.location().url}`)
  })
  context.on('weberror', (error) => faults.push(String(error.error().stack ?? error.error())))
  context.on('request', (request) => {
    const address = request.url()
    const isOwn = address.startsWith(`${url}/`) || /^(data|blob):/.test(address)
    if (!isOwn) faults.push(`a request to another origin: ${address}`)
  })
  return faults
}

/** One of a block for private networks. */
const newAddress = (): string => `10.${randomInt(256)}.${randomInt(256)}.${randomInt(1, 255)}`

async function signUp(endpoints: Endpoints): Promise<Person> {
  const email = `${randomUUID()}@example.com`
  const address = newAddress()
  const headers = { 'x-forwarded-for': address }
  const customer = await Customer.signUp(() => ({ endpoints }), email, headers)
  return { email, password: PASSWORD, customer, address, cookies: await signIn(endpoints.api_url, email, headers) }
}

async function signIn(url: string, email: string, headers: Readonly<Record<string, string>>) {
  const response = await fetch(`${url}/v1/auth/login`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({ email, password: PASSWORD }),
  })
  if (response.status !== 200) throw new Error(`signing in answered ${response.status}: ${await response.text()}`)
  return response.headers.getSetCookie().map((text) => {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(text) ?? []
    return { name, value }
  })
}
