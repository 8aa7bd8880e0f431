/** The portal of a deployment with its own name, images, colours and links. The pages are those of the tier's build,
 *  served with a brand by a server of this file, which passes requests for the API on. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { openBrand } from '../../../apiserver/kit/pages/brand.ts'
import { openPortal, type PortalPage, portalPages } from '../../../apiserver/kit/pages/portal.ts'
import type { HttpRequest, HttpResponse } from '../../../kit/http/exchange.ts'
import { type RunningServer, startServer } from '../../../kit/http/server.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { systemRandom } from '../../../kit/sys/random.ts'
import { accessFaults, overflow } from './kit/access.ts'
import { usePortal, WIDTHS } from './kit/browser.ts'

const portal = usePortal()
const NAME = 'Wolke <b id="bold">7</b>'
/** Whoever opens it sees a square; its script would say so. */
const HOSTILE = `<svg xmlns="http://www.w3.org/2000/svg" width="120" height="32" viewBox="0 0 120 32" onload="ran = 1">
  <script>globalThis.ran = 1; document.documentElement.setAttribute('data-ran', '1')</script>
  <rect width="120" height="32" fill="COLOUR" />
</svg>`

let folder = ''
const servers: RunningServer[] = []
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-brand-'))
  await writeFile(join(folder, 'light.svg'), HOSTILE.replace('COLOUR', '#0b6b3a'))
  await writeFile(join(folder, 'dark.svg'), HOSTILE.replace('COLOUR', '#6fd6a0'))
})
afterAll(async () => {
  for (const server of servers) await server.stop(0)
  await rm(folder, { recursive: true, force: true })
})

/** Streams are not passed on: pages read again instead. */
async function passedOn(origin: string, { method, target, headers, body }: HttpRequest): Promise<HttpResponse> {
  if (target.startsWith('/v1/changes')) return { status: 404, headers: {}, body: '' }
  const chunks: Uint8Array[] = []
  if (body !== undefined && typeof body !== 'string' && !(body instanceof Uint8Array))
    for await (const chunk of body) chunks.push(chunk)
  const passed = ['accept', 'content-type', 'cookie', 'x-csrf-token', 'x-forwarded-for'].flatMap((name) =>
    typeof headers[name] === 'string' ? [[name, headers[name]] as const] : [],
  )
  const answer = await fetch(`${origin}${target}`, {
    method,
    headers: Object.fromEntries(passed),
    ...(chunks.length > 0 ? { body: Buffer.concat(chunks) } : {}),
    redirect: 'manual',
  })
  return {
    status: answer.status,
    headers: { 'content-type': answer.headers.get('content-type') ?? 'application/json' },
    body: await answer.text(),
  }
}

async function serve(page: PortalPage, content: unknown): Promise<string> {
  const path = join(folder, 'brand.yaml')
  await writeFile(path, stringify(content))
  const { api_url: customers, operator_url: operators } = portal.endpoints
  const server = await startServer({
    host: '127.0.0.1',
    port: 0,
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
    pages: portalPages({ portal: await openPortal(undefined, await openBrand(path)), page }, () => false),
    service: (request) => passedOn(page === 'index.html' ? customers : operators, request),
  })
  servers.push(server)
  return `http://127.0.0.1:${server.port}`
}

const COLOURS = { light: '#0b6b3a', dark: '#6fd6a0' }
const BRAND = {
  name: NAME,
  icon: 'light.svg',
  accent: COLOURS,
  links: { imprint: 'https://example.com/imprint?a="><b>', support: 'mailto:help@example.com' },
}
const rgb = (colour: string): string =>
  `rgb(${[1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16)).join(', ')})`

describe.each(['light', 'dark'] as const)('a deployment with its own brand, in the theme %s', (theme) => {
  it('signs in under its name and its colours', async () => {
    const at = await serve('index.html', BRAND)
    const page = await portal.page({ at, theme })
    await page.goto('/login')
    await page.getByRole('link', { name: NAME }).waitFor()
    expect(await page.title()).toBe(`Sign in · ${NAME}`)
    expect(await page.locator('#bold').count()).toBe(0)
    await page.getByRole('button', { name: 'Sign in' }).waitFor()
    const colour = "getComputedStyle(document.querySelector('button[type=submit]')).backgroundColor"
    expect(await page.evaluate(colour)).toBe(rgb(COLOURS[theme]))
    expect(await page.getByRole('link', { name: 'Support' }).getAttribute('href')).toBe(BRAND.links.support)
    const imprint = page.getByRole('link', { name: 'Imprint' })
    expect(await imprint.getAttribute('href')).toBe(BRAND.links.imprint)
    expect(await imprint.getAttribute('rel')).toBe('noopener noreferrer')
    expect(await page.locator('link[rel="icon"]').getAttribute('href')).toMatch(/^\/brand\/\w+\.svg$/)
    expect(await accessFaults(page)).toEqual([])
  })

  it('shows its pages in its colours, to everybody', async () => {
    const at = await serve('index.html', BRAND)
    const page = await portal.page({ at, theme, as: await portal.signUp(), allows: [/404 .*\/v1\/changes$/] })
    for (const path of ['/dashboard', '/servers', '/servers/new', '/settings']) {
      await page.goto(path)
      await page.getByRole('heading', { level: 1 }).waitFor()
      await expect
        .poll(() => page.getByRole('navigation').getByRole('link', { name: 'Support' }).count(), { timeout: 60_000 })
        .toBe(1)
      expect(await accessFaults(page), path).toEqual([])
    }
    expect(await page.title()).toContain(` · ${NAME}`)
  })

  it('has its logo in place of the name', async () => {
    const at = await serve('index.html', { ...BRAND, logo: 'light.svg', logo_dark: 'dark.svg' })
    const page = await portal.page({ at, theme })
    await page.goto('/login')
    const logo = page.getByRole('link').getByRole('img', { name: NAME })
    await logo.waitFor()
    await expect.poll(() => logo.count(), { timeout: 60_000 }).toBe(1)
    const widths = '[...document.images].filter((image) => image.offsetParent).map((image) => image.naturalWidth)'
    expect(await page.evaluate(widths)).toEqual([120])
    const address = (await logo.getAttribute('src')) ?? ''
    expect(await (await fetch(`${at}${address}`)).text()).toContain(COLOURS[theme])
    expect(await page.evaluate("'ran' in globalThis")).toBe(false)
    expect(await accessFaults(page)).toEqual([])
  })
})

it('has images that can do nothing, also when somebody opens one', async () => {
  const at = await serve('index.html', { name: NAME, logo: 'light.svg' })
  const allows = [/Blocked script execution/]
  const page = await portal.page({ at, allows })
  await page.goto('/login')
  const address = await page.getByRole('img', { name: NAME }).getAttribute('src')
  await page.goto(address ?? '')
  await expect.poll(() => page.locator('rect').count(), { timeout: 60_000 }).toBe(1)
  expect(await page.evaluate("[document.documentElement.dataset.ran ?? '', 'ran' in globalThis]")).toEqual(['', false])
})

it('speaks the language that somebody chooses before the sign-in', async () => {
  const at = await serve('index.html', BRAND)
  const page = await portal.page({ at })
  await page.goto('/login')
  await page.getByRole('button', { name: 'Deutsch' }).click()
  await page.getByRole('link', { name: 'Impressum' }).waitFor()
  expect(await page.evaluate('document.documentElement.lang')).toBe('de')
})

it.each(WIDTHS)('fits in %s pixels with a long name and all links', async (width) => {
  const link = 'https://example.com/'
  const at = await serve('index.html', {
    name: 'Rechenzentrum Donaudampfschiffe AG & Co.',
    links: { imprint: link, privacy: link, terms: link, support: link, status: link },
  })
  const page = await portal.page({ at, width })
  await page.goto('/login')
  await page.getByRole('heading', { level: 1 }).waitFor()
  expect(await overflow(page)).toEqual([])
})

it('is the same for staff', async () => {
  const at = await serve('operator.html', BRAND)
  const page = await portal.page({ at })
  await page.goto('/login')
  await page.getByRole('heading', { level: 1 }).waitFor()
  await expect.poll(() => page.getByRole('link', { name: NAME }).count(), { timeout: 60_000 }).toBe(1)
  expect(await page.title()).toContain(NAME)
  expect(await accessFaults(page)).toEqual([])
})

it('mails in the language that a customer chooses', async () => {
  const person = await portal.signUp()
  const page = await portal.page({ as: person })
  await page.goto('/dashboard')
  await page.getByRole('button', { name: `Account menu of ${person.email}` }).click()
  await page.getByRole('menuitem', { name: 'Deutsch' }).click()
  await page.getByRole('heading', { level: 1, name: 'Übersicht' }).waitFor()
  const answer = await page.request.get('/v1/account/preferences')
  expect(await answer.json()).toMatchObject({ preferences: { locale: 'de' } })
})
